"""Typed parameters: what a recipe may be told, refused in one line where it is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self, TypeVar

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from privreg.privacy.budget import Budget
from privreg.validation import expected_choice, require_choice

Model = TypeVar("Model", bound=BaseModel)
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Artifact = Annotated[str, Field(pattern=r"^(data|theory|simulation|intervals)/[a-z][a-z0-9_]*$")]


class ConfigError(ValueError):
    """A configuration that cannot be run, said in one line."""


class Strict(BaseModel):
    """A frozen model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            for key in value:
                if key not in cls.model_fields:
                    raise ValueError(f"a key must be {expected_choice(key, cls.model_fields)}")
        return value


class LogAxis(Strict):
    """Log-spaced settings."""

    low: float = Field(gt=0, description="Smallest value.")
    high: float = Field(gt=0, description="Largest value.")
    count: int = Field(ge=2, description="Number of values.")

    def values(self) -> np.ndarray:
        return np.geomspace(self.low, self.high, self.count)


class BudgetStatement(Strict):
    """A privacy budget in one of the ways in which the papers state theirs."""

    zcdp: float | None = Field(None, gt=0, description="rho of rho-zCDP.")
    half_square: float | None = Field(None, gt=0, description="rho of rho^2/2-zCDP.")
    gaussian_dp: float | None = Field(None, gt=0, description="mu of Gaussian DP.")
    epsilon: float | None = Field(None, gt=0, description="epsilon, with delta.")
    delta: float | None = Field(None, gt=0, lt=1, description="delta, with epsilon.")

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
    Budget, PlainValidator(_stated), WithJsonSchema(BudgetStatement.model_json_schema())
]


def choose(name: Any, valid: Iterable[str], where: str) -> str:
    """Return `name` if it is valid, else raise a `ConfigError` that names the nearest valid one."""
    try:
        return require_choice(where, name, valid)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def explain(error: ValidationError, where: str) -> str:
    """One line for the first error of a validation: key, what was expected, what was found."""
    first = error.errors()[0]
    location = ".".join([where, *(str(part) for part in first["loc"])])
    if first["type"] == "missing":
        return f"{location} must be given"
    if first["type"] == "value_error":
        return f"{location}: {first['msg'].removeprefix('Value error, ')}"
    found = repr(first["input"])
    expected = re.sub(r"^\w+ should ", "must ", first["msg"])
    return f"{location} {expected}, got {found if len(found) < 80 else found[:77] + '...'}"


def validate(model: type[Model], value: Any, where: str) -> Model:
    """Validate `value`, turning what is wrong into a one-line `ConfigError`."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise ConfigError(explain(error, where)) from None
