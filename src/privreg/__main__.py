"""`privreg` and `python -m privreg`: a process of its own."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper

from privreg.command_line.main import main


@contextmanager
def kept_modules() -> Iterator[None]:
    """Spare a short process most of its garbage collection, and a shell's date.

    Nearly all that a start allocates are modules, which stay: to look for garbage among them time
    and again, and once more at the end, takes a third of it. One of them, NumPy's f2py, cannot be
    imported where `SOURCE_DATE_EPOCH` is no number. Nothing that is written here has a date.
    """
    os.environ.pop("SOURCE_DATE_EPOCH", None)
    gc.set_threshold(100_000)
    yield
    gc.freeze()


def run() -> int:
    """Run one command; returns the exit status."""
    if isinstance(sys.stdout, TextIOWrapper):
        # A report with letters that a terminal does not have is paid for, too.
        sys.stdout.reconfigure(errors="backslashreplace")
    with kept_modules():
        return main()


if __name__ == "__main__":
    sys.exit(run())
