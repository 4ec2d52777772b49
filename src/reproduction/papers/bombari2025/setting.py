"""Shared setting of bombari2025: noise, clipping, and covariances of mean 1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from privreg import spectra
from privreg.schedules import Polynomial
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis

# At which powers of ln(1 / gamma) appear.
TinyRatio = Annotated[q.Real, Field(ge=1e-30, lt=1)]
Spectra = Annotated[
    q.Some[Literal["isotropic", "uniform"]],
    Field(description="Identity, or diagonal with eigenvalues uniform on [0, 2]."),
]
SPECTRUM = Axis("covariance spectrum", "spectra")
EXPONENT = Axis("schedule exponent alpha", "exponents")
SCHEDULE = Axis("schedule of the rate", lambda parameters: list(parameters.shapes))
SAMPLE_SIZE = Axis("samples n", "sample_sizes")
ASPECT_RATIO = Axis("aspect ratio gamma = d / n", "aspect_ratios")
CLIP_CONSTANT = Axis("clipping constant c", "clip_constants")
INITIAL_RATE = Axis("initial learning rate", "initial_rates")

HARMONIC = "harmonic"
# C of (5.2), (5.15), (D.23), (D.49), (D.80): the start is forgotten to gamma at every exponent.
FACTOR = 2.0


class Labelled(Strict):
    """Label noise of positive deviation."""

    label_noise_std: q.PositiveDeviation = Field(
        description="Standard deviation zeta of the label noise."
    )

    def problem(self, aspect_ratio: float, zcdp_root: float, clip_constant: Any) -> dict[str, Any]:
        """Arguments of the theory except spectrum and schedule."""
        return {
            "aspect_ratio": aspect_ratio,
            "zcdp_root": zcdp_root,
            "clip_constant": clip_constant,
            "label_noise_std": self.label_noise_std,
        }


class Clipped(Labelled):
    """Label noise, and the clipping constant unless an experiment varies it."""

    clip_constant: q.ClipConstant = Field(description="Clipping constant c; the norm is c sqrt(d).")

    def problem(
        self, aspect_ratio: float, zcdp_root: float, clip_constant: Any = None
    ) -> dict[str, Any]:
        clip = self.clip_constant if clip_constant is None else clip_constant
        return super().problem(aspect_ratio, zcdp_root, clip)


class OneRate(Clipped):
    """Runs with one initial rate and as many samples for each dimension."""

    aspect_ratio: q.AspectRatio = Field(description="gamma = d / n.")
    budget: q.StatedBudget = Field(description="Budget of the private output.")
    initial_rate: q.StepSize = Field(description="Initial learning rate.")

    def sample_size(self, dimension: int) -> int:
        return round(dimension / self.aspect_ratio)

    def schedule(self, exponent: float) -> Polynomial:
        return Polynomial(self.initial_rate, exponent)


class Schedules(Strict):
    """Polynomial schedules, by their exponents, and the harmonic one after them."""

    exponents: q.Some[q.Power] = Field(description="Exponents alpha, 0 the first.")

    _begins_with_a_constant_rate = q.must(
        "exponents must begin with 0, the others are over it, got {self.exponents}",
        lambda self: self.exponents[0] == 0,
    )

    @property
    def shapes(self) -> dict[str, float | str]:
        return shapes(self.exponents)


def shapes(exponents: Iterable[float], *named: str) -> dict[str, float | str]:
    """Polynomial schedules by their labels, others that have a name, and the harmonic one."""
    names = (*named, HARMONIC)
    polynomials = {f"alpha={exponent:g}": exponent for exponent in exponents}
    return polynomials | dict(zip(names, names, strict=True))


def growth(shape: float | str, gamma: float) -> float:
    """Factor beyond gamma in the sampling part, and in the root of the private part, of a rate."""
    if isinstance(shape, str):
        return 1.0
    return float(max(shape, 1.0) * np.log(1 / gamma) ** (1 / (1 + shape)))


def eigenvalues(spectrum: str, dimension: int, smallest: float = 0.0) -> np.ndarray:
    """Eigenvalues of a covariance: ones, or midpoints of cells of [smallest, 2 - smallest]."""
    if spectrum == "isotropic":
        return np.ones(dimension)
    return spectra.uniform_midpoints(dimension, smallest, 2 - smallest)


def finite_spectrum(spectrum: str, dimension: int) -> spectra.Spectrum:
    """Spectrum with one eigenvalue a dimension."""
    return spectra.explicit(eigenvalues(spectrum, dimension))
