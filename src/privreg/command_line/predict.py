"""`privreg predict`: the error that one run with stated settings will have."""

from __future__ import annotations

import argparse
from dataclasses import asdict, fields
from typing import Any

from privreg.algorithms.huber_settings import HuberSettings, default_settings
from privreg.command_line.options import (
    add_budget,
    add_problem,
    as_json,
    budget_of,
    problems_of,
)
from privreg.prediction.methods import AdaSSP, CorrelatedNoise, FullBatch, OnePass
from privreg.prediction.predict import predict_risk
from privreg.prediction.problem import Problem
from privreg.prediction.result import Prediction
from privreg.privacy.budget import Budget
from privreg.schedules import Harmonic, Polynomial

SUMMARY = "predict the error of a private run from its settings alone"
KINDS: dict[str, type] = {
    "huber": HuberSettings,
    "full_batch": FullBatch,
    "one_pass": OnePass,
    "correlated_noise": CorrelatedNoise,
    "adassp": AdaSSP,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_problem(parser)
    add_budget(parser)
    parser.add_argument("--method", choices=list(KINDS), required=True)
    parser.add_argument(
        "--set",
        dest="settings",
        nargs="*",
        default=[],
        metavar="NAME=VALUE",
        help="the method's settings, such as steps=20 step_size=0.5 clip_norm=8; of one_pass "
        "clip_constant, and initial and exponent or numerator and offset of its schedule",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> str:
    """The prediction as text."""
    budget = budget_of(options)
    problems = problems_of(options)
    method = method_of(options.method, options.settings, problems[0], budget)
    found = [predict_risk(problem, method, budget) for problem in problems]
    if options.json:
        return as_json([_plain(each) for each in found])
    return "\n\n".join(_text(problem, each) for problem, each in zip(problems, found, strict=True))


def method_of(name: str, assignments: list[str], problem: Problem, budget: Budget) -> Any:
    """Settings of a method from NAME=VALUE words."""
    values: dict[str, float] = {}
    for word in assignments:
        key, equals, number = word.partition("=")
        try:
            values[key] = float(number)
        except ValueError:
            equals = ""
        if not equals:
            raise ValueError(f"--set must be NAME=VALUE with a number, got {word}")
    if name == "one_pass":
        curve: type[Harmonic | Polynomial] = Harmonic if "offset" in values else Polynomial
        shape = [each.name for each in fields(curve)]
        known = [*shape, "clip_constant"]
        _require_names(values, known, needed=known)
        schedule = curve(*(values[each] for each in shape))
        return OnePass(schedule, values["clip_constant"])
    kind = KINDS[name]
    known = [each.name for each in fields(kind) if each.init]
    whole = {"steps", "batch_size", "warm_up_steps", "final_steps", "gram_rounds"}
    stated: dict[str, Any] = {
        key: int(value) if key in whole and value.is_integer() else value
        for key, value in values.items()
    }
    if name == "huber":
        _require_names(values, known, needed=[])
        start = default_settings(
            sample_size=problem.sample_size, dimension=problem.dimension, budget=budget
        )
        return HuberSettings(**{**asdict(start), **stated})
    _require_names(values, known, needed=[] if name == "adassp" else known)
    return kind(**stated)


def _require_names(values: dict[str, float], known: list[str], *, needed: list[str]) -> None:
    for key in values:
        if key not in known:
            raise ValueError(f"--set must name one of {', '.join(known)}, got {key}")
    for key in needed:
        if key not in values:
            raise ValueError(f"--set must give {', '.join(needed)}, got no {key}")


def _text(problem: Problem, found: Prediction) -> str:
    lines = [
        f"n = {problem.sample_size:,}, p = {problem.dimension}, "
        f"excess risk of predicting the mean {problem.null_risk:.4g}, "
        f"label noise {problem.label_noise_std:.4g} ({problem.label_noise_law}, "
        f"misfit {problem.misfit:g})",
        f"excess risk      {found.excess_risk:.4g} ± {found.excess_risk_std:.2g} over runs",
        f"parameter error  {found.parameter_error:.4g} (squared)",
        f"95 % interval    {found.interval_length:.4g} long",
        f"theory           {found.regime}: {found.reason}",
    ]
    lines += [f"warning          {each}" for each in found.warnings]
    if not found.holds:
        lines.append("These numbers are not to be relied on.")
    elif not found.beats_the_mean:
        lines.append("The fit will not be better than predicting the mean.")
    return "\n".join(lines)


def _plain(found: Prediction) -> dict[str, Any]:
    return {**asdict(found), "regime": str(found.regime), "holds": found.holds}
