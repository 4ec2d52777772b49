"""A server that imports what jobs need once, and forks itself for each of a run's jobs.

A start of Python with its imports costs more than most jobs' work. The server lasts as long as the
run that started it. A job asks for it by the socket that its environment names; where there is
none, or it would not do as the job's own process does, that process runs the job.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from reproduction.pipeline.closure import SOURCE
from reproduction.pipeline.handover import LEFT, LENGTH, TAKEN, VARIABLE, unpacked

# Below Snakemake's folder, of which there is one a run; a path of 108 bytes is too long.
ADDRESS = Path(".snakemake/forks.socket")
# What most jobs import; what else one imports it imports itself.
IMPORTS = (
    "reproduction.__main__",
    "reproduction.pipeline.cli",
    "reproduction.pipeline.stages",
    "reproduction.pipeline.ledger_stages",
    "reproduction.engine.verdicts",
    "reproduction.engine.plotting",
    "reproduction.engine.recipe",
    "reproduction.engine.summaries",
    "reproduction.engine.trials",
    "fontTools.subset",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.pyplot",
    "netCDF4",
    "numba",
    "scipy.integrate",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "xarray.backends.netCDF4_",
)
# Set for each job anew, and read by none of the imports.
OF_A_JOB = {b"_", b"SHLVL", b"PWD", b"OLDPWD", b"TMPDIR", b"TMP", b"TEMP", b"TEMPDIR"}
# What Snakemake sets to a job's threads: a job has one.
THREADS = ("OMP", "GOTO", "OPENBLAS", "MKL")
MORE_THREADS = ("VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS")


@contextmanager
def fork_server(prefix: str) -> Iterator[None]:
    """Let the jobs that this process starts be forks of one server; the server ends with it.

    Parameters
    ----------
    prefix : str
        Shell commands before each job's own, which set its environment.
    """
    os.environ[VARIABLE] = ADDRESS.as_posix()
    threads = (*(f"{name}_NUM_THREADS" for name in THREADS), *MORE_THREADS)
    server = subprocess.Popen(
        # An interrupt is for the jobs.
        ["bash", "-c", f"trap '' INT; {prefix}exec python -m {__name__}"],
        stdin=subprocess.PIPE,
        env=os.environ | dict.fromkeys(threads, "1"),
    )
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        server.terminate()
        server.communicate()
        ADDRESS.unlink(missing_ok=True)


def serve() -> None:
    """Fork for each job that asks, until the run that holds the other end of stdin has ended."""
    environment = lasting(os.environb)
    gc.set_threshold(100_000)
    for name in IMPORTS:
        importlib.import_module(name)
    # To look for garbage among modules would copy the pages that forks share.
    gc.freeze()
    added, sources = dict(lasting(os.environb).items() - environment.items()), _sources()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        ADDRESS.unlink(missing_ok=True)
        before = os.umask(0o077)
        try:
            listener.bind(ADDRESS.as_posix())
        except OSError:
            # A file system without sockets: each job runs in its own process.
            return
        os.umask(before)
        listener.listen()
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _run(connection, environment, added, sources)
            connection.close()
            _reap()


def lasting(environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """What an import may have read of an environment."""
    return {name: value for name, value in environment.items() if name not in OF_A_JOB}


def _run(
    connection: socket.socket,
    environment: Mapping[bytes, bytes],
    added: Mapping[bytes, bytes],
    sources: Mapping[str, tuple[int, int]],
) -> None:
    """Run a job in this process, or leave it to the one that asks; never returns.

    Parameters
    ----------
    connection : socket
        To the process that asks.
    environment, added : mapping
        The environment that the imports saw, and what they set themselves.
    sources : mapping
        What was imported of the packages; an edit since then leaves a job to its own process.
    """
    status = 1
    try:
        head, files, _, _ = socket.recv_fds(connection, LENGTH, 3, socket.MSG_WAITALL)
        message = connection.recv(int(head), socket.MSG_WAITALL)
        directory, wanted, arguments = unpacked(message)
        if lasting(wanted) != environment or _sources() != sources:
            connection.sendall(LEFT)
            os._exit(0)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(directory)
        os.environb.clear()
        os.environb.update({**added, **wanted})
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
        connection.sendall(TAKEN)
        from reproduction.pipeline import cli

        status = cli.main(arguments, forked=True)
    except SystemExit as stopped:
        status = stopped.code if isinstance(stopped.code, int) else 1
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
            connection.sendall(bytes([status]))
        finally:
            # Nothing is left to close, and modules need not be taken apart.
            os._exit(status)


def _reap() -> None:
    """Take note of jobs that have ended; how, each has told its client."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _end_with(connection: socket.socket) -> None:
    """End this process as soon as the one that asked for it has ended."""
    connection.recv(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _sources() -> dict[str, tuple[int, int]]:
    """When each imported module of the packages was changed, and its size: 0 if it is gone."""
    found = {}
    for module in tuple(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and file.startswith(f"{SOURCE}{os.sep}"):
            try:
                about = Path(file).stat()
                found[file] = (about.st_mtime_ns, about.st_size)
            except OSError:
                found[file] = (0, 0)
    return found


if __name__ == "__main__":
    serve()
