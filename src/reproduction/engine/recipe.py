"""Stages of a recipe, written for one cell of its grid.

A recipe declares its axes once. Each of its functions declares the axes over which it is evaluated
and the quantities that it returns. `stage` combines functions into what the workflow calls:

    AXES = {"exponent": Axis("schedule exponent alpha", "exponents"), "time": Axis("time", "times")}

    @per("exponent", final_risk="excess risk of the output", risk=Quantity("excess risk", "time"))
    def path(parameters, exponent): ...

    theory = stage(AXES, path)

Loops over cells and trials, stacking, coordinates, attributes and standard errors are made here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.engine.artifacts import Release, variable
from reproduction.engine.summaries import mean_and_error, standard_deviation, trials_last
from reproduction.engine.trials import track

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from xarray import DataArray as DataArray
    from xarray import Dataset as Dataset

    from reproduction.engine.trials import Trial as Trial
    from reproduction.engine.trials import Trials as Trials
else:
    # Names for annotations: to import them costs nothing.
    Axes = Figure = DataArray = Dataset = Trial = Trials = Any

Given = Mapping[str, Any]
Variables = dict[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Axis:
    """An axis of a recipe's grid, or further labels along one.

    Parameters
    ----------
    meaning : str
        Meaning of the axis, in words.
    values : str, sequence or callable
        Labels, an attribute of the parameters, or a function of `parameters` and of the artifacts
        that its arguments name. A `quantities.LogAxis` stands for its log-spaced values.
    along : str, optional
        Name of the axis that these labels describe, in addition to its own labels.
    units : str
    """

    meaning: str
    values: str | Sequence[Any] | np.ndarray | Callable[..., Any]
    along: str | None = None
    units: str = "1"

    def labels(self, given: Given) -> Any:
        """Labels of the axis, in order."""
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
        Meaning of the quantity, in words.
    dims : str
        Axes beyond those over which the function is evaluated, separated by blanks.
    units : str
    release : {"private", "diagnostic"}, optional
        Status of values from real data.
    missing : str, optional
        Reason why some values are NaN.
    """

    meaning: str
    dims: str = ""
    units: str = "1"
    release: Release | None = None
    missing: str | None = None

    @property
    def given_dims(self) -> tuple[str, ...]:
        """Additional dimensions of a function's results."""
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
            Number of dimensions that the cells have; the other ones are of the function's values.
        """
        return {name: self._variable(dims, values)}

    def blank(self, rank: int, cells: int) -> np.ndarray:
        """Values of length 1 along each dimension, to find the results of `variables`."""
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
    """Call a function with the given values that it names; other arguments keep defaults."""
    return function(**{name: given[name] for name in arguments_of(function) if name in given})


# What the workflow gives to a stage beside its parameters, in the order of its signature.
INPUTS = ("trials", "data", "simulation", "theory")
# What the functions before one have given, in the same stage.
EARLIER = "earlier"
# A stream that no trial uses.
SHARED_STREAM = 1 << 31


@dataclass(frozen=True)
class Block:
    """A function of one cell, the axes of its cells, and the quantities that it returns."""

    function: Callable[..., Any]
    axes: tuple[str, ...]
    quantities: Mapping[str, Quantity]

    def released(self, how: Release) -> Block:
        """Block with this release status for quantities that state none."""
        return replace(
            self,
            quantities={
                name: replace(each, release=each.release or how)
                for name, each in self.quantities.items()
            },
        )

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the function's arguments; `**cell` stands for all axes that it does not name."""
        named = arguments_of(self.function)
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
        return {name: self._in_order(name, each) for name, each in self._named(found).items()}

    def _in_order(self, name: str, values: Any) -> Any:
        """Values of a labelled array with its axes in the declared order, contiguous."""
        if not hasattr(values, "coords"):
            return values
        _, inner = self.dims
        order = (*inner, *self.quantities[name].given_dims)
        return np.asarray(values.transpose(*order).values, order="C")

    def _named(self, found: Any) -> Mapping[str, Any]:
        """Values by name; lists of mappings, nested or not, give the first axes of the values."""
        if isinstance(found, Mapping):
            if found.keys() != self.quantities.keys():
                apart = ", ".join(sorted(found.keys() ^ self.quantities.keys()))
                raise ValueError(f"{self.function.__name__} lacks or adds declared names: {apart}")
            return found
        if len(self.quantities) == 1:
            return dict.fromkeys(self.quantities, found)
        rows = [self._named(row) for row in found]
        return {name: [row[name] for row in rows] for name in self.quantities}

    @property
    def dims(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Dimensions of the cells, then those of the function's values.

        Dimensions that a quantity itself declares come after both.
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
        Axes over which the function is evaluated, the last one fastest. It takes a cell's labels by
        these names, or the remaining labels as `**cell`. Axes not taken come first in its values.
    **quantities : Quantity or str
        Quantities returned, as a mapping by these names, or as a single value if there is only one.
        A text is the meaning of a quantity without further axes. Lists of such mappings, nested or
        not, have the quantities' first axes; axes of a DataArray may be in any order.

    Returns
    -------
    callable
        A decorator. The function takes by name what it needs: `parameters`, labels of its cell, an
        artifact (`data`, `theory`, `simulation`), or `earlier`, the results over all cells of the
        functions before it in its stage. A function with `trial` is called for each trial of a
        simulation; the cells of a trial draw one after another from its generator. A function with
        `trials` is called once for each cell; it returns all trials on a first axis or yields them.
        `shared_rng` is a generator that is the same in every trial, shard and cell; a function that
        takes it without the trials returns what all trials share.
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
    released: Release | None = None,
    blocks_of: Mapping[str, Any] | None = None,
    **own: Axis,
) -> Callable[..., xr.Dataset]:
    """Stage of the workflow: a function of the parameters and of its blocks' inputs.

    Parameters
    ----------
    axes : mapping of str to Axis
        Axes of the recipe.
    *blocks : Block
        Results of `per`, without trials for a theory or a summary, with trials for a simulation.
    attributes : callable, optional
        Global attributes, a function of `parameters` and artifacts; summaries keep a simulation's.
    shared : mapping of str to callable, optional
        Functions of parameters and artifacts, run once; blocks and axes take the results by name.
    released : {"private", "diagnostic"}, optional
        Status of values from real data, for quantities that state none.
    blocks_of : mapping, optional
        `globals()` of a recipe: all blocks that it has declared so far, in order.
    **own : Axis
        Axes that this stage adds or replaces; shown even if no quantity has them.
    """
    blocks += tuple(each for each in (blocks_of or {}).values() if isinstance(each, Block))
    if released:
        blocks = tuple(block.released(released) for block in blocks)
    shown = _shown({**axes, **own}, blocks, own)
    making = shared or {}
    functions = [*making.values(), *(axis.values for axis in shown.values())]
    functions += [attributes] if attributes else []
    signature = _signature(blocks, filter(callable, functions))

    def run(*positional: Any, **named: Any) -> xr.Dataset:
        import xarray as xr

        given = signature.bind(*positional, **named).arguments
        for name, make in making.items():
            given[name] = called(make, given)
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
        about = called(attributes, given) if attributes else {}
        return xr.Dataset(variables, coords=coordinates, attrs=about)

    run.__signature__ = signature  # type: ignore[attr-defined]
    run.blocks, run.shown = blocks, shown  # type: ignore[attr-defined]
    return run


