"""Names that moved to `reproduction.engine`."""

from reproduction.engine.checks import CheckResult
from reproduction.engine.checks import Shown as Numbers
from reproduction.engine.verdicts import judge

__all__ = ["CheckResult", "Numbers", "judge"]
