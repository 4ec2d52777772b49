"""Verdicts: the judgement of an entry by its evidence, without the words of the ledger.

A judgement holds what was seen. What the ledger says of it, in words and expectations, is joined
in `records`, so that a better sentence judges nothing anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import ConfigDict, SerializerFunctionWrapHandler, TypeAdapter, model_serializer

from reproduction.claims import checks
from reproduction.claims.decision import Decision, Outcome, decide, is_stand_in
from reproduction.claims.entries import Probe, Run
from reproduction.claims.ledger import Entry, Ledger
from reproduction.claims.wording import describe, selection
from reproduction.engine.parameters import Strict, validate

if TYPE_CHECKING:
    import xarray as xr

Scale = Literal["paper", "quick", "own"]
Numbers = float | tuple[float, ...] | None
Summary = Literal["passed", "failed", "depends on our choice", "inconclusive", "untested"]
WORST_FIRST: tuple[Outcome, ...] = ("failed", "untested", "inconclusive", "passed")


class _Result(Strict):
    model_config = ConfigDict(ser_json_inf_nan="strings")

    @model_serializer(mode="wrap")
    def _sorted_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return dict(sorted(handler(self).items()))


class CheckResult(_Result):
    """What one check saw."""

    label: str | None
    outcome: Outcome
    reason: str
    observed: Numbers = None
    standard_error: Numbers = None
    labels: tuple[str, ...] = ()
    expected: str
    low: Numbers = None
    high: Numbers = None
    rejected: tuple[float | tuple[float, ...], ...] = ()
    margin: float | None = None
    margin_standard_error: float | None = None
    z: float | None = None
    at: str | None = None
    trials: int | None = None
    trials_needed: int | None = None
    artifact: str
    variable: str
    meaning: str = ""
    select: str
    digests: dict[str, str]


class RunResult(_Result):
    """The checks at one value of a choice of ours."""

    label: str
    outcome: Outcome
    checks: tuple[CheckResult, ...]


class Judgement(_Result):
    """What the evidence says of an entry."""

    paper: str
    id: str
    outcome: Summary
    reason: str
    runs: tuple[RunResult, ...]
    stand_in: bool
    scale: Scale


# The setting of the models does not reach through a list.
_LIST = TypeAdapter(list[Judgement], config=ConfigDict(ser_json_inf_nan="strings"))


def case(entry: Entry) -> dict[str, Any]:
    """What judging an entry needs: its id and its checks, none of its words.

    Defaults are left out: those of all entries of a paper go into one command.
    """
    runs = [run.model_dump(mode="json", exclude_defaults=True) for run in entry.runs]
    for wrong in (
        each for run in runs for probe in run["checks"] for each in probe.get("wrong", ())
    ):
        # Left out it would be the check's own again.
        wrong.get("evidence", {}).setdefault("select", {})
    return {"id": entry.id, "runs": runs}


def artifacts(entry: Entry) -> tuple[str, ...]:
    """Artifacts that an entry's checks read, sorted."""
    return tuple(
        sorted({name for run in entry.runs for probe in run.checks for name in probe.artifacts})
    )


def groups(ledger: Ledger) -> dict[tuple[str, ...], list[str]]:
    """Ids of the entries that read the same artifacts."""
    found: dict[tuple[str, ...], list[str]] = {}
    for entry in ledger.entries.values():
        found.setdefault(artifacts(entry), []).append(entry.id)
    return dict(sorted(found.items()))


