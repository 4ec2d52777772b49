"""Private releases, non-private diagnostics, and sources of noise.

A `Release` holds a value, the budget that it cost, and the assumptions made. A `Diagnostic` is
computed from the data without noise. Neither behaves like an array: read a release's `value` and a
diagnostic's `non_private`. Since these names differ, code for releases does not run on diagnostics.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from math import inf, isinf, prod
from types import NoneType
from typing import Any, ClassVar, Generic, NoReturn, TypeVar

import numpy as np

from privreg.checks import Computed, OneProcess, Uncopied, require_count, require_instance, short
from privreg.privacy.budget import Budget

TIMES = "running times are not observed"
TRUSTED = "the memory of the process and of its workers is trusted"
PUBLIC_SIZE = "the number of records is public or already released if the output depends on it"
REAL_NUMBERS = "sums and noise are exact real numbers, not rounded to floating point"
SECRET_STREAM = "the generator's stream stays secret, and nothing else is drawn from it"
LAST_ALONE = "only the last iterate is seen"
CHOSEN_BLINDLY = "bounds, steps, clipping and noise were chosen without looking at these records"

# Of an algorithm in floating point: with a source of noise that speaks for itself, and with a
# generator that the caller brings.
BESIDES_THE_STREAM = (TIMES, PUBLIC_SIZE, REAL_NUMBERS, CHOSEN_BLINDLY)
USUAL = (*BESIDES_THE_STREAM, SECRET_STREAM)
# What is said of every result whose noise comes from a seed.
NOT_PRIVATE = "not private: seeded"


@dataclass(frozen=True)
class Secret:
    """Noise from the operating system's entropy, new at every call and never stored.

    Guarantee
    ---------
    Exact methods use only secure bits (`privreg.noise.exact`). Other methods use a generator whose
    whole initial state is 192 secure bits. This generator is fast but not cryptographic: guarantees
    assume that no observer recovers its state.
    """

    is_secret: ClassVar[bool] = True

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ("the observer cannot predict the generator SFC64 from its output",)

    def generator(self) -> np.random.Generator:
        """A generator with a new stream."""
        # By default NumPy spreads any number of bits over 128.
        seed = np.random.SeedSequence(secrets.randbits(192), pool_size=6)
        return np.random.Generator(np.random.SFC64(seed))


@dataclass(frozen=True)
class Seeded:
    """Noise that anyone with the seed can recompute, for tests and reproductions.

    Guarantee
    ---------
    None against an observer who knows or guesses the seed: the noise can be subtracted. Two results
    from one seed share their noise, so their difference has none.
    """

    seed: int
    is_secret: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", require_count("seed", self.seed, least=0, most=inf))

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (f"{NOT_PRIVATE}, unless the seed is random, secret and used only once",)

    def generator(self) -> np.random.Generator:
        """A generator with the same stream at every call."""
        return np.random.Generator(np.random.SFC64(self.seed))


@dataclass(frozen=True, eq=False)
class Ongoing(Uncopied):
    """Noise stream of a run; the mechanisms after the run's first one continue this stream.

    Guarantee
    ---------
    The guarantee of `source` holds, because no part of the stream serves two mechanisms.
    """

    rng: np.random.Generator
    source: Secret | Seeded

    @property
    def is_secret(self) -> bool:
        return self.source.is_secret

    @property
    def assumptions(self) -> tuple[str, ...]:
        return self.source.assumptions

    def generator(self) -> np.random.Generator:
        """The generator in use, not a new one: its stream continues."""
        self._require_process()
        return self.rng


NoiseSource = Secret | Seeded | Ongoing
SECRET = Secret()


def require_source(name: str, value: object) -> NoiseSource:
    """Source of noise; bare seeds and generators of unknown origin are refused."""
    if not isinstance(value, (Secret, Seeded, Ongoing)):
        raise ValueError(f"{name} must be Secret() or Seeded(seed), got {short(value)}")
    return value


class OneOfMany(OneProcess, Computed):
    """Register that lets only one of several settings with the same noise be released.

    Guarantee
    ---------
    Only one setting can be taken, since the difference of two outputs has less noise than either
    output, or no noise. A copy is the same object. An unpickled object cannot know what was
    released elsewhere: it allows only the setting taken before pickling. If none was taken and
    there are several, it allows none. A forked process allows none either.

    Examples
    --------
    >>> settings = OneOfMany((3,))
    >>> settings.take((1,))
    (1,)
    >>> settings.take((2,))
    Traceback (most recent call last):
    ValueError: setting must be (1,), which was released already, got (2,): settings share noise
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._taken: tuple[int, ...] | None = None
        self._from_pickle = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state | {"_process": os.getpid()})
        self._from_pickle = self._taken is None and prod(self.shape) > 1

    def take(self, setting: int | tuple[int, ...] | None = None) -> tuple[int, ...]:
        """Take a setting (None: the only one), return its index, and refuse all others later."""
        self._require_process()
        given: Any = setting if isinstance(setting, tuple) else (setting,)
        if setting is None and prod(self.shape) == 1:
            given = (0,) * len(self.shape)
        elif setting is None or len(given) != len(self.shape):
            raise ValueError(
                f"setting must be an index into shape {self.shape}, got {short(setting)}"
            )
        index = tuple(
            require_count("setting", part, least=0, most=length - 1)
            for part, length in zip(given, self.shape, strict=True)
        )
        if self._from_pickle:
            raise ValueError(
                f"setting must be taken before the settings are pickled, got {index}: settings "
                "share noise, and a copy may have released another one"
            )
        if self._taken not in (None, index):
            raise ValueError(
                f"setting must be {self._taken}, which was released already, got {index}: settings "
                "share noise"
            )
        self._taken = index
        return index


