"""Names that moved to `reproduction.engine.verdicts`."""

from reproduction.engine.verdicts import (
    CROSS_CHECK_VERDICTS,
    KINDS,
    SEVERITIES,
    STATEMENT_VERDICTS,
    Book,
    FindingRecord,
    Record,
    TopicRecord,
    counts,
)

__all__ = [
    "CROSS_CHECK_VERDICTS",
    "KINDS",
    "SEVERITIES",
    "STATEMENT_VERDICTS",
    "Book",
    "FindingRecord",
    "Record",
    "TopicRecord",
    "counts",
]
