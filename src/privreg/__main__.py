"""`privreg` and `python -m privreg`: a process of its own."""

import gc
import sys

from privreg.command_line.main import main


def run() -> int:
    """Run one command; returns the exit status."""
    # Nearly all that a start allocates are modules, which stay. To look for garbage among them time
    # and again, and once more at the end, takes a third of it.
    gc.set_threshold(100_000)
    status = main()
    gc.freeze()
    return status


if __name__ == "__main__":
    sys.exit(run())
