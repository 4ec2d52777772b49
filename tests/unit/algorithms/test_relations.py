"""Neighbours of every relation that an algorithm takes move what it releases as is declared.

Pairs differ as their relation says: in the number of rows, in a row of zeros, in all rows of a
person. `tests/neighbours/relations.py` has the comparison of a single pair.
"""

import tracemalloc
import warnings
from collections.abc import Iterator
from functools import cache, partial
from unittest.mock import patch

import numpy as np
import pytest
import relations
from numpy.testing import assert_allclose
from relations import ADD, ALGORITHMS, REPLACE, ZERO
from transcripts import Watched, compared

from privreg import FullBatchDPGD, PrivateLinearRegression
from privreg.algorithms import huber_descent, least_squares_descent
from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
from privreg.algorithms.records import Point, Records, length_histogram
from privreg.algorithms.samples import ArraySamples
from privreg.auditing import NeighbouringTables, Table, neighbouring_tables
from privreg.estimators.columns import Frame
from privreg.estimators.outlook import outlook
from privreg.methods.huber import PrivateHuber
from privreg.methods.least_squares import PrivateLeastSquares
from privreg.noise.exact import UNITS
from privreg.privacy.budget import Budget, Neighbours
from privreg.privacy.release import Release

TAKEN = [
    pytest.param(name, relation, id=f"{name}, {relation.value}")
    for name, (_, taken) in ALGORITHMS.items()
    for relation in taken
]


@pytest.mark.parametrize(("name", "relation"), TAKEN)
def test_every_release_moves_as_declared_and_the_worst_record_attains_it(name, relation):
    """Two other records, or none: an empty table is the neighbour of one row."""
    compare, _ = ALGORITHMS[name]
    moved = [
        max(compare(pair)) for others in ([], [7, 4]) for pair in relations.pairs(relation, others)
    ]
    # Noisy SGD's noise is for 2c under zero-out, too, since a blank's gradient holds the penalty's.
    assert 0.9 < max(moved) <= relations.most(name)


@pytest.mark.parametrize("relation", relations.EVERY)
@pytest.mark.parametrize(
    "compare",
    [
        partial(relations.huber, common_width=False),
        partial(relations.huber, common_width=True),
        relations.least_squares,
    ],
)
def test_an_intercept_is_blank_in_a_blank_record(relation, compare):
    pairs = relations.pairs(relation, [6, 4], intercept=True)
    assert 0.9 < max(max(compare(pair, intercept=True)) for pair in pairs) <= 1


@pytest.mark.parametrize("common_width", [False, True])
def test_a_row_of_zeros_is_blank_in_units_of_the_bounds_alone(common_width):
    """A raw one maps to (1, -1, -1): gradients move by twice what is declared, counts by √2."""
    frame = Frame(np.array([[0.0, 2.0], [0.0, 2.0]]), np.array([0.0, 2.0]), True)
    rows = frame.rows(np.array([[2.0, 1.3], [2.0, 2.0], [0.0, 0.0]]))
    labels = frame.labels(np.array([1.5, 2.0, 0.0]))
    pair = neighbouring_tables(rows[:2], labels[:2], record=1, neighbours=ZERO)
    options = {"common_width": common_width, "intercept": True}
    assert max(relations.huber(pair, **options)) <= 1
    raw = Table(rows[[0, 2]], labels[[0, 2]])
    moved = relations.huber(pair._replace(second=raw), **options)
    assert 1.99 < max(moved) <= 2
    assert np.any(np.isclose(moved, np.sqrt(2), rtol=1e-3))


def persons(relation: Neighbours, rng: np.random.Generator) -> Iterator[NeighbouringTables]:
    """Persons of one to three rows; the one that replaces another may have another number."""
    for _ in range(15):
        size = int(rng.integers(1, 8))
        chosen = rng.integers(0, len(relations.RECORDS), size)
        new = rng.integers(0, len(relations.RECORDS), int(rng.integers(1, 4)))
        features, labels = relations.table_of([relations.RECORDS[k] for k in chosen])
        yield neighbouring_tables(
            features,
            labels,
            record=int(rng.integers(size)),
            neighbours=relation,
            groups=rng.integers(0, 3, size),
            replacement=relations.table_of([relations.RECORDS[k] for k in new])
            if relation is REPLACE
            else None,
        )


