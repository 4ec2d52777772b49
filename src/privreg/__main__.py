"""`privreg` and `python -m privreg`: a process of its own."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from privreg.command_line.main import main


@contextmanager
def kept_modules() -> Iterator[None]:
    """Spare a short process most of its garbage collection.

    Nearly all that a start allocates are modules, which stay: to look for garbage among them time
    and again, and once more at the end, takes a third of it.
    """
    gc.set_threshold(100_000)
    yield
    gc.freeze()


def run() -> int:
    """Run one command; returns the exit status."""
    with kept_modules():
        return main()


if __name__ == "__main__":
    sys.exit(run())
