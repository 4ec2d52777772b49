"""Released values and diagnostics, which are not to be released, are two types.

A `Release` is a value together with the budget that it cost and with what was assumed. A
`Diagnostic` is a number computed from the data without noise. Neither behaves like an array: the
numbers are a release's `value` and a diagnostic's `non_private`, two names, so that code written
for the one does not run on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from math import isinf
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

from privreg.privacy.budget import Budget
from privreg.validation import require_callable, require_instance

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, eq=False)
class Diagnostic(Generic[T]):
    """A value that no guarantee covers, for those who may see the data.

    Parameters
    ----------
    non_private : object
        The value.
    what : str
        What it is, in a few words.

    Raises
    ------
    ValueError
        If the description is no text.

    Examples
    --------
    >>> clipped = Diagnostic(0.25, "share of clipped rows")
    >>> clipped
    <NOT PRIVATE: share of clipped rows>
    >>> clipped.non_private
    0.25
    """

    non_private: T
    what: str = "diagnostic"

    def __post_init__(self) -> None:
        require_instance("what", self.what, str)

    def __repr__(self) -> str:
        # The value stays out of logs and of notebooks that are shared.
        return f"<NOT PRIVATE: {self.what}>"

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(
            f"{self.what} is not private and no array; `.non_private` holds it for those who may "
            "see the data"
        )


@dataclass(frozen=True, eq=False)
class Release(Generic[T]):
    """A private value, what it cost, and what the guarantee rests on.

    Parameters
    ----------
    value : object
        What is released, all of it.
    budget : Budget
        What releasing it costs, under the budget's neighbouring relation.
    assumptions : tuple of str
        What must hold besides the code for the guarantee to hold, each a sentence; may be empty.

    Raises
    ------
    ValueError
        If the value is or holds a `Diagnostic`, or a type that says `not_private`, or the budget
        is infinite.

    Examples
    --------
    >>> slope = Release(0.31, Budget.zcdp(0.1), ("features are scaled without the data",))
    >>> noise = Release(0.05, Budget.zcdp(0.4))
    >>> both = compose(slope, noise)
    >>> both.value, both.budget.rho
    ((0.31, 0.05), 0.5)
    >>> slope.then(abs).budget
    Budget(rho=0.1, neighbours='replace-one')
    """

    value: T
    budget: Budget
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_instance("budget", self.budget, Budget)
        if isinf(self.budget.rho):
            raise ValueError("budget must be finite for a release, got an infinite one")
        require_instance("assumptions", self.assumptions, tuple)
        for text in self.assumptions:
            require_instance("assumptions", text, str)
        hidden = _diagnostic(self.value)
        if hidden is not None:
            raise ValueError(f"value must be private throughout, got {hidden!r}")

    def then(self, function: Callable[[T], U]) -> Release[U]:
        """The function's value at the released one, at no further cost.

        Guarantee
        ---------
        Post-processing: the budget stays the same for every function that does not look at the
        data again, which the caller promises.

        Source
        ------
        Bun and Steinke (2016), Lemma 1.8.
        """
        require_callable("function", function)
        return Release(function(self.value), self.budget, self.assumptions)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a release is no array; `.value` holds what it releases")


def compose(*releases: Release[Any]) -> Release[tuple[Any, ...]]:
    """Several releases about the same records as one.

    Parameters
    ----------
    releases : Release
        At least one, all under one neighbouring relation; each may depend on the earlier ones, but
        their noise must be independent.

    Returns
    -------
    Release
        Of the tuple of values, with the sum of the budgets and every assumption once.

    Raises
    ------
    ValueError
        If there is none or the neighbouring relations differ.

    Source
    ------
    Bun and Steinke (2016), Lemma 1.7 and 2.3.
    """
    if not releases:
        raise ValueError("releases must be at least one, got none")
    budget = releases[0].budget
    for release in releases[1:]:
        budget = budget + release.budget
    assumptions = dict.fromkeys(text for release in releases for text in release.assumptions)
    return Release(tuple(release.value for release in releases), budget, tuple(assumptions))


def _diagnostic(value: Any) -> Diagnostic[Any] | None:
    """The first diagnostic in a value or in what it holds."""
    # Most of a fit's parts, for which the questions below take longer than the rest of a release.
    if type(value) in (float, int, str, np.ndarray):
        return None
    if isinstance(value, Diagnostic):
        return value
    if getattr(type(value), "not_private", False):
        return Diagnostic(value, type(value).__name__)
    parts: list[Any] = []
    if isinstance(value, Mapping):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = list(value)
    elif is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, part.name) for part in fields(value)]
    return next((found for part in parts if (found := _diagnostic(part)) is not None), None)