def _shown(
    grid: Mapping[str, Axis], blocks: Sequence[Block], always: Iterable[str]
) -> dict[str, Axis]:
    """Axes of a grid that blocks use, and those along them."""
    used = set(always)
    for block in blocks:
        used.update(block.axes, *(each.dims.split() for each in block.quantities.values()))
    used -= {"trial"}
    return {name: axis for name, axis in grid.items() if name in used or axis.along in used}


def _signature(blocks: Sequence[Block], functions: Iterable[Any]) -> inspect.Signature:
    """Parameters, and arguments that a stage's functions take from the workflow."""
    asked = {name for function in functions for name in arguments_of(function)}
    asked |= {name for block in blocks for name in block.arguments}
    asked |= {"trials"} if asked & {"trial", "shared_rng"} else set()
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = ("parameters", *(name for name in INPUTS if name in asked))
    return inspect.Signature([inspect.Parameter(name, kind) for name in names])


def means(simulation: Block, *names: str, spread: Sequence[str] = ()) -> Block:
    """Means over trials of a block's quantities, with their standard errors.

    Parameters
    ----------
    simulation : Block
    *names : str
        Quantities of the block; all of them by default.
    spread : sequence of str
        Quantities that also keep their standard deviation over trials, as `<name>_spread`.
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


def kept(*blocks: Block, names: Sequence[str] = (), artifact: str = "simulation") -> Block:
    """Quantities that an artifact holds, for a summary.

    Parameters
    ----------
    *blocks : Block
        Blocks that computed the artifact's quantities, once for all trials.
    names : sequence of str
        The quantities; all of them by default.
    artifact : {"simulation", "theory"}
    """
    quantities = {
        name: replace(each, dims=" ".join((*block.axes, *each.dims.split())))
        for block in blocks
        for name, each in block.quantities.items()
        if name in names or not names
    }

    def from_simulation(simulation: xr.Dataset) -> Mapping[Any, Any]:
        return simulation[[*quantities]]

    def from_theory(theory: xr.Dataset) -> Mapping[Any, Any]:
        return theory[[*quantities]]

    keep = {"simulation": from_simulation, "theory": from_theory}
    return per(**quantities)(keep[artifact])


Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Stated(Quantity):
    """A quantity that decides the entry of the ledger with these fields."""

    entry: Raw

    def declared(self, name: str, artifact: str) -> Raw:
        """The entry as a ledger's file would hold it."""
        evidence: dict[str, Any] = {"artifact": artifact, "variable": name}
        probe: dict[str, Any] = {"evidence": evidence, "check": self.entry["check"]}
        if self.entry["select"]:
            evidence["select"] = self.entry["select"]
        if self.entry["wrong"]:
            probe["wrong"] = [_wrong(*each) for each in self.entry["wrong"].items()]
        words = {key: self.entry[key] for key in self.entry.keys() - {"check", "select", "wrong"}}
        if wrong := words.get("corrected", {}).get("wrong"):
            wrong = [_wrong(*each) for each in wrong.items()]
            words["corrected"] = {**words["corrected"], "wrong": wrong}
        kind = {"kind": "proof step"} if "statement" in words else {}
        return {"id": name.replace("_", "-"), **kind, "checks": [probe], **words}


