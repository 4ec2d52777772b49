"""Decide: reproduced, contradicted, or too noisy to say, and how many trials would settle it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privreg.claims import checks
from privreg.claims.entries import Entry, VerdictName
from privreg.claims.observation import Observation, observe
from privreg.claims.wording import number, series

if TYPE_CHECKING:
    import xarray as xr

MOST_DOUBLINGS = 40


@dataclass(frozen=True)
class Finding:
    """A verdict with its reason and what it rests on.

    Attributes
    ----------
    verdict : {"reproduced", "contradicted", "inconclusive", "untested"}
    reason : str
        Empty if the claim is reproduced.
    observation : Observation or None
        None if the claim is untested.
    outcome : Outcome or None
        None if the check has nothing to work on.
    trials_needed : int or None
        Trials that would decide an inconclusive claim, if that can be said.
    """

    verdict: VerdictName
    reason: str = ""
    observation: Observation | None = None
    outcome: checks.Outcome | None = None
    trials_needed: int | None = None


def find(entry: Entry, dataset: xr.Dataset) -> Finding:
    """Judge an entry by a Dataset; see `privreg.claims.verdicts.judge`."""
    if is_stand_in(dataset):
        return Finding("untested", str(dataset.attrs.get("stand_in_reason", "stand-in data")))
    check = entry.check
    observation = observe(entry.evidence, check, dataset)
    missing = np.flatnonzero(np.isnan(observation.values))
    if missing.size:
        place = observation.labels[int(missing[0])] or entry.evidence.variable
        more = f" and {missing.size - 1} more" if missing.size > 1 else ""
        reason = f"the evidence is not a number at {place}{more}"
        return Finding("inconclusive", reason, observation=observation)
    bare = check.of if isinstance(check, checks.All) else check
    if observation.standard_error is None:
        if isinstance(bare, checks.Close) and bare.counts_standard_errors_only:
            reason = "the tolerance counts standard errors and the evidence has none"
            return Finding("inconclusive", reason, observation=observation)
        errors = np.zeros_like(observation.values)
    else:
        errors = observation.standard_error
    try:
        outcome = checks.assess(check, observation.values, errors)
    except ValueError as error:
        raise ValueError(f"{entry.evidence.artifact}.{entry.evidence.variable}: {error}") from None
    verdict, reason = _decide(entry, observation, errors, outcome)
    needed = None
    if verdict == "inconclusive":
        needed, advice = _advice(entry, observation, errors)
        reason = f"{reason}; {advice}"
    return Finding(verdict, reason, observation=observation, outcome=outcome, trials_needed=needed)


def _decide(
    entry: Entry,
    observation: Observation,
    errors: NDArray[np.float64],
    outcome: checks.Outcome,
) -> tuple[VerdictName, str]:
    place = observation.place(entry.check, outcome.index)
    at = f" {'' if place.startswith('from ') else 'at '}{place}" if place else ""
    if outcome.decision == "undecided":
        return "inconclusive", f"the noise straddles the bound{_sigmas(outcome)}{at}"
    if outcome.decision == "refuted":
        if outcome.margin == 0:
            return "contradicted", f"no strict step{at}"
        return (
            "contradicted",
            f"out of bounds by {number(-outcome.margin, 3)}{_sigmas(outcome)}{at}",
        )
    hidden = _hidden(entry, errors)
    if hidden is not None:
        return "inconclusive", f"too noisy to tell what is claimed from {series(hidden)}"
    return "reproduced", ""


def _hidden(entry: Entry, errors: NDArray[np.float64]) -> float | tuple[float, ...] | None:
    """The first observation that the check must refuse and, at this noise, does not."""
    for rejected in entry.rejects:
        if not checks.refuses(entry.check, rejected, errors):
            return rejected
    return None


def _advice(
    entry: Entry, observation: Observation, errors: NDArray[np.float64]
) -> tuple[int | None, str]:
    def decided(shrink: float) -> bool:
        outcome = checks.assess(entry.check, observation.values, shrink * errors)
        if outcome.decision == "passed":
            return _hidden(entry, shrink * errors) is None
        return outcome.decision == "refuted"

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


def _sigmas(outcome: checks.Outcome) -> str:
    if not 0 < outcome.standard_error < math.inf:
        return ""
    return f" ({abs(outcome.margin) / outcome.standard_error:.2g} s.e.)"
