"""Stages of a recipe, written for one cell of its grid.

A recipe declares its axes once. Each of its functions declares the axes over which it is evaluated
and the quantities that it returns, and `stage` makes of them what the workflow calls:

    AXES = {"exponent": Axis("schedule exponent alpha", "exponents"), "time": Axis("time", "times")}

    @per("exponent", final_risk="excess risk of the output", risk=Quantity("excess risk", "time"))
    def path(parameters, exponent): ...

    theory = stage(AXES, path)

Loops over cells and trials, stacking, coordinates, attributes and standard errors are made here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.experiment.datasets import Release, variable
from reproduction.experiment.progress import track
from reproduction.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

Given = Mapping[str, Any]
Variables = dict[str, tuple[Any, ...]]
# What the workflow gives to a stage beside its parameters, in the order of its signature.
INPUTS = ("trials", "data", "simulation", "theory")


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
            found = found(**{name: given[name] for name in _arguments(found)})
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

    def variables(
        self, name: str, dims: tuple[str, ...], values: np.ndarray, cells: int
    ) -> Variables:
        every = (*dims, *self.dims.split())
        return mean_and_error(
            name, values, every, self.meaning, units=self.units, release=self.release
        )


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


@dataclass(frozen=True)
class Block:
    """A function of one cell, the axes of its cells, and the quantities that it returns."""

    function: Callable[..., Any]
    axes: tuple[str, ...]
    quantities: Mapping[str, Quantity]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the function's arguments."""
        return _arguments(self.function)

    def evaluate(self, given: Given, labels: Mapping[str, Any]) -> Variables:
        """Variables by name, over all cells."""
        looped = [axis for axis in self.axes if axis in self.arguments]
        whole = [axis for axis in self.axes if axis not in looped]
        found = list(self._results(given, {axis: labels[axis] for axis in looped}))
        dims, shape = looped, [len(labels[axis]) for axis in looped]
        if "trial" in self.arguments:
            dims, shape = ["trial", *dims], [len(given["trials"]), *shape]
        cells = len(dims)
        dims = [*dims, *(["trial"] if "trials" in self.arguments else []), *whole]
        variables: Variables = {}
        for name, quantity in self.quantities.items():
            values = np.array([each[name] for each in found])
            values = values.reshape((*shape, *values.shape[1:]))
            variables |= quantity.variables(name, tuple(dims), values, cells)
        return variables

    def _results(self, given: Given, labels: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        cells = [dict(zip(labels, cell, strict=True)) for cell in product(*labels.values())]
        if "trial" not in self.arguments:
            yield from (self._result({**given, **cell}) for cell in cells)
            return
        trials = given["trials"]
        for trial in track(trials, total=len(trials), label=trials.experiment):
            yield from (self._result({**given, **cell, "trial": trial}) for cell in cells)

    def _result(self, given: Given) -> Mapping[str, Any]:
        found = self.function(**{name: given[name] for name in self.arguments})
        if inspect.isgenerator(found):
            cell = (f"{axis} = {given[axis]}" for axis in self.axes if axis in self.arguments)
            label = ", ".join((given["trials"].experiment, *cell))
            found = list(track(found, total=len(given["trials"]), label=label))
        return self._named(found)

    def _named(self, found: Any) -> Mapping[str, Any]:
        """Values by name; those of a list of mappings, or of lists of them, on first axes."""
        if isinstance(found, Mapping):
            if found.keys() != self.quantities.keys():
                apart = ", ".join(sorted(found.keys() ^ self.quantities.keys()))
                raise ValueError(f"{self.function.__name__} must return what it declares: {apart}")
            return found
        if len(self.quantities) == 1:
            return dict.fromkeys(self.quantities, found)
        rows = [self._named(row) for row in found]
        return {name: [row[name] for row in rows] for name in self.quantities}


def per(*axes: str, **quantities: Quantity | str) -> Callable[[Callable[..., Any]], Block]:
    """Declare a function of one cell.

    Parameters
    ----------
    *axes : str
        Over which it is evaluated, the last one fastest. The function takes a cell's labels by
        these names; what it returns has the axes that it does not take, in order, first.
    **quantities : Quantity or str
        What it returns, in a mapping by these names, or the value alone where there is one. A text
        is the meaning of a quantity without further axes. A list of such mappings, or of lists of
        them, has the quantities' first axes.

    Returns
    -------
    callable
        A decorator. The function takes by name what it needs: `parameters`, labels of its cell, an
        artifact (`data`, `theory`, `simulation`), and `trial` to be called for each trial of a
        simulation, or `trials` to be called once a cell and give all of them on a first axis, or
        yield one after another. With `trial` the cells of a trial draw one after another from its
        generator.
    """

    def declare(function: Callable[..., Any]) -> Block:
        declared = {
            name: Quantity(each) if isinstance(each, str) else each
            for name, each in quantities.items()
        }
        return Block(function, axes, declared)

    return declare


def stage(
    axes: Mapping[str, Axis],
    *blocks: Block,
    attributes: Callable[[Any], Mapping[str, Any]] | None = None,
    **own: Axis,
) -> Callable[..., xr.Dataset]:
    """A stage of the workflow: a function of the parameters and of what its blocks read.

    Parameters
    ----------
    axes : mapping of str to Axis
        Those of the recipe.
    *blocks : Block
        From `per`; one without trials for a theory or a summary, one with them for a simulation.
    attributes : callable, optional
        Global attributes, of the parameters; those of a simulation stay with its summary.
    **own : Axis
        Axes that are this stage's, or differ in it; shown even if no quantity has them.
    """
    grid = {**axes, **own}
    used = {
        dim
        for block in blocks
        for dim in (*block.axes, *(d for q in block.quantities.values() for d in q.dims.split()))
    } - {"trial"}
    used |= own.keys()
    shown = {name: axis for name, axis in grid.items() if name in used or axis.along in used}
    functions = [block.function for block in blocks]
    functions += [axis.values for axis in shown.values() if callable(axis.values)]
    asked = {name for function in functions for name in _arguments(function)}
    asked |= {"trials"} if "trial" in asked else set()
    inputs = [name for name in INPUTS if name in asked]

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [inspect.Parameter(name, kind) for name in ("parameters", *inputs)]
    )

    def run(*arguments: Any, **named: Any) -> xr.Dataset:
        import xarray as xr

        given = signature.bind(*arguments, **named).arguments
        labels = {name: axis.labels(given) for name, axis in shown.items()}
        variables: Variables = {}
        for block in blocks:
            variables |= block.evaluate(given, labels)
        coordinates: Variables = {
            name: variable(axis.along or name, labels[name], axis.meaning, units=axis.units)
            for name, axis in shown.items()
        }
        if "simulation" in given:
            coordinates["trial"] = given["simulation"].trial.variable
        about = attributes(given["parameters"]) if attributes else {}
        return xr.Dataset(variables, coords=coordinates, attrs=about)

    run.__signature__ = signature  # type: ignore[attr-defined]
    run.blocks = blocks  # type: ignore[attr-defined]
    return run