def stated(
    meaning: str,
    dims: str = "",
    *,
    check: Raw,
    wrong: Mapping[str, Raw | str] | None = None,
    select: Raw | None = None,
    units: str = "1",
    **entry: Any,
) -> Stated:
    """A quantity that decides an entry.

    Parameters
    ----------
    meaning, dims, units
        As in `Quantity`.
    check : mapping
        Result of `close`, `between`, `below`, `above` or `every`.
    wrong : mapping
        Small wrong versions of the statement, which the evidence must refuse. Each wrong statement
        is mapped to the check that differs, the evidence, or the name of the quantity.
    select : mapping, optional
        Labels of the quantity's axes; all values by default.
    **entry
        The entry's other fields: `where`, one of `statement` and `compares`, and other fields of a
        ledger's file; `id` follows from the quantity's name, `kind` is "proof step". `corrected`
        takes `check` and `wrong` as here, and `evidence` if it differs.
    """
    if ("statement" in entry) == ("compares" in entry):
        raise ValueError(f"exactly one of statement and compares must be given for {meaning!r}")
    about = {"check": check, "wrong": wrong or {}, "select": select or {}, **entry}
    return Stated(meaning, dims, units=units, entry=about)


def identity(*axes: str, **about: Any) -> Callable[[Callable[..., Any]], Block]:
    """Declare a function as one quantity of the same name, and the entry that it decides.

    Parameters
    ----------
    *axes : str
        As in `per`.
    **about
        As in `stated`; the first line of the docstring is the quantity's meaning.
    """

    def declare(function: Callable[..., Any]) -> Block:
        first = (inspect.getdoc(function) or "").partition("\n")[0].removesuffix(".")
        # An acronym or a name keeps its capital.
        meaning = first[:1].lower() + first[1:] if first[1:2].islower() else first
        if not meaning:
            raise ValueError(f"{function.__name__} must have a docstring that says what it gives")
        return per(*axes, **{function.__name__: stated(meaning, **about)})(function)

    return declare


