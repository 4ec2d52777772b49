"""How private noise is correlated over the steps of one pass: its stream and what it must hide.

A correlation is a lower-triangular decoder B with ones on its diagonal. Step t adds the increment
ξ_t = Σ_s B_ts z_s to a gradient, and what a record can move in B⁻¹ times the gradients, per unit
of its own gradient, is the `sensitivity`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from privreg.noise.sensitivity import single_participation_sensitivity
from privreg.noise.streams import NoiseStream, ToeplitzNoise, WhiteNoise
from privreg.noise.toeplitz import damped_square_root, damped_square_root_encoder
from privreg.noise.tree import TreeNoise, tree_sensitivity
from privreg.validation import require_count, require_number


@runtime_checkable
class Correlation(Protocol):
    """Noise over steps, for records that take part in one step."""

    def sensitivity(self, steps: int) -> float:
        """Norm of what a gradient of norm 1 moves in the released, decorrelated sequence."""

    def stream(self, dimension: int, *, steps: int, rng: np.random.Generator) -> NoiseStream:
        """Increments ξ_t made of standard normal z."""

    def increment_terms(self, step: int) -> tuple[list[int], list[int]] | None:
        """Earlier steps whose z enters ξ with weight -1, and those whose z no later step needs.

        Steps count from 1. None where the increments are no short combination of single draws, so
        that their scale cannot change from step to step.
        """


@dataclass(frozen=True)
class TreeCorrelation:
    """Tree aggregation (Algorithm 3 of anon2024): prefix noise of one node for each binary digit.

    Examples
    --------
    >>> round(TreeCorrelation().sensitivity(1000) ** 2)
    10
    """

    def sensitivity(self, steps: int) -> float:
        return tree_sensitivity(steps)

    def stream(self, dimension: int, *, steps: int, rng: np.random.Generator) -> NoiseStream:
        return TreeNoise(dimension, rng=rng, steps=require_count("steps", steps))

    def increment_terms(self, step: int) -> tuple[list[int], list[int]] | None:
        step = require_count("step", step)
        level = (step & -step).bit_length() - 1
        children = [step - (1 << below) for below in range(level)]
        return children, children


@dataclass(frozen=True)
class IndependentCorrelation:
    """Fresh noise in every step, as in DP-SGD; in one pass a record is in one step only."""

    def sensitivity(self, steps: int) -> float:
        require_count("steps", steps)
        return 1.0

    def stream(self, dimension: int, *, steps: int, rng: np.random.Generator) -> NoiseStream:
        return WhiteNoise(dimension, rng=rng, steps=require_count("steps", steps))

    def increment_terms(self, step: int) -> tuple[list[int], list[int]] | None:
        return [], [require_count("step", step)]


@dataclass(frozen=True)
class SquareRootCorrelation:
    """The damped square root of choquettechoo2024, ν-DP-FTRL, over all earlier steps.

    Parameters
    ----------
    damping : float
        ν in [0, 1]; about ηλ of the directions that matter, 1 is independent noise.
    """

    damping: float

    def __post_init__(self) -> None:
        require_number("damping", self.damping, least=0, most=1)

    def sensitivity(self, steps: int) -> float:
        encoder = damped_square_root_encoder(steps, damping=self.damping)
        return single_participation_sensitivity(encoder)

    def stream(self, dimension: int, *, steps: int, rng: np.random.Generator) -> NoiseStream:
        decoder = damped_square_root(steps, damping=self.damping)
        return ToeplitzNoise(decoder, dimension=dimension, rng=rng)

    def increment_terms(self, step: int) -> tuple[list[int], list[int]] | None:
        require_count("step", step)
        return None
