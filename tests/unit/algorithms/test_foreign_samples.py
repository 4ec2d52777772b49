"""Norms are those of the rows that enter a sum: of copies, of opened memory, of others' samples.

Each case is a data set whose norms could be made to lie. A row's influence is measured: with a clip
of 1 a step of size n moves the iterate by at most n, and sums are within the declared bounds.
"""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from privreg.algorithms.adassp import Bounds, bounds_from_data, clipped_sums
from privreg.algorithms.dp_ftrl import FTRLMechanism, dp_ftrl
from privreg.algorithms.full_batch_dpgd import full_batch_dpgd
from privreg.algorithms.ols import ols
from privreg.algorithms.records import Records
from privreg.algorithms.samples import ArraySamples, Chunk, moments
from privreg.algorithms.whitened_descent import SplitBudget
from privreg.noise.streams import WhiteNoise
from privreg.privacy.budget import Budget

N, P = 40, 2
HUGE = 1e20


def rng() -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(4))


def data() -> tuple[np.ndarray, np.ndarray]:
    draws = rng()
    return draws.standard_normal((N, P)), draws.standard_normal(N)


class Lying:
    """Rows of which one is huge, with norms that say otherwise."""

    sample_size, dimension = N, P

    def __init__(self, norms=1.0, parts=False):
        self.features, self.labels = data()
        self.features[0] = HUGE
        self.norms = np.full(N, norms)

    def chunks(self):
        for first in range(0, N, 16):
            rows = slice(first, first + 16)
            yield Chunk(self.features[rows], self.labels[rows], self.norms[rows])


class LyingInParts(Lying):
    def parts(self):
        return [self.chunks]


class LyingArrays(ArraySamples):
    """A subclass that gives other rows than it holds."""

    def chunks(self):
        return Lying().chunks()


def read_only_view():
    owner, labels = data()
    features = owner[:]
    features.flags.writeable = False
    samples = ArraySamples(features, labels)
    owner[0] = HUGE
    return samples


def unpickled_array():
    """NumPy unpickles a large array into bytes, and lets callers write to it."""
    features, labels = data()
    features = pickle.loads(pickle.dumps(np.tile(features, (20, 1)), 4))
    view = features[:]
    features.flags.writeable = False
    samples = ArraySamples(features, np.tile(labels, 20))
    view[0] = HUGE
    return samples


CASES = {
    "a read-only view": read_only_view,
    "an unpickled array": unpickled_array,
    "norms of 0": lambda: Lying(0.0),
    "norms of NaN": lambda: Lying(np.nan),
    "in parts": LyingInParts,
    "a subclass": lambda: LyingArrays(*data()),
}


@pytest.fixture(params=CASES)
def samples(request):
    return CASES[request.param]()


def test_a_step_is_no_longer_than_its_clips(samples):
    options = {"clip_norm": 1.0, "step_size": 1.0, "gradient_noise_std": 0.0, "steps": 1}
    for screening in (True, False):
        run = full_batch_dpgd(samples, **options, rng=rng(), screening=screening)
        assert np.linalg.norm(run.iterates[0, 0]) <= 1 + 1e-12
    n = samples.sample_size
    mechanism = FTRLMechanism(np.append(1.0, np.zeros(n - 1)), 0.0, 1.0, n)
    run = dp_ftrl(samples, mechanism=mechanism, step_size=1.0, rng=rng(), times=np.arange(1, n + 1))
    moves = np.diff(run.iterates, axis=0, prepend=np.zeros((1, P)))
    assert np.max(np.linalg.norm(moves, axis=1)) <= 1 + 1e-12


def test_sums_are_within_their_bounds(samples):
    n = samples.sample_size
    sums = clipped_sums(samples, bounds=Bounds(2.0, 1.0))
    assert np.trace(sums.gram) <= 4 * n * (1 + 1e-12)
    assert np.linalg.norm(sums.moment) <= 2 * n * (1 + 1e-12)
    records = Records(samples, 2.0, 1.0, threads=2)
    square = records.total(lambda rows, _, __: rows.T @ rows, (P, P))
    assert np.trace(square) <= 4 * records.count * (1 + 1e-12)
    found = bounds_from_data(samples).non_private.feature_norm
    rows = np.concatenate([chunk.features for chunk in samples.chunks()])
    assert found == pytest.approx(np.max(np.linalg.norm(rows, axis=1)), rel=1e-12)


