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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.experiment.datasets import Release, variable
from reproduction.experiment.declared import Axis as Axis
from reproduction.experiment.declared import Estimate as Estimate
from reproduction.experiment.declared import Given, Variables, arguments_of, called
from reproduction.experiment.declared import Mean as Mean
from reproduction.experiment.declared import Quantity as Quantity
from reproduction.experiment.progress import track
from reproduction.experiment.summaries import standard_deviation, trials_last

if TYPE_CHECKING:
    import xarray as xr

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
        """The block whose quantities are released so, unless they say it themselves."""
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
        them, has the quantities' first axes; those of a DataArray may be in any order.

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
    released: Release | None = None,
    blocks_of: Mapping[str, Any] | None = None,
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
    released : {"private", "diagnostic"}, optional
        How a run on real data releases the quantities that do not say it themselves.
    blocks_of : mapping, optional
        `globals()` of a recipe: all blocks that it has declared so far, in order.
    **own : Axis
        Axes that are this stage's, or differ in it; shown even if no quantity has them.
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
    """The parameters, and what blocks and other functions of a stage ask of the workflow."""
    asked = {name for function in functions for name in arguments_of(function)}
    asked |= {name for block in blocks for name in block.arguments}
    asked |= {"trials"} if asked & {"trial", "shared_rng"} else set()
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = ("parameters", *(name for name in INPUTS if name in asked))
    return inspect.Signature([inspect.Parameter(name, kind) for name in names])


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


def kept(*blocks: Block, names: Sequence[str] = (), artifact: str = "simulation") -> Block:
    """Quantities that an artifact holds, for a summary.

    Parameters
    ----------
    *blocks : Block
        Those that gave the artifact its quantities, once for all trials.
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
