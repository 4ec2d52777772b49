"""Values that no parameter takes, whatever its name, by the value that it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# Parameters that may be negative: powers of spectra and signals, a mean, labels.
SIGNED = (
    "frequencies",
    "label_noise_mean",
    "labels",
    "signal_power",
    "signal_powers",
    "spectrum_power",
    "spectrum_powers",
)
# Lists whose values are coordinates of a curve; told backwards they are wrong.
RISING = (
    "dimensions",
    "sample_sizes",
    "train",
    "steps",
    "sweep_steps",
    "times",
    "gradients",
    "epsilons",
    "ratios",
)
# Real numbers that the configuration happens to write without a point.
REAL = (
    "averaged_memories",
    "burn_in_memories",
    "condition_numbers",
    "epsilons",
    "high",
    "low",
    "noiseless_rates",
    "rate_factors",
    "values",
)
NAN, INFINITY = float("nan"), float("inf")


def wrong_values(name: str, value: Any) -> Iterator[Any]:
    """Values that are wrong in the place of a valid one, which has this name."""
    if isinstance(value, bool):
        yield from (1, 0, "yes", "true", None, [], [True], {"a": True}, NAN, -1.5)
    elif isinstance(value, int | float):
        yield from wrong_numbers(name, value)
    elif isinstance(value, str):
        yield from (f"{value}x", value.upper() + "_", "", 3, True, None, [], [value], {value: 1})
    elif isinstance(value, list):
        yield from wrong_lists(name, value)
    elif isinstance(value, dict):
        yield from (None, [], [value], 3, True, "text", NAN)
        yield {**value, "unknown_key": 1}
        yield {**value, 3: 1}


def wrong_numbers(name: str, value: float) -> Iterator[Any]:
    yield from (True, False, None, NAN, INFINITY, -INFINITY, "many", f"{value}", f"{value}x")
    yield from ([], [value], {"value": value}, 1e300, 10**120, 10**400, "1e-3", -(10**120))
    if name not in SIGNED:
        yield from (-1, -abs(value) if value else -0.5, -1e-9)
    if isinstance(value, int) and name not in REAL:
        yield from (value + 0.5, 2.0**70)


def wrong_lists(name: str, value: list[Any]) -> Iterator[Any]:
    yield from ([], None, True, "text", {"0": value[0] if value else 1}, NAN, 7)
    yield [*value, value[0]]
    yield list(range(1, 2002))
    if name in RISING and len(value) > 1:
        yield value[::-1]
    # One negative value says that others may be.
    signed = any(isinstance(each, float) and each < 0 for each in value)
    for position, element in enumerate(value):
        for wrong in wrong_values(SIGNED[0] if signed else name, element):
            yield [*value[:position], wrong, *value[position + 1 :]]
