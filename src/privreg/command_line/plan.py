"""`privreg plan`: the best method and settings for a budget, or the least budget for a target."""

from __future__ import annotations

import argparse
from pathlib import Path

from privreg import planning
from privreg.command_line.options import add_budget, add_problem, as_json, budget_of, problems_of
from privreg.planning import OBJECTIVES, Plan, draw, least_budget, plain, plan_run

SUMMARY = "find the best method and settings for a budget, or the least budget for a target"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_problem(parser)
    add_budget(parser, required=False)
    target = parser.add_mutually_exclusive_group()
    target.add_argument(
        "--target-risk",
        type=float,
        metavar="RISK",
        help="find the least budget for this mean excess risk",
    )
    target.add_argument(
        "--target-length",
        type=float,
        metavar="LENGTH",
        help="find the least budget for 95 %% intervals of this length",
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=list(planning.searched()),
        metavar="METHOD",
        help=f"methods to compare (default all): {', '.join(planning.searched())}",
    )
    parser.add_argument(
        "--objective",
        choices=OBJECTIVES,
        default="excess_risk",
        help="what the plan minimises at a budget (default excess_risk)",
    )
    parser.add_argument(
        "--figure", type=Path, metavar="FILE", help="draw the methods' predicted errors"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> str:
    """The plan as text."""
    problems = problems_of(options)
    stated = options.rho is not None or options.epsilon is not None
    target = options.target_risk is not None or options.target_length is not None
    if stated == target:
        raise ValueError(
            "one of --rho, --epsilon, --target-risk and --target-length must be given, "
            f"got {'a budget and a target' if stated else 'none'}"
        )
    if target:
        plan = least_budget(
            problems,
            target_risk=options.target_risk,
            target_length=options.target_length,
            neighbours=options.neighbours,
            methods=options.methods,
        )
    else:
        plan = plan_run(
            problems, budget_of(options), methods=options.methods, objective=options.objective
        )
    if options.figure is not None:
        _save(plan, options.figure)
    if options.json:
        return as_json(plain(plan))
    budget = plan.budget
    return "\n".join(
        [
            f"rho = {budget.rho:.4g} ({budget.neighbours.value}), epsilon = "
            f"{budget.epsilon(delta=options.delta):.3g} at delta = {options.delta:g}",
            "",
            str(plan),
        ]
    )


def _save(plan: Plan, path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("--figure needs Matplotlib, which is not installed") from None
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    draw(plan, figure.subplots())
    figure.savefig(path)