def entries(blocks: Sequence[Block], artifact: str) -> dict[str, list[Raw]]:
    """Statements and cross-checks that the quantities of a recipe's blocks decide."""
    found: dict[str, list[Raw]] = {"statements": [], "cross_checks": []}
    for block in blocks:
        for name, quantity in block.quantities.items():
            if isinstance(quantity, Stated):
                kind = "statements" if "statement" in quantity.entry else "cross_checks"
                found[kind].append(quantity.declared(name, artifact))
    return found


def _wrong(says: str, differs: Raw | str) -> Raw:
    if isinstance(differs, str):
        differs = {"variable": differs}
    return {"says": says, "check" if "kind" in differs else "evidence": dict(differs)}


def close(expected: Any, **tolerances: float) -> Raw:
    """Equal up to the largest of `absolute`, `relative` (and `sigmas`)."""
    return {"kind": "close", "expected": expected, **tolerances}


def between(low: Any, high: Any) -> Raw:
    """At least `low` and at most `high`."""
    return {"kind": "between", "low": low, "high": high}


def below(high: Any) -> Raw:
    """At most `high`."""
    return {"kind": "below", "high": high}


def above(low: Any) -> Raw:
    """At least `low`."""
    return {"kind": "above", "low": low}


def every(check: Raw) -> Raw:
    """The check for every element of an array."""
    return {"kind": "all", "of": check}


@dataclass(frozen=True)
class Structure:
    """Variables and coordinates of an artifact; the artifact need not exist yet.

    Attributes
    ----------
    variables : mapping
        Dimensions and attributes of the variables.
    coordinates : mapping
        Dimensions and attributes of the coordinates.
    """

    variables: Variables
    coordinates: Variables


def structure(stage: Callable[..., Any]) -> Structure | None:
    """Structure of a stage's artifact; None if the stage does not declare it.

    Parameters
    ----------
    stage : callable
        A recipe's `theory`, `simulate`, `summarise` or `intervals`.
    """
    blocks: tuple[Block, ...] | None = getattr(stage, "blocks", None)
    if blocks is None:
        return None
    variables: dict[str, tuple[Any, ...]] = {}
    for block in blocks:
        made, inner = block.dims
        for name, quantity in block.quantities.items():
            rank = len(made) + len(inner) + len(quantity.dims.split())
            values = quantity.blank(rank, len(made))
            variables |= quantity.variables(name, (*made, *inner), values, len(made))
    coordinates = {
        name: variable(axis.along or name, (), axis.meaning, units=axis.units)
        for name, axis in _axes(stage).items()
    }
    if inspect.signature(stage).parameters.keys() & {"trials", "simulation"}:
        coordinates["trial"] = variable("trial", (), "trial number")
    return Structure(variables, coordinates)


def _axes(stage: Any) -> Mapping[str, Axis]:
    shown: Mapping[str, Axis] = stage.shown
    return shown
