"""Refusals of scikit-learn in the words of this house."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def named(arguments: str) -> Iterator[None]:
    """What scikit-learn refuses, by the arguments that it was given.

    Parameters
    ----------
    arguments : str
        Such as "X and y".
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{arguments} must be what scikit-learn takes: {error}") from None
