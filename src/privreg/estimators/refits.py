"""Fits that happen whole or not at all, the cost of one that failed, and the count of clones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import SimpleNamespace
from typing import Any, TypeVar
from warnings import warn
from weakref import WeakKeyDictionary

from privreg.privacy.budget import Budget

Fit = TypeVar("Fit", bound=Callable[..., Any])
CLONES = (
    "clones of one estimator are fitted, as cross-validation and grids do: each fit spends the "
    "whole budget, and budgets of fits of one table add up; `odometer=Odometer(limit=...)` counts "
    "them and keeps a limit"
)
ROWS_OF_CLONES = (
    "clones of one estimator are fitted without groups, and privacy is that of rows: "
    "cross-validation hands groups to its splitter alone. Declare unit='row', or unit='person' "
    "where persons have several rows"
)
# How many clones an estimator and its clones have, in this process and before it: beside the
# objects, so that neither an original nor a clone differs from one that nobody cloned.
_of_originals: WeakKeyDictionary[Any, SimpleNamespace] = WeakKeyDictionary()
_of_clones: WeakKeyDictionary[Any, SimpleNamespace] = WeakKeyDictionary()


def related(estimator: Any, clone: Any) -> Any:
    """The clone, counted with the estimator's other clones, or with those of its original."""
    known = _of_clones.get(estimator)
    own = SimpleNamespace(count=0)
    clones = _of_originals.setdefault(estimator, own) if known is None else known
    clones.count += 1
    _of_clones[clone] = clones
    return clone


def clones_of(estimator: Any) -> int:
    """Number of clones that it is one of; a meta-estimator of one fit makes one, and 0 is none."""
    known = _of_clones.get(estimator)
    return 0 if known is None else known.count


def is_clone_of(estimator: Any, count: int) -> None:
    """Take over the count of `clones_of` from the process that a pickle comes from."""
    if count:
        _of_clones[estimator] = SimpleNamespace(count=count)


def whole(fit: Fit) -> Fit:
    """A method that fits all attributes anew, or fails and leaves the object as it was.

    It runs on a copy with the settings and no fitted attribute. The object takes the copy's
    attributes over in one assignment, so that not even an interrupt mixes old and new, and warns.
    """

    @wraps(fit)
    def fitted_whole(self: Any, *arguments: Any, **named: Any) -> Any:
        attempt = object.__new__(type(self))
        attempt.__dict__ = {
            name: value for name, value in vars(self).items() if not _is_fitted(name)
        }
        is_clone_of(attempt, clones_of(self))
        fit(attempt, *arguments, **named)
        self.__dict__ = attempt.__dict__
        # A filter that makes errors of them finds the object fitted.
        with counted(self.privacy_.with_secret_noise, seeded=self.privacy_.seeded):
            for text in self.warnings_:
                warn(text, UserWarning, stacklevel=2)
        return self

    return fitted_whole  # type: ignore[return-value]


@contextmanager
def counted(budget: Budget, *, seeded: bool) -> Iterator[None]:
    """Add to any error from here on that the budget counts as spent.

    That a fit failed depends on its data and its noise as its result does, and is paid for by the
    same budget.
    """
    try:
        yield
    except BaseException as error:
        spent = f"counts as spent, all of its rho = {budget.rho:.4g} ({budget.neighbours.value})"
        error.add_note(f"the failed fit {'was not private: seeded' if seeded else spent}")
        raise


def _is_fitted(name: str) -> bool:
    return name == "_fitted" or (name.endswith("_") and not name.startswith("__"))
