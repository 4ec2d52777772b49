"""`privreg predict`: the error that one run with stated settings will have."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from privreg import planning
from privreg.command_line.options import add_budget, add_problem, as_json, budget_of, problems_of
from privreg.methods.problem import Prediction, Problem

SUMMARY = "predict the error of a private run from its settings alone"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_problem(parser)
    add_budget(parser)
    parser.add_argument(
        "--method",
        choices=list(planning.by_name()),
        metavar="METHOD",
        required=True,
        help=f"method to predict: {', '.join(planning.by_name())}",
    )
    parser.add_argument(
        "--set",
        dest="settings",
        nargs="*",
        default=[],
        metavar="NAME=VALUE",
        help="settings of the method, such as steps=20 step_size=0.5 clip_norm=8. one_pass takes "
        "clip_constant and its schedule: initial and exponent, or numerator and offset",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> str:
    """The prediction as text."""
    budget = budget_of(options)
    problems = problems_of(options)
    values = _numbers(options.settings)
    method = planning.by_name()[options.method].from_numbers(values, problems[0], budget)
    found = [method.predict(problem, budget) for problem in problems]
    if options.json:
        return as_json([_plain(each) for each in found])
    return "\n\n".join(_text(problem, each) for problem, each in zip(problems, found, strict=True))


def _numbers(assignments: list[str]) -> dict[str, float]:
    values: dict[str, float] = {}
    for word in assignments:
        key, equals, number = word.partition("=")
        try:
            values[key] = float(number)
        except ValueError:
            equals = ""
        if not equals:
            raise ValueError(f"--set must be NAME=VALUE with a number, got {word}")
    return values


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
