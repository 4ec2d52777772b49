"""Settings of the methods that can be predicted, one dataclass a method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from privreg.schedules import Schedule, require_schedule
from privreg.validation import require_count, require_number, require_real

T = TypeVar("T")


@dataclass(frozen=True)
class FullBatch:
    """Full-batch DP-GD (`full_batch_dpgd`), whose last iterate is used.

    Parameters
    ----------
    steps : int
        Number of steps T.
    step_size : float
        η, more than 0.
    clip_norm : float
        Largest gradient norm γ, more than 0.
    """

    steps: int
    step_size: float
    clip_norm: float
    name: str = field(default="full-batch descent", init=False, repr=False)

    def __post_init__(self) -> None:
        require_count("steps", self.steps)
        require_number("step_size", self.step_size, above=0, most=1e30)
        require_number("clip_norm", self.clip_norm, above=0, most=1e30)


@dataclass(frozen=True)
class OnePass:
    """One-pass DP-GD (`one_pass_dpgd.fit`), which releases its last iterate alone.

    Parameters
    ----------
    schedule : Schedule
        Learning rate with one amplitude; step k of n takes η̃(k/n) / n.
    clip_constant : float
        Largest gradient norm over √p, more than 0.
    """

    schedule: Schedule
    clip_constant: float
    name: str = field(default="one pass", init=False, repr=False)

    def __post_init__(self) -> None:
        require_schedule(self.schedule)
        if np.size(self.schedule.amplitude) != 1:
            raise ValueError(
                f"schedule must have one amplitude, got {np.size(self.schedule.amplitude)}"
            )
        require_real("schedule", self.schedule.amplitude, above=0)
        require_number("clip_constant", self.clip_constant, above=0, most=1e30)


@dataclass(frozen=True)
class CorrelatedNoise:
    """One epoch of DP-FTRL (`dp_ftrl`) with damped square-root noise, whose last iterate is used.

    Parameters
    ----------
    batch_size : int
        Rows a step.
    step_size : float
        η, more than 0.
    clip_norm : float
        Largest gradient norm, more than 0.
    damping : float
        ν of the noise's correlation, in [0, 1]; 1 is independent noise.
    """

    batch_size: int
    step_size: float
    clip_norm: float
    damping: float
    name: str = field(default="correlated noise", init=False, repr=False)

    def __post_init__(self) -> None:
        require_count("batch_size", self.batch_size)
        require_number("step_size", self.step_size, above=0, most=1e30)
        require_number("clip_norm", self.clip_norm, above=0, most=1e30)
        require_number("damping", self.damping, least=0, most=1)


@dataclass(frozen=True)
class AdaSSP:
    """Noisy sufficient statistics (`adassp_zcdp`) with the problem's bounds.

    Parameters
    ----------
    ridge_failure : float
        Probability that the ridge is too small for a stable inverse, in (0, 1).
    """

    ridge_failure: float = 0.05
    name: str = field(default="sufficient statistics", init=False, repr=False)

    def __post_init__(self) -> None:
        require_number("ridge_failure", self.ridge_failure, above=0, below=1)


def require_methods(methods: Any, *kinds: type[T]) -> Sequence[T]:
    """Settings of given kinds, at least one."""
    names = ", ".join(kind.__name__ for kind in kinds)
    if not isinstance(methods, (list, tuple)) or not methods:
        raise ValueError(f"methods must be a list of {names}, got {methods!r}")
    for method in methods:
        if type(method) not in kinds:
            raise ValueError(f"methods must be of {names}, got {type(method).__name__}")
    return methods