@pytest.mark.parametrize("compare", [relations.huber, relations.least_squares])
@pytest.mark.parametrize("relation", relations.EVERY)
def test_a_person_moves_as_much_as_a_row(rng, relation, compare):
    moved = [max(compare(pair)) for pair in persons(relation, rng)]
    assert 0.9 < max(moved) <= 1


# What a fit predicts of itself is a function of public numbers, found once for all pairs.
FORESEEN = cache(outlook)
FITS = {
    "huber": (huber_descent, PrivateHuber(warm_up_steps=1, final_steps=1, gram_rounds=1)),
    "least_squares": (least_squares_descent, PrivateLeastSquares(warm_up_steps=1, gram_rounds=1)),
}


def estimated(pair: NeighbouringTables, *, intercept: bool, target: str) -> list[float]:
    """From the raw table on; the noisy number of rows is replaced by the same for both."""

    fit_module, settings = FITS[target]

    def run(table, transcript):
        def watched(total, generator):
            return Watched(total, generator, transcript)

        def counted(count, *, budget, rng):
            records = range(len(table.labels)) if table.groups is None else table.groups.tolist()
            assert count == len(set(records))
            return Release(3.0, budget)

        model = PrivateLinearRegression(
            Budget(relations.RHO, pair.neighbours),
            feature_bounds=(-2, 3),
            label_bounds=(-1, 2),
            fit_intercept=intercept,
            target=target,
            settings=settings,
            random_state=3,
        )
        with (
            patch.object(fit_module, "SplitBudget", watched),
            patch("privreg.algorithms.whitened_descent.private_count", counted),
            patch("privreg.estimators.outlook.outlook", FORESEEN),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", UserWarning)
            model.fit(table.features, table.labels, groups=table.groups)
        return model.coef_, model.intercept_

    return compared(run, pair)


@pytest.mark.parametrize("relation", [REPLACE, ADD])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("target", FITS)
def test_the_whole_estimator_from_no_row_on(rng, relation, intercept, target):
    alone = [pair for others in ([], [6]) for pair in relations.pairs(relation, others)]
    together = list(persons(relation, rng))
    moved = [
        max(estimated(pair, intercept=intercept, target=target))
        for pair in alone[::3] + together[::3]
    ]
    assert 0.7 < max(moved) <= 1


@pytest.mark.parametrize("relation", [REPLACE, ZERO])
def test_an_empty_table_is_refused_where_its_size_is_public(relation):
    budget = Budget(1.0, relation)
    model = PrivateLinearRegression(budget, feature_bounds=(0, 1), label_bounds=(0, 1))
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        model.fit(np.empty((0, 2)), np.empty(0))
    empty = ArraySamples(np.empty((0, 2)), np.empty(0))
    with pytest.raises(ValueError, match="sample_size must be at least 1"):
        FullBatchDPGD(clip_norm=1.0, step_size=1.0, steps=1).run(empty, budget)


def test_between_ten_and_eleven_rows_no_more_is_lost_than_promised():
    """Gradients of ten rows pull one way and the eleventh the other."""
    rows, labels = np.ones((11, 1)), np.append(np.full(10, 1e6), -1e6)
    pair = neighbouring_tables(rows, labels, record=10, neighbours=ADD)
    with patch.object(relations, "DECLARED", 10.0):
        assert max(relations.full_batch(pair)) == pytest.approx(1.0, rel=1e-9)
    # Each divided by its own number of rows: 20 / 11 of a tenth of the clip, 1.82 of the promise.
    means = [
        full_batch_dpgd(
            ArraySamples(each.features, each.labels),
            clip_norm=1.0,
            step_size=1.0,
            gradient_noise_std=0.0,
            steps=1,
            rng=relations.generator(),
        ).iterates.item()
        for each in (pair.first, pair.second)
    ]
    assert abs(means[0] - means[1]) / 0.1 == pytest.approx(20 / 11)


def test_no_release_under_add_remove_without_a_declared_number_of_rows():
    samples = ArraySamples(np.ones((11, 1)), np.ones(11))
    options = {"clip_norm": 1.0, "step_size": 0.1, "steps": 2}
    for declared in (None, 10.0):
        run = full_batch_dpgd(
            samples,
            **options,
            gradient_noise_std=1.0,
            rng=relations.generator(),
            sample_size=declared,
        )
        if declared is None:
            with pytest.raises(ValueError, match="sample_size must be given under add-remove"):
                run.release(neighbours="add-remove")
        released = run.release(neighbours="add-remove" if declared else "zero-out")
        assert released.budget.rho == pytest.approx(2 / (2 * run.sample_size**2))
    with pytest.raises(ValueError, match="sample_size must be given under add-remove"):
        FullBatchDPGD(**options).run(samples, Budget(1.0, ADD))


def test_noise_is_for_any_declared_number_of_rows_and_shares_are_of_those_there_are():
    options = {"clip_norm": 1.0, "rho": 0.5, "gradients": 1}
    for declared in (1.0, 7.5, 1e15):
        noise = full_batch_noise_std(**options, sample_size=declared)
        assert noise == pytest.approx(2 / declared, rel=1e-12)
    for wrong in (0.9, 1e15 + 1):
        with pytest.raises(ValueError, match="sample_size must be"):
            full_batch_noise_std(**options, sample_size=wrong)
    for rows, share in ((0, 0.0), (1, 1.0), (3, 1.0)):
        run = full_batch_dpgd(
            ArraySamples(np.ones((rows, 1)), np.full(rows, 9.0)),
            clip_norm=1.0,
            step_size=0.1,
            gradient_noise_std=1.0,
            steps=1,
            rng=relations.generator(),
            sample_size=2.0,
        )
        assert run.clipped_fraction.non_private.item() == share


def test_a_record_of_zeros_is_in_no_histogram():
    edges = np.array([0.5, 1.5])
    for groups in (None, np.array([0, 0, 1, 2])):
        features = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
        samples = ArraySamples(features, [0.0, 9.0, 1.0, 1.0])
        for common_width in (False, True):
            records = Records(samples, 5.0, 10.0, groups, common_width=common_width)
            lengths = length_histogram(records, np.eye(2), edges)
            sizes = Point(records, np.zeros(2), np.eye(2)).gradient_length_histogram(edges)
            assert np.sum(lengths) == np.sum(sizes) == 1


def test_curvatures_of_persons_need_no_matrix_a_row(rng):
    """Of one person with 4,000 rows: 51 MB of matrices, or some copies of 1.3 MB of rows."""
    features, labels = rng.standard_normal((4000, 40)), rng.standard_normal(4000)
    records = Records(ArraySamples(features, labels), 10.0, 10.0, np.zeros(4000))
    tracemalloc.start()
    Point(records, np.zeros(40), np.eye(40)).curvature_sum(clip_norm=0.5, cap=5.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * features.nbytes


@pytest.mark.parametrize("clip_norm", [1e-3, 0.7, 1e3])
def test_curvatures_of_persons_are_those_of_their_matrices(rng, clip_norm):
    """(γ/‖g‖)(I - ggᵀ/‖g‖²) C where the gradient g is clipped, and C else, formed one by one.

    Each of twelve matrices is rounded by some 2⁻²⁰ of the bound, by its two factors.
    """
    features, labels = rng.standard_normal((60, 3)), rng.standard_normal(60)
    groups, theta, cap = rng.integers(0, 12, 60), rng.standard_normal(3), 1.9
    whitening = np.eye(3) + 0.2 * rng.standard_normal((3, 3))
    expected = np.zeros((3, 3))
    for person in np.unique(groups):
        rows = features[groups == person] @ whitening
        residuals = labels[groups == person] - features[groups == person] @ theta
        gradient, matrix = rows.T @ residuals, rows.T @ rows
        matrix *= min(1.0, cap**2 / np.trace(matrix))
        length = np.linalg.norm(gradient)
        if length > clip_norm:
            inward = np.eye(3) - np.outer(gradient, gradient) / length**2
            matrix = clip_norm / length * inward @ matrix
        expected += matrix
    records = Records(ArraySamples(features, labels), 8.0, 8.0, groups)
    options = {"clip_norm": clip_norm, "cap": cap}
    found = Point(records, theta, whitening).curvature_sum(**options)
    unit = cap**2 / UNITS
    assert_allclose(found.astype(float) * unit / UNITS, expected, rtol=0, atol=40 * unit)
    trace, _ = Point(records, theta, whitening).traces(**options)
    assert float(trace) * unit == pytest.approx(np.trace(expected), rel=0, abs=40 * unit)