T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, eq=False)
class Diagnostic(Generic[T]):
    """Value without privacy, for readers who may see the data; `what` describes it.

    Examples
    --------
    >>> clipped = Diagnostic(0.25, "share of clipped rows")
    >>> clipped
    <NOT PRIVATE: share of clipped rows>
    >>> clipped.non_private
    0.25
    """

    non_private: T
    what: str = "diagnostic"

    def __repr__(self) -> str:
        # The value stays out of logs and of notebooks that are shared.
        return f"<NOT PRIVATE: {self.what}>"

    def __array__(self, *_: object, **__: object) -> NoReturn:
        way = "write `.non_private` if you may see the data"
        raise TypeError(f"{self.what} has no privacy protection: {way}")


@dataclass(frozen=True, eq=False)
class Release(Generic[T]):
    """Private value with its budget and the assumptions of its guarantee.

    Parameters
    ----------
    value : object
        All that is released. The value holds no `Diagnostic` and no type marked `not_private`.
    budget : Budget
        Cost of the release, finite, under the budget's neighbouring relation.
    assumptions : tuple of str
        Conditions of the guarantee that the code cannot ensure, each in one sentence; may be empty.

    Examples
    --------
    >>> slope = Release(0.31, Budget.zcdp(0.1), ("features are scaled without the data",))
    >>> noise = Release(0.05, Budget.zcdp(0.4))
    >>> both = compose(slope, noise)
    >>> both.value, both.budget.rho
    ((0.31, 0.05), 0.5)
    >>> slope.then(abs).budget
    Budget(rho=0.1, neighbours='replace-one')
    """

    value: T
    budget: Budget
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_instance("budget", self.budget, Budget)
        if isinf(self.budget.rho):
            raise ValueError("budget must be finite for a release, got an infinite one")
        held: Any = self.assumptions
        if not (isinstance(held, tuple) and all(isinstance(text, str) for text in held)):
            raise ValueError(f"assumptions must be a tuple of str, got {short(held)}")
        hidden = _diagnostic(self.value)
        if hidden is not None:
            raise ValueError(f"value must be private throughout, got {hidden!r}")

    def then(self, function: Callable[[T], U]) -> Release[U]:
        """Apply a function to the value and release the result, at no further cost.

        Guarantee
        ---------
        Post-processing: the budget stays the same, if the function does not use the data again.

        Source
        ------
        Bun and Steinke (2016), Lemma 1.8.
        """
        return Release(function(self.value), self.budget, self.assumptions)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a release is not an array; its released value is in `.value`")


def compose(*releases: Release[Any]) -> Release[tuple[Any, ...]]:
    """Combine several releases about the same records into one.

    The result holds the tuple of values, the sum of the budgets, and each assumption once. All
    releases must have the same neighbouring relation. A release may depend on earlier ones, but its
    noise must be independent of theirs.

    Source
    ------
    Bun and Steinke (2016), Lemma 1.7 and 2.3.
    """
    if not releases:
        raise ValueError("releases must hold at least one release, got none")
    budget = releases[0].budget
    for release in releases[1:]:
        budget = budget + release.budget
    assumptions = dict.fromkeys(text for release in releases for text in release.assumptions)
    return Release(tuple(release.value for release in releases), budget, tuple(assumptions))


# What holds no diagnostic.
PLAIN = (float, int, bool, str, NoneType, np.ndarray)


def _diagnostic(value: Any) -> Diagnostic[Any] | None:
    """First diagnostic in a value or in its parts."""
    if isinstance(value, Diagnostic):
        return value
    if getattr(type(value), "not_private", False):
        return Diagnostic(value, type(value).__name__)
    parts: list[Any] = []
    if isinstance(value, Mapping):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = list(value)
    elif is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, part.name) for part in fields(value)]
    for part in parts:
        # Most of a fit's parts are plain.
        if type(part) not in PLAIN and (found := _diagnostic(part)) is not None:
            return found
    return None
