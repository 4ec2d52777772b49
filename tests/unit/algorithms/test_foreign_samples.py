"""Norms are those of the rows that enter a sum: of copies, of opened memory, of others' samples.

Each case is a data set whose norms could be made to lie. A row's influence is measured: with a clip
of 1 a step of size n moves the iterate by at most n, and sums are within the declared bounds.
"""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from privreg.algorithms.adassp import Bounds, ClippedSums, bounds_from_data, clipped_sums
from privreg.algorithms.dp_ftrl import FTRLMechanism, dp_ftrl
from privreg.algorithms.full_batch_dpgd import full_batch_dpgd
from privreg.algorithms.ols import ols
from privreg.algorithms.records import Records
from privreg.algorithms.samples import ArraySamples, Chunk, GaussianSamples, moments
from privreg.algorithms.screening import ScreenedSamples, screen
from privreg.algorithms.split_budget import SplitBudget
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

    rows = [chunk for chunk, _, _ in Records(Buffered(), 9.0, 9.0).chunks()]
    assert_array_equal(np.concatenate(rows), own.features)


SCREENED = {"step_size": 0.1, "gradient_noise_std": 0.01, "steps": 3}


def test_screened_sums_are_of_the_rows():
    """They are computed by the constructor, and no copy of them can be set apart from the rows."""
    samples = ArraySamples(*data())
    found = screen(samples, clip_norm=50.0, lanes=1, start=np.zeros(P), **SCREENED)
    with pytest.raises((TypeError, ValueError)):
        dataclasses.replace(found, gram=1e20 * np.eye(P))
    other = pickle.loads(pickle.dumps(found))
    for array in (other.gram, other.moment, other.centres, *other.kept):
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            array.flags.writeable = True
    assert_array_equal(other.gram, found.gram)
    assert copy.deepcopy(found).is_of(samples)
    # Linear rows at one bound are not at a smaller one.
    assert len(dataclasses.replace(found, radius=found.radius).kept.labels) == 0
    foreign = Foreign(features=lambda x: changed(x, 0.5), first=1)
    screened = ScreenedSamples(foreign, np.full((1, P), 30.0), 1e-9, np.inf)
    assert screened.is_of(foreign)
    assert not screened.is_of(Foreign())
    with pytest.raises(ValueError, match="samples must have the same rows in every pass"):
        full_batch_dpgd(foreign, clip_norm=np.inf, rng=rng(), screening=screened, **SCREENED)


def test_clipped_sums_are_of_their_bounds():
    sums = clipped_sums(ArraySamples(*data()), bounds=Bounds(1.0, 0.5))
    for change in ({"gram": 1e40 * np.eye(P)}, {"bounds": Bounds(0.1, 0.1)}):
        with pytest.raises((TypeError, ValueError)):
            dataclasses.replace(sums, **change)
    with pytest.raises(TypeError):
        ClippedSums(Bounds(1.0, 0.5), np.eye(P), np.ones(P))
    wide = sums.within(Bounds(2.0, 0.5))
    assert_array_equal(wide.gram, sums.gram)
    assert wide.bounds == Bounds(2.0, 0.5)
    with pytest.raises(ValueError, match="bounds must be at least those of the sums"):
        sums.within(Bounds(2.0, 0.4))


@pytest.mark.parametrize(
    "route", [copy.deepcopy, dataclasses.replace, lambda each: pickle.loads(pickle.dumps(each))]
)
def test_rebuilt_records_keep_their_persons(route):
    """Rows lie sorted by person: persons must not be looked up again in the unsorted order."""
    groups = np.arange(N) % 7
    records = Records(ArraySamples(*data()), 0.5, 0.5, groups=groups)
    groups[:] = 0
    other = route(records)

    def persons(each):
        return each.total(
            lambda x, _, starts: np.outer(*(2 * [np.add.reduceat(x, starts).sum(1)])), (7, 7)
        )

    assert_array_equal(persons(records), persons(other))
    assert other.count == 7


def test_what_draws_noise_is_not_copied():
    for once in (WhiteNoise(P, rng=rng()), SplitBudget(Budget.zcdp(1.0), rng())):
        for route in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="must be neither copied nor pickled"):
                route(once)


def test_a_seeded_data_set_is_the_same_after_its_seed_was_used():
    seed = np.random.SeedSequence(5)
    samples = GaussianSamples(N, np.ones(P), 0.1, seed)
    before = moments(samples)
    seed.spawn(3)
    for other in (samples, pickle.loads(pickle.dumps(samples))):
        assert_array_equal(moments(other)[0], before[0])
