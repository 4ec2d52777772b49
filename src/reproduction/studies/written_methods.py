"""Settings of a method as text in an artifact, and back."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any

from privreg.planning import METHODS
from privreg.schedules import Harmonic, Polynomial

KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*METHODS, Harmonic, Polynomial)}


def to_text(method: Any) -> str:
    """JSON of a dataclass of settings, its kind first, or of None for predicting the mean."""
    return json.dumps(_plain(method))


def from_text(text: str) -> Any:
    """The settings that `to_text` wrote."""
    return json.loads(text, object_hook=lambda given: KINDS[given.pop("kind")](**given))


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        names = [each.name for each in fields(value) if each.init]
        return {
            "kind": type(value).__name__,
            **{name: _plain(getattr(value, name)) for name in names},
        }
    return value if value is None or isinstance(value, (bool, int)) else float(value)
