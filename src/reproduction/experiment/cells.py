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
from reproduction.experiment.summaries import mean_and_error, standard_deviation

if TYPE_CHECKING:
    import xarray as xr

Given = Mapping[str, Any]
Variables = dict[str, tuple[Any, ...]]
# What the workflow gives to a stage beside its parameters, in the order of its signature.
INPUTS = ("trials", "data", "simulation", "theory")
# What the functions before one have given, in the same stage.
EARLIER = "earlier"
# A stream that no trial uses.
SHARED_STREAM = 1 << 31


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
        """Names of the function's arguments; `**cell` stands for all axes that it does not name."""
        named = _arguments(self.function)
        kinds = [each.kind for each in inspect.signature(self.function).parameters.values()]
        others = self.axes if inspect.Parameter.VAR_KEYWORD in kinds else ()
        return (*named, *(axis for axis in others if axis not in named))

    def evaluate(self, given: Given, labels: Mapping[str, Any]) -> Variables:
        """Variables by name, over all cells."""
        made, inner = self.dims
        looped = {axis: labels[axis] for axis in made if axis != "trial"}
        found = list(self._results(given, looped))
        shape = [len(given["trials"] if axis == "trial" else labels[axis]) for axis in made]
        variables: Variables = {}
        for name, quantity in self.quantities.items():
            values = np.array([each[name] for each in found])
            values = values.reshape((*shape, *values.shape[1:]))
            variables |= quantity.variables(name, (*made, *inner), values, len(made))
        return variables

    def _results(self, given: Given, labels: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        cells = [dict(zip(labels, cell, strict=True)) for cell in product(*labels.values())]
        if "trial" not in self.arguments:
            for cell in track(cells, total=len(cells), label=self.function.__name__):
                yield self._result({**given, **cell})
            return
        trials = given["trials"]
        for trial in track(trials, total=len(trials), label=trials.experiment):
            yield from (self._result({**given, **cell, "trial": trial}) for cell in cells)

    def _result(self, given: Given) -> Mapping[str, Any]:
        if "shared_rng" in self.arguments:
            given = {**given, "shared_rng": given["trials"].generator(SHARED_STREAM)}
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

    @property
    def dims(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Dimensions that the cells make, and those that the function's values have before others.

        What a quantity declares of its own comes after both.
        """
        looped = tuple(axis for axis in self.axes if axis in self.arguments)
        whole = tuple(axis for axis in self.axes if axis not in looped)
        outer = ("trial",) if "trial" in self.arguments else ()
        inner = ("trial",) if "trials" in self.arguments else ()
        return (*outer, *looped), (*inner, *whole)


def per(*axes: str, **quantities: Quantity | str) -> Callable[[Callable[..., Any]], Block]:
    """Declare a function of one cell.

    Parameters
    ----------
    *axes : str
        Over which it is evaluated, the last one fastest. The function takes a cell's labels by
        these names, or all that are left as `**cell`; what it returns has the axes that it does not
        take, in order, first.
    **quantities : Quantity or str
        What it returns, in a mapping by these names, or the value alone where there is one. A text
        is the meaning of a quantity without further axes. A list of such mappings, or of lists of
        them, has the quantities' first axes.

    Returns
    -------
    callable
        A decorator. The function takes by name what it needs: `parameters`, labels of its cell, an
        artifact (`data`, `theory`, `simulation`), `earlier` for what the functions before it in its
        stage gave, over all cells, and `trial` to be called for each trial of a
        simulation, or `trials` to be called once a cell and give all of them on a first axis, or
        yield one after another. With `trial` the cells of a trial draw one after another from its
        generator. `shared_rng` is a generator that is the same in every trial, shard and cell; a
        function that takes it without the trials returns what all of them share.
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
    attributes: Callable[..., Mapping[str, Any]] | None = None,
    shared: Mapping[str, Callable[..., Any]] | None = None,
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
        Global attributes, a function of `parameters` and of the artifacts that it names; those of
        a simulation stay with its summary.
    shared : mapping of str to callable, optional
        What blocks and axes take by these names: functions of the parameters and of artifacts, each
        evaluated once.
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
    making = shared or {}
    functions = list(making.values())
    functions += [axis.values for axis in shown.values() if callable(axis.values)]
    functions += [attributes] if attributes else []
    asked = {name for function in functions for name in _arguments(function)}
    asked |= {name for block in blocks for name in block.arguments}
    asked |= {"trials"} if asked & {"trial", "shared_rng"} else set()
    inputs = [name for name in INPUTS if name in asked]

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [inspect.Parameter(name, kind) for name in ("parameters", *inputs)]
    )

    def run(*arguments: Any, **named: Any) -> xr.Dataset:
        import xarray as xr

        given = signature.bind(*arguments, **named).arguments
        for name, make in making.items():
            given[name] = make(**{argument: given[argument] for argument in _arguments(make)})
        labels = {name: axis.labels(given) for name, axis in shown.items()}
        coordinates: Variables = {
            name: variable(axis.along or name, labels[name], axis.meaning, units=axis.units)
            for name, axis in shown.items()
        }
        if "simulation" in given:
            coordinates["trial"] = given["simulation"].trial.variable
        variables: Variables = {}
        for block in blocks:
            if EARLIER in block.arguments:
                given[EARLIER] = xr.Dataset(variables, coords=coordinates)
            variables |= block.evaluate(given, labels)
        about: Mapping[str, Any] = {}
        if attributes:
            reads = _arguments(attributes)
            about = attributes(**{name: given[name] for name in reads if name in given})
        return xr.Dataset(variables, coords=coordinates, attrs=about)

    run.__signature__ = signature  # type: ignore[attr-defined]
    run.blocks, run.shown = blocks, shown  # type: ignore[attr-defined]
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
        return values | {f"{name}_spread": standard_deviation(values[name]) for name in spread}

    declared: dict[str, Quantity] = {}
    for name, each in kept.items():
        dims = " ".join((*simulation.axes, each.dims)).strip()
        mean = replace(each, meaning=f"the {each.meaning}", dims=dims)
        declared[name] = Mean(**vars(mean))
        if name in spread:
            meaning = f"standard deviation over trials of {mean.meaning}"
            declared[f"{name}_spread"] = replace(mean, meaning=meaning)
    return per(**declared)(summarise)


def kept(*blocks: Block) -> Block:
    """What a simulation holds once for all trials, for its summary."""
    quantities = {
        name: replace(each, dims=" ".join((*block.axes, *each.dims.split())))
        for block in blocks
        for name, each in block.quantities.items()
    }

    def keep(simulation: xr.Dataset) -> dict[str, np.ndarray]:
        return {
            name: simulation[name].transpose(*each.dims.split()).values
            for name, each in quantities.items()
        }

    return per(**quantities)(keep)


def trials_last(array: xr.DataArray) -> np.ndarray:
    """Values with the trials on the last axis, contiguous, so that sums have one order."""
    return np.ascontiguousarray(array.transpose(..., "trial").values)


@cache
def _arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    every = inspect.signature(function).parameters.values()
    return tuple(each.name for each in every if each.kind is not inspect.Parameter.VAR_KEYWORD)
