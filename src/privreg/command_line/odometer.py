"""`privreg odometer`: what several fits of one table cost together."""

from __future__ import annotations

import argparse
from pathlib import Path

from privreg.checks import require_number

SUMMARY = "add up what several fits of one table cost"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "fits",
        type=Path,
        nargs="+",
        help="files that --output of `privreg fit` or `privreg score` wrote",
    )
    parser.add_argument(
        "--delta", type=float, default=1e-6, help="delta at which epsilon is stated (default 1e-6)"
    )


def run(options: argparse.Namespace) -> str:
    """The total as text."""
    from privreg.command_line.main import shown
    from privreg.estimators.odometer import Odometer, read_statement

    delta = require_number("--delta", options.delta, above=0, below=1)
    odometer, known = Odometer(), dict[bytes, Path]()
    rows = []
    for path in options.fits:
        cost = read_statement(path)
        odometer.add(cost)
        rows.append((shown(str(path)), cost))
        # Noise is never drawn twice alike: two files of the same bytes are copies, or linked.
        first = known.setdefault(path.read_bytes(), path)
        if first is not path:
            raise ValueError(
                f"fits must be different files, got {str(path)!r} twice"
                f"{'' if first == path else f', as {str(first)!r} too'}"
            )
    total = odometer.total
    rows.append(("together", total))
    width = max(len(name) for name, _ in rows)
    lines = [
        f"{name.ljust(width)}  rho = {found.rho:.4g}, mu = {found.mu:.4g}, "
        f"epsilon = {found.epsilon(delta):.4g} at delta = {delta:g}"
        for name, found in rows
    ]
    return "\n".join(
        [
            *lines,
            "",
            f"For tables that differ in one {total.unit} "
            f"({total.with_secret_noise.neighbours.value}), if all fits are of one table and their "
            "number and budgets were fixed beforehand.",
        ]
    )
