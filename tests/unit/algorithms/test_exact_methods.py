"""Algorithms on integers: the plain ones' law, sensitivities that neighbours attain, audits."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relations import sufficient_pair

from privreg import AdaSSP, Bounds, Budget, FullBatchDPGD
from privreg.algorithms import adassp
from privreg.algorithms.full_batch_dpgd import _clip_factors, exact_descent
from privreg.algorithms.samples import ArraySamples, Chunk
from privreg.auditing import audit, neighbouring_tables
from privreg.methods.method import Declared
from privreg.noise.exact import UNITS, truncated, truncated_sum


@pytest.fixture
def samples(rng) -> ArraySamples:
    features = rng.standard_normal((300, 4))
    return ArraySamples(features, features @ [1.0, -1.0, 0.5, 0.0] + rng.standard_normal(300))


def clipped_mean(samples: ArraySamples, theta: np.ndarray, clip_norm: float) -> np.ndarray:
    gradients = samples.features * (samples.labels - samples.features @ theta)[:, None]
    lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
    return np.mean(gradients * np.minimum(1, clip_norm / lengths), axis=0)


def test_a_step_adds_the_clipped_mean_and_noise_of_the_right_scale(samples):
    budget, clip_norm, steps = Budget.zcdp(0.5), 1.5, 400
    method = FullBatchDPGD(clip_norm=clip_norm, step_size=0.3, steps=steps)
    release = method.run(samples, budget)
    path = np.vstack([np.zeros(4), release.value.iterates])
    noise = [
        (after - before) / 0.3 - clipped_mean(samples, before, clip_norm)
        for before, after in pairwise(path)
    ]
    ratio = np.mean(np.square(noise)) / ((2 * clip_norm / 300) ** 2 * steps / (2 * 0.5))
    # 1,600 normals: a standard deviation of 0.035.
    assert 0.8 < ratio < 1.2
    assert release.budget == budget


def gradients(features, labels, theta, clip_norm):
    """Clipped gradients of rows as whole numbers, (n, p), after the sum's own are checked."""
    factors = np.empty(len(labels))
    _clip_factors(features, labels, np.array(theta), clip_norm, factors)
    whole = truncated(features, factors, clip_norm)
    assert_array_equal(truncated_sum(features, factors, clip_norm), whole.sum(axis=0))
    return whole


def test_a_row_enters_the_same_whatever_rows_are_beside_it(samples):
    theta = np.array([0.1, 2.0, -1.0, 0.3])
    together = gradients(samples.features, samples.labels, theta, 1.5)
    rows = zip(samples.features, samples.labels, strict=True)
    apart = [gradients(row[None], np.array([label]), theta, 1.5)[0] for row, label in rows]
    assert_array_equal(together, apart)


def test_whole_gradients_are_within_a_unit_of_the_clipped_ones(rng):
    """Of both signs, clipped or not, with a row of zeros and one of length 1 in between."""
    features, labels = rng.standard_normal((30, 3)), 0.4 * rng.standard_normal(30)
    features[7], features[8] = 0.0, [0.0, -1.0, 0.0]
    theta = np.array([0.3, -0.2, 0.1])
    expected = features * (labels - features @ theta)[:, None]
    lengths = np.linalg.norm(expected, axis=1)
    assert 5 < np.sum(lengths > 0.5) < 25
    expected *= (0.5 / np.maximum(lengths, 0.5))[:, None]
    whole = gradients(features, labels, theta, 0.5)
    assert np.all(np.abs(whole - expected * UNITS / 0.5) <= 1 + 1e-6)


@pytest.mark.parametrize("clip_norm", [1e-12, 0.5, 1e12])
def test_clip_norms_of_any_size(samples, clip_norm):
    """Noise that is small beside the bound: the first step is that of the clipped mean."""
    method = FullBatchDPGD(clip_norm=clip_norm, step_size=1 / clip_norm, steps=1)
    found = method.run(samples, Budget.zcdp(1e9)).value.parameters
    expected = clipped_mean(samples, np.zeros(4), clip_norm)
    assert_allclose(found, expected / clip_norm, atol=1e-5)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove", "zero-out"])
def test_full_batch_audit(neighbours):
    """From 0 each neighbour's first gradient is as long as clipping allows, or nothing.

    Secret noise has no seed. Of 100 audits of the Gaussian mechanism in its place the shares were
    0.813 ± 0.039 of the promise and 1.626 ± 0.078 of half of it: five and eight deviations away.
    """
    budget = Budget.gaussian_dp(2.5, neighbours=neighbours)
    replacement = ([[-1e-4, -1e4]], [1.0]) if neighbours == "replace-one" else None
    pair = neighbouring_tables(
        [[1e-4, 1e4]], [1.0], record=0, neighbours=neighbours, replacement=replacement
    )
    options = {"clip_norm": 1.0, "step_size": 1e-9, "steps": 2, "n": 1}
    outputs = []
    for table in (pair.first, pair.second):
        data = ArraySamples(table.features, table.labels)
        runs = [exact_descent(data, budget=budget, **options) for _ in range(1_500)]
        outputs.append([run.ravel() for run in runs])
    loss = audit(*outputs, neighbours=neighbours)
    assert 0.6 < loss.share(budget) <= 1
    assert loss.share(Budget.gaussian_dp(1.25, neighbours=neighbours)) > 1