def judge(
    value: Mapping[str, Any],
    datasets: Mapping[str, xr.Dataset],
    *,
    paper: str,
    digests: Mapping[str, str],
    scale: Scale = "paper",
) -> Judgement:
    """Judge a case by its evidence; what cannot be judged is untested, with the reason.

    Parameters
    ----------
    value : mapping
        See `case`.
    datasets : mapping of str to xarray.Dataset
        Each artifact that the checks read.
    paper : str
        Citation key.
    digests : mapping of str to str
        SHA-256 of each artifact's file.
    scale : {"paper", "quick", "own"}
        Scale of the run that the evidence comes from.

    Returns
    -------
    Judgement
        A check is `inconclusive` if the noise straddles a bound, if it hides an observation that
        the check must refuse, or if the evidence is not a number. Of an entry's checks the worst
        counts: failed, untested, inconclusive, passed. Runs that contradict each other make the
        entry depend on our choice.
    """
    name = str(value.get("id"))
    try:
        runs = [
            _run(validate(Run, run, f"{paper}.claims.{name}"), datasets, digests, scale)
            for run in value["runs"]
        ]
        stand_in = any(is_stand_in(datasets[name]) for name in _read(value) if name in datasets)
    except Exception as error:
        # Whatever is wrong with an entry, those beside it are judged.
        return Judgement(
            paper=paper, id=name, outcome="untested", reason=_reason(error), runs=(),
            stand_in=False, scale=scale,
        )  # fmt: skip
    outcome = _over_runs(runs)
    reasons = [
        f"{run.label}: {check.reason}" if len(runs) > 1 else check.reason
        for run in runs
        for check in run.checks
        if check.reason and (check.outcome == outcome or outcome == "depends on our choice")
    ]
    return Judgement(
        paper=paper,
        id=name,
        outcome=outcome,
        reason="; ".join(dict.fromkeys(reasons)) if runs else "there is no evidence to read",
        runs=tuple(runs),
        stand_in=stand_in,
        scale=scale,
    )


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Of several checks that must all hold: failed, untested, inconclusive, passed."""
    found = set(outcomes)
    return next(outcome for outcome in WORST_FIRST if outcome in found)


def to_json(judgements: Sequence[Judgement]) -> str:
    """Judgements as JSON; infinity and NaN are strings that `from_json` reads."""
    return _LIST.dump_json(list(judgements), indent=1).decode()


def from_json(text: str | bytes) -> list[Judgement]:
    """The inverse of `to_json`."""
    return _LIST.validate_json(text)


def _over_runs(runs: Sequence[RunResult]) -> Summary:
    outcomes = {run.outcome for run in runs}
    if not outcomes:
        return "untested"
    if len(outcomes) == 1:
        return outcomes.pop()
    if outcomes == {"passed", "failed"}:
        return "depends on our choice"
    return "untested" if "untested" in outcomes else "inconclusive"


def _run(
    run: Run, datasets: Mapping[str, xr.Dataset], digests: Mapping[str, str], scale: Scale
) -> RunResult:
    found = tuple(_check(probe, datasets, digests, scale) for probe in run.checks)
    return RunResult(
        label=run.label, outcome=worst(result.outcome for result in found), checks=found
    )


def _check(
    probe: Probe, datasets: Mapping[str, xr.Dataset], digests: Mapping[str, str], scale: Scale
) -> CheckResult:
    try:
        decision = decide(probe, datasets)
    except Exception as error:
        # Another scale may leave out the very setting that a check is about.
        elsewhere = {"quick": "left out of the reduced scale: ", "own": "not at your own scale: "}
        reason = f"{elsewhere.get(scale, '')}{_reason(error)}"
        decision = Decision("untested", reason, probe.check)
    observation, assessment = decision.observation, decision.assessment
    seen: dict[str, Any] = {}
    if observation is not None:
        noise = np.zeros_like(observation.values) if decision.noise is None else decision.noise
        variable = datasets[probe.evidence.artifact][probe.evidence.variable]
        allowed = checks.region(decision.check, observation.values, noise)
        seen = {
            "meaning": str(variable.attrs.get("long_name", "")),
            "observed": _plain(observation.values),
            "standard_error": _plain(observation.standard_error),
            "labels": observation.labels if observation.values.size > 1 else (),
            "low": None if allowed is None else _plain(allowed[0]),
            "high": None if allowed is None else _plain(allowed[1]),
            "rejected": tuple(_plain(np.asarray(value)) for value in decision.rejected),
            "z": checks.largest_z(decision.check, observation.values, noise),
            "trials": observation.trials,
            "trials_needed": decision.trials_needed,
        }
    if observation is not None and assessment is not None:
        seen |= {
            "margin": assessment.margin,
            "margin_standard_error": assessment.standard_error,
            "at": observation.place(decision.check, assessment.index) or None,
        }
    return CheckResult(
        label=probe.label,
        outcome=decision.outcome,
        reason=decision.reason,
        expected=describe(decision.check),
        artifact=probe.evidence.artifact,
        variable=probe.evidence.variable,
        select=selection(probe.evidence.select),
        digests={name: digests[name] for name in probe.artifacts if name in digests},
        **seen,
    )


def _reason(error: Exception) -> str:
    # The message of another error, such as a missing key's, says little without its name.
    said = " ".join(str(error).split())
    return said if isinstance(error, ValueError) else f"{type(error).__name__}: {said}"


def _read(value: Mapping[str, Any]) -> list[str]:
    runs = [Run.model_validate(run) for run in value["runs"]]
    return [name for run in runs for probe in run.checks for name in probe.artifacts]


def _plain(values: Any) -> Numbers:
    if values is None:
        return None
    found = np.asarray(values, dtype=np.float64)
    return float(found) if found.ndim == 0 else tuple(found.ravel().tolist())