class Foreign:
    """Samples that do in a later pass, or in every one, what they should not."""

    def __init__(self, *, first=0, **change):
        self.features, self.labels = data()
        self.sample_size, self.dimension = N, P
        self.first, self.change, self.passes = first, change, 0

    def chunks(self):
        features, labels = self.features.copy(), self.labels.copy()
        if self.passes >= self.first:
            features = self.change.get("features", lambda x: x)(features)
            labels = self.change.get("labels", lambda y: y)(labels)
        self.passes += 1
        yield Chunk(features, labels, np.ones(len(features)))


def changed(array, value):
    array[3] = value
    return array


FAULTS = {
    "a row that is not finite": {"features": lambda x: changed(x, np.nan)},
    "an infinite label": {"labels": lambda y: changed(y, np.inf)},
    "a column more": {"features": lambda x: np.column_stack([x, x])},
    "a row less": {"features": lambda x: x[1:], "labels": lambda y: y[1:]},
    "two rows more": {
        "features": lambda x: np.vstack([x, x[:2]]),
        "labels": lambda y: np.append(y, y[:2]),
    },
    "no rows": {"features": lambda x: x[:0], "labels": lambda y: y[:0]},
    "fewer labels": {"labels": lambda y: y[1:]},
    "complex numbers": {"features": lambda x: x + 0j},
}
LATER = {
    "another row in a later pass": {"features": lambda x: changed(x, 0.5), "first": 1},
    "another label in a later pass": {"labels": lambda y: changed(y, 0.5), "first": 1},
    "another order in a later pass": {"features": lambda x: x[::-1].copy(), "first": 1},
}


def descend(samples):
    full_batch_dpgd(
        samples, clip_norm=1.0, step_size=0.1, gradient_noise_std=0.1, steps=4, rng=rng()
    )


def epochs(samples):
    mechanism = FTRLMechanism(np.append(1.0, np.zeros(2 * N - 1)), 0.5, 1.0, N, epochs=2)
    dp_ftrl(samples, mechanism=mechanism, step_size=0.05, rng=rng())


USES = [
    descend,
    epochs,
    ols,
    moments,
    bounds_from_data,
    lambda each: clipped_sums(each, bounds=Bounds(2.0, 1.0)),
    lambda each: Records(each, 2.0, 1.0).total(lambda x, _, __: x.T @ x, (P, P)),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_rows_are_refused(fault):
    for use in USES:
        with pytest.raises(ValueError, match=r"samples.* must have|samples: .* must be") as caught:
            use(Foreign(**FAULTS[fault]))
        # A record is never quoted.
        assert not any(str(number) in str(caught.value) for number in data()[0].ravel())


@pytest.mark.parametrize("fault", LATER)
@pytest.mark.parametrize("use", [descend, epochs])
def test_rows_that_change_between_passes_are_refused(fault, use):
    with pytest.raises(ValueError, match="samples must have the same rows in every pass"):
        use(Foreign(**LATER[fault]))


@pytest.mark.parametrize("size", [-1, 1.5, None])
def test_a_size_that_is_none_is_refused(size):
    samples = Foreign()
    samples.sample_size = size
    with pytest.raises(ValueError, match="samples: sample_size must be a whole number"):
        moments(samples)


def test_rows_of_others_are_answered_as_those_of_arrays():
    foreign, own = Foreign(), ArraySamples(*data())
    for first, second in zip(moments(foreign), moments(own), strict=True):
        assert_array_equal(first, second)
    sums = [clipped_sums(each, bounds=Bounds(1.0, 0.5)).gram for each in (foreign, own)]
    assert_array_equal(*sums)
    reused = np.empty((8, P))

    class Buffered(Foreign):
        def chunks(self):
            for first in range(0, N, 8):
                reused[:] = self.features[first : first + 8]
                yield Chunk(reused, self.labels[first : first + 8], np.zeros(8))

    rows = [chunk.features for chunk, _ in Records(Buffered(), 9.0, 9.0).chunks()]
    held = [chunk.features for chunk, _ in Records(own, 9.0, 9.0).chunks()]
    assert_array_equal(np.concatenate(rows), np.concatenate(held))


SCREENED = {"step_size": 0.1, "gradient_noise_std": 0.01, "steps": 3}


def test_what_draws_noise_is_not_copied():
    for once in (WhiteNoise(P, rng=rng()), SplitBudget(Budget.zcdp(1.0), rng())):
        for route in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="must be neither copied nor pickled"):
                route(once)
