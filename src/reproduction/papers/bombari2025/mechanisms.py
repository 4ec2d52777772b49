"""One-pass DP-GD as the experiments run it; a separate module, as no theory needs it."""

from __future__ import annotations

from typing import Any

from privreg.algorithms.one_pass_dpgd import Mechanism
from privreg.privacy.budget import Budget
from privreg.schedules import Schedule


def mechanism(
    budget: Budget, schedule: Schedule, sample_size: int, dimension: int, clip_constant: Any
) -> Mechanism:
    """DP-GD within a budget."""
    return Mechanism.from_schedule(
        schedule,
        sample_size=sample_size,
        dimension=dimension,
        budget=budget,
        clip_constant=clip_constant,
    )
