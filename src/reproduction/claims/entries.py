"""Names that moved to `reproduction.engine.ledger`."""

from reproduction.engine.ledger import Statement

__all__ = ["Statement"]
