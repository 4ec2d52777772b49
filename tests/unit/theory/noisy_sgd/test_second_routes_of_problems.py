"""Problems, bases and closed forms of noisy SGD on random inputs, against dense computations."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from privreg.theory.noisy_sgd.diffusion import Population, RidgeRegression, mean_risk
from reproduction.papers.lin2025.experiments.volterra_routes import isotropic_risk
from reproduction.papers.lin2025.setting import second_moment_basis

Array = NDArray[np.float64]
SEEDS = range(6)


@pytest.mark.parametrize("seed", SEEDS)
def test_problem_in_matrices(seed: int) -> None:
    """Risk, penalty and gradient flow by dense matrices in a random basis."""
    rng = np.random.default_rng(seed)
    size = 5
    basis = np.linalg.qr(rng.standard_normal((size, size)))[0]
    values = 10.0 ** rng.uniform(-3, 1, size)
    moment = basis @ np.diag(values) @ basis.T
    target, start = rng.standard_normal((2, size))
    ridge, noise, length = rng.uniform(0, 1), rng.uniform(0, 1), 10.0 ** rng.uniform(-2, 1)
    problem, found_basis = Population((moment + moment.T) / 2, target, noise).regression(
        start=start, ridge=ridge
    )
    hessian = moment + ridge * np.eye(size)
    minimiser = np.linalg.solve(hessian, moment @ target)
    spectrum, vectors = np.linalg.eigh(hessian)
    point = minimiser + vectors @ np.diag(np.exp(-length * spectrum)) @ vectors.T @ (
        start - minimiser
    )
    np.testing.assert_allclose(problem.gradient_flow(length) @ found_basis.T, point, atol=1e-9)
    covariance = (lambda a: a @ a.T)(rng.standard_normal((size, size)))
    spread = np.diag(found_basis.T @ covariance @ found_basis)
    centre = found_basis.T @ point
    gap = point - target
    risk = 0.5 * (gap @ moment @ gap + np.trace(moment @ covariance) + noise**2)
    assert problem.risk(centre, spread) == pytest.approx(risk, rel=1e-9)
    penalty = 0.5 * ridge * (point @ point + np.trace(covariance))
    assert problem.penalty(centre, spread) == pytest.approx(penalty, rel=1e-9)
    # What rounding leaves below 0 is 0.
    flat, _ = Population(np.diag([1.0, -1e-12]), np.zeros(2), 0.0).regression()
    assert flat.eigenvalues.min() == 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_basis_of_a_rank_one_mean(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mean = rng.standard_normal(5) * 10.0 ** rng.uniform(-3, 3)
    std = 10.0 ** rng.uniform(-3, 3)
    basis = second_moment_basis(mean, std=std)
    reflection = basis.coordinates(np.eye(5))
    moment = std**2 * np.eye(5) + np.outer(mean, mean)
    np.testing.assert_allclose(reflection @ reflection.T, np.eye(5), atol=1e-14)
    np.testing.assert_allclose(
        reflection @ moment @ reflection.T,
        np.diag(basis.eigenvalues),
        atol=1e-13 * np.trace(moment),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_isotropic_risk_solves_its_scalar_equations(seed: int) -> None:
    """Mean and variance of one direction a coordinate, integrated numerically."""
    rng = np.random.default_rng(seed)
    size = 4
    eigenvalue, rate = 10.0 ** rng.uniform(-2, 0.5), 10.0 ** rng.uniform(-1, 0.3)
    ridge, noise, sigma = rng.uniform(0, 1, 3) * rng.integers(0, 2, 3)
    target, start = rng.standard_normal((2, size))
    end = float(rng.uniform(0.1, 5))

    def slope(_: float, state: Array) -> Array:
        mean, variance = state[:size], state[size]
        excess = np.sum((mean - target) ** 2) + size * variance
        risk = 0.5 * (eigenvalue * excess + noise**2)
        drift = -rate * (eigenvalue * (mean - target) + ridge * mean)
        fresh = rate**2 / size * (2 * risk * eigenvalue + sigma**2)
        return np.append(drift, fresh - 2 * rate * (eigenvalue + ridge) * variance)

    state = solve_ivp(
        slope, (0, end), np.append(start, 0.0), method="DOP853", rtol=1e-12, atol=1e-14
    ).y[:, -1]
    excess = np.sum((state[:size] - target) ** 2) + size * state[size]
    found = isotropic_risk(
        end,
        eigenvalue=eigenvalue,
        target=target,
        initial=start,
        rate=rate,
        gradient_noise_std=sigma,
        ridge=ridge,
        label_noise_std=noise,
    )
    assert found == pytest.approx(0.5 * (eigenvalue * excess + noise**2), rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kurtosis", [1.0, 3.0])
def test_discrete_mean_risk_by_enumeration(seed: int, kurtosis: float) -> None:
    """Features 0 or ±√κ by all patterns, with the shares that give the variance 1."""
    rng = np.random.default_rng(seed)
    size, count = 2, 3
    problem = RidgeRegression(
        rng.uniform(0, 1, size),
        rng.standard_normal(size),
        rng.standard_normal(size),
        label_noise_std=rng.uniform(0, 1),
        ridge=rng.uniform(0, 0.3),
    )
    steps, sigma = rng.uniform(0, 0.8, count), rng.uniform(0, 1)
    points = dict(zip([-1.0, 0.0, 1.0], np.array([0.5, kurtosis - 1, 0.5]) / kurtosis, strict=True))
    patterns = [
        (np.sqrt(kurtosis * problem.eigenvalues) * both, points[both[0]] * points[both[1]])
        for both in product(points, repeat=2)
    ]
    # First and second moments of x - x̃ over labels and gradient noise, for each pattern.
    gap = problem.initial - problem.target
    laws = [(1.0, gap, np.outer(gap, gap))]
    risks = []
    for step in [*steps, None]:
        moment = sum(weight * second for weight, _, second in laws)
        excess = np.trace(np.diag(problem.eigenvalues) @ moment)
        risks.append(0.5 * (excess + problem.label_noise_std**2))
        if step is None:
            break
        after = []
        for weight, mean, second in laws:
            for row, share in patterns:
                matrix = (1 - step * problem.ridge) * np.eye(size) - step * np.outer(row, row)
                shift = -step * problem.ridge * problem.target
                cross = np.outer(matrix @ mean, shift)
                fresh = step**2 * (
                    problem.label_noise_std**2 * np.outer(row, row) + sigma**2 * np.eye(size)
                )
                whole = matrix @ second @ matrix.T + cross + cross.T + np.outer(shift, shift)
                after.append((weight * share, matrix @ mean + shift, whole + fresh))
        laws = after
    found = mean_risk(problem, steps, gradient_noise_std=sigma, kurtosis=kurtosis)
    np.testing.assert_allclose(found, risks, rtol=1e-11)
