"""Decide one check: passed, failed, or too noisy to say, and how many trials would settle it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from reproduction.claims import checks
from reproduction.claims.entries import Probe, rejected_values, require_power
from reproduction.claims.evidence import Evidence
from reproduction.claims.observation import Observation, observe
from reproduction.claims.wording import number, series

if TYPE_CHECKING:
    import xarray as xr

Outcome = Literal["passed", "failed", "inconclusive", "untested"]
MOST_DOUBLINGS = 40


@dataclass(frozen=True)
class Decision:
    """What a check comes to, with its reason and what it rests on.

    Attributes
    ----------
    outcome : {"passed", "failed", "inconclusive", "untested"}
    reason : str
        Empty if it passed.
    check : Check
        With every bound that an artifact holds read.
    observation : Observation or None
        None if the check is untested.
    noise : ndarray or None
        Standard error of each element against what is expected, if there is one.
    assessment : Outcome or None
        None if the check has nothing to work on.
    rejected : tuple
        Observations that the check must refuse, as numbers.
    trials_needed : int or None
        Trials that would decide an inconclusive check, if that can be said.
    """

    outcome: Outcome
    reason: str
    check: checks.Check
    observation: Observation | None = None
    noise: NDArray[np.float64] | None = None
    assessment: checks.Outcome | None = None
    rejected: tuple[Any, ...] = ()
    trials_needed: int | None = None


def decide(probe: Probe, datasets: Mapping[str, xr.Dataset]) -> Decision:
    """Decide a check by its evidence.

    Parameters
    ----------
    probe : Probe
        The check.
    datasets : mapping of str to xarray.Dataset
        Each artifact that it reads. The attribute `stand_in` = 1 says that bundled data stands in
        for the paper's: the check is then untested, with `stand_in_reason`.

    Raises
    ------
    ValueError
        One line: an artifact has no such variable or label, or of a shape that the check does not
        take, or the check takes what it must refuse.
    """
    for artifact in probe.artifacts:
        if is_stand_in(datasets[artifact]):
            reason = str(datasets[artifact].attrs.get("stand_in_reason", "stand-in data"))
            return Decision("untested", reason, probe.check)
    check, expected_error = _resolved(probe, datasets)
    observation = observe(probe.evidence, check, datasets[probe.evidence.artifact])
    if isinstance(check, checks.Close) and isinstance(check.expected, tuple):
        observation = observation.flattened()
    missing = np.flatnonzero(np.isnan(observation.values))
    if missing.size:
        place = observation.labels[int(missing[0])] or probe.evidence.variable
        more = f" and {missing.size - 1} more" if missing.size > 1 else ""
        reason = f"the evidence is not a number at {place}{more}"
        return Decision("inconclusive", reason, check, observation)
    noise = _noise(observation, expected_error)
    if noise is None:
        bare = check.of if isinstance(check, checks.All) else check
        if isinstance(bare, checks.Close) and bare.counts_standard_errors_only:
            reason = "the tolerance counts standard errors and the evidence has none"
            return Decision("inconclusive", reason, check, observation)
    errors = np.zeros_like(observation.values) if noise is None else noise
    rejected = tuple(rejected_values(check, value) for value in probe.rejects)
    try:
        assessment = checks.assess(check, observation.values, errors)
    except ValueError as error:
        where = f"{probe.evidence.artifact}.{probe.evidence.variable}"
        raise ValueError(f"{where}: {error}") from None
    outcome, reason = _outcome(check, observation, errors, assessment, rejected)
    needed = None
    if outcome == "passed":
        kept = [
            each.label for each in probe.falsifiers if decide(each, datasets).outcome != "failed"
        ]
        if kept:
            reason = f"the evidence does not refuse the wrong version: {kept[0]}"
            return Decision("inconclusive", reason, check, observation, noise, assessment, rejected)
    if outcome == "inconclusive":
        needed, advice = _advice(check, observation, errors, rejected)
        reason = f"{reason}; {advice}"
    return Decision(outcome, reason, check, observation, noise, assessment, rejected, needed)


def _resolved(
    probe: Probe, datasets: Mapping[str, xr.Dataset]
) -> tuple[checks.Check, NDArray[np.float64] | None]:
    """The check with its bounds read, and the standard error of what is expected."""
    check, error = probe.check, None
    read = checks.references(check)
    if not read:
        return check, None
    bounds: dict[str, Any] = {}
    for key, evidence in read.items():
        values, error = _bound(evidence, datasets[evidence.artifact], key)
        bounds[key] = values
    inner = check.of if isinstance(check, checks.All) else check
    # Validated anew: a list may stand where the check takes one number.
    inner = type(inner).model_validate(inner.model_dump() | bounds)
    if isinstance(check, checks.All):
        check = checks.All.model_validate({"kind": "all", "of": inner.model_dump()})
    else:
        check = inner
    require_power(check, probe.rejects)
    return check, error


def _bound(
    evidence: Evidence, dataset: xr.Dataset, key: str
) -> tuple[float | tuple[float, ...], NDArray[np.float64] | None]:
    anything = checks.All(kind="all", of=checks.Above(kind="above", low=-math.inf))
    found = observe(evidence, anything, dataset).flattened()
    if found.values.size == 1:
        error = found.standard_error
        return float(found.values[0]), None if error is None else error.reshape(())
    if key != "expected":
        raise ValueError(
            f"{key} = {evidence.artifact}.{evidence.variable}: expected one number,"
            f" found {found.values.size}"
        )
    return tuple(found.values.tolist()), found.standard_error


def _noise(
    observation: Observation, expected_error: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    if observation.standard_error is None and expected_error is None:
        return None
    own = 0.0 if observation.standard_error is None else observation.standard_error
    other = 0.0 if expected_error is None else expected_error
    return np.broadcast_to(np.hypot(own, other), observation.values.shape)


def _outcome(
    check: checks.Check,
    observation: Observation,
    errors: NDArray[np.float64],
    assessment: checks.Outcome,
    rejected: tuple[Any, ...],
) -> tuple[Outcome, str]:
    place = observation.place(check, assessment.index)
    at = f" {'' if place.startswith('from ') else 'at '}{place}" if place else ""
    if assessment.decision == "undecided":
        return "inconclusive", f"the noise straddles the bound{_sigmas(assessment)}{at}"
    if assessment.decision == "refuted":
        if assessment.margin == 0:
            return "failed", f"no strict step{at}"
        excess = number(-assessment.margin, 3)
        return "failed", f"out of bounds by {excess}{_sigmas(assessment)}{at}"
    hidden = _hidden(check, rejected, errors)
    if hidden is not None:
        shown = series(np.asarray(hidden).ravel().tolist())
        return "inconclusive", f"too noisy to tell what is claimed from {shown}"
    return "passed", ""


def _hidden(check: checks.Check, rejected: tuple[Any, ...], errors: NDArray[np.float64]) -> Any:
    """The first observation that the check must refuse and, at this noise, does not."""
    for value in rejected:
        if not checks.refuses(check, value, errors):
            return value
    return None


def _advice(
    check: checks.Check,
    observation: Observation,
    errors: NDArray[np.float64],
    rejected: tuple[Any, ...],
) -> tuple[int | None, str]:
    def decided(shrink: float) -> bool:
        assessment = checks.assess(check, observation.values, shrink * errors)
        if assessment.decision == "passed":
            return _hidden(check, rejected, shrink * errors) is None
        return assessment.decision == "refuted"

    trials = observation.trials
    if trials is None:
        factor = trials_to_decide(decided, 1)
        advice = "no number" if factor is None else f"about {factor} times the number"
        return None, f"{advice} of trials would decide"
    needed = trials_to_decide(decided, trials)
    return needed, f"{'no number of' if needed is None else needed} trials would decide"


def trials_to_decide(decided: Callable[[float], bool], trials: int) -> int | None:
    r"""Smallest number of trials at which an unchanged observation would be decided.

    The standard error s of T trials is :math:`s \sqrt{T / T'}` at T'. For one bound at distance m
    the answer is :math:`T' = \lceil T (2 s / |m|)^2 \rceil`.

    Parameters
    ----------
    decided : callable
        Whether all is decided once standard errors are this factor, in (0, 1], of what they are.
    trials : int
        Trials so far, at least 1.

    Returns
    -------
    int or None
        None if no practicable number decides: the observation lies on a bound.
    """
    low, high = trials, trials
    for _ in range(MOST_DOUBLINGS):
        low, high = high, 2 * high
        if decided(math.sqrt(trials / high)):
            break
    else:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(math.sqrt(trials / middle)) else (middle, high)
    return high


def is_stand_in(dataset: xr.Dataset) -> bool:
    """Whether bundled data stands in for the paper's."""
    return int(dataset.attrs.get("stand_in", 0)) == 1


def _sigmas(assessment: checks.Outcome) -> str:
    if not 0 < assessment.standard_error < math.inf:
        return ""
    return f" ({abs(assessment.margin) / assessment.standard_error:.2g} s.e.)"
