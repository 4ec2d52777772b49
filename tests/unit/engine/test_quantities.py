"""Kinds of parameter: what each takes, and the line on which it refuses the rest."""

from __future__ import annotations

import math
from typing import Annotated, Any

import pytest
from pydantic import Field

from reproduction.engine.parameters import ConfigError, Strict, validate
from reproduction.engine.quantities import (
    AspectRatio,
    Count,
    Dimension,
    Flag,
    Power,
    Probability,
    RenyiOrder,
    Rising,
    ShareAxis,
    Some,
    StatedBudget,
    StepSize,
    StepSizeAxis,
    Window,
    at_most,
    less_than,
    more_than,
    must,
)


class Parameters(Strict):
    dimension: Annotated[Dimension, Field(ge=2)] = 3
    repeats: Count = 1
    orders: Annotated[Some[RenyiOrder], Field(min_length=2)] = Field(default=[2.0, 4.0])
    steps: Rising[Count] = Field(default=[1, 2])
    delta: Probability = 0.5
    step_size: StepSize = 0.1
    ratio: AspectRatio = 0.1
    exponents: Some[Annotated[Power, Field(lt=1)]] = Field(default=[0.0])
    rates: StepSizeAxis = StepSizeAxis(low=0.1, high=1.0, count=3)
    shares: ShareAxis = ShareAxis(low=0.1, high=0.9, count=3)
    window: Window = (1.0, 2.0)
    budget: StatedBudget = Field(default={"zcdp": 1.0}, validate_default=True)
    flag: Flag = False

    _enough = more_than("dimension", "repeats")
    _within = at_most("steps", "dimension")
    _small = less_than("step_size", 10)
    _even = must("repeats must not be 13, got {self.repeats}", lambda self: self.repeats != 13)


def test_what_is_right_is_taken():
    found = validate(Parameters, {"orders": [1.5, 8], "steps": [1, 3], "delta": 1e-15}, "p")
    assert found.orders == [1.5, 8.0]
    assert found.budget.rho == 1.0
    assert found.rates.values()[-1] == 1.0


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("dimension", True, "p.dimension must be a whole number, got True"),
        ("dimension", 10**9, "p.dimension must be at most 1e+07, got 1000000000"),
        ("repeats", 3, "p: dimension must be more than repeats = 3, got 3"),
        ("orders", [2.0], "p.orders must have at least 2 values, got [2.0]"),
        ("orders", [2.0, -1.0], "p.orders.1 must be at least 1.001, got -1.0"),
        ("orders", [2.0, 2.0], "p.orders must hold each value once, got 2.0 twice"),
        ("steps", [2, 1], "p.steps must increase, got 1 after 2"),
        ("steps", [2, 4], "p: steps must be at most dimension = 3, got 4"),
        ("step_size", 10.0, "p: step_size must be less than 10, got 10"),
        ("delta", 1, "p.delta must be less than 1, got 1"),
        ("delta", math.nan, "p.delta must be a finite number, got nan"),
        ("step_size", 0.0, "p.step_size must be at least 1e-09, got 0.0"),
        ("step_size", "1e-3", "p.step_size must be a number, got '1e-3'; YAML wants it as 1.0e-3"),
        (
            "rates",
            {"low": 2.0, "high": 1.0, "count": 2},
            "p.rates: high must be more than low = 2, got 1",
        ),
        ("shares", {"low": 0.1, "high": 1.0, "count": 2}, "p.shares.high must be less than 1"),
        ("budget", {"zcdp": True}, "p.budget: budget.zcdp must be a number, got True"),
        ("flag", 1, "p.flag must be a boolean, got 1"),
    ],
)
def test_what_is_wrong_is_one_line(field: str, value: Any, said: str):
    with pytest.raises(ConfigError) as caught:
        validate(Parameters, {field: value}, "p")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
