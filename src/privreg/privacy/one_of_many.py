"""Outputs that share their noise: one of them may be released, and no second one."""

from __future__ import annotations

from privreg.validation import require_count


class OneOfMany:
    """Remembers which of several settings that share noise has been released.

    The difference of two such outputs holds less noise than each, or none: a budget paid for one of
    them does not cover a second, and paying twice does not either, since their noise is not
    independent.

    Parameters
    ----------
    shape : tuple of int
        Shape of the settings; () for a single one.

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
            raise ValueError(f"shape must be a tuple of whole numbers, got {shape!r}")
        self.shape = tuple(require_count("shape", length) for length in shape)
        self._taken: tuple[int, ...] | None = None

    def take(self, setting: int | tuple[int, ...] | None = None) -> tuple[int, ...]:
        """The index of a setting, unless another one was taken before.

        Parameters
        ----------
        setting : int or tuple of int, optional
            Index into the settings; may be left out where there is one only.
        """
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
            raise ValueError(f"setting must be an index into shape {self.shape}, got {setting!r}")
        if self._taken not in (None, index):
            raise ValueError(
                f"setting must be {self._taken}, which was released already, got {index}: settings "
                "share noise"
            )
        self._taken = index
        return index
