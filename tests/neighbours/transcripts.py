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
from typing import Any, NamedTuple

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
    noise: list[Any] = field(default_factory=list)
    noisy: list[Any] = field(default_factory=list)

    def take(self, exact: Any, noise: Exact, noisy: Any) -> Any:
        place = len(self.exact)
        self.exact.append(np.array(exact, dtype=object))
        self.noise.append(noise)
        self.noisy.append(self.given[place] if place < len(self.given) else noisy)
        return self.noisy[-1]


class Watched(SplitBudget):
    """A split budget whose sums, whole numbers, are written down with what they may move by."""

    def __init__(
        self, budget: Budget, rng: np.random.Generator | None, transcript: Transcript
    ) -> None:
        super().__init__(budget, rng)
        self.transcript, self.square = transcript, 0

    def noise_std(self, what: str, share: float, square: int) -> int:
        self.square = square
        return super().noise_std(what, share, square)

    def semidefinite(self, what: str, share: float, total: Any, bound: float, n: float) -> Any:
        np.testing.assert_array_equal(total, total.T)
        found = super().semidefinite(what, share, total, bound, n)
        return self.transcript.take(total, Exact(self.square), found)

    def gaussian_mechanism(
        self, what: str, share: float, total: Any, square: int, size: float
    ) -> NoisyValue:
        found = super().gaussian_mechanism(what, share, total, square, size)
        return self.transcript.take(total, Exact(square), found)


class Exact(NamedTuple):
    """A declared squared sensitivity, a whole number, of a sum of whole numbers."""

    square: int

    def moved(self, one: Any, other: Any) -> float:
        """How far two sums are apart, over what is declared: above 1 where the integers say so."""
        apart = [int(a) - int(b) for a, b in zip(one.flat, other.flat, strict=True)]
        assert all(each == int(each) for each in [*one.flat, *other.flat]), "no whole number"
        square = sum(each**2 for each in apart)
        ratio = float(np.sqrt(square / self.square))
        return min(ratio, 1.0) if square <= self.square else max(ratio, float(np.nextafter(1, 2)))


def compared(run: Callable[[Table, Transcript], Any], pair: NeighbouringTables) -> list[float]:
    """What the pair moves each release by, over what its noise is for: at most 1 each."""
    first = Transcript()
    released = run(pair.first, first)
    second = Transcript(given=first.noisy)
    same = run(pair.second, second)
    assert second.noise == first.noise, "noise or number of releases depends on the data"
    for one, other in zip(numbers(released), numbers(same), strict=True):
        np.testing.assert_array_equal(one, other, err_msg="more than the noisy values is released")
    return [
        noise.moved(one, other)
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
