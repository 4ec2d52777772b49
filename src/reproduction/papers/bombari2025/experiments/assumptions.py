"""What the assumptions and definitions ask for, and whether the experiments' designs keep it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    AspectRatio,
    ClipConstant,
    Dimension,
    Positive,
    Power,
    SampleSize,
    SignedPower,
    Some,
)

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Assumptions 1 to 3, equations (1.2), (1.3) and (4.5), Lemma C.2"


class Parameters(Strict):
    """Designs, schedules and sizes at which they are looked at."""

    dimensions: Annotated[Some[Dimension], Field(min_length=2)] = Field(description="Dimensions d.")
    spectrum_powers: Annotated[Some[SignedPower], Field(min_length=2)] = Field(
        description="phi of Assumption 3."
    )
    exponents: Annotated[Some[Power], Field(min_length=2)] = Field(
        description="Exponents alpha of the schedules."
    )
    log_sample_sizes: Annotated[Some[Positive], Field(min_length=2)] = Field(
        description="Logarithms of sample sizes, at a fixed aspect ratio."
    )
    aspect_ratio: AspectRatio = Field(description="gamma.")
    clip_constant: ClipConstant = Field(description="Clipping constant c of Lemma C.2.")
    sample_size: Annotated[SampleSize, Field(ge=10)] = Field(
        description="Sample size n of Lemma C.2."
    )


def theory(parameters: Parameters) -> xr.Dataset:
    """Evaluate them all."""
    import xarray as xr

    dimensions = np.asarray(parameters.dimensions)
    return xr.Dataset(
        _designs(parameters)
        | _power_laws(parameters)
        | _quoted_bounds(parameters)
        | _discretisation(parameters)
        | {
            "curvature_growth": variable(
                "exponent",
                [_curvature_growth(exponent) for exponent in parameters.exponents],
                "second derivative of the squared rate up to 1 - 1e-6 over that up to 1 - 1e-3",
            ),
            "gradient_norm_ratio": variable(
                "dimension",
                # E |x|^2 r^2 = 2 P d + 4 R for isotropic Gaussian x; R = 1/2 and zeta = 0.3.
                np.sqrt(1 + 4 * 0.5 / (dimensions * (2 * 0.5 + 0.3**2))),
                "root mean square norm of a gradient over sqrt(2 P d)",
            ),
        },
        coords={
            "dimension": variable("dimension", parameters.dimensions, "dimension d"),
            "spectrum": variable("spectrum", ["isotropic", "uniform"], "spectrum of the features"),
            "spectrum_power": variable("spectrum_power", parameters.spectrum_powers, "phi"),
            "exponent": variable("exponent", parameters.exponents, "schedule exponent alpha"),
            "log_sample_size": variable(
                "log_sample_size", parameters.log_sample_sizes, "logarithm of the sample size n"
            ),
        },
    )


def _designs(parameters: Parameters) -> dict[str, tuple]:
    """Of the covariances and targets that trajectories, heat-maps and sample sizes draw from."""
    from privreg.models import LinearModel
    from privreg.spectra import uniform_midpoints

    models = [
        [LinearModel.even_target(make(dimension), label_noise_std=0.3) for make in makers]
        for dimension in parameters.dimensions
        for makers in [(np.ones, uniform_midpoints)]
    ]
    dims = ("dimension", "spectrum")
    return {
        "trace_ratio": variable(
            dims,
            [[model.eigenvalues.sum() / model.dimension for model in row] for row in models],
            "trace of the covariance over the dimension",
        ),
        "largest_eigenvalue": variable(
            dims,
            [[model.eigenvalues.max() for model in row] for row in models],
            "largest eigenvalue of the covariance",
        ),
        "target_norm": variable(
            dims,
            [[np.linalg.norm(model.target) for model in row] for row in models],
            "norm of the target",
        ),
    }


def _power_laws(parameters: Parameters) -> dict[str, tuple]:
    """Moments of the library's quadrature against the density of Assumption 3."""
    from scipy.integrate import quad

    from privreg.spectra import power_law, power_law_edge

    mean, mass, error, deviation = [], [], [], []
    for phi in parameters.spectrum_powers:
        edge, spectrum = power_law_edge(phi), power_law(phi)
        psi = (1 - phi) / 2
        # In u = (lambda / C)^(1 - phi), which is uniform, the density has no pole.
        stated = [
            quad(lambda u, k=k, e=edge, p=phi: (e * u ** (1 / (1 - p))) ** k, 0, 1, epsabs=0)[0]
            for k in (1.0, 2.0, -psi)
        ]
        found = [float(spectrum.mean(spectrum.eigenvalues**k)) for k in (1.0, 2.0, -psi)]
        mean.append(stated[0])
        mass.append(float(spectrum.weights.sum()))
        error.append(max(abs(a / b - 1) for a, b in zip(found, stated, strict=True)))
        deviation.append(np.sqrt(stated[1] - 1))
    return {
        "mean_eigenvalue": variable("spectrum_power", mean, "mean eigenvalue of the density"),
        "total_mass": variable("spectrum_power", mass, "mass of the quadrature"),
        "moment_error": variable(
            "spectrum_power",
            error,
            "largest relative distance of the quadrature's moments 1, 2 and -psi to the density's",
        ),
        "eigenvalue_std": variable(
            "spectrum_power", deviation, "standard deviation of the eigenvalues"
        ),
    }


