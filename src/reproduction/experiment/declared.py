"""What a recipe declares: axes of its grid, and quantities that its functions return."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from reproduction.experiment.datasets import Release, variable
from reproduction.experiment.summaries import mean_and_error

Given = Mapping[str, Any]
Variables = dict[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Axis:
    """An axis of a recipe's grid, or further labels along one.

    Parameters
    ----------
    meaning : str
        What it is, in words.
    values : str, sequence or callable
        An attribute of the parameters, labels, or a function of `parameters` and of the artifacts
        that it names. Log-spaced settings (`quantities.LogAxis`) stand for their values.
    along : str, optional
        The axis whose positions these label as well.
    units : str
    """

    meaning: str
    values: str | Sequence[Any] | np.ndarray | Callable[..., Any]
    along: str | None = None
    units: str = "1"

    def labels(self, given: Given) -> Any:
        """Its labels, in order."""
        found: Any = self.values
        if isinstance(found, str):
            found = getattr(given["parameters"], found)
        elif callable(found):
            found = called(found, given)
        return found.values() if hasattr(found, "low") else found


@dataclass(frozen=True)
class Quantity:
    """A variable of an artifact.

    Parameters
    ----------
    meaning : str
        What it is, in words.
    dims : str
        Axes beyond those over which its function is evaluated, separated by blanks.
    units : str
    release : {"private", "diagnostic"}, optional
        For what a run on real data writes.
    missing : str, optional
        Why some of its values are NaN.
    """

    meaning: str
    dims: str = ""
    units: str = "1"
    release: Release | None = None
    missing: str | None = None

    @property
    def given_dims(self) -> tuple[str, ...]:
        """Dimensions of its own in what a function gives."""
        return tuple(self.dims.split())

    def variables(
        self, name: str, dims: tuple[str, ...], values: np.ndarray, cells: int
    ) -> Variables:
        """Variables by name.

        Parameters
        ----------
        name : str
        dims : tuple of str
            Dimensions before this quantity's own.
        values : ndarray
        cells : int
            How many of the dimensions the cells make, rather than the function's values.
        """
        return {name: self._variable(dims, values)}

    def blank(self, rank: int, cells: int) -> np.ndarray:
        """Values for `variables` of length 1 along so many dimensions, to see what it makes."""
        return np.zeros((1,) * rank)

    def _variable(
        self, dims: tuple[str, ...], values: np.ndarray, prefix: str = "", error: str | None = None
    ) -> tuple[Any, ...]:
        return variable(
            (*dims, *self.dims.split()),
            values,
            f"{prefix}{self.meaning}",
            units=self.units,
            standard_error=error,
            release=self.release,
            missing=self.missing,
        )


class Mean(Quantity):
    """A mean over trials, with its standard error: the function gives the trials on a last axis."""

    @property
    def given_dims(self) -> tuple[str, ...]:
        return (*super().given_dims, "trial")

    def variables(
        self, name: str, dims: tuple[str, ...], values: np.ndarray, cells: int
    ) -> Variables:
        every = (*dims, *self.dims.split())
        return mean_and_error(
            name,
            values,
            every,
            self.meaning,
            units=self.units,
            release=self.release,
            missing=self.missing,
        )

    def blank(self, rank: int, cells: int) -> np.ndarray:
        return np.zeros((1,) * (rank + 1))


class Estimate(Quantity):
    """A value with its standard error: the function gives the pair."""

    def variables(
        self, name: str, dims: tuple[str, ...], values: np.ndarray, cells: int
    ) -> Variables:
        error = f"{name}_standard_error"
        value, deviation = np.moveaxis(values, cells, 0)
        return {
            name: self._variable(dims, value, error=error),
            error: self._variable(dims, deviation, "standard error of the "),
        }

    def blank(self, rank: int, cells: int) -> np.ndarray:
        return np.zeros((1,) * cells + (2,) + (1,) * (rank - cells))


@cache
def arguments_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of a function's arguments, without `**others`."""
    every = inspect.signature(function).parameters.values()
    return tuple(each.name for each in every if each.kind is not inspect.Parameter.VAR_KEYWORD)


def called(function: Callable[..., Any], given: Given) -> Any:
    """What a function gives for the arguments that it names; others keep their defaults."""
    return function(**{name: given[name] for name in arguments_of(function) if name in given})
