"""What a call with one hostile value did."""

from __future__ import annotations

import dataclasses
import re
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
from hostile import holds_nan, numbers
from runner import GOOD, Outcome
from targets import Target

# None asks for a search over all methods there, which has tests of its own and takes its time.
SEARCHES = {("least_budget.least_budget", "methods"), ("plan.plan_run", "methods")}


def outcome(target: Target, changes: dict[str, Any]) -> tuple[Outcome, str]:
    """Call with one argument replaced, or with several, and what came of it."""
    # What is passed on as it is fails where the caller's own function does.
    changes = {
        name: value
        for name, value in changes.items()
        if not anything_goes(target, name)
        and not (value is None and (target.name, name) in SEARCHES)
    }
    if not changes:
        return Outcome.ANSWERED, "anything goes"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = target.call(**changes)
        except ValueError as error:
            text = str(error)
            return (Outcome.REFUSED if _named(target, text) else Outcome.UNNAMED), text
        except TypeError as error:
            text = str(error)
            return (Outcome.REFUSED if _named(target, text) else Outcome.TRACEBACK), text
        except Exception as error:
            return Outcome.TRACEBACK, f"{type(error).__name__}: {error}"
    judged = [_judged(target, parameter, value, result) for parameter, value in changes.items()]
    return next((each for each in judged if each[0] not in GOOD), judged[0])


def _judged(target: Target, parameter: str, value: Any, result: Any) -> tuple[Outcome, str]:
    """Whether a value should have been answered, and answered so."""
    entry = _entry(target.docstring, parameter)
    if _same(value, target.arguments[parameter]):
        return Outcome.ANSWERED, ""
    if value is None and "optional" in entry:
        return Outcome.ANSWERED, ""
    if holds_nan(value) and "not finite" not in entry:
        return Outcome.SILENT, "NaN taken"
    found = list(found_numbers(result))
    if any(np.any(np.isnan(part)) for part in found) and "NaN where" not in target.docstring:
        return Outcome.SILENT, "NaN given"
    if _is_empty(value) and found and all(part.size == 0 for part in found):
        return Outcome.ANSWERED, "nothing for nothing"
    wrong = _outside(target, parameter, value)
    if wrong:
        return Outcome.OUTSIDE, wrong
    if any(np.any(np.isinf(part)) for part in found) and "inf" not in target.docstring.lower():
        return Outcome.INFINITE, "infinite answer"
    return Outcome.ANSWERED, ""


def anything_goes(target: Target, parameter: str) -> bool:
    """Whether a parameter takes every object, as what a release holds does."""
    return re.match(rf"{parameter} : object", _entry(target.docstring, parameter)) is not None


def _named(target: Target, text: str) -> bool:
    """Whether an error says which argument must be what; of two that do not fit, either."""
    names = "|".join(re.escape(name) for name in target.arguments)
    return re.match(rf"({names})\b.* must ", text) is not None


def _outside(target: Target, parameter: str, value: Any) -> str | None:
    """Why a value that was answered should not have been, by the docstring."""
    entry = _entry(target.docstring, parameter)
    valid = target.arguments[parameter]
    found = numbers(value)
    if _is_empty(value) and "empty" in entry:
        return None
    if isinstance(value, str) and f"{parameter} : str" in entry:
        return None
    if isinstance(valid, (bool, str)) or numbers(valid) is None:
        return f"wrong type {type(value).__name__}"
    if found is None or isinstance(value, bool):
        return f"wrong type {type(value).__name__}"
    if found.size == 0:
        return "empty"
    if isinstance(valid, int) and not np.all(found == np.round(found)):
        return "not whole"
    if np.any(np.isinf(found)) and not ("`inf`" in entry or "not finite" in entry):
        return "an infinity"
    for words, allowed in (
        (r"more than (-?[\d.]+(?:e[+-]?\d+)?)", lambda bound: found > bound),
        (r"at least (-?[\d.]+(?:e[+-]?\d+)?)", lambda bound: found >= bound),
        (r"less than (-?[\d.]+(?:e[+-]?\d+)?)", lambda bound: found < bound),
        (r"at most (-?[\d.]+(?:e[+-]?\d+)?)", lambda bound: found <= bound),
        (r"in \((-?[\d.]+(?:e[+-]?\d+)?), ", lambda bound: found > bound),
        (r"in \[(-?[\d.]+(?:e[+-]?\d+)?), ", lambda bound: found >= bound),
        (
            r"in [\(\[]-?[\d.]+(?:e[+-]?\d+)?, (-?[\d.]+(?:e[+-]?\d+)?)\)",
            lambda bound: found < bound,
        ),
        (
            r"in [\(\[]-?[\d.]+(?:e[+-]?\d+)?, (-?[\d.]+(?:e[+-]?\d+)?)\]",
            lambda bound: found <= bound,
        ),
    ):
        for match in re.finditer(words, entry):
            bound = float(match.group(1).rstrip("."))
            # An infinity that came so far is named by the docstring.
            if not np.all(allowed(bound) | np.isinf(found)):
                return f"not {match.group(0)}"
    return None


def _entry(docstring: str, parameter: str) -> str:
    """What a numpy docstring says about a parameter, the type line included."""
    lines = docstring.splitlines()
    for index, line in enumerate(lines):
        head = re.match(r"^([\w, ]+?)\s*:", line)
        if head and parameter in [name.strip() for name in head.group(1).split(",")]:
            body = [line]
            for following in lines[index + 1 :]:
                if following.strip() and not following.startswith(" "):
                    break
                body.append(following.strip())
            return " ".join(body)
    return ""


def found_numbers(result: Any, depth: int = 0) -> Any:
    """All arrays of numbers in a result."""
    if depth > 4 or result is None or isinstance(result, (str, bytes)):
        return
    if isinstance(result, (float, int, complex, np.generic, np.ndarray)):
        array = np.asarray(result)
        if array.dtype.kind in "fc":
            yield array
    elif dataclasses.is_dataclass(result) and not isinstance(result, type):
        for field in dataclasses.fields(result):
            if not field.name.startswith("_"):
                yield from found_numbers(getattr(result, field.name, None), depth + 1)
    elif isinstance(result, dict):
        for part in result.values():
            yield from found_numbers(part, depth + 1)
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from found_numbers(part, depth + 1)
    elif isinstance(result, SimpleNamespace):
        yield from found_numbers(vars(result), depth + 1)


def _same(value: Any, valid: Any) -> bool:
    if type(value) is not type(valid):
        return False
    try:
        return bool(np.array_equal(value, valid))
    except (TypeError, ValueError):
        return False


def _is_empty(value: Any) -> bool:
    found = numbers(value)
    return found is not None and found.size == 0
