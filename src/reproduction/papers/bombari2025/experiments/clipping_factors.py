"""The clipping factors in closed form, their bounds, and an independent quadrature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Count, Positive

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Figure 9, Lemmas B.1 and B.2"


class Parameters(Strict):
    """Figure 9: the factors against the normalised clipping constant."""

    largest_ratio: Positive = Field(4.0, description="Right end of the drawn range.")
    points: Annotated[Count, Field(ge=10)] = Field(400, description="Points drawn.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Factors on the drawn range, and what the lemmas say of them."""
    import xarray as xr

    from privreg.theory.one_pass_dpgd.clipping import descent_factor, variance_factor

    ratio = np.linspace(0, parameters.largest_ratio, parameters.points + 1)[1:]
    # With no risk and unit label noise the clipping constant is the ratio itself.
    descent = descent_factor(0.0, clip_constant=ratio, label_noise_std=1.0)
    variance = variance_factor(0.0, clip_constant=ratio, label_noise_std=1.0)
    wide = np.geomspace(1e-4, 20, 2001)
    wide_descent = descent_factor(0.0, clip_constant=wide, label_noise_std=1.0)
    wide_variance = variance_factor(0.0, clip_constant=wide, label_noise_std=1.0)
    small, large = wide <= 1, wide > 1
    tiny = 1e-6

    def scalar(value: ArrayLike, meaning: str) -> tuple:
        return variable((), value, meaning)

    return xr.Dataset(
        {
            "descent_factor": variable("ratio", descent, "descent reduction factor"),
            "variance_factor": variable("ratio", variance, "variance reduction factor"),
            "quadrature_error": scalar(
                _quadrature_error(wide[::20]), "largest distance of the factors to a quadrature"
            ),
            "least_increment": scalar(
                min(np.diff(wide_descent[wide < 5]).min(), np.diff(wide_variance[wide < 5]).min()),
                "least increment of the factors between neighbouring clipping constants",
            ),
            "largest_descent_over_ratio": scalar(
                (wide_descent / wide).max(), "largest descent factor over normalised constant"
            ),
            "largest_variance_over_square": scalar(
                (wide_variance / wide**2).max(), "largest variance factor over squared constant"
            ),
            "least_variance_over_square_below_one": scalar(
                (wide_variance / wide**2)[small].min(),
                "least variance factor over squared constant, for constants up to 1",
            ),
            "least_variance_above_one": scalar(
                wide_variance[large].min(), "least variance factor for constants above 1"
            ),
            "variance_over_square_increment": scalar(
                np.diff(wide_variance / wide**2).max(),
                "largest increment of the variance factor over the squared constant",
            ),
            "descent_over_ratio_increment": scalar(
                np.diff(wide_descent / wide).max(),
                "largest increment of the descent factor over the constant",
            ),
            "variance_at_one": scalar(
                variance_factor(0.0, clip_constant=1.0, label_noise_std=1.0),
                "variance factor at constant 1",
            ),
            "descent_limit": scalar(
                descent_factor(0.0, clip_constant=tiny, label_noise_std=1.0) / tiny,
                "limit of the descent factor over a small constant",
            ),
            "variance_limit": scalar(
                variance_factor(0.0, clip_constant=tiny, label_noise_std=1.0) / tiny**2,
                "limit of the variance factor over a small squared constant",
            ),
            "variance_over_ratio_peak": scalar(
                ratio[np.argmax(variance / ratio)],
                "constant at which the variance factor over the constant is largest",
            ),
        },
        coords={
            "ratio": variable(
                "ratio", ratio, "clipping constant over the residual's standard deviation"
            )
        },
    )


def _quadrature_error(ratios: np.ndarray) -> float:
    """Against Gauss-Legendre on either side of the clipping point, from the definition (4.6)."""
    from privreg.theory.one_pass_dpgd.clipping import descent_factor, variance_factor

    points, weights = np.polynomial.legendre.leggauss(120)

    def expectation(function, ratio: float) -> float:  # type: ignore[no-untyped-def]
        total = 0.0
        for low, high in ((0.0, min(ratio, 12.0)), (min(ratio, 12.0), 12.0)):
            nodes = low + (high - low) * (points + 1) / 2
            density = np.exp(-(nodes**2) / 2) * np.sqrt(2 / np.pi)
            total += (high - low) / 2 * np.sum(weights * density * function(nodes))
        return float(total)

    worst = 0.0
    for ratio in ratios:
        descent = expectation(lambda r, c=ratio: np.minimum(r, c) * r, ratio)
        variance = expectation(lambda r, c=ratio: np.minimum(r, c) ** 2, ratio)
        worst = max(
            worst,
            abs(descent - float(descent_factor(0.0, clip_constant=ratio, label_noise_std=1.0))),
            abs(variance - float(variance_factor(0.0, clip_constant=ratio, label_noise_std=1.0))),
        )
    return worst
