"""Names that moved to `reproduction.engine.verdicts`."""

from reproduction.engine.verdicts import (
    gate as gate,
)
from reproduction.engine.verdicts import (
    is_unexpected as is_unexpected,
)
from reproduction.engine.verdicts import (
    summary as summary,
)
