"""Names that moved to `reproduction.engine.verdicts`."""

from reproduction.engine.verdicts import (
    CheckResult as CheckResult,
)
from reproduction.engine.verdicts import (
    Numbers as Numbers,
)
from reproduction.engine.verdicts import (
    judge as judge,
)
