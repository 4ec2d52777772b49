"""How far a verdict is from undecided: distances of simulated numbers in standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reproduction.claims import checks
from reproduction.claims.decision import Decision, decide
from reproduction.claims.entries import Probe
from reproduction.claims.ledger import Entry

if TYPE_CHECKING:
    import xarray as xr

WANTED = 4.0
# Beyond this factor noise counts as none.
LARGEST = 2.0**40


@dataclass(frozen=True)
class Margin:
    r"""How certain a check of simulated numbers is.

    If standard errors may grow by a factor up to f with the check still decided, the margin is
    2 f: for one bound at distance m, :math:`2 f = |m| / s`.

    Attributes
    ----------
    entry : str
        Identifier in the ledger.
    check : str
        Its label, where there are several.
    artifact, variable, place : str
        Where the number is on which the decision hangs.
    value, standard_error : float
        Of that number; of a curve, of that step.
    bound : float
        Margin to the nearest bound; infinite if the tolerance counts standard errors.
    refusal : float
        The same for what the check must refuse: rejected observations and wrong versions. Infinite
        if bounds refute the number itself: then nothing else needs to be refused.
    trials : int or None
        Behind the standard error, if the artifact says.
    """

    entry: str
    check: str
    artifact: str
    variable: str
    place: str
    value: float
    standard_error: float
    bound: float
    refusal: float
    trials: int | None

    @property
    def least(self) -> float:
        """The smaller of the two margins."""
        return min(self.bound, self.refusal)

    def needed(self, margin: float = WANTED) -> int | None:
        r"""Trials T' at which an unchanged observation would have this margin.

        :math:`T' = \lceil T (k / k_0)^2 \rceil` with k the margin wanted, and :math:`k_0` that of
        T trials. None if the trials are not known or the number lies on a bound.
        """
        if self.trials is None or self.least == 0:
            return None
        # The margin is known to twelve digits.
        return math.ceil(round(self.trials * (margin / self.least) ** 2, 6))


def margins(entry: Entry, datasets: Mapping[str, xr.Dataset]) -> Iterator[Margin]:
    """The margin of each check of an entry whose evidence has a standard error.

    Parameters
    ----------
    entry : Statement or CrossCheck
    datasets : mapping of str to xarray.Dataset
        Each artifact that its checks read.
    """
    for run in entry.runs:
        for probe in run.checks:
            decision = decide(probe, datasets)
            if decision.assessment is not None and np.any(decision.noise):
                labels = [run.label] * (len(entry.runs) > 1) + [probe.label] * bool(probe.label)
                yield _margin(entry.id, ", ".join(map(str, labels)), probe, decision, datasets)


def _margin(
    entry: str, label: str, probe: Probe, decision: Decision, datasets: Mapping[str, xr.Dataset]
) -> Margin:
    assert decision.observation is not None
    assert decision.noise is not None
    check, values, noise = decision.check, decision.observation.values, decision.noise
    factor = _largest(lambda f: checks.assess(check, values, f * noise).decision != "undecided")
    refusals: list[float] = []
    if decision.outcome != "failed":
        refusals += [
            _largest(lambda f, value=value: checks.refuses(check, value, f * noise))  # type: ignore[misc]
            for value in decision.rejected
        ]
        refusals += [_refutation(decide(each, datasets)) for each in probe.falsifiers]
    # A little more noise, and this comparison leaves the check undecided.
    beyond = 1.0 if math.isinf(factor) else factor * (1 + 1e-9)
    index = checks.assess(check, values, beyond * noise).index
    flat, errors = values.ravel(), noise.ravel()
    if isinstance(check, checks.Monotone | checks.Ordered):
        value, error = flat[index + 1] - flat[index], math.hypot(errors[index], errors[index + 1])
    else:
        value, error = flat[index], errors[index]
    return Margin(
        entry=entry,
        check=label,
        artifact=probe.evidence.artifact,
        variable=probe.evidence.variable,
        place=decision.observation.place(check, index),
        value=float(value),
        standard_error=float(error),
        bound=checks.DECISIVE_SIGMAS * factor,
        refusal=checks.DECISIVE_SIGMAS * min(refusals, default=math.inf),
        trials=decision.observation.trials,
    )


def _refutation(decision: Decision) -> float:
    """The factor up to which standard errors may grow and a wrong version still fails."""
    if decision.observation is None or decision.noise is None:
        return math.inf
    check, values, noise = decision.check, decision.observation.values, decision.noise
    return _largest(lambda f: checks.assess(check, values, f * noise).decision == "refuted")


def _largest(holds: Callable[[float], bool]) -> float:
    """The largest factor for which this holds, as it does for all less; infinite past `LARGEST`."""
    if holds(LARGEST):
        return math.inf
    low, high = 1 / LARGEST, LARGEST
    if not holds(low):
        return 0.0
    while high > low * (1 + 1e-12):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
