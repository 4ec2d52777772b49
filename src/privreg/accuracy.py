"""The one warning for a result that is less accurate than it should be."""

from __future__ import annotations

import warnings


class AccuracyWarning(UserWarning):
    """A result whose estimated error is larger than the tolerance that was asked for."""


def warn_beyond(result: str, *, error: float, tolerance: float, stacklevel: int = 1) -> None:
    """Warn where an estimated error exceeds a tolerance or is NaN.

    Parameters
    ----------
    result : str
        What the caller returns, for the message.
    error, tolerance : float
        Both relative or both absolute.
    stacklevel : int
        1 points the warning at the caller of the function that calls this one.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_beyond("risk", error=2e-4, tolerance=1e-7)
    >>> str(caught[0].message)
    'risk has an estimated error of 0.0002, more than the tolerance of 1e-07'
    """
    if not error <= tolerance:
        warnings.warn(
            f"{result} has an estimated error of {error:.2g}, "
            f"more than the tolerance of {tolerance:.2g}",
            AccuracyWarning,
            stacklevel=stacklevel + 2,
        )
