"""A SLURM of one node for the tests: munged, slurmctld and slurmd on loopback, as root.

It needs Debian's slurm-wlm and munge, and neither systemd nor control groups. The job-step plugin
of Snakemake drops SLURM_CONF before its inner srun, so /etc/slurm/slurm.conf must lead to the same
file; a configuration that is already there is another cluster's and is left alone.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

UP = {"idle", "mixed", "allocated"}
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "squeue", "sinfo")
CONFIGURATION = Path("/etc/slurm/slurm.conf")
SETTINGS = """\
ClusterName=onenode
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/controller
SlurmdSpoolDir={folder}/node
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/completed.txt
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,batch_sched_delay=0
ReturnToService=2
MinJobAge=3600
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=short Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Why no SLURM can be started here, or nothing."""
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    if absent:
        return f"needs Debian's slurm-wlm and munge (no {', '.join(absent)})"
    if os.geteuid() != 0:
        return "needs root to start munged, slurmctld and slurmd"
    if CONFIGURATION.exists() and not CONFIGURATION.is_symlink():
        return f"{CONFIGURATION} belongs to another cluster"
    return ""


class OneNode:
    """The daemons of one folder."""

    def __init__(self, folder: Path, *, cpus: int) -> None:
        self.folder, self.host = folder, socket.gethostname().partition(".")[0]
        for name in ("munge", "controller", "node"):
            (folder / name).mkdir(parents=True)
        # munged refuses a socket that others could not reach, or a key that they could read.
        folder.chmod(0o755)
        (folder / "munge").chmod(0o755)
        key = folder / "munge/key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(1024))
        self.configuration = folder / "slurm.conf"
        self.configuration.write_text(
            SETTINGS.format(
                host=self.host,
                folder=folder,
                cpus=cpus,
                memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 8 // 10 // 2**20,
                controller_port=_free_port(),
                node_port=_free_port(),
            )
        )
        self.environment = {**os.environ, "SLURM_CONF": str(self.configuration)}

    def start(self) -> None:
        CONFIGURATION.parent.mkdir(exist_ok=True)
        CONFIGURATION.unlink(missing_ok=True)
        CONFIGURATION.symlink_to(self.configuration)
        munge = self.folder / "munge"
        self.run(
            *("munged", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket"),
            *(f"--pid-file={munge}/munged.pid", f"--log-file={munge}/munged.log"),
            f"--seed-file={munge}/seed",
        )
        self.run("slurmctld", "-c", "-f", str(self.configuration))
        self.run("slurmd", "-c", "-f", str(self.configuration), "-N", self.host)
        deadline = time.monotonic() + 30
        while self.run("sinfo", "--noheader", "--format=%T").strip() not in UP:
            if time.monotonic() > deadline:
                raise TimeoutError((self.folder / "slurmd.log").read_text()[-2000:])
            time.sleep(0.2)

    def stop(self) -> None:
        self.run("scancel", "--partition=short", check=False)
        for file in ("slurmd.pid", "slurmctld.pid", "munge/munged.pid"):
            _end(self.folder / file)
        if CONFIGURATION.is_symlink() and CONFIGURATION.readlink() == self.configuration:
            CONFIGURATION.unlink()

    def run(self, *command: str, check: bool = True) -> str:
        done = subprocess.run(
            command, env=self.environment, check=check, capture_output=True, text=True, timeout=60
        )
        return done.stdout

    def ended(self) -> dict[str, str]:
        """How each job ended, or what it does, by its number."""
        lines = self.run("squeue", "--noheader", "--states=all", "--format=%A %T").splitlines()
        return dict(line.split() for line in lines)


@contextmanager
def one_node(folder: Path, *, cpus: int = 2) -> Iterator[OneNode]:
    """A running SLURM in a folder, stopped at the end."""
    cluster = OneNode(folder, cpus=cpus)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _end(pid_file: Path) -> None:
    with suppress(FileNotFoundError, ValueError, ProcessLookupError):
        pid = int(pid_file.read_text())
        os.kill(pid, signal.SIGTERM)
        for _ in range(100):
            os.kill(pid, 0)
            time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
