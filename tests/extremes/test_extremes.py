"""Each parameter of each recipe at the ends of what it takes: refused in one line, or run whole."""

from __future__ import annotations

import math
import os
import pickle
import random
import resource
import shutil
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reproduction.experiment.parameters import ConfigError
from reproduction.pipeline import prediction
from reproduction.pipeline.config import STUDIES, Experiment
from reproduction.pipeline.plan import STAGE_OF

COSTS = Path(__file__).parents[2] / "workflow/costs.json"
SECONDS, MEMORY = 4, 3 << 30
REFUSED, RAN, COSTLY, RAISED = "refused", "ran", "too costly to see", "raised in a job"
SAMPLE, SEED = 2, 20261123
Path_ = tuple[Any, ...]


class Case(NamedTuple):
    """One parameter changed, and what became of the run."""

    path: Path_
    value: Any
    outcome: str
    said: str


@pytest.mark.long
def test_extreme_parameters_run_or_are_refused(built, experiment):
    for artifact, stage in STAGE_OF.items():
        if built.plan.recipe(*experiment).has(stage):
            # What is imported and read once is not the children's.
            built.path(experiment[0], f"{artifact}/{experiment[1]}")
    cases = list(extremes(built.plan, *experiment))
    chosen = random.Random(f"{SEED}{experiment}").sample(cases, min(SAMPLE, len(cases)))
    found = [tried(type(built), built.plan, *experiment, *case) for case in chosen]
    assert not [case for case in found if case.outcome == RAISED]


def extremes(plan: Any, paper: str, name: str) -> Iterator[tuple[Path_, Any]]:
    """Paths into the parameters of an experiment and values at the ends of their types."""
    recipe, given = plan.recipe(paper, name), plan.experiment(paper, name).parameters
    schema = recipe.module.Parameters.model_json_schema()
    now = recipe.parameters(given, name).model_dump() | given
    for key, about in schema["properties"].items():
        for path, value in ends(about, schema.get("$defs", {}), now[key]):
            yield (key, *path), value


def ends(about: Any, defs: Any, now: Any) -> Iterator[tuple[Path_, Any]]:
    """Values at the ends of what a schema states, some just beyond them, by their path inside."""
    about = about.get("allOf", [about])[0] | {k: v for k, v in about.items() if k != "allOf"}
    if "$ref" in about:
        about = defs[about["$ref"].rpartition("/")[2]] | about
    if "zcdp" in about.get("properties", {}):
        yield from (((), budget) for budget in budgets(about["properties"]))
    elif "properties" in about:
        for key, inner in about["properties"].items():
            before = (now or {}).get(key, inner.get("default"))
            yield from (((key, *path), value) for path, value in ends(inner, defs, before))
    elif about.get("type") == "array":
        yield from of_list(about, defs, now)
    elif about.get("type") in ("number", "integer"):
        low = about.get("minimum", about.get("exclusiveMinimum", 0))
        high = about.get("maximum", about.get("exclusiveMaximum", 1))
        if about["type"] == "integer":
            values = [0, 1, 2, 3, low, low + 1, high]
        else:
            low += "exclusiveMinimum" in about and math.ulp(low)
            high -= "exclusiveMaximum" in about and math.ulp(high)
            values = [0.0, 1.0, 1e-300, 1e-9, 1e9, 1e300, float(low), float(high)]
        yield from (((), value) for value in dict.fromkeys(values) if value != now)
    else:
        listed = [True, False] if about.get("type") == "boolean" else about.get("enum", [])
        yield from (((), value) for value in listed if value != now)


def of_list(about: Any, defs: Any, now: Any) -> Iterator[tuple[Path_, Any]]:
    yield from (((), value) for value in ([], now[:1], now[::-1], now + now[:1]))
    items = about.get("items") or about["prefixItems"][0]
    for path, value in ends(items, defs, now[0]):
        alone = changed(now[0], path, value)
        first = not isinstance(alone, int | float) or alone < now[0]
        yield from (
            ((), each) for each in ([alone], [alone, *now[1:]] if first else [*now[:-1], alone])
        )


def budgets(stated: Any) -> Iterator[dict[str, float]]:
    def of(name: str) -> tuple[float, float]:
        number = stated[name]["anyOf"][0]
        low, high = number["minimum"], number.get("maximum", 1 - 1e-15)
        return low, high

    yield from ({"zcdp": rho} for rho in of("zcdp"))
    for epsilon in of("epsilon"):
        yield from ({"epsilon": epsilon, "delta": delta} for delta in of("delta"))


def changed(value: Any, path: Path_, new: Any) -> Any:
    """The value with what lies at a path replaced."""
    return (
        {**(value or {}), path[0]: changed((value or {}).get(path[0]), path[1:], new)}
        if path
        else new
    )


def tried(builder: Any, plan: Any, paper: str, name: str, path: Path_, value: Any) -> Case:
    """What becomes of an experiment with one parameter changed, all stages, one trial."""
    now = plan.experiment(paper, name)
    parameters = changed(now.parameters, path, value)
    recipe = plan.recipe(paper, name)
    trials = now.trials and recipe.least_trials
    experiment = Experiment(recipe=now.recipe, trials=trials, parameters=parameters)
    block = plan.config.blocks[paper].model_copy(update={"experiments": {name: experiment}})
    update = {"studies": block} if paper == STUDIES else {"papers": {paper: block}, "studies": None}
    config = plan.config.model_copy(update={"papers": {}, **update})
    other = object.__new__(type(plan))
    vars(other).update({**vars(plan), "config": config})
    try:
        recipe.parameters(parameters, name)
        prediction.require_affordable(other, prediction.read_costs(COSTS))
    except ConfigError as error:
        said = str(error)
        return Case(path, value, REFUSED if "\n" not in said else RAISED, said)

    def run(folder: Path) -> None:
        for kind, stage in STAGE_OF.items():
            if recipe.has(stage):
                builder(other, folder).path(paper, f"{kind}/{name}")

    return Case(path, value, *apart(run))


def apart(run: Callable[[Path], None]) -> tuple[str, str]:
    """The outcome of a call in a process of its own, which has little time and memory."""
    folder = Path(tempfile.mkdtemp())
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        found = RAN, ""
        # As in a job, whose numbers are looked at when they are written.
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            signal.alarm(SECONDS)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            run(folder)
        except MemoryError as error:
            found = COSTLY, str(error)
        except BaseException as error:
            found = RAISED, f"{type(error).__name__}: {error}"
        os.write(writer, pickle.dumps(found)[:60000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as end:
        said = end.read()
    os.waitpid(child, 0)
    shutil.rmtree(folder)
    return pickle.loads(said) if said else (COSTLY, f"more than {SECONDS} s")
