"""Neighbours of what this paper states, which the ledger's evidence must refuse."""

from __future__ import annotations

import numpy as np

from reproduction.engine.falsify import WrongStatement, power
from reproduction.engine.recipe import DataArray

# ln(n rho / (beta p)) is ln(n / p) where rho = beta.
DIMENSION = 10


def _two_logarithms_less(ratio: DataArray) -> DataArray:
    return ratio * np.log(ratio.sample_size / DIMENSION) ** 2


WRONG_STATEMENTS = (
    WrongStatement(
        name="square-of-the-logarithm",
        says="The factor of sigma p / (sqrt(rho) n) is ln^2(n rho / (beta p)).",
        observes={"theory/main_theorem": {"over_printed_rate": _two_logarithms_less}},
        turns=("main-rate-in-the-sample-size",),
    ),
    WrongStatement(
        name="least-squares-at-root-p",
        says="The squared error of least squares is of order sigma^2 sqrt(p) / n.",
        observes={
            "simulation/fixed_ratio": {"sampling_square_ratio": power("dimension", 0.5)},
        },
        turns=("least-squares-within-its-rate", "least-squares-level"),
    ),
)
