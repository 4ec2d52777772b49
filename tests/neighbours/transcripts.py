"""What a run releases, written down, and a second run that is given the same noisy values.

A run on the first data set leaves a transcript: each release's exact value, its noise, and the
noisy value. A run on the second takes the noisy values from it, so that both ask their data the
same questions; what their exact values differ by is then what the noise has to hide. Besides,
everything that leaves the second run must be the same, bit for bit: it is a function of the noisy
values and of public numbers alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privreg.algorithms.whitened_descent import NoisyValue, SplitBudget
from privreg.auditing import NeighbouringTables, Table
from privreg.privacy.budget import Budget

RHO = 0.3


@dataclass
class Transcript:
    """Exact values with the noise of each, and noisy values to be given instead of new ones."""

    given: Sequence[Any] = ()
    exact: list[Any] = field(default_factory=list)
    noise: list[float] = field(default_factory=list)
    noisy: list[Any] = field(default_factory=list)

    def take(self, exact: Any, noise: float, noisy: Any) -> Any:
        place = len(self.exact)
        self.exact.append(np.array(exact, dtype=object))
        self.noise.append(float(noise))
        self.noisy.append(self.given[place] if place < len(self.given) else noisy)
        return self.noisy[-1]


class Watched(SplitBudget):
    """A split budget whose releases are written down."""

    def __init__(self, budget: Budget, rng: np.random.Generator, transcript: Transcript) -> None:
        super().__init__(budget, rng)
        self.transcript = transcript

    def _per_share(self, found: NoisyValue, share: float) -> float:
        """The noise that the same change would have at a budget of RHO for it alone."""
        return found.noise_std * float(np.sqrt(share * self.budget.rho / RHO))

    def histogram(self, what: str, share: float, counts: Any) -> NoisyValue:
        found = super().histogram(what, share, counts)
        return self.transcript.take(counts, self._per_share(found, share), found)

    def semidefinite(self, what: str, share: float, total: Any, bound: float, n: float) -> Any:
        found = super().semidefinite(what, share, total, bound, n)
        exact = (total + total.T) / (2 * n)
        return self.transcript.take(exact, self._per_share(found, share), found)

    def vector(self, what: str, share: float, total: Any, bound: float, n: float) -> NoisyValue:
        found = super().vector(what, share, total, bound, n)
        return self.transcript.take(total / n, self._per_share(found, share), found)

    def number(self, what: str, share: float, total: float, bound: float, n: float) -> NoisyValue:
        found = super().number(what, share, total, bound, n)
        return self.transcript.take(total / n, self._per_share(found, share), found)


def compared(
    run: Callable[[Table, Transcript], Any], pair: NeighbouringTables, *, rho: float, parts: int = 1
) -> list[float]:
    """What the pair moves each release by, over what its noise is for: at most 1 each.

    A noise s for one of `parts` equal shares of ρ covers a change of s √(2ρ/parts).
    """
    first = Transcript()
    released = run(pair.first, first)
    second = Transcript(given=first.noisy)
    same = run(pair.second, second)
    assert second.noise == first.noise, "noise or number of releases depends on the data"
    for one, other in zip(numbers(released), numbers(same), strict=True):
        np.testing.assert_array_equal(one, other, err_msg="more than the noisy values is released")
    return [
        float(np.sqrt(float(np.sum((one - other) ** 2)) / (2 * rho / parts)) / noise)
        for one, other, noise in zip(first.exact, second.exact, first.noise, strict=True)
    ]


def numbers(value: Any) -> Iterator[np.ndarray]:
    """All numbers in a release, in order."""
    if isinstance(value, (float, int, np.ndarray, np.generic)):
        yield np.asarray(value)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from numbers(part)
    elif dataclasses.is_dataclass(value):
        for part in dataclasses.fields(value):
            yield from numbers(getattr(value, part.name))
