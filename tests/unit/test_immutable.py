"""What a frozen array keeps, and what copies and pickles of objects are made of."""

from __future__ import annotations

import copy
import os
import pickle
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import privreg
from privreg import Budget, Odometer, Release
from privreg.algorithms.whitened_descent import SplitBudget
from privreg.checks import Computed, Immutable, Rebuilt, Uncopied, frozen
from privreg.noise import streams
from privreg.privacy.release import SECRET, OneOfMany, Ongoing

NUMBERS = np.arange(6.0).reshape(2, 3)


@dataclass(frozen=True)
class Halved(Rebuilt):
    values: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(self.values))
        object.__setattr__(self, "half", frozen(self.values / 2))


class Kept(Halved, Immutable):
    pass


class Once(Computed):
    def __init__(self) -> None:
        self.values, self.name = frozen(NUMBERS), "once"


class Stream(Uncopied):
    pass


@pytest.mark.parametrize(
    ("array", "fortran"),
    [
        (NUMBERS, False),
        (NUMBERS.T, True),
        (np.asfortranarray(NUMBERS), True),
        (NUMBERS[:, ::2], False),
        (NUMBERS[:, :1], False),
        (np.array(3.0), False),
        (np.empty((0, 2)), False),
        (np.array([1, 2], dtype=">i4"), False),
    ],
)
def test_frozen_numbers_keep_value_type_and_order(array, fortran):
    found = frozen(array)
    np.testing.assert_array_equal(found, array)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert (found.flags.f_contiguous and not found.flags.c_contiguous) == fortran
    assert not np.shares_memory(found, array)
    for each in (found, found.T, found[...]):
        with pytest.raises(ValueError, match="WRITEABLE"):
            each.flags.writeable = True


def test_copies_are_made_by_the_constructor_or_are_the_object():
    made, kept, once = Halved(NUMBERS), Kept(NUMBERS), Once()
    for each in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert each is not made
        np.testing.assert_array_equal(each.half, NUMBERS / 2)
        assert not each.values.flags.writeable
    for each in (kept, once):
        assert copy.copy(each) is copy.deepcopy(each) is each
    for each in (kept, once):
        again = pickle.loads(pickle.dumps(each))
        np.testing.assert_array_equal(again.values, NUMBERS)
        with pytest.raises(ValueError, match="WRITEABLE"):
            again.values.flags.writeable = True
    assert pickle.loads(pickle.dumps(once)).name == "once"


def test_a_stream_has_no_copy():
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a Stream must be neither copied nor pickled"):
            make(Stream())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_fork_has_no_noise_and_no_choice_of_its_own():
    """Whose child drew as well, or chose another setting, would give the noise away."""
    rng = np.random.default_rng(0)
    budget = Budget.zcdp(0.5)
    uses = [
        *(partial(kind(2, rng=rng).draw, 1) for kind in (streams.WhiteNoise, streams.TreeNoise)),
        partial(streams.ToeplitzNoise([1.0, 0.5], dimension=2, rng=rng).draw, 1),
        partial(SplitBudget(budget, rng).number, "it", 0.5, 1.0, 1.0, 1.0),
        Ongoing(rng, SECRET).generator,
        partial(OneOfMany((2,)).take, 1),
        partial(Odometer().add, Release(0.0, budget)),
    ]
    child = os.fork()
    if not child:
        refused = 0
        try:
            for use in uses:
                with pytest.raises(ValueError, match="must be used in the process that made it"):
                    use()
                refused += 1
        finally:
            os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(uses)
    for use in uses:
        use()


D = 2
HELD = {
    "samples": lambda a: privreg.ArraySamples(a, a[:, 0]),
    "model": lambda a: privreg.LinearModel(a[0] + 1, a[1], 0.3),
    "spectrum": lambda a: privreg.Spectrum(a[0] + 1, np.full(D, 1 / D)),
    "problem": lambda a: privreg.Problem(100, a[0] + 1, signal=1.0, label_noise_std=1.0),
    "law": lambda a: privreg.GradientDescentLaw(
        a[0] + 1, np.eye(D), a[1], a[0], step_size=0.1, gradient_noise_std=0.1
    ),
    "mechanism": lambda a: privreg.FTRLMechanism(a[0] + 1, 0.5, 1.5, D),
    "population": lambda a: privreg.Population(np.diag(a[0] + 1), a[1], 0.3),
    "clip": lambda a: privreg.ResidualClip(1.5, a, a[:, 0]),
}


@pytest.mark.parametrize("make", HELD.values(), ids=HELD)
def test_what_was_checked_stays(make):
    """The caller's arrays change, and copies and pickles hold what the object holds, closed."""
    given = np.arange(2.0 * D).reshape(2, D)
    made = make(given)
    held = {name: value for name, value in vars(made).items() if isinstance(value, np.ndarray)}
    before = {name: value.copy() for name, value in held.items()}
    given[:] = np.nan
    for each in (made, copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        for name, value in before.items():
            np.testing.assert_array_equal(getattr(each, name), value)
            with pytest.raises(ValueError, match="WRITEABLE"):
                getattr(each, name).flags.writeable = True
    assert held
