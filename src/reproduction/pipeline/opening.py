"""What a run does before its first job: takes the checkout, and clears what a dead run left.

Snakemake has no hook before it locks a folder, so this wraps its `execute`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from reproduction.engine import artifacts as store
from reproduction.pipeline import lock
from reproduction.pipeline.cluster import require_known
from reproduction.pipeline.forks import fork_server
from reproduction.pipeline.layout import Layout
from reproduction.pipeline.sources import origin_of, put_back, real_tables_kept, table_source

# A disk with less space than this is full for what a run writes.
LEAST_FREE_BYTES = 20_000_000
DEFAULT_RATE = (100, 1)


def guarded(workflow: Any, layout: Layout, prefix: str) -> Callable[..., None]:
    """Snakemake's `workflow.execute`, for one run at a time, on files that are what they were.

    Its jobs are forks of one server (`pipeline.forks`) if they run here and in this environment;
    `prefix` is what the shell does before each. Nothing changes for dry runs, nor in the processes
    that a run starts for its jobs.
    """
    from snakemake.io import IOFile
    from snakemake_interface_executor_plugins.settings import ExecMode

    execute = workflow.execute

    def unfinished(path: Path) -> None:
        # Snakemake writes down a job that failed as it does one that ended well.
        workflow.persistence.started(SimpleNamespace(output=[IOFile(str(path))]))

    def guarded_execute(executor_plugin: Any, **options: Any) -> None:
        dry = executor_plugin.common_settings.dryrun_exec
        with ExitStack() as stack:
            if workflow.exec_mode == ExecMode.DEFAULT and not dry:
                try:
                    if not executor_plugin.common_settings.local_exec:
                        # A property that Snakemake computes from a profile and the command line.
                        defaults = workflow.resource_settings._parsed_default_resources
                        require_known({name: found.raw for name, found in defaults.items()})
                    before = None
                    if workflow.execution_settings.lock:
                        before = stack.enter_context(lock.only_run(lock.SNAKEMAKE))
                    for line in opening_lines(layout, before):
                        print(line, file=sys.stderr, flush=True)
                except (ValueError, OSError) as error:
                    sys.exit(f"error: {error}")
                stack.enter_context(real_tables_kept(layout, unfinished))
                deployed = bool(workflow.deployment_settings.deployment_method)
                if forks_serve(executor_plugin.common_settings, deployed=deployed):
                    stack.enter_context(fork_server(prefix))
                look_at_jobs_once(workflow.scheduling_settings)
            execute(executor_plugin=executor_plugin, **options)

    return guarded_execute


def forks_serve(executor: Any, *, deployed: bool) -> bool:
    """Whether a run's jobs may be forks: on Linux, here, in the environment of the run itself."""
    here = executor.local_exec and not (executor.dryrun_exec or executor.touch_exec)
    return sys.platform == "linux" and here and not deployed


def look_at_jobs_once(settings: Any) -> None:
    """Take Snakemake's default limit of 100 jobs a second away; one that was asked for stays.

    With any limit each look at the jobs that are ready plans one more in a second's time, so that
    every job that ends adds an endless row of them: late in a run of 500 jobs they fill a core.
    """
    limit = settings.max_jobs_per_timespan
    if limit is not None and (limit.max_jobs, limit.timespan) == DEFAULT_RATE:
        settings.max_jobs_per_timespan = None


def require_usable(folder: Path) -> None:
    """Refuse a checkout below a folder whose name Snakemake or NetCDF takes for something else."""
    for sign, taken_for in (("{", "a variable"), ("}", "a variable"), ("\\", "a slash")):
        if sign in str(folder.absolute()):
            raise ValueError(
                f"{folder.absolute()}: its {sign!r} would be taken for {taken_for}; "
                "give the folder another name"
            )


def opening_lines(layout: Layout, before: lock.Owner | None) -> Iterator[str]:
    """Clear what a dead run left and what is damaged; yields a line for each thing done.

    Parameters
    ----------
    layout : Layout
        Where the run's files lie.
    before : Owner or None
        The owner of the run before, if it died.

    Raises
    ------
    DamagedError
        One line: a real table is damaged and cannot be prepared again from files at hand.
    OSError
        The disk is full, or the folder cannot be written to.
    """
    root = Path(layout.root)
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=root):
        pass
    free = shutil.disk_usage(root).free
    if free < LEAST_FREE_BYTES:
        raise OSError(
            f"{root}: {free / 1e6:.0f} MB free; free some space and type the same command again"
        )
    yield from lock.wait_for_jobs(lock.JOBS)
    put_back(layout)
    if before is not None:
        yield f"The run before ended without a word ({before}); going on where it stopped"
        for partial in root.rglob(f".*{store.PARTIAL}"):
            partial.unlink(missing_ok=True)
    for path in store.damaged(root):
        _require_replaceable(path, layout)
        path.unlink()
        yield f"{path}: damaged, removed; made again where it is needed"


def _require_replaceable(path: Path, layout: Layout) -> None:
    """Refuse to remove a real table that only a download, or nothing, could bring back."""
    name = path.stem
    if path != Path(layout.data(name)) or origin_of(name, layout).get("stand_in") is not False:
        return
    if not table_source(name, layout).at_hand:
        raise store.DamagedError(
            f"{path}: damaged; set PRIVREG_DATA to a folder that has its files, or remove it to "
            "download them, or go on with a stand-in"
        )
