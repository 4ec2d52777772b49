"""Private linear regression: algorithms, their theory, their privacy, and intervals.

Names are resolved when they are asked for, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "Budget": "privreg.privacy.budget",
    "Neighbours": "privreg.privacy.neighbours",
    "__version__": "privreg.version",
}
__all__ = ["Budget", "Neighbours", "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'privreg' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
