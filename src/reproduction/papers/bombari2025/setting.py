"""What the experiments of bombari2025 share: noise, clipping, and covariances of mean 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis

if TYPE_CHECKING:
    from privreg.spectra import Spectrum

SpectrumName = Literal["isotropic", "uniform"]
# Where powers of ln(1 / gamma) come forth.
TinyRatio = Annotated[q.Real, Field(ge=1e-30, lt=1)]
SPECTRUM = Axis("covariance spectrum", "spectra")
EXPONENT = Axis("schedule exponent alpha", "exponents")
SCHEDULE = Axis("schedule of the rate", "schedules")
SAMPLE_SIZE = Axis("samples n", "sample_sizes")
ASPECT_RATIO = Axis("aspect ratio gamma = d / n", "aspect_ratios")
CLIP_CONSTANT = Axis("clipping constant c", "clip_constants")
INITIAL_RATE = Axis("initial learning rate", "initial_rates")

HARMONIC = "harmonic"


class Labelled(Strict):
    """Label noise, which there is."""

    label_noise_std: q.PositiveDeviation = Field(
        description="Standard deviation zeta of the label noise."
    )

    def problem(
        self, aspect_ratio: float, zcdp_root: float, clip_constant: float
    ) -> dict[str, Any]:
        """What the theory asks for, but for spectrum and schedule."""
        return {
            "aspect_ratio": aspect_ratio,
            "zcdp_root": zcdp_root,
            "clip_constant": clip_constant,
            "label_noise_std": self.label_noise_std,
        }


class Clipped(Labelled):
    """Label noise, and gradients clipped to one norm where no other is said."""

    clip_constant: q.ClipConstant = Field(description="Clipping constant c; the norm is c sqrt(d).")

    def problem(
        self, aspect_ratio: float, zcdp_root: float, clip_constant: float | None = None
    ) -> dict[str, Any]:
        clip = self.clip_constant if clip_constant is None else clip_constant
        return super().problem(aspect_ratio, zcdp_root, clip)


class Spectra(Strict):
    """Covariances of finite dimension."""

    spectra: q.Some[SpectrumName] = Field(
        description="Identity, or diagonal with eigenvalues uniform on [0, 2]."
    )


class Schedules(Strict):
    """Polynomial schedules, by their exponents, and the harmonic one after them."""

    exponents: q.Some[q.Power] = Field(description="Exponents alpha, 0 the first.")

    _begins_with_a_constant_rate = q.must(
        "exponents must begin with 0, the others are over it, got {self.exponents}",
        lambda self: self.exponents[0] == 0,
    )

    @property
    def schedules(self) -> list[str]:
        return [*map(polynomial_name, self.exponents), HARMONIC]

    def exponent(self, schedule: str) -> float:
        """Of a polynomial schedule, by its name."""
        return dict(zip(self.schedules, self.exponents, strict=False))[schedule]


def polynomial_name(exponent: float) -> str:
    """Label of a polynomial schedule."""
    return f"alpha={exponent:g}"


def eigenvalues(spectrum: str, dimension: int, smallest: float = 0.0) -> np.ndarray:
    """Of a covariance: ones, or midpoints of equal cells of [smallest, 2 - smallest]."""
    from privreg.spectra import uniform_midpoints

    if spectrum == "isotropic":
        return np.ones(dimension)
    return uniform_midpoints(dimension, smallest, 2 - smallest)


def finite_spectrum(spectrum: str, dimension: int) -> Spectrum:
    """As many eigenvalues as there are dimensions."""
    from privreg import spectra

    return spectra.explicit(eigenvalues(spectrum, dimension))
