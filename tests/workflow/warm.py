"""Snakemake, imported once and forked for each command that runs no job.

    python tests/workflow/warm.py

Its imports take longer than most dry runs. A line of standard input is a JSON object of `folder`,
`arguments`, `environment`, `limit` in seconds, and two files that take what is printed; each is
answered by a line with the status of its command.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from snakemake.cli import main


def run(request: dict) -> None:
    """The command in this process, which ends with it."""
    signal.alarm(request["limit"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, name in ((1, "output"), (2, "errors")):
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    # What `python -m snakemake` starts with.
    sys.path[0] = request["folder"]
    sys.argv[1:] = request["arguments"]
    main()


if __name__ == "__main__":
    for line in sys.stdin:
        child = os.fork()
        if not child:
            run(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
