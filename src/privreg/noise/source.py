"""Sources of a run's noise: the operating system, or a seed for who must repeat a run.

The two are types of their own because they promise opposite things. Noise protects the records as
long as it cannot be computed again; a seed exists so that it can.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from math import inf

import numpy as np

from privreg.validation import require_count, require_rng, short

# What is said of every result whose noise comes from a seed.
NOT_PRIVATE = "not private: seeded"


@dataclass(frozen=True)
class Secret:
    """Noise from the operating system's entropy, new at every call and written down nowhere.

    Guarantee
    ---------
    The stream starts from 256 secret bits. The generator that stretches them is fast but
    not cryptographic: guarantees that rest on it assume an observer who does not invert it.
    `privreg.noise.discrete` draws from a cryptographic one instead.
    """

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ("the observer cannot predict the generator SFC64 from its output",)

    def generator(self) -> np.random.Generator:
        """A generator with a stream of its own."""
        return np.random.Generator(np.random.SFC64(secrets.randbits(256)))


@dataclass(frozen=True)
class Seeded:
    """Noise that anyone who has the seed can compute again, for tests and reproductions.

    Guarantee
    ---------
    None against an observer who knows or guesses the seed: the noise can be subtracted. Two results
    of one seed have the same noise, and their difference has none.
    """

    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", require_count("seed", self.seed, least=0, most=inf))

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (f"{NOT_PRIVATE}, unless the seed is random, secret and used only once",)

    def generator(self) -> np.random.Generator:
        """A generator with the same stream at every call."""
        return np.random.Generator(np.random.SFC64(self.seed))


@dataclass(frozen=True, eq=False)
class Ongoing:
    """A stream that has begun, for the mechanisms of one run after the first.

    Guarantee
    ---------
    That of its source: no part of the stream serves two mechanisms.
    """

    rng: np.random.Generator
    source: Secret | Seeded

    def __post_init__(self) -> None:
        require_rng("rng", self.rng)
        if not isinstance(self.source, (Secret, Seeded)):
            raise ValueError(f"source must be Secret() or Seeded(seed), got {short(self.source)}")

    @property
    def assumptions(self) -> tuple[str, ...]:
        return self.source.assumptions

    def generator(self) -> np.random.Generator:
        """The generator itself, which goes on."""
        return self.rng


NoiseSource = Secret | Seeded | Ongoing
SECRET = Secret()


def require_source(name: str, value: object) -> NoiseSource:
    """A source of noise, and neither a seed nor a generator of unknown origin."""
    if not isinstance(value, (Secret, Seeded, Ongoing)):
        raise ValueError(f"{name} must be Secret() or Seeded(seed), got {short(value)}")
    return value
