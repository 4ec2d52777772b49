"""Simulations of a recipe: shards of its trials, joined and summarised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reproduction.engine.artifacts import DIGEST, variable
from reproduction.engine.registry import Recipe, seed_key

if TYPE_CHECKING:
    import xarray as xr

Inputs = Mapping[str, "xr.Dataset"]


def simulated(
    recipe: Recipe,
    parameters: Any,
    inputs: Inputs,
    draws: tuple[str, int, int],
    shard: tuple[int, int] = (0, 1),
) -> xr.Dataset:
    """One shard of a simulation; `draws` are the experiment's path, the seed and the trials."""
    from reproduction.engine.trials import shard_of

    path, seed, trials = draws
    part = shard_of(seed, seed_key(path), trials, index=shard[0], count=shard[1])
    found: xr.Dataset = recipe.module.simulate(
        parameters, part, **_asked(recipe, "simulate", inputs)
    )
    number = variable("trial", part.numbers, "trial number")
    return found.assign_coords(trial=number).assign_attrs(seed=seed)


def summarised(
    recipe: Recipe, parameters: Any, inputs: Inputs, shards: Sequence[xr.Dataset]
) -> xr.Dataset:
    """All shards of a simulation, joined and summarised over the trials."""
    import xarray as xr

    joined = xr.concat(
        sorted(shards, key=lambda part: int(part.trial[0])),
        dim="trial",
        data_vars="minimal",
        coords="minimal",
        compat="equals",
        join="exact",
        combine_attrs="drop_conflicts",
    )
    # Of several shards it is dropped, as what differs.
    joined.attrs.pop(DIGEST, None)
    found = joined.trial.values.tolist()
    if found != list(range(len(found))):
        raise ValueError(f"shards must hold each trial once, got trials {found}")
    attributes = joined.attrs | {"trials": len(found)}
    if recipe.has("summarise"):
        inputs = _asked(recipe, "summarise", inputs)
        joined = recipe.module.summarise(parameters, joined.assign_attrs(attributes), **inputs)
    return joined.assign_attrs(attributes | joined.attrs)


def _asked(recipe: Recipe, stage: str, inputs: Inputs) -> dict[str, xr.Dataset]:
    return {name: inputs[name] for name in recipe.reads(stage)}
