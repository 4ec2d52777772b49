"""Names that moved to `reproduction.engine.verdicts`."""

from reproduction.engine.verdicts import is_unexpected, summary

__all__ = ["is_unexpected", "summary"]
