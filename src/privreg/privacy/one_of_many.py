"""Outputs that share their noise: one of them may be released, and no second one."""

from __future__ import annotations

from math import prod
from typing import Any

from privreg.validation import require_count, short


class OneOfMany:
    """Memory of which of several settings that share noise has been released.

    Guarantee
    ---------
    One setting is taken and no second one: the difference of two outputs holds less noise than
    each, or none, whatever was paid for them. Copies are the object itself. What comes out of a
    pickle cannot know what is released elsewhere: it allows the setting that was taken before, and
    none if none was and there are several.

    Examples
    --------
    >>> settings = OneOfMany((3,))
    >>> settings.take((1,))
    (1,)
    >>> settings.take((2,))
    Traceback (most recent call last):
    ValueError: setting must be (1,), which was released already, got (2,): settings share noise
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        if not isinstance(shape, tuple):
            raise ValueError(f"shape must be a tuple of whole numbers, got {short(shape)}")
        self.shape = tuple(require_count("shape", length) for length in shape)
        self._taken: tuple[int, ...] | None = None
        self._from_pickle = False

    def __copy__(self) -> OneOfMany:
        return self

    def __deepcopy__(self, _: dict[int, Any]) -> OneOfMany:
        # A copy that remembered by itself would allow a second setting.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_pickle, (self.shape, self._taken)

    def take(self, setting: int | tuple[int, ...] | None = None) -> tuple[int, ...]:
        """The index of a setting, unless another one was taken before; None names the only one."""
        if setting is None:
            if any(length > 1 for length in self.shape):
                raise ValueError(f"setting must be an index into shape {self.shape}, got None")
            index: tuple[int, ...] = (0,) * len(self.shape)
        else:
            given = setting if isinstance(setting, tuple) else (setting,)
            index = tuple(require_count("setting", part, least=0) for part in given)
        if len(index) != len(self.shape) or any(
            part >= length for part, length in zip(index, self.shape, strict=True)
        ):
            raise ValueError(
                f"setting must be an index into shape {self.shape}, got {short(setting)}"
            )
        if self._from_pickle:
            raise ValueError(
                f"setting must be taken before the settings are pickled, got {index}: they share "
                "noise, and another one may have been released elsewhere"
            )
        if self._taken not in (None, index):
            raise ValueError(
                f"setting must be {self._taken}, which was released already, got {index}: settings "
                "share noise"
            )
        self._taken = index
        return index


def _from_pickle(shape: tuple[int, ...], taken: tuple[int, ...] | None) -> OneOfMany:
    settings = OneOfMany(shape)
    settings._taken = taken
    settings._from_pickle = taken is None and prod(shape) > 1
    return settings
