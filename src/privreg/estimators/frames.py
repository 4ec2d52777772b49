"""Columns of results as a data frame, for those who have pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from privreg.validation import require_instance


def data_frame(columns: Mapping[str, Sequence[Any]], index: Sequence[str] | None = None) -> Any:
    """A pandas DataFrame."""
    require_instance("columns", columns, Mapping)  # type: ignore[type-abstract]
    try:
        from pandas import DataFrame
    except ImportError:
        raise ImportError(
            "a data frame needs pandas, which is not installed: pip install pandas, or "
            "take `columns`, which has the same numbers"
        ) from None
    return DataFrame(dict(columns), index=None if index is None else list(index))
