"""What an artifact will hold, from the declarations of the stage that makes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction.experiment.cells import Axis, Block
from reproduction.experiment.datasets import variable

# As `datasets.variable` has them: dimensions, values, attributes. The values mean nothing here.
Variables = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Structure:
    """Variables and coordinates of an artifact that need not be there yet.

    Attributes
    ----------
    variables : mapping
        Dimensions and attributes of what it holds.
    coordinates : mapping
        The same of its coordinates.
    """

    variables: Variables
    coordinates: Variables


def structure(stage: Callable[..., Any]) -> Structure | None:
    """The structure of what a stage makes; None of a stage that does not declare it.

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


def labels(stage: Callable[..., Any], parameters: Any) -> dict[str, tuple[Any, ...]]:
    """Labels of a declared stage's coordinates, where they follow from the parameters alone.

    Further labels along an axis are left out unless they are a parameter: to compute them can take
    as long as a run's whole start.
    """
    found: dict[str, tuple[Any, ...]] = {}
    for name, axis in _axes(stage).items():
        made_by = axis.values
        stated = isinstance(made_by, str) and made_by in type(parameters).model_fields
        if axis.along and not stated:
            continue
        # A function of nothing imports what it lists.
        if not callable(made_by) or [*inspect.signature(made_by).parameters] == ["parameters"]:
            values = np.asarray(axis.labels({"parameters": parameters}))
            found[name] = tuple(values.tolist())
    return found


def _axes(stage: Any) -> Mapping[str, Axis]:
    shown: Mapping[str, Axis] = stage.shown
    return shown