def means(simulation: Block, *names: str, spread: Sequence[str] = ()) -> Block:
    """Means over trials of what a block simulates, with their standard errors.

    Parameters
    ----------
    simulation : Block
    *names : str
        Its quantities; all of them by default.
    spread : sequence of str
        Those of which the standard deviation over trials is kept too, as `<name>_spread`.
    """
    kept = {name: simulation.quantities[name] for name in names or simulation.quantities}

    def summarise(simulation: xr.Dataset) -> dict[str, np.ndarray]:
        values = {
            name: trials_last(simulation[name].transpose(*declared[name].dims.split(), "trial"))
            for name in kept
        }
        return values | {f"{name}_spread": values[name].std(axis=-1, ddof=1) for name in spread}

    declared: dict[str, Quantity] = {}
    for name, each in kept.items():
        dims = " ".join((*simulation.axes, each.dims)).strip()
        mean = replace(each, meaning=f"the {each.meaning}", dims=dims)
        declared[name] = Mean(**vars(mean))
        if name in spread:
            meaning = f"standard deviation over trials of {mean.meaning}"
            declared[f"{name}_spread"] = replace(mean, meaning=meaning)
    return per(**declared)(summarise)


def trials_last(array: xr.DataArray) -> np.ndarray:
    """Values with the trials on the last axis, contiguous, so that sums have one order."""
    return np.ascontiguousarray(array.transpose(..., "trial").values)


@cache
def _arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)
