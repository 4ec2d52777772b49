"""Tables of anon2024, each made from artifacts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


def table1(theory: xr.Dataset) -> pd.DataFrame:
    """Printed and fitted exponents: one row for each decay and method."""
    import pandas as pd

    rows = [
        {
            "eigenvalues": f"i^-{float(decay):g}",
            "method": str(method),
            "printed": float(theory.printed.sel(method=method, decay=decay)),
            "fitted": float(theory.fitted.sel(method=method, decay=decay)),
        }
        for decay in theory.decay.values
        for method in theory.method.values
    ]
    rows += [
        {
            "eigenvalues": "e^-i",
            "method": str(method),
            "printed": float(theory.exponential.sel(method=method)),
            "fitted": float(theory.exponential_fitted.sel(method=method)),
        }
        for method in theory.method.values
    ]
    frame = pd.DataFrame(rows)
    frame["gap"] = (frame["fitted"] - frame["printed"]).abs()
    return frame.round(6)
