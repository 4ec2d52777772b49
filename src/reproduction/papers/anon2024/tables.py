"""Tables of anon2024, each made from artifacts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduction.engine.recipe import Dataset

if TYPE_CHECKING:
    import pandas as pd


def table1(theory: Dataset) -> pd.DataFrame:
    """Printed and fitted exponents: one row for each decay and method."""
    import pandas as pd

    laws = [
        (
            f"i^-{float(decay):g}",
            *(each.sel(decay=decay) for each in (theory.printed, theory.fitted)),
        )
        for decay in theory.decay.values
    ]
    laws.append(("e^-i", theory.exponential, theory.exponential_fitted))
    frame = pd.DataFrame(
        {
            "eigenvalues": law,
            "algorithm": str(method),
            "printed": float(printed.sel(algorithm=method)),
            "fitted": float(fitted.sel(algorithm=method)),
        }
        for law, printed, fitted in laws
        for method in theory.algorithm.values
    )
    frame["gap"] = (frame["fitted"] - frame["printed"]).abs()
    return frame.round(6)
