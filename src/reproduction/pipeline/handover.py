"""Hands a job to the run's fork server, which has all imports behind it; see `pipeline.forks`.

This is all that a job's own process then imports.
"""

import os
import signal
import socket
import sys
from collections.abc import Sequence

# Names the server's socket to the jobs of a run that has one.
VARIABLE = "PRIVREG_FORKS"
# What the server's process answers before it runs a job, or leaves it to the process that asks.
TAKEN, LEFT = b"+", b"-"
# Bytes of the message's length, which comes first.
LENGTH = 16


def handed_over(arguments: Sequence[str]) -> int | None:
    """Have a job run by a fork of the server, with this process's files and environment.

    The job ends with this process, however that ends.

    Returns
    -------
    int or None
        The job's exit status; None if there is no server, or none that does as this process would.
    """
    address = os.environ.get(VARIABLE)
    if not address:
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(address)
            message = packed(arguments)
            socket.send_fds(connection, [str(len(message)).zfill(LENGTH).encode()], [0, 1, 2])
            connection.sendall(message)
            if connection.recv(1) != TAKEN:
                return None
        except OSError:
            return None
        # The job is in this process's group, and says itself that it was interrupted.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        status = connection.recv(1)
    if not status:
        print("reproduction: the process of the job was killed", file=sys.stderr)
        return 1
    return status[0]


def packed(arguments: Sequence[str]) -> bytes:
    """Working directory, environment and arguments as one message; none of them holds a zero."""
    directory = os.getcwd()  # noqa: PTH109 pathlib takes longer to import than all else here
    environment = [name + b"=" + value for name, value in os.environb.items()]
    head = [os.fsencode(directory), str(len(environment)).encode()]
    return b"\0".join([*head, *environment, *map(os.fsencode, arguments)])


def unpacked(message: bytes) -> tuple[str, dict[bytes, bytes], list[str]]:
    """The inverse of `packed`."""
    directory, count, *rest = message.split(b"\0")
    environment, arguments = rest[: int(count)], rest[int(count) :]
    pairs = (entry.partition(b"=") for entry in environment)
    named = {name: value for name, _, value in pairs}
    return os.fsdecode(directory), named, list(map(os.fsdecode, arguments))
