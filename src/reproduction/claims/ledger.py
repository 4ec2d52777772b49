"""Names that moved to `reproduction.engine.ledger`."""

from reproduction.engine.ledger import Ledger

__all__ = ["Ledger"]
