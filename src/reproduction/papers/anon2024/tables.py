"""Tables of anon2024, each made from artifacts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduction.engine.recipe import Dataset

if TYPE_CHECKING:
    import pandas as pd


def table1(theory: Dataset) -> pd.DataFrame:
    """Printed and fitted exponents: one row for each decay and method."""
    import pandas as pd

    rows = [
        {
            "eigenvalues": f"i^-{float(decay):g}",
            "algorithm": str(method),
            "printed": float(theory.printed.sel(algorithm=method, decay=decay)),
            "fitted": float(theory.fitted.sel(algorithm=method, decay=decay)),
        }
        for decay in theory.decay.values
        for method in theory.algorithm.values
    ]
    rows += [
        {
            "eigenvalues": "e^-i",
            "algorithm": str(method),
            "printed": float(theory.exponential.sel(algorithm=method)),
            "fitted": float(theory.exponential_fitted.sel(algorithm=method)),
        }
        for method in theory.algorithm.values
    ]
    frame = pd.DataFrame(rows)
    frame["gap"] = (frame["fitted"] - frame["printed"]).abs()
    return frame.round(6)
