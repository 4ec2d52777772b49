"""Pages of the ledger; the ledger itself is read and judged in `reproduction.engine`."""
