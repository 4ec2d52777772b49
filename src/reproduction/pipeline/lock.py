"""One run at a time in a checkout; a run that died is followed without a word from the user.

Snakemake's lock is a list of files that outlives its owner and does not name it. Here the kernel
holds the lock, so that it ends with its owner however that ends, and a record beside it says whose
it is.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

SNAKEMAKE = Path(".snakemake")
# Held by every job that runs.
JOBS = SNAKEMAKE / "jobs.lock"
JOBS_VARIABLE = "PRIVREG_JOBS"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class LockedError(ValueError):
    """Another run uses the checkout, or may do so."""


@dataclass(frozen=True)
class Owner:
    """The process that runs, so named that no other process is ever taken for it.

    Parameters
    ----------
    pid, started : int
        Process number, and when it started, in the kernel's ticks: numbers are used again.
    host, boot : str
        The machine, and which of its starts: a restart ends every process.
    since : str
        Local time, for people.
    """

    pid: int
    started: int
    host: str
    boot: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


def this_process() -> Owner:
    """The owner that this process is."""
    return Owner(
        pid=os.getpid(),
        started=_start_of(os.getpid()),
        host=socket.gethostname(),
        boot=_boot(),
        since=time.strftime("%Y-%m-%d %H:%M:%S"),
    )


@contextmanager
def only_run(folder: Path) -> Iterator[Owner | None]:
    """Hold a checkout; yields the owner of the run before if that one died, else None.

    Parameters
    ----------
    folder : Path
        Snakemake's folder, whose locks of a dead run are removed.

    Raises
    ------
    LockedError
        One line: an active run uses the checkout, or a run on another machine may.
    """
    folder.mkdir(exist_ok=True)
    (folder / JOBS.name).touch()
    descriptor = os.open(folder / "run.json", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        before = _take(descriptor, folder / "locks")
        _write(descriptor, json.dumps(asdict(this_process())))
        try:
            yield before
        finally:
            _write(descriptor, "")
    finally:
        os.close(descriptor)


@contextmanager
def running_job() -> Iterator[None]:
    """Say, as long as a job of a run lasts, that it does.

    A job outlives a run that was killed alone, and may write what it made when the next one has
    made it as well.
    """
    try:
        descriptor = os.open(os.environ[JOBS_VARIABLE], os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, KeyError):
        # By hand, without a run.
        yield
        return
    try:
        _flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def wait_for_jobs(path: Path) -> Iterator[str]:
    """Return when no job of an earlier run is left; yields one line before it waits."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
            yield "Jobs of an earlier run still run; waiting until they end"
            _flock(descriptor, fcntl.LOCK_EX)
    finally:
        os.close(descriptor)


def _take(descriptor: int, locks: Path) -> Owner | None:
    """Lock the record or raise; returns the owner that died with it."""
    owner = _read(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        kernel_knows = True
    except BlockingIOError as error:
        raise LockedError(f"this checkout is in use by {owner or 'another run'}") from error
    except OSError:
        # A file system without locks: the record alone decides.
        kernel_knows = False
    # Read again: between the look above and the lock, its owner may have ended as it should.
    owner = _read(descriptor)
    left = sorted(locks.glob("*.lock")) if owner is not None else []
    if owner is not None and not _is_dead(owner, kernel_knows) and left:
        raise LockedError(
            f"this checkout is in use by {owner}; if that has ended, type: snakemake --unlock"
        )
    for file in left:
        file.unlink(missing_ok=True)
    return owner


def _is_dead(owner: Owner, kernel_knows: bool) -> bool:
    here = this_process()
    if owner.boot == here.boot:
        # The same kernel, be it in another container: it would still hold the lock.
        return kernel_knows or (owner.host == here.host and _start_of(owner.pid) != owner.started)
    return owner.host == here.host


def _flock(descriptor: int, how: int) -> bool:
    """Whether it was locked, or cannot be on this file system."""
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _read(descriptor: int) -> Owner | None:
    try:
        return Owner(**json.loads(os.pread(descriptor, 4096, 0)))
    except (ValueError, TypeError):
        return None


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)


def _start_of(pid: int) -> int:
    """When a process started, in ticks since the machine did; 0 if there is none, or no /proc."""
    try:
        # The name of the process, in brackets, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return int(fields[19])
    except (OSError, ValueError, IndexError):
        return 0


def _boot() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""
