"""Why no gradient is clipped: tails of Gaussian features and labels, and runs that are watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.quantities import Count, LogAxis, Positive, Some
from reproduction.papers.anon2024.setting import Problem

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Sections 3.1 and B.2.1, Lemmas B.2, B.3, B.13 and B.16"
# The squared sub-Gaussian norm of a standard normal.
GAUSSIAN_SCALE = 8 / 3
SHAPES = ("identity", "population")


class Parameters(Problem):
    """A problem, and the grids of the tail bounds."""

    estimating_rows: Count = Field(description="Public labelled rows m of the estimate.")
    degrees: Some[Count] = Field(description="Ranks of the identity in the bounds.")
    failures: LogAxis = Field(description="beta, at most 1/2.")
    public_rows: Some[Count] = Field(description="Public rows M.")
    horizon: Positive = Field(description="N eta of the design in Lemma B.16.")

    @property
    def cap(self) -> float:
        trace = float(self.eigenvalues.sum())
        return 1 / (16 * (1 + GAUSSIAN_SCALE**2) * trace * np.log2(self.sample_size))

    def constant(self, shape: np.ndarray) -> float:
        """C of Theorem 4.2."""
        trace = float(np.sum(self.eigenvalues / shape))
        scale = GAUSSIAN_SCALE * (1 + GAUSSIAN_SCALE) * trace
        return float(6 * np.sqrt(scale) * np.log(self.sample_size))


def theory(parameters: Parameters) -> xr.Dataset:
    """Exact tails of forms of the identity over the printed probabilities."""
    import xarray as xr
    from scipy.stats import chi2

    failures = parameters.failures.values()
    logarithm = np.log(1 / failures)
    norm = max(
        float((chi2.sf(2 * GAUSSIAN_SCALE * d * logarithm, d) / failures).max())
        for d in parameters.degrees
    )
    excess = np.geomspace(1e-2, 1e4, 400)
    tail = min(
        float((-chi2.logsf(GAUSSIAN_SCALE * d + excess, d) * GAUSSIAN_SCALE / excess).min())
        for d in parameters.degrees
    )
    label = chi2.sf(logarithm, 1) / failures
    return xr.Dataset(
        {
            "norm_constant": variable((), norm, "least c_1 of Lemma B.2 for the norm"),
            "product_constant": variable(
                (),
                float((chi2.sf(GAUSSIAN_SCALE * logarithm, 1) / failures).max()),
                "least c_2 of Lemma B.2 for the product",
            ),
            "label_constant": variable(
                "failure", label, "least c_3 of Lemma B.2 for the label noise, gamma_3 as printed"
            ),
            "label_exponent": variable(
                (),
                1 + np.log(label[0] / label[1]) / np.log(failures[0] / failures[1]),
                "local power of beta in that probability at the least beta",
            ),
            "scaled_label_constant": variable(
                (),
                float((chi2.sf(GAUSSIAN_SCALE * logarithm, 1) / failures).max()),
                "least c_3 with K^2 in gamma_3",
            ),
            "tail_constant": variable((), tail, "least c of Lemma B.13 over ranks and t"),
        },
        coords={"failure": variable("failure", failures, "failure probability beta")},
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Gradients of runs without private noise over their clip norms, and Lemma B.16's forms."""
    import xarray as xr

    from reproduction.experiment.progress import track

    largest = np.zeros((len(SHAPES), len(trials)))
    product, estimate = np.zeros(len(trials)), np.zeros(len(trials))
    forms = np.zeros((len(parameters.public_rows), len(trials)))
    for at, trial in enumerate(track(trials, total=len(trials), label="gradients")):
        rows = parameters.model.sample(parameters.sample_size, trial.rng)
        estimating = parameters.model.sample(parameters.estimating_rows, trial.rng)
        for place, name in enumerate(SHAPES):
            found = _watched_run(parameters, name, rows, estimating)
            largest[place, at] = found[0]
            product[at], estimate[at] = max(product[at], found[1]), found[2]
        for place, count in enumerate(parameters.public_rows):
            forms[place, at] = _least_form(parameters, count, trial.rng)
    return xr.Dataset(
        {
            "largest_gradient": variable(
                ("noise_shape", "trial"), largest, "largest gradient over its clip norm"
            ),
            "product_error": variable(
                "trial", product, "distance of the gradient's norm from its two factors"
            ),
            "least_estimate": variable(
                "trial", estimate, "least squared residual estimate over the true mean square"
            ),
            "least_form": variable(
                ("public_rows", "trial"), forms, "least form of Lemma B.16 over its bound at C = 1"
            ),
        },
        coords=_coordinates(parameters),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Shares of runs, and the worst of all."""
    import xarray as xr

    clipped = (simulation.largest_gradient.values > 1).mean(axis=-1)
    return xr.Dataset(
        {
            "clipped_runs": variable(
                "noise_shape",
                clipped * parameters.sample_size,
                "share of runs that clip a gradient, over 1/N",
            ),
            "largest_gradient": variable(
                "noise_shape",
                simulation.largest_gradient.values.max(axis=-1),
                "largest gradient over its clip norm in all runs",
            ),
            "product_error": variable(
                (),
                simulation.product_error.values.max(),
                "largest distance of a gradient's norm from its two factors",
            ),
            "underestimates": variable(
                (),
                (simulation.least_estimate.values < 1).mean(),
                "share of runs in which an estimate is below the truth",
            ),
            "least_form": variable(
                "public_rows",
                simulation.least_form.values.min(axis=-1),
                "least form of Lemma B.16 over its bound at C = 1",
            ),
        },
        coords=_coordinates(parameters) | {"trial": simulation.trial.variable},
    )


def _watched_run(
    parameters: Parameters,
    name: str,
    rows: tuple[np.ndarray, np.ndarray],
    estimating: tuple[np.ndarray, np.ndarray],
) -> tuple[float, float, float]:
    """Algorithm 1 without noise, at the theorem's constant and step size."""
    from privreg.algorithms.residual_estimate import public_residual_scale

    eta = parameters.cap
    shape = parameters.shape(name, eta)
    constant, lam = parameters.constant(shape), parameters.eigenvalues
    iterate, largest, error, least = np.zeros(parameters.dimension), 0.0, 0.0, np.inf
    for x, y in zip(*rows, strict=True):
        scale = public_residual_scale(*estimating, iterate)
        residual = float(x @ iterate - y)
        norm = float(np.sqrt(np.sum((x * residual) ** 2 / shape)))
        factors = float(np.sqrt(np.sum(x**2 / shape))) * abs(residual)
        error = max(error, abs(norm / factors - 1))
        largest = max(largest, norm / (constant * scale))
        truth = lam @ (iterate - parameters.target) ** 2 + parameters.label_noise_std**2
        least = min(least, scale**2 / float(truth))
        iterate = iterate - eta * x * residual
    return largest, error, least


def _least_form(parameters: Parameters, count: int, rng: np.random.Generator) -> float:
    """z_i' A_{-i}^-1 z_i over lambda M / (lambda + the tail), the least over directions i."""
    lam = parameters.eigenvalues
    ridge = count / parameters.horizon
    normals = rng.standard_normal((count, lam.size))
    matrix = np.eye(count) + (normals * (lam / ridge)) @ normals.T
    whole = np.einsum("mi,mi->i", normals, np.linalg.solve(matrix, normals))
    # Sherman and Morrison: without its own direction.
    forms = whole / (1 - lam / ridge * whole)
    tails = np.append(np.cumsum(lam[::-1])[::-1][1:], 0.0)
    tail_from = np.append(lam.sum(), tails)
    inside = np.append(lam, 0.0) * count <= ridge + tail_from
    place = int(np.argmax(inside))
    return float(forms.min() * (ridge + tail_from[place]) / (ridge * count))


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {
        "noise_shape": variable("noise_shape", list(SHAPES), "noise covariance"),
        "public_rows": variable("public_rows", parameters.public_rows, "public rows M"),
    }
