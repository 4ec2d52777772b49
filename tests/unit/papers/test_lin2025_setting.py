"""The readings of lin2025's design, their eigenbasis, and the records that a search must hold."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.theory.noisy_sgd.pair_proxies import candidate_records
from privreg.theory.noisy_sgd.second_moment import second_moment_basis
from privreg.theory.noisy_sgd.worst_pairs import PairSearch
from reproduction.papers.lin2025.setting import READINGS, Design, Reading


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


def test_second_moment_basis_refuses() -> None:
    with pytest.raises(ValueError, match="mean"):
        second_moment_basis([np.nan], std=1.0)
    with pytest.raises(ValueError, match="std"):
        second_moment_basis([0.0], std=-1.0)


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
def test_law_of_a_drawn_problem(reading: Reading) -> None:
    """The law's risk is that of its mean and variance, coordinate by coordinate."""
    design = small_design(reading)
    law = design.law(design.draw(np.random.default_rng(5)).problem, 1.5)
    times = np.linspace(0.0, design.horizon, 7)
    direct = law.problem.risk(law.mean(times), law.variance(times))
    np.testing.assert_allclose(law.risk(times), direct, rtol=1e-12)


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


@pytest.mark.parametrize(("time", "position"), [(0.1, 0.05), (0.75, 0.7)])
def test_search_among_candidates_finds_the_worst_pair(time: float, position: float) -> None:
    design = small_design("centred", dimension=200).model_copy(update={"sample_size": 300})
    rng = np.random.default_rng(7)
    instance = design.draw(rng)
    rows, labels = instance.records.sample(150, rng)
    law = design.law(instance.problem, 1.5)
    references = law.mean(np.linspace(0.0, 1.0, 5) ** 2 * design.horizon)
    held = candidate_records(rows, labels, references, count=12)
    assert held.size <= 72
    assert np.all(np.diff(held) > 0)
    options = {"times": [time], "position": position, "order": 2.0}
    found = PairSearch(law, rows[held], labels[held]).worst(**options)  # type: ignore[arg-type]
    best = PairSearch(law, rows, labels).worst(**options)  # type: ignore[arg-type]
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
