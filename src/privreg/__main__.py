"""`privreg` and `python -m privreg`: a process of its own."""

import gc
import os
import sys
from io import TextIOWrapper

from privreg.command_line.main import main


def run() -> int:
    """Run one command; returns the exit status."""
    if isinstance(sys.stdout, TextIOWrapper):
        # A report with letters that a terminal does not have is paid for, too.
        sys.stdout.reconfigure(errors="backslashreplace")
    # NumPy's f2py cannot be imported where a shell's date is no number.
    os.environ.pop("SOURCE_DATE_EPOCH", None)
    # Nearly all that a start allocates are modules, which stay: to look for garbage among them
    # takes a third of it.
    gc.set_threshold(100_000)
    status = main()
    gc.freeze()
    return status


if __name__ == "__main__":
    sys.exit(run())
