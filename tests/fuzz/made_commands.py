"""The commands of a user as functions: each option an argument, which goes in as text."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import made_runs
import numpy as np

from privreg.command_line.main import main


def predict(
    *,
    sample_size: Any,
    dimension: Any,
    signal: Any,
    label_noise_std: Any,
    feature_norm: Any,
    label_bound: Any,
    misfit: Any,
    rho: Any,
    delta: Any,
    steps: Any,
    step_size: Any,
    clip_norm: Any,
) -> Any:
    """`privreg predict` of full-batch DP-GD.

    Parameters
    ----------
    sample_size, steps : int
        At least 1.
    dimension : int
        At least 1 and at most 10000000.
    signal, label_noise_std : float
        At least 0 and at most 1e12.
    feature_norm, label_bound : float
        More than 0.
    misfit : float
        At least 0 and at most 1, beside the law of the label noise.
    rho : float
        More than 0; `inf` asks for nothing.
    delta : float
        More than 0 and less than 1.
    step_size, clip_norm : float
        More than 0; `inf` clips nothing.
    """
    settings = {"steps": steps, "step_size": step_size, "clip_norm": clip_norm}
    options = {
        "sample_size": sample_size,
        "dimension": dimension,
        "signal": signal,
        "label_noise_std": label_noise_std,
        "feature_norm": feature_norm,
        "label_bound": label_bound,
        "label_noise_law": f"gaussian:{_text(misfit)}",
        "rho": rho,
        "delta": delta,
    }
    words = [f"{name}={_text(value)}" for name, value in settings.items()]
    return _answer(
        ["predict", *_written(options), "--method=full_batch", "--set", *words, "--json"]
    )


def plan(*, sample_size: Any, dimension: Any, epsilon: Any, delta: Any) -> Any:
    """`privreg plan` at a budget.

    Parameters
    ----------
    sample_size : int
        At least 1.
    dimension : int
        At least 1 and at most 10000000.
    epsilon : float
        At least 1e-100 and at most 1e99.
    delta : float
        More than 0 and less than 1.
    """
    options = {"sample_size": sample_size, "dimension": dimension, "epsilon": epsilon}
    return _answer(["plan", *_written({**options, "delta": delta}), "--methods=adassp", "--json"])


def least_budget(*, sample_size: Any, dimension: Any, target_risk: Any) -> Any:
    """`privreg plan` for a target.

    Parameters
    ----------
    sample_size : int
        At least 1.
    dimension : int
        At least 1 and at most 10000000.
    target_risk : float
        More than 0.
    """
    options = {"sample_size": sample_size, "dimension": dimension, "target_risk": target_risk}
    return _answer(["plan", *_written(options), "--methods=adassp", "--json"])


def fit(*, label: Any, label_bounds: Any, rho: Any, delta: Any, level: Any, threads: Any) -> Any:
    """`privreg fit` of a table, with bounds from a file.

    Parameters
    ----------
    label : str
        A column.
    label_bounds : (float, float)
        At least -1e15 and at most 1e15, in the file of bounds.
    rho : float
        At least 1e-20 and at most 1e20.
    delta, level : float
        More than 0 and less than 1.
    threads : int
        At least 1.
    """
    table = made_runs.csv_file()
    bounds, output = table.with_name("bounds.json"), table.with_name("fit.json")
    declared = {**made_runs.FEATURE_BOUNDS, "y": label_bounds}
    bounds.write_text(json.dumps(declared, default=_plain), encoding="utf-8")
    output.unlink(missing_ok=True)
    options = {"label": label, "rho": rho, "delta": delta, "level": level, "threads": threads}
    files = [f"--bounds={bounds}", f"--output={output}"]
    _answer(["fit", str(table), *_written(options), *files], read=False)
    return json.loads(output.read_text(encoding="utf-8"))


COMMANDS = {"predict": predict, "plan": plan, "least_budget": least_budget, "fit": fit}
_PROBLEM = {"sample_size": 400, "dimension": 3}
EXCEPTIONS: dict[str, dict[str, Any]] = {
    "command_line.predict": {
        **_PROBLEM,
        "signal": 1.0,
        "label_noise_std": 0.5,
        "feature_norm": 3.0,
        "label_bound": 4.0,
        "misfit": 0.3,
        "steps": 4,
        "step_size": 0.5,
        "clip_norm": 4.0,
    },
    "command_line.plan": _PROBLEM,
    "command_line.least_budget": {**_PROBLEM, "target_risk": 0.1},
    "command_line.fit": {
        "label": "y",
        "label_bounds": np.array([-2.0, 2.0]),
        "rho": 5.0,
        "threads": 1,
    },
}


def callables() -> Iterator[tuple[str, Callable[..., Any], str]]:
    """Each command with its name and what it promises."""
    for name, command in COMMANDS.items():
        yield f"command_line.{name}", command, inspect.getdoc(command) or ""


def _written(options: dict[str, Any]) -> list[str]:
    return [f"--{name.replace('_', '-')}={_text(value)}" for name, value in options.items()]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else repr(value)


def _answer(words: list[str], *, read: bool = True) -> Any:
    """What a command prints, or its one line of refusal as an error."""
    printed, refused = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(refused):
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code
    if status == 0:
        return json.loads(printed.getvalue()) if read else None
    line = refused.getvalue().rstrip("\n").split("\n")[-1]
    line = re.sub(r"^privreg \w+: (error: )?", "", line)
    line = line.replace("--label-noise-law must be LAW:MISFIT", "misfit must be a number", 1)
    # In argparse's words and in those of `--set`, as in the library's.
    line = re.sub(r"^argument --([\w-]+): (.*)", r"\1 must be another: \2", line)
    line = re.sub(r"^--set must be (.*), got (\w+)=", r"\2 must be \1, got ", line)
    line = line.replace("budget must be finite with rho", "rho must be finite and", 1)
    name, _, rest = line.removeprefix("--").partition(" ")
    raise ValueError(f"{name.replace('-', '_')} {rest}")
