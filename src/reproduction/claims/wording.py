"""Names that moved to `reproduction.engine`."""

from reproduction.engine.checks import describe, number, selection, series
from reproduction.engine.verdicts import with_error

__all__ = ["describe", "number", "selection", "series", "with_error"]
