"""Entry point of the commands `privreg` and `python -m privreg`."""

import gc
import os
import sys
from io import TextIOWrapper

from privreg.command_line.main import main


def run() -> int:
    """Run one command; returns the exit status."""
    if isinstance(sys.stdout, TextIOWrapper):
        # A letter that the terminal lacks must not lose a report: its budget is spent.
        sys.stdout.reconfigure(errors="backslashreplace")
    # NumPy's f2py cannot be imported if this variable is not a number.
    os.environ.pop("SOURCE_DATE_EPOCH", None)
    # Nearly all objects at the start are modules, which stay: collection would take a third of it.
    gc.set_threshold(100_000)
    status = main()
    gc.freeze()
    return status


if __name__ == "__main__":
    sys.exit(run())
