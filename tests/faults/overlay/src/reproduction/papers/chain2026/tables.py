"""Tables of chain2026."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


def table1(intervals: xr.Dataset) -> pd.DataFrame:
    """The bias."""
    import pandas as pd

    return pd.DataFrame({"bias": [float(intervals.bias)]})