@pytest.mark.parametrize("row", [[1e-170, 0.0], [5e-324, 5e-324], [1e308, -1e308]])
@pytest.mark.parametrize("label", [0.0, -1e300, 1e308])
def test_a_row_of_any_size_stays_within_reach(row, label):
    for theta in ([0.0, 0.0], [1e200, 1e200], [1e200, -1e200]):
        whole = gradients(np.array([row]), np.array([label]), theta, 1.0)[0]
        assert sum(int(entry) ** 2 for entry in whole) <= UNITS**2


@pytest.mark.parametrize("p", [1, 2, 7, 25])
def test_pivots_decide_whatever_floating_point_proposes(rng, monkeypatch, p):
    rows, unit = rng.integers(-(1 << 16), 1 << 16, (40, p)), 1 << 22
    gram = rows.T @ rows
    smallest = np.linalg.eigvalsh(gram)
    expected = np.ceil(smallest[0] / unit) - 1
    assert adassp._units_below(gram, 16 * unit) == np.ceil(smallest[0] / unit / 16) - 1
    for wrong_by in (0, -70, -1, 1, 70):
        monkeypatch.setattr(adassp.np.linalg, "eigvalsh", lambda _, w=wrong_by: smallest + w * unit)
        found = adassp._units_below(gram, unit)
        assert found == expected
        assert isinstance(found.item(), int)
    assert adassp._is_positive_definite(np.eye(3, dtype=np.int64), 0)
    assert not adassp._is_positive_definite(np.eye(3, dtype=np.int64), 1)


def test_proofs_in_floating_point_agree_with_rational_pivots(rng):
    """Of singular, scaled and tiny matrices, at shifts next to an eigenvalue and at one."""

    def positive(gram, shift):
        left = [
            [Fraction(int(x)) - shift * (i == j) for j, x in enumerate(row)]
            for i, row in enumerate(gram)
        ]
        while left and left[0][0] > 0:
            first, *left = left
            left = [
                [x - row[0] / first[0] * y for x, y in zip(row[1:], first[1:], strict=True)]
                for row in left
            ]
        return not left

    found = []
    for _ in range(300):
        p, size = int(rng.integers(1, 5)), int(rng.choice([1, 3, 1 << 17]))
        rows = rng.integers(-size, size + 1, (int(rng.integers(0, 7)), p)).astype(object)
        gram = np.asarray(rows.T @ rows, dtype=object) * 10 ** int(rng.choice([0, 20]))
        gram = gram + np.zeros((p, p), dtype=object)
        near = max(0, int(np.linalg.eigvalsh(gram.astype(float))[0]))
        for shift in (0, near, near + 1, max(0, near - 1), int(gram[0, 0])):
            found.append(adassp._is_positive_definite(gram, shift))
            assert found[-1] == positive(gram, shift)
    assert 100 < sum(found) < 1400


class OneChunk:
    """All rows at once."""

    def __init__(self, samples):
        self.samples, self.dimension = samples, samples.dimension
        self.sample_size = samples.sample_size

    def chunks(self):
        yield Chunk(self.samples.features, self.samples.labels, self.samples.norms)


def test_sums_are_exact_beyond_64_bits():
    """17 million rows of 2²⁰ units, one after another, add up to 2⁶⁴."""
    samples = OneChunk(ArraySamples(np.ones((1 << 24, 1)), np.ones(1 << 24)))
    gram, moment = adassp.whole_sums(samples, bounds=Bounds(1.0, 1.0))
    assert gram[0, 0] == UNITS * moment[0] == 1 << 64
    assert adassp._units_below(gram, 1 << 62) == 3


@pytest.mark.parametrize(
    ("matrix", "units"),
    [
        (np.zeros((3, 3)), -1),
        (np.ones((2, 2)), -1),
        (np.diag([4, 9]), 1),
        (np.diag([5, 9]), 2),
        ([[1]], 0),
    ],
)
def test_singular_and_whole_eigenvalues(matrix, units):
    assert adassp._units_below(np.array(matrix, dtype=np.int64), 2) == units


