"""Entry point of `privreg COMMAND …`, and the commands without a table: predict and plan.

An entry of `COMMANDS` has one function that adds options to a parser, and one that runs the command
and prints or returns its result. Commands import their modules when run, so `--help` is quick.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import takewhile
from pathlib import Path
from typing import Any

from privreg.checks import expected_choice, nearest, require_count, rounded
from privreg.command_line import tables
from privreg.command_line.tables import add_budget, adder, as_json, budget_of, shown
from privreg.version import __version__

# Largest number of features of a problem, since memory holds one number for each.
MOST_FEATURES = 10_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] and words[0] not in (*COMMANDS, "-h", "--help", "--version"):
        expected = expected_choice(words[0], COMMANDS)
        print(f"privreg: the command must be {expected}", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(
        prog="privreg",
        description="Private linear regression: predict and plan a run in advance, and fit tables.",
        epilog="`privreg COMMAND --help` lists the options of a command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"privreg {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (summary, add_options, _) in COMMANDS.items():
        added = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        if words[:1] == [name]:
            add_options(added)
            # Before the parser asks for required options, one of which may be misspelt.
            for word in takewhile("--".__ne__, words):
                key, known = word.partition("=")[0], added._option_string_actions
                if key.startswith("--") and " " not in key and key not in known:
                    added.error(f"unrecognized arguments: {key}{nearest(key, known)}")
    options = parser.parse_args(words)

    def say(text: Any, *_: object, **__: object) -> None:
        print(f"privreg {options.command}: {shown(str(text))}", file=sys.stderr)

    with warnings.catch_warnings():
        # A shell can turn warnings into errors, which would end a fit whose budget is spent.
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: say(f"warning: {message}")
        try:
            if text := COMMANDS[options.command][2](options):
                print(shown(text, "\n"), flush=True)
        except (ValueError, OSError, ImportError) as error:
            # Notes say what a failed fit has spent.
            say("; ".join([str(error), *getattr(error, "__notes__", ())]))
            return 1
    return 0


def add_problem(parser: argparse.ArgumentParser) -> None:
    """Add options for sizes, scales, and laws of the features and the label noise."""
    from privreg.methods.problem import FEATURE_LAWS, LABEL_NOISE_LAWS, WHOLE_LAWS

    group = parser.add_argument_group("the problem")
    add = adder(group)
    add("--sample-size N", "number of records", int, required=True)
    spectrum = adder(group.add_mutually_exclusive_group(required=True))
    spectrum("--dimension P", "number of features, all of variance 1", int)
    spectrum("--eigenvalues A,B,...", "eigenvalues of the features' second moment")
    add("--signal NORM", "norm of the coefficients, or its range LOW:HIGH (default 1)")
    std = "standard deviation of the label noise, or its range LOW:HIGH (default 1)"
    add("--label-noise-std STD", std)
    add(
        "--label-noise-law LAW[:MISFIT]",
        f"law of the label noise: {', '.join((*LABEL_NOISE_LAWS, *WHOLE_LAWS))} or binary_MEAN "
        "(default gaussian). binary is for labels 0 and 1, poisson for counts. binary_MEAN is for "
        "two labels in any unit; MEAN is their mean if rescaled to 0 and 1. MISFIT, from 0 to 1 "
        "(default 0), is the correlation of the features with the part of residuals that clipping "
        "removes. If the law is unknown, name several: gaussian student_t3:0.3",
        nargs="+",
        default=["gaussian"],
    )
    add("--feature-law", "law of the features (default gaussian)", choices=FEATURE_LAWS)
    norm = "declared bound on a row's norm; by default sqrt(2 * sum of eigenvalues), 1 if one_hot"
    add("--feature-norm NORM", norm, float)
    bound = "declared bound on a label's absolute value; by default 4 standard deviations of labels"
    add("--label-bound SIZE", bound, float)


def problems_of(options: argparse.Namespace) -> tuple[Any, ...]:
    """Problems at the ends of the stated ranges."""
    import numpy as np

    from privreg.methods.problem import Problem

    signals = _range("--signal", options.signal)
    noises = _range("--label-noise-std", options.label_noise_std)
    if options.eigenvalues is None:
        values = np.ones(require_count("--dimension", options.dimension, most=MOST_FEATURES))
        if options.feature_law == "one_hot":
            values /= options.dimension
    else:
        values = np.array(_numbers("--eigenvalues", options.eigenvalues, ","))
    stated = {name: getattr(options, name) for name in ("feature_norm", "label_bound")}
    # One declared bound for all, from the largest stated label.
    largest = Problem(
        options.sample_size,
        values,
        signal=signals[-1],
        label_noise_std=noises[-1],
        feature_law=options.feature_law,
        **{name: bound for name, bound in stated.items() if bound is not None},
    )
    return largest.over(
        signal=[signal / signals[-1] if signals[-1] else 1.0 for signal in signals],
        label_noise_std=[noise / noises[-1] for noise in noises],
        noise_shapes=[_shape(text) for text in options.label_noise_law],
    )


def _range(name: str, text: str) -> list[float]:
    ends = _numbers(name, text, ":")
    if len(ends) > 2 or ends != sorted(ends):
        raise ValueError(f"{name} must be a number or LOW:HIGH, got {text}")
    return sorted(set(ends))


def _shape(text: str) -> tuple[str, float]:
    from privreg.methods.problem import LABEL_NOISE_LAWS, WHOLE_LAWS

    law, colon, misfit = text.partition(":")
    try:
        if law in LABEL_NOISE_LAWS or law.startswith(WHOLE_LAWS):
            return law, float(misfit) if colon else 0.0
    except ValueError:
        pass
    laws = (*LABEL_NOISE_LAWS, *WHOLE_LAWS)
    listed = f"one of {', '.join(laws)}, or one of these with :MISFIT"
    raise ValueError(f"--label-noise-law must be {listed}, got {text}{nearest(law, laws)}")


def _numbers(name: str, text: str, separator: str) -> list[float]:
    try:
        return [float(part) for part in text.split(separator)]
    except ValueError:
        raise ValueError(f"{name} must be numbers separated by {separator!r}, got {text}") from None


def add_predict(parser: argparse.ArgumentParser) -> None:
    from privreg import planning

    add_problem(parser)
    add_budget(parser)
    add, names = adder(parser), list(planning.by_name())
    add("--method METHOD", f"one of {', '.join(names)}", choices=names, required=True)
    add(
        "--set NAME=VALUE",
        "settings of the method, such as steps=20 step_size=0.5 clip_norm=8. one_pass takes "
        "clip_constant and a schedule: either initial and exponent, or numerator and offset",
        dest="settings",
        nargs="*",
        default=[],
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def predict(options: argparse.Namespace) -> str:
    from privreg import planning

    budget, problems = budget_of(options), problems_of(options)
    values: dict[str, float] = {}
    for word in options.settings:
        key, _, number = word.partition("=")
        try:
            values[key] = float(number)
        except ValueError:
            raise ValueError(f"--set must be NAME=VALUE with a number, got {word}") from None
    method = planning.by_name()[options.method].from_numbers(values, problems[0], budget)
    found = [method.predict(problem, budget) for problem in problems]
    if options.json:
        plain = ({**asdict(e), "regime": str(e.regime), "holds": e.holds} for e in found)
        return as_json(list(plain), indent=1)
    return "\n\n".join(map(_prediction, problems, found))


def _prediction(problem: Any, found: Any) -> str:
    risk = f"{rounded(found.excess_risk, 4)} ± {rounded(found.excess_risk_std)}"
    lines = [
        f"n = {problem.sample_size:,}, p = {problem.dimension}, "
        f"excess risk of predicting the mean = {rounded(problem.null_risk, 4)}, "
        f"label noise std = {rounded(problem.label_noise_std, 4)} ({problem.label_noise_law}, "
        f"misfit {problem.misfit:g})",
        f"excess risk      {risk} over runs",
        f"parameter error  {rounded(found.parameter_error, 4)} (squared norm)",
        f"95 % interval    {rounded(found.interval_length, 4)} long",
        f"theory           {found.regime}: {found.reason}",
    ]
    lines += [f"warning          {each}" for each in found.warnings]
    if not found.holds:
        lines.append("These numbers are unreliable.")
    elif not found.beats_the_mean:
        lines.append("The fit will not be better than predicting the mean.")
    return "\n".join(lines)


def add_plan(parser: argparse.ArgumentParser) -> None:
    from privreg import planning

    add_problem(parser)
    add_budget(parser, required=False)
    add, target = adder(parser), adder(parser.add_mutually_exclusive_group())
    target("--target-risk RISK", "find the smallest budget for this mean excess risk", float)
    length = "find the smallest budget for 95 %% intervals of this length"
    target("--target-length LENGTH", length, float)
    names = list(planning.searched())
    listed = f"methods to compare (default all): {', '.join(names)}"
    add("--methods METHOD", listed, choices=names, nargs="+")
    least = "quantity to minimise if a budget is given (default excess_risk)"
    add("--objective", least, choices=planning.OBJECTIVES)
    add("--figure FILE", "file for a picture of the methods' predicted errors", Path)
    parser.add_argument("--json", action="store_true", help="print JSON")


def plan(options: argparse.Namespace) -> str:
    from privreg import planning

    problems = problems_of(options)
    stated = options.rho is not None or options.epsilon is not None
    target = options.target_risk is not None or options.target_length is not None
    if stated == target:
        expected = "one of --rho, --epsilon, --target-risk and --target-length must be given"
        raise ValueError(f"{expected}, got {'a budget and a target' if stated else 'none'}")
    if target:
        names = ("target_risk", "target_length", "neighbours", "methods")
        given = {name: getattr(options, name) for name in names}
        found = planning.least_budget(problems, **given)
    else:
        found = planning.plan_run(
            problems, budget_of(options), methods=options.methods, objective=options.objective
        )
    if options.figure is not None:
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError("--figure needs Matplotlib: pip install 'privreg[plots]'") from None

        figure = Figure(figsize=(7, 3.5), layout="constrained")
        planning.draw(found, figure.subplots())
        figure.savefig(options.figure)
    if options.json:
        return as_json(planning.plain(found), indent=1)
    budget = found.budget
    fitted = f"\nprivreg fit adds only Gaussian noise: it can use rho = {budget.gaussian().rho:.4g}"
    return (
        f"rho = {budget.rho:.4g} ({budget.neighbours.value}), epsilon = "
        f"{budget.epsilon(delta=options.delta):.3g} at delta = {options.delta:g}"
        f"{fitted if options.epsilon else ''}\n\n{found}"
    )


Options = Callable[[argparse.ArgumentParser], None]
Run = Callable[[argparse.Namespace], str | None]
# What a command does, its options, and its run.
COMMANDS: dict[str, tuple[str, Options, Run]] = {
    "predict": ("predict the error of a private run, without any data", add_predict, predict),
    "plan": (
        "find the best method and settings for a budget, or the smallest budget for a target",
        add_plan,
        plan,
    ),
    "bounds": (
        "write a template of bounds from a table's header and column types alone",
        tables.add_bounds,
        tables.bounds,
    ),
    "fit": ("fit a table in a file under a budget, with intervals", tables.add_fit, tables.fit),
    "score": (
        "score a fit on a table under a privacy budget: mean squared error and R²",
        tables.add_score,
        tables.score,
    ),
    "odometer": ("add up the privacy cost of a table's fits", tables.add_odometer, tables.odometer),
}