def _quoted_bounds(parameters: Parameters) -> dict[str, tuple]:
    """Private over sampling term of (1.2), and (1.3) with one logarithm, at a fixed ratio."""
    gamma, logs = parameters.aspect_ratio, np.asarray(parameters.log_sample_sizes)
    return {
        "quoted_lower_share": variable(
            "log_sample_size",
            gamma**2 / logs / gamma,
            "private term over sampling term of (1.2) at rho = 1",
        ),
        "quoted_upper_bound": variable(
            "log_sample_size",
            gamma + gamma**2 * logs,
            "(1.3) with the first power of log n for its polynomial, at rho = 1",
        ),
    }


def _curvature_growth(exponent: float) -> float:
    """Growth of the second derivative of the squared rate towards t = 1, by differences."""
    from privreg.schedules import Polynomial

    left = np.geomspace(1e-6, 1.0, 601)
    width = left / 64
    points = 1 - left[:, None] + width[:, None] * np.array([-1.0, 0.0, 1.0])
    points = np.clip(points, 0.0, 1.0)[1:-1]
    squares = Polynomial(1.0, exponent).shape(points) ** 2
    found = np.abs(squares @ np.array([1.0, -2.0, 1.0])) / width[1:-1] ** 2
    inner = left[1:-1] >= 1e-3
    largest = found[inner].max()
    # A constant or linear square leaves rounding alone.
    return float(found.max() / largest) if largest > 1e-3 else 1.0


def _discretisation(parameters: Parameters) -> dict[str, tuple]:
    """The sum of (C.16) at alpha = 1 for the quadratic |u|^2 / 2, over its bound; rho = 1."""
    from privreg.schedules import Polynomial, noise_multipliers, step_shape

    n, c, gamma = parameters.sample_size, parameters.clip_constant, parameters.aspect_ratio
    dimension = gamma * n
    steps = step_shape(Polynomial(1.0, 1.0), n)
    squares = noise_multipliers(steps, zcdp_root=1.0)[:-1] ** 2
    slopes = 2 * (1 - np.arange(1, n) / n)
    total = 2 * dimension * c**2 * abs(np.sum(squares - slopes / n**3)) * dimension
    curvature = 2.0
    return {
        "discretisation_over_printed": variable(
            (), total / (2 * gamma / n * curvature), "sum of (C.16) over its right side"
        ),
        "discretisation_over_corrected": variable(
            (),
            total / (2 * gamma**2 * c**2 / n * curvature),
            "the same sum over the bound in the last line of the proof",
        ),
    }
