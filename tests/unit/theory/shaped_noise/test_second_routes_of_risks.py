"""Risks and bounds of shaped noise at random inputs: dense matrices and many digits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from privreg.theory.shaped_noise import (
    PowerLawDecay,
    designed_bound,
    effective_dimension,
    general_bound,
    identity_bound,
    private_risk,
    sgd_risk,
)

from .test_second_routes import prefix_nodes

SEEDS = range(6)


# Second moments


def dense_moments(
    lam: np.ndarray, eta: float, size: int, start: np.ndarray, sources: list[np.ndarray]
) -> float:
    """Mean ½ λᵀE[S²] / N² of the sum S of all iterates, where independent sources enter.

    E[u_s u_t^T] for all pairs of steps; Gaussian rows by their fourth moment, with matrices.
    """
    d = lam.size
    h = np.diag(lam)
    moment = np.diag(start)
    total = np.zeros((d, d))
    keep = np.eye(d) - eta * h
    for t in range(size):
        summed = sum((np.linalg.matrix_power(keep, k) for k in range(size - t)), np.zeros((d, d)))
        total += moment @ summed + (moment @ summed).T - moment
        fourth = 2 * h @ moment @ h + np.trace(h @ moment) * h
        moment = moment - eta * (h @ moment + moment @ h) + eta**2 * fourth
        moment = moment + np.diag(sources[t])
    return float(0.5 * np.trace(h @ total) / size**2)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_risk_of_the_average_is_that_of_all_pairs_of_iterates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, size = int(rng.integers(1, 5)), int(rng.integers(1, 25))
    lam = 10.0 ** rng.uniform(-6, 0, d) * (rng.random(d) < 0.9)
    eta = 10.0 ** rng.uniform(-3, 0.2)
    target, zeta = rng.standard_normal(d), 10.0 ** rng.uniform(-3, 3)
    found = sgd_risk(lam, target=target, label_noise_std=zeta, step_size=eta, sample_size=size)
    nothing = [np.zeros(d)] * size
    label = [eta**2 * zeta**2 * lam] * size
    bias = dense_moments(lam, eta, size, target**2, nothing)
    assert found.bias == pytest.approx(bias, rel=1e-9)
    assert found.label_noise == pytest.approx(
        dense_moments(lam, eta, size, np.zeros(d), label), rel=1e-9
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_private_noise_is_that_of_the_lifted_linear_map(seed: int) -> None:
    """Each vector of white noise by itself, E[(u, z, S)(u, z, S)^T] of a state with all three."""
    rng = np.random.default_rng(seed)
    d, size = int(rng.integers(1, 4)), int(rng.integers(2, 14))
    lam, shape = 10.0 ** rng.uniform(-4, 0, (2, d))
    eta, std = 10.0 ** rng.uniform(-2, 0, 2)
    beta = rng.standard_normal(size - 1)
    found = private_risk(
        lam,
        covariance=shape,
        noise_std=std,
        step_size=eta,
        sample_size=size,
        decoder=beta,
    )
    tree = private_risk(lam, covariance=shape, noise_std=std, step_size=eta, sample_size=size)
    wanted = sum(
        lifted(lam, shape, eta, np.concatenate([np.zeros(s - 1), beta[: size - s]]))
        for s in range(1, size)
    )
    assert found == pytest.approx(std**2 * wanted / size**2, rel=1e-9)
    nodes = sorted({node for t in range(1, size) for node in prefix_nodes(t)})
    total = 0.0
    for node in nodes:
        use = np.array([float(node in prefix_nodes(t)) for t in range(size)])
        # Step t adds the increment of the prefix sum from t - 1 to t.
        total += lifted(lam, shape, eta, np.diff(use))
    assert tree == pytest.approx(std**2 * total / size**2, rel=1e-9)


def lifted(lam: np.ndarray, shape: np.ndarray, eta: float, kicks: np.ndarray) -> float:
    """½ λᵀE[S²] of the sum S of iterates, for noise z that enters -η β_t times in step t."""
    d = lam.size
    h, zero, one = np.diag(lam), np.zeros((d, d)), np.eye(d)
    state = np.zeros((3 * d, 3 * d))
    state[d : 2 * d, d : 2 * d] = np.diag(shape)
    for kick in kicks:
        keep = one - eta * h
        step = np.block([[keep, -eta * kick * one, zero], [zero, one, zero], [zero, zero, one]])
        u = state[:d, :d]
        # What the fourth moment of a Gaussian row adds to the squared mean step.
        extra = eta**2 * (h @ u @ h + np.trace(h @ u) * h)
        state = step @ state @ step.T
        state[:d, :d] += extra
        add = np.block([[one, zero, zero], [zero, one, zero], [one, zero, one]])
        state = add @ state @ add.T
    return float(0.5 * np.trace(h @ state[2 * d :, 2 * d :]))


# Bounds


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_are_their_formulas_in_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(4):
        decay = PowerLawDecay(1 + 10.0 ** rng.uniform(-1, 1))
        size, eta = 10.0 ** rng.uniform(0, 100), 10.0 ** rng.uniform(-100, 2)
        tau = 10.0 ** rng.uniform(-50, 50)
        given = {
            "sample_size": float(size),
            "step_size": float(eta),
            "noise_multiplier": float(tau),
        }
        n, e, t = (mp.mpf(each) for each in given.values())
        with mp.workdps(40):
            dimension = mp.mpf(float(effective_dimension(decay, size * eta)))
            bias, variance = 1 / (n * e), (1 / n + 1 / (n**2 * e)) * dimension
            noise = t**2
            squares = mp.mpf(decay.squared_trace)
            flat = noise * e * dimension
            shaped = noise * (e**2 * squares * dimension + dimension**3 / n)
        for function, private in ((identity_bound, flat), (designed_bound, shaped)):
            parts = function(decay, **given)
            wanted = [float(each) for each in (bias, variance, private)]
            np.testing.assert_allclose([float(each) for each in parts], wanted, rtol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_general_bound_is_the_least_over_explicit_matrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    lam = np.sort(10.0 ** rng.uniform(-6, 0, d))[::-1]
    shape, target = 10.0 ** rng.uniform(-4, 4, d), rng.standard_normal(d)
    eta = 10.0 ** rng.uniform(-6, -0.01) / lam.sum()
    n = int(10 ** rng.uniform(0, 12))
    tau, psi, zeta = 10.0 ** rng.uniform(-4, 4, 3)
    found = general_bound(
        lam,
        target=target,
        covariance=shape,
        sample_size=n,
        step_size=eta,
        noise_multiplier=tau,
        clip_norm=psi,
        label_noise_std=zeta,
    )
    h = np.diag(lam)
    best = None
    for k in range(1, d + 1):
        head = np.diag((np.arange(d) < k).astype(float))
        tail = np.eye(d) - head
        spread = k / n + n * eta**2 * np.sum(lam[k:] ** 2)
        q = head + n * eta * h @ tail
        r = np.linalg.inv(h) @ head + (n * eta) ** 2 * h @ tail
        g = eta * np.trace(h @ np.diag(shape)) * q
        g = g + (psi**2 + psi**4 + 1) * np.diag(shape)
        bias = target @ np.linalg.inv(h) @ head @ target / (eta * n) ** 2
        bias += target @ h @ tail @ target
        margin = 1 - eta * lam.sum()
        bias += (target @ q @ target) / (n * eta * margin) * spread
        variance = zeta**2 * (1 + eta * np.trace(q @ h)) * spread
        private = tau**2 * (eta * np.trace(q @ g) * spread + np.trace(r @ g) / n)
        if best is None or bias + variance + private < sum(best):
            best = (bias, variance, private)
    np.testing.assert_allclose(np.array(found, dtype=float), best, rtol=1e-9)


def test_general_bound_is_infinite_where_the_theorem_is_silent():
    found = general_bound(
        [1.0, 1.0],
        target=[1.0, 0.0],
        covariance=[1.0, 1.0],
        sample_size=10,
        step_size=0.5,
        noise_multiplier=0.0,
        clip_norm=1.0,
        label_noise_std=1.0,
    )
    assert found.total == np.inf
