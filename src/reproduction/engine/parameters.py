"""Typed parameters of recipes; a wrong value is refused in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from privreg.checks import expected_choice, require_choice

Model = TypeVar("Model", bound=BaseModel)
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
BOUNDS = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}
PLAIN_WORDS = {
    r"valid dictionary( or instance of \w+)?|dictionary or instance of \w+": "mapping",
    r"valid integer": "whole number",
    r"valid (list|tuple|string|boolean|number)": r"\1",
    r"match pattern .*\{\}.*": "name a folder, without braces",
    r" items? after validation, not \d+": " values",
}
Artifact = Annotated[str, Field(pattern=r"^(data|theory|simulation|intervals)/[a-z][a-z0-9_]*$")]


class ConfigError(ValueError):
    """Error in a configuration, with a message of one line."""


class Strict(BaseModel):
    """A frozen model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            for key in value:
                if key not in cls.model_fields:
                    expected = {"expected": expected_choice(key, cls.model_fields)}
                    raise PydanticCustomError("key", "a key must be {expected}", expected)
        return value


def choose(name: Any, valid: Iterable[str], where: str) -> str:
    """Return `name` if it is valid, else raise a `ConfigError` that names the nearest valid one."""
    try:
        return require_choice(where, name, valid)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def explain(error: ValidationError, where: str) -> str:
    """Line for the first error of a validation: key, expected values, value found."""
    first = error.errors()[0]
    location = ".".join([where, *(_on_one_line(part) for part in first["loc"])])
    if first["type"] == "missing":
        return f"{location} must be given"
    if first["type"] in ("value_error", "key"):
        said = _on_one_line(first["msg"].removeprefix("Value error, "))
        return f"{location} {said}" if said.startswith("must ") else f"{location}: {said}"
    bound = next((key for key in BOUNDS if key in first.get("ctx", {})), None)
    if bound is not None:
        expected = f"must be {BOUNDS[bound]} {first['ctx'][bound]:g}"
    else:
        expected = re.sub(r"^\w+ should ", "must ", first["msg"])
    for words, plain in PLAIN_WORDS.items():
        expected = re.sub(words, plain, expected)
    return f"{location} {_on_one_line(expected)}, got {_short(first['input'])}{_hint(first)}"


def validate(model: type[Model], value: Any, where: str, *, jointly: bool = True) -> Model:
    """Validate `value`, or each value in it alone, with a one-line `ConfigError`."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        if not jointly and error.errors()[0]["type"] == "value_error":
            return model.model_construct(**value)
        raise ConfigError(explain(error, where)) from None


def _hint(error: Any) -> str:
    found = error["input"]
    # YAML 1.1 reads 1e-3 as text.
    written = re.fullmatch(r"([-+]?\d+)(\.\d*)?[eE]([-+]?)(\d+)", str(found))
    if error["type"] in ("float_type", "int_type") and written:
        whole, rest, sign, power = written.groups()
        return f"; YAML wants it as {whole}{rest or '.0'}e{sign or '+'}{power}"
    return ""


def _on_one_line(value: Any) -> str:
    return " ".join(str(value).split())


def _short(value: Any) -> str:
    # A whole number may have more digits than Python is willing to write.
    huge = isinstance(value, int) and abs(value) > 1e30
    found = f"a number of {value.bit_length()} bits" if huge else _on_one_line(repr(value))
    return found if len(found) < 80 else f"{found[:77]}..."
