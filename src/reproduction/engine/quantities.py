"""Types of a recipe's parameters, each with its meaning and bounds, stated once.

A recipe declares `orders: Some[RenyiOrder]`; the bounds, the error messages and the JSON schema
follow. A type is narrowed where it is used: `dimension: Annotated[Dimension, Field(ge=2)]`. Truth
values, texts, infinity and NaN are not accepted as numbers. The upper bounds are far above any
experiment and near the limits of a machine.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import pairwise
from typing import Annotated, Any, Self, TypeVar

import numpy as np
from pydantic import (
    AfterValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from privreg.privacy.budget import Budget
from reproduction.engine.parameters import Strict, explain

T = TypeVar("T")

# Theories compute from 1e-32 to 1e32: the square of a parameter is still one of theirs.
SMALLEST, LARGEST = 1e-15, 1e15
# What a step, a norm or a budget multiplies may be such a square.
LEAST, MOST = 1e-9, 1e9


def _zero_or_computable(value: float) -> float:
    if 0 < value < SMALLEST:
        raise ValueError(f"must be 0 or at least {SMALLEST:g}, got {value}")
    return value


Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Finite = Annotated[Real, Field(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[Real, Field(ge=SMALLEST, le=LARGEST)]
NonNegative = Annotated[Real, Field(ge=0, le=LARGEST), AfterValidator(_zero_or_computable)]
Probability = Annotated[Real, Field(ge=SMALLEST, lt=1)]
Share = Annotated[Real, Field(ge=SMALLEST, le=1)]
Deviation = Annotated[Real, Field(ge=0, le=1e6), AfterValidator(_zero_or_computable)]
PositiveDeviation = Annotated[Real, Field(ge=SMALLEST, le=1e6)]
StepSize = Annotated[Real, Field(ge=LEAST, le=1e6)]
ClipNorm = Annotated[Real, Field(ge=LEAST, le=1e6)]
# In units of the residual, where a norm grows with the dimension.
ClipConstant = Annotated[Real, Field(ge=LEAST, le=1e6)]
# d / n: there is a sample for each dimension.
AspectRatio = Annotated[Real, Field(ge=SMALLEST, le=1)]
# Nearer to 1 the difference of two logarithms has no digits left.
RenyiOrder = Annotated[Real, Field(ge=1.001, le=1000)]
Rho = Annotated[Real, Field(ge=LEAST, le=MOST)]
Epsilon = Annotated[Real, Field(ge=1e-3, le=1e3)]
# A mechanism that fails every other time promises nothing.
Delta = Annotated[Real, Field(ge=SMALLEST, le=0.5)]
# Of schedules, spectra and rates: n^(-2 power) is a number for the largest sample.
Power = Annotated[Real, Field(ge=0, le=16)]
SignedPower = Annotated[Real, Field(ge=-16, le=16)]
# Of eigenvalues k^-decay, of which the last one is a number in every dimension.
Decay = Annotated[Real, Field(ge=0, le=7)]
# A step in units of the largest curvature, and a damping, that leave a memory of several steps.
SmallStep = Annotated[Real, Field(ge=LEAST, le=0.99)]
# phi and psi of a power law, as `privreg.spectra` takes them.
SpectrumPower = Annotated[Real, Field(ge=-20, le=0.95)]
SignalPower = Annotated[Real, Field(ge=-0.5, le=21)]

Count = Annotated[int, Field(ge=1, le=10_000_000, strict=True)]
Index = Annotated[int, Field(ge=0, le=1_000_000_000, strict=True)]
Dimension = Annotated[int, Field(ge=1, le=10_000_000, strict=True)]
SampleSize = Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)]
Steps = Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)]
# A size of two and more.
Plural = Annotated[T, Field(ge=2)]
Flag = Annotated[bool, Field(strict=True)]


def _distinct(values: list[T]) -> list[T]:
    for position, value in enumerate(values):
        if value in values[:position]:
            raise ValueError(f"must hold each value once, got {value!r} twice")
    return values


def rising(values: Any) -> Any:
    """The values; an error if one of them is not more than the value before."""
    for left, right in pairwise(values):
        if not left < right:
            raise ValueError(f"must increase, got {right!r} after {left!r}")
    return values


# A list is a coordinate of what is computed: its values tell rows apart, or order a curve.
Some = Annotated[
    list[T],
    Field(min_length=1, max_length=1000, json_schema_extra={"uniqueItems": True}),
    AfterValidator(_distinct),
]
Rising = Annotated[
    list[T],
    Field(min_length=1, max_length=1000, json_schema_extra={"uniqueItems": True}),
    AfterValidator(rising),
]
# To compare, or to fit a line through.
Several = Annotated[Some[T], Field(min_length=2)]
Grid = Annotated[Rising[T], Field(min_length=2)]
Window = Annotated[tuple[Positive, Positive], AfterValidator(rising)]


Limit = Callable[[Any], float]


def must(words: str, holds: Callable[[Any], Any]) -> Any:
    """Validator of a model, with an error message such as "x must be even, got {self.x}"."""

    def check(parameters: Any) -> Any:
        if not holds(parameters):
            raise ValueError(words.format(self=parameters))
        return parameters

    return model_validator(mode="after")(check)


def more_than(field: str, other: str | float, limit: Limit | None = None) -> Any:
    """Validator of a model: all values of a field are more than all values of another field.

    Either may be a number, a list or an attribute of a field, such as `design.sample_size`. `other`
    may also be a plain number, or an expression that `limit` evaluates.
    """
    return _bounded("more than", operator.gt, (min, max), field, other, limit)


def less_than(field: str, other: str | float, limit: Limit | None = None) -> Any:
    """Validator of a model: all values of a field are less than all values of another field."""
    return _bounded("less than", operator.lt, (max, min), field, other, limit)


def at_most(field: str, other: str | float, limit: Limit | None = None) -> Any:
    """Validator of a model: all values of a field are at most all values of another field."""
    return _bounded("at most", operator.le, (max, min), field, other, limit)


def _bounded(
    words: str,
    fits: Callable[[float, float], bool],
    ends: tuple[Callable[[list[float]], float], Callable[[list[float]], float]],
    field: str,
    other: str | float,
    limit: Limit | None,
) -> Any:
    def check(parameters: Any) -> Any:
        value = ends[0](_all(parameters, field))
        if isinstance(other, str):
            bound = limit(parameters) if limit else ends[1](_all(parameters, other))
            stated = f"{other} = {bound:g}"
        else:
            bound, stated = other, f"{other:g}"
        if not fits(value, bound):
            raise ValueError(f"{field} must be {words} {stated}, got {value:g}")
        return parameters

    return model_validator(mode="after")(check)


def _all(parameters: Any, field: str) -> list[float]:
    value = operator.attrgetter(field)(parameters)
    return list(value) if isinstance(value, list | tuple) else [value]


class LogAxis(Strict):
    """Log-spaced settings."""

    low: Positive = Field(description="Smallest value.")
    high: Positive = Field(description="Largest value, more than the smallest.")
    count: Annotated[Count, Field(ge=2, le=10_000)] = Field(description="Number of values.")

    _has_a_length = more_than("high", "low")

    def values(self) -> np.ndarray:
        return np.geomspace(self.low, self.high, self.count)


class StepSizeAxis(LogAxis):
    """Log-spaced step sizes."""

    low: StepSize = Field(description="Smallest step size.")
    high: StepSize = Field(description="Largest step size, more than the smallest.")


class ClipAxis(LogAxis):
    """Log-spaced clip norms or clip constants."""

    low: ClipNorm = Field(description="Smallest value.")
    high: ClipNorm = Field(description="Largest value, more than the smallest.")


class SizeAxis(LogAxis):
    """Log-spaced sizes: of samples, dimensions, steps or ratios that are at least 1."""

    # Asymptotics need sizes beyond every table.
    low: Annotated[Real, Field(ge=1, le=1e95)] = Field(description="Smallest size.")
    high: Annotated[Real, Field(ge=1, le=1e95)] = Field(
        description="Largest size, more than the smallest."
    )


class ShareAxis(LogAxis):
    """Log-spaced values below 1."""

    low: Probability = Field(description="Smallest value.")
    high: Probability = Field(description="Largest value, less than 1.")


class SmallStepAxis(LogAxis):
    """Log-spaced step sizes or dampings that leave a memory of several steps."""

    low: SmallStep = Field(description="Smallest value.")
    high: SmallStep = Field(description="Largest value, more than the smallest.")


class BudgetStatement(Strict):
    """A privacy budget in one of the forms that the papers use."""

    zcdp: Rho | None = Field(None, description="rho of rho-zCDP.")
    half_square: Rho | None = Field(None, description="rho of rho^2/2-zCDP.")
    gaussian_dp: Rho | None = Field(None, description="mu of Gaussian DP.")
    epsilon: Epsilon | None = Field(None, description="epsilon, with delta.")
    delta: Delta | None = Field(None, description="delta, with epsilon.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        stated = {name for name in type(self).model_fields if getattr(self, name) is not None}
        if stated not in ({"zcdp"}, {"half_square"}, {"gaussian_dp"}, {"epsilon", "delta"}):
            raise ValueError(
                "a budget must be stated by zcdp, half_square, gaussian_dp, or epsilon and delta, "
                f"got {', '.join(sorted(stated)) or 'nothing'}"
            )
        return self

    @property
    def budget(self) -> Budget:
        """The budget, for replace-one neighbours."""
        if self.zcdp is not None:
            return Budget.zcdp(self.zcdp)
        if self.half_square is not None:
            return Budget.half_square(self.half_square)
        if self.gaussian_dp is not None:
            return Budget.gaussian_dp(self.gaussian_dp)
        assert self.epsilon is not None
        assert self.delta is not None
        return Budget.approximate(self.epsilon, self.delta)


def _stated(value: Any) -> Budget:
    if isinstance(value, Budget):
        return value
    try:
        return BudgetStatement.model_validate(value).budget
    except ValidationError as error:
        raise ValueError(explain(error, "budget")) from None


StatedBudget = Annotated[
    Budget,
    PlainValidator(_stated),
    PlainSerializer(lambda budget: [budget.rho, budget.neighbours.value]),
    WithJsonSchema(BudgetStatement.model_json_schema(), mode="validation"),
]
