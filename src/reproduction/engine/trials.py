"""Random streams that depend on the seed, the experiment and the trial, and on nothing else."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, TypeVar
from zlib import crc32

import numpy as np
from tqdm import tqdm

from privreg.kernels import standard_normal

# Normals that a trial draws at once for the steps of `normals`.
DRAWN_AT_ONCE = 16_384


class Trial(NamedTuple):
    """One repetition: its number and its own generator."""

    number: int
    rng: np.random.Generator


@dataclass(frozen=True)
class Trials:
    """A range of trials of an experiment.

    Trial `i` draws from `SeedSequence(seed, spawn_key=(crc32(experiment), i))`, so its result is
    the same in whichever order, process or shard it runs.

    Parameters
    ----------
    seed : int
        The configuration's one seed.
    experiment : str
        Path of the experiment, `paper/experiment`.
    start, stop : int
        First trial, and the one after the last.
    """

    seed: int
    experiment: str
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def __iter__(self) -> Iterator[Trial]:
        for number in range(self.start, self.stop):
            yield Trial(number, self.generator(number))

    def generator(self, number: int) -> np.random.Generator:
        """Generator of one trial."""
        key = (crc32(self.experiment.encode()), number)
        return np.random.Generator(
            np.random.SFC64(np.random.SeedSequence(self.seed, spawn_key=key))
        )

    @property
    def numbers(self) -> np.ndarray:
        """Trial numbers, shape (len(self),)."""
        return np.arange(self.start, self.stop)


def shard_of(seed: int, experiment: str, trials: int, *, index: int, count: int) -> Trials:
    """Shard `index` of `count` nearly equal consecutive ranges of the trials."""
    if not 0 <= index < count:
        raise ValueError(f"shard must be less than {count}, got {index}")
    bounds = [trials * part // count for part in (index, index + 1)]
    return Trials(seed, experiment, *bounds)


def side_by_side(trials: Iterable[Trial], most: int = 16) -> Iterator[list[np.random.Generator]]:
    """Generators of a few trials at a time, for loops over steps that take all of them."""
    left = iter(trials)
    while some := [trial.rng for trial in islice(left, most)]:
        yield some


def normals(
    generators: Sequence[np.random.Generator], steps: int, width: int
) -> Iterator[np.ndarray]:
    """Standard normals of shape (len(generators), width) for each step.

    Each row equals the step-by-step draws of its generator, whatever the other generators are.
    """
    size = max(1, DRAWN_AT_ONCE // width)
    for first in range(0, steps, size):
        count = min(size, steps - first)
        drawn = np.array([standard_normal(rng, (count, width)) for rng in generators])
        yield from drawn.transpose(1, 0, 2)


Item = TypeVar("Item")
INTERVAL_SECONDS = 5.0
logger = logging.getLogger(__name__)


def track(items: Iterable[Item], *, total: int, label: str) -> Iterator[Item]:
    """Yield the items, saying every few seconds how many are done and how long the rest takes."""
    started = said = time.monotonic()
    for done, item in enumerate(items):
        now = time.monotonic()
        if done and now - said >= INTERVAL_SECONDS:
            said = now
            left = (now - started) / done * (total - done)
            logger.info("%s: %d of %d, %s left", label, done, total, tqdm.format_interval(left))
        yield item
