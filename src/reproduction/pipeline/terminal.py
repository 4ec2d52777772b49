"""What a run says of its jobs: a line for each that has ended, how far it is, what is left."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from reproduction.pipeline.closing import duration

# The jobs of these rules were measured, each in the stage named; all others take about a second.
MEASURED = {"theory": "theory", "simulate": "simulation", "intervals": "intervals"}
# Before this many seconds of a run say how fast it is, nothing is said of what is left.
LEAST_SECONDS = 10.0
SELECTING = "Select jobs to execute..."


def one_line_a_job(workflow: Any, seconds: Callable[[str, Any], float]) -> None:
    """Let the terminal show a line a job; Snakemake's own file of the run stays as it is.

    Nothing changes where more was asked for (`--verbose`, `--printshellcmds`, a dry run), nor in
    the processes that a run starts for its jobs.

    Parameters
    ----------
    workflow : snakemake.workflow.Workflow
    seconds : callable
        Of a stage and a job's wildcards, how long the job is predicted to take.
    """
    output = workflow.output_settings
    if not workflow.is_main_process or output.dryrun or output.verbose or output.printshellcmds:
        return

    def jobs() -> Any:
        return workflow.dag.needrun_jobs()

    for handler in workflow.logger_manager.logger.handlers:
        if handler.name == "DefaultStreamHandler":
            progress = Progress(handler.formatter, jobs, seconds)
            handler.addFilter(progress.is_shown)
            handler.setFormatter(progress)


class Progress(logging.Formatter):
    """Snakemake's messages, with a line for each job that has ended in place of five.

    Parameters
    ----------
    others : logging.Formatter
        Formats all other messages.
    jobs : callable
        Gives the jobs of the run, once it has begun.
    seconds : callable
        Of a stage and a job's wildcards, how long the job is predicted to take.
    """

    def __init__(
        self,
        others: logging.Formatter | None,
        jobs: Callable[[], Any],
        seconds: Callable[[str, Any], float],
    ) -> None:
        super().__init__()
        self._others = others or logging.Formatter()
        self._jobs, self._seconds = jobs, seconds
        self._begun = time.monotonic()
        self._started: dict[int, tuple[str, float]] = {}
        self._ended: list[int] = []
        self._work: dict[int, float] = {}
        self._done = 0.0

    def is_shown(self, record: logging.LogRecord) -> bool:
        """Whether a message is shown; what jobs start and end is kept for a line of its own."""
        event = _event(record)
        if event == "job_info":
            self._started[record.jobid] = (record.rule_msg or "", time.monotonic())  # type: ignore[attr-defined]
        elif event == "job_finished":
            self._ended.append(record.job_id)  # type: ignore[attr-defined]
        return event not in ("job_info", "job_finished", "job_started") and (
            record.msg != SELECTING
        )

    def format(self, record: logging.LogRecord) -> str:
        """A message's text; that of an empty one is not written."""
        if _event(record) != "progress":
            return self._others.format(record)
        if not self._work:
            self._work = {job.jobid: self._predicted(job) for job in self._jobs()}
        total, ended = record.total, self._ended  # type: ignore[attr-defined]
        first = record.done - len(ended) + 1  # type: ignore[attr-defined]
        self._ended, lines = [], []
        for position, job in enumerate(ended, start=first):
            self._done += self._work.get(job, 0.0)
            words, began = self._started.pop(job, ("", 0.0))
            if words:
                took = duration(time.monotonic() - began)
                lines.append(f"[{position:>{len(str(total))}}/{total}] {words} ({took})")
        left = self._left()
        return "\n".join(lines) + (f", {duration(left)} left" if lines and left else "")

    def _predicted(self, job: Any) -> float:
        stage = MEASURED.get(job.rule.name)
        return max(1.0, self._seconds(stage, job.wildcards)) if stage else 1.0

    def _left(self) -> float:
        elapsed = time.monotonic() - self._begun
        rest = sum(self._work.values()) - self._done
        return elapsed * rest / self._done if elapsed > LEAST_SECONDS and self._done else 0.0


def _event(record: logging.LogRecord) -> str:
    event = getattr(record, "event", None)
    return str(getattr(event, "value", event or ""))