@pytest.fixture
def without_noise(monkeypatch):
    """Whole numbers as they are, and the noise that they should have had."""
    stds = []

    def unnoised(shape, *, std):
        stds.append(std)
        return np.zeros(shape, dtype=np.int64)

    monkeypatch.setattr("privreg.algorithms.whitened_descent.rounded_normals", unnoised)
    return stds


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("bounds", [Bounds(1.0, 1.0), Bounds(2.0, 0.5)])
def test_each_statistic_of_adassp_costs_a_third(samples, without_noise, neighbours, bounds):
    """Of Gaussian noise s a shift Δ costs Δ² / 2s²; Δ as neighbours attain it."""
    budget = Budget.zcdp(0.3, neighbours=neighbours)
    AdaSSP().run(samples, budget, declared=Declared(bounds))
    replace = neighbours == "replace-one"
    shifts = UNITS, UNITS**2 * (np.sqrt(2) if replace else 1), UNITS * (2 if replace else 1)
    for std, shift in zip(without_noise, shifts, strict=True):
        assert 0.099 < shift**2 / (2 * std**2) <= 0.1
    with pytest.raises(ValueError, match="ridge_failure must be"):
        adassp.adassp_zcdp(samples, bounds=bounds, budget=budget, rng=None, ridge_failure=1.0)


def test_adassp_is_ridge_regression_on_its_statistics(samples, without_noise):
    """Of the algorithm in real numbers, at the same noise: λ = max(0, s_G √(p ln(2p²/β)) - λ_min).

    The eigenvalue is what noise of s would leave below it with probability 1 - β.
    """
    bounds, p = Bounds(10.0, 20.0), 4
    cases = ((0.003, 0.05, True), (4.0, 0.05, True), (4.0, 0.5, True), (1e6, 0.05, False))
    for rho, failure, ridged in cases:
        without_noise.clear()
        found = adassp.adassp_zcdp(
            samples, bounds=bounds, budget=Budget.zcdp(rho), rng=None, ridge_failure=failure
        )
        gram = samples.features.T @ samples.features
        eigen_std, gram_std, _ = without_noise
        shift = 100 * eigen_std / UNITS * np.sqrt(-2 * np.log(failure))
        below = np.linalg.eigvalsh(gram)[0] - shift
        edge = 100 * gram_std / UNITS**2 * np.sqrt(p * np.log(2 * p**2 / failure))
        ridge = max(0.0, edge - max(0.0, below))
        assert (ridge > 0) == ridged
        moment = samples.features.T @ samples.labels
        expected = np.linalg.solve(gram + ridge * np.eye(p), moment)
        assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * abs(found).max())


def test_whole_sums_are_exact_over_chunks_and_blocks(rng):
    """More rows than a block and than a chunk; a label beyond its bound counts as the bound."""
    features, labels = rng.standard_normal((20_000, 2)), 3 * rng.standard_normal(20_000)
    samples, bounds = ArraySamples(features, labels), Bounds(5.0, 2.0)
    gram, moment = adassp.whole_sums(samples, bounds=bounds)
    rows = np.trunc(features * (UNITS / 5)).astype(int).astype(object)
    targets = np.trunc(features * np.clip(labels, -2, 2)[:, None] * (UNITS / 10)).astype(int)
    assert np.max(np.abs((gram - rows.T @ rows) / gram)) < 1e-9
    assert np.max(np.abs(moment - targets.sum(axis=0))) <= 2
    for one, other in zip(
        (gram, moment), adassp.whole_sums(OneChunk(samples), bounds=bounds), strict=True
    ):
        assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("neighbours", "least"), [("replace-one", 0.4), ("add-remove", 0.5), ("zero-out", 0.5)]
)
def test_adassp_audit(neighbours, least):
    """The pairs of `test_audits`, of which an estimate shows 1/√2 and √(2/3) of the promise.

    Secret noise has no seed. Of 400 audits of the Gaussian mechanism in its place the shares were
    0.566 ± 0.030 and 0.658 ± 0.030; `least` is five standard deviations below.
    """
    budget, n = Budget.gaussian_dp(4.0, neighbours=neighbours), 400
    pair = sufficient_pair(neighbours, n)
    outputs = []
    for table in (pair.first, pair.second):
        data = ArraySamples(table.features, table.labels)
        runs = [
            adassp.adassp_zcdp(data, bounds=Bounds(1.0, 1.0), budget=budget, rng=None)
            # Half of them judge: from 150 alone no more than a μ of 3.3 can be shown.
            for _ in range(1_000)
        ]
        outputs.append(np.sum(runs, axis=1))
    loss = audit(*outputs, neighbours=neighbours)
    assert least < loss.share(budget) <= np.sqrt(2 / 3)
    assert loss.share(Budget.gaussian_dp(1.5, neighbours=neighbours)) > 1
