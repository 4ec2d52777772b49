"""Names that moved to `reproduction.engine.falsify`."""

from reproduction.engine.falsify import (
    Patch,
    WrongStatement,
    WrongVersion,
    plus,
    power,
    scaled,
    times,
)

__all__ = ["Patch", "WrongStatement", "WrongVersion", "plus", "power", "scaled", "times"]
