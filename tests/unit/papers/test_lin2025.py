"""lin2025: readings of its design, the dense laws by two routes, and the martingales."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from privreg.theory.noisy_sgd.worst_pairs import PairSearch, candidate_records
from reproduction.papers.lin2025.experiments import divergence_checks, joint_law
from reproduction.papers.lin2025.experiments.divergence_checks import (
    evolved_laws,
    shuffled_loss_without_plus,
    small_case,
    stacked_law,
)
from reproduction.papers.lin2025.setting import READINGS, Design, Reading, second_moment_basis

DESIGN = {
    "dimension": 100,
    "sample_size": 150,
    "step_size": 0.05,
    "ridge": 0.1,
    "scaled_label_noise_std": 0.1,
    "label_noise_clip": 3.0,
}


def small_design(reading: Reading, dimension: int = 40) -> Design:
    return Design(
        reading=reading,
        dimension=dimension,
        sample_size=60,
        step_size=0.05,
        ridge=0.1,
        scaled_label_noise_std=0.1,
        label_noise_clip=3.0,
    )


@pytest.mark.parametrize("mean", [np.zeros(5), np.arange(5) - 1.5, np.eye(5)[0], -np.eye(5)[0]])
def test_reflection_diagonalises_the_second_moment(mean: np.ndarray) -> None:
    basis = second_moment_basis(mean, std=0.7)
    moment = 0.49 * np.eye(5) + np.outer(mean, mean)
    rotation = basis.coordinates(np.eye(5))
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(5), atol=1e-14)
    np.testing.assert_allclose(
        rotation.T @ moment @ rotation, np.diag(basis.eigenvalues), atol=1e-14
    )
    np.testing.assert_allclose(np.sort(basis.eigenvalues), np.linalg.eigvalsh(moment), rtol=1e-13)
    vectors = np.random.default_rng(0).standard_normal((3, 5))
    np.testing.assert_allclose(basis.coordinates(basis.coordinates(vectors)), vectors, atol=1e-14)


@pytest.mark.parametrize("reading", list(READINGS))
def test_problem_has_the_risk_of_the_records(reading: Reading) -> None:
    """The rotated problem's risk is that of the records' law, at any point."""
    instance = small_design(reading).draw(np.random.default_rng(3))
    points = np.random.default_rng(4).standard_normal((6, 40))
    np.testing.assert_allclose(
        instance.problem.risk(instance.basis.coordinates(points)),
        instance.records.risk(points),
        rtol=1e-12,
    )


@pytest.mark.parametrize("reading", list(READINGS))
def test_mean_problem_is_the_mean_over_draws(reading: Reading) -> None:
    design = small_design(reading)
    times = np.array([0.0, 0.3, design.horizon])
    rng = np.random.default_rng(6)
    draws = np.array([design.law(design.draw(rng).problem, 1.5).risk(times) for _ in range(400)])
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    expected = design.law(design.mean_problem(), 1.5).risk(times)
    assert np.all(np.abs(draws.mean(axis=0) - expected) < 4 * error + 1e-12)
    # The start's risk is noisy enough to mind, and precise enough to tell a wrong scale.
    for wrong in (2 / 3, 3 / 2):
        assert abs(draws.mean(axis=0)[0] - wrong * expected[0]) > 4 * error[0]


def test_search_among_candidates_finds_the_worst_pair() -> None:
    design = small_design("centred", dimension=100).model_copy(update={"sample_size": 150})
    rng = np.random.default_rng(7)
    instance = design.draw(rng)
    rows, labels = instance.records.sample(60, rng)
    law = design.law(instance.problem, 1.5)
    references = law.mean(np.linspace(0.0, 1.0, 5) ** 2 * design.horizon)
    held = candidate_records(rows, labels, references, count=5)
    assert held.size <= 30
    assert np.all(np.diff(held) > 0)
    for time, position in ((0.1, 0.05), (0.75, 0.7)):
        found, best = (
            PairSearch(law, *records).worst(times=[time], position=position, order=2.0)
            for records in ((rows[held], labels[held]), (rows, labels))
        )
        assert found.divergence == pytest.approx(best.divergence, rel=1e-12)
        assert (held[found.first], held[found.second]) == (best.first, best.second)


def test_candidates_are_the_largest_by_each_criterion() -> None:
    rows = np.diag([1.0, 2.0, 3.0, 4.0])
    labels = np.array([9.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(candidate_records(rows, labels, np.zeros(4), count=1), [0, 3])
    np.testing.assert_array_equal(
        candidate_records(rows, labels, [np.zeros(4), 10.0 * np.eye(4)[2]], count=1), [0, 2, 3]
    )
    with pytest.raises(ValueError, match="count"):
        candidate_records(rows, labels, np.zeros(4), count=5)


def test_moment_equations_have_the_law_of_the_stacked_noises() -> None:
    """Differential equations of the moments against linear maps of independent noises."""
    parameters = divergence_checks.Parameters(
        design=small_design("centred", 8), gradient_noise_std=1.5, orders=[2.0], small_dimension=8
    )
    law, pair = small_case(parameters)
    position, time = 2.0, 7.0
    start = [stacked_law(law, record, [position], position) for record in pair]
    for record, (mean, covariance) in zip(
        pair, evolved_laws(law, start, position, time), strict=True
    ):
        later_mean, later_covariance = stacked_law(law, record, [time], position)
        np.testing.assert_allclose(mean, later_mean, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(covariance, later_covariance, rtol=1e-9, atol=1e-11)
        with pytest.raises(AssertionError):
            np.testing.assert_allclose(covariance, 1.001 * later_covariance, rtol=1e-4)


def test_printed_mixture_without_the_plus_is_no_divergence() -> None:
    losses, weights = np.full(4, 0.1), np.full(4, 0.25)
    printed = shuffled_loss_without_plus(losses, weights, horizon=2.0, order=2.0)
    assert printed == pytest.approx(np.log(0.5 * 0.5 * np.exp(0.1)))
    assert shuffled_loss_without_plus(losses, weights, horizon=1.0, order=2.0) == -np.inf


class Trial(NamedTuple):
    rng: np.random.Generator


class Trials(list[Any]):
    experiment = "lin2025/test"

    def __init__(self, count: int) -> None:
        super().__init__(Trial(np.random.Generator(np.random.SFC64(k))) for k in range(count))


def test_iterates_have_the_joint_law_and_not_that_of_independent_times() -> None:
    parameters = joint_law.Parameters.model_validate(
        {"design": DESIGN, "gradient_noise_std": 1.5, "steps": [50, 80, 150]}
    )
    found = joint_law.simulate(parameters, Trials(40))
    summary = joint_law.summarise(parameters, found.assign_coords(trial=np.arange(40)))
    distance, error = (
        float(summary[name]) for name in ("joint_distance", "joint_distance_standard_error")
    )
    assert abs(distance - 1.0025) < 4 * error
    assert error < 0.02
    ratio, spread = (
        summary[name].values for name in ("correlation_ratio", "correlation_ratio_standard_error")
    )
    assert np.all(np.abs(ratio - 1) < 4 * spread)
    # Independent iterates would not correlate at all.
    assert np.all(ratio > 4 * spread)
