"""Names that moved to `reproduction.engine.checks`."""

from reproduction.engine.checks import Check

__all__ = ["Check"]
