"""The law of full-batch descent at random inputs, against matrices in fifty digits and more."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import norm

from privreg.theory.full_batch_dpgd import (
    GradientDescentLaw,
    clipping_bound,
    generative_constant,
    gradient_descent_law,
    no_clipping_demand,
    no_clipping_ratios,
)

SEEDS = range(6)


def drawn_law(rng: np.random.Generator) -> GradientDescentLaw:
    """Contractions from next to 1 through 0 to next to -1, and some that diverge slowly."""
    p = int(rng.integers(1, 4))
    step = 10.0 ** rng.uniform(-8, 8)
    kinds = [
        10.0 ** rng.uniform(-12, -2),
        rng.uniform(0.01, 1.99),
        2 - 10.0 ** rng.uniform(-12, -2),
        2 + 10.0 ** rng.uniform(-12, -3),
        0.0,
    ]
    pull = rng.choice(kinds, p)
    rotation = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return GradientDescentLaw(
        pull / step,
        rotation,
        10.0 ** rng.uniform(-8, 8) * rng.standard_normal(p),
        rng.standard_normal(p),
        step,
        10.0 ** rng.uniform(-8, 8),
    )


def drawn_times(rng: np.random.Generator, law: GradientDescentLaw, size: int) -> list[int]:
    """Up to 2^53, and to where the fastest growth would leave double precision."""
    growth = np.max(np.abs(law.contraction))
    most = 53 if growth <= 1 else np.log2(300 / np.log(growth))
    return [0, *(int(2.0 ** rng.uniform(0, most)) for _ in range(size - 1))]


def exact(law: GradientDescentLaw) -> tuple[list[mp.mpf], mp.mpf]:
    """Contractions and η²λ², without rounding."""
    eta = mp.mpf(law.step_size)
    pulls = [1 - eta * mp.mpf(float(w)) for w in law.eigenvalues]
    return pulls, (eta * mp.mpf(law.gradient_noise_std)) ** 2


def mode(a: mp.mpf, variance: mp.mpf, t: int, s: int) -> mp.mpf:
    short = min(t, s)
    total = mp.mpf(short) if a * a == 1 else (1 - a ** (2 * short)) / (1 - a * a)
    return variance * a ** abs(t - s) * total


def tolerance(law: GradientDescentLaw, times: list[int]) -> float:
    """One rounding of x = η w moves a power by t dx, as far as the power has not yet vanished."""
    pull = law.step_size * law.eigenvalues
    slow = np.minimum(pull, np.abs(2 - pull))
    # t·x of about 700 is where a power leaves double precision; x near 2 is rounded to 4e-16.
    share = np.where(pull > 1, 4e-16 / np.maximum(slow, 1e-300), 4e-16)
    moved = np.minimum(np.max(times) * slow, 700.0) * share
    return float(1e-11 + 4 * np.max(moved, initial=0.0))


@pytest.mark.parametrize("seed", SEEDS)
def test_means_and_covariances_are_powers_of_the_exact_contraction(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(4):
        law = drawn_law(rng)
        times = drawn_times(rng, law, 4)
        close = tolerance(law, times)
        if close > 1e-4:
            continue
        with mp.workdps(60):
            contractions, variance = exact(law)
            offset = law.eigenvectors.T @ (law.start - law.minimiser)
            modes = law.mode_covariance(np.array(times)[:, None], times)
            for i, t in enumerate(times):
                for j, s in enumerate(times):
                    wanted = [float(mode(a, variance, t, s)) for a in contractions]
                    scale = np.abs(wanted) + 1e-290
                    assert np.all(np.abs(modes[i, j] - wanted) <= close * scale), (law, t, s)
            moved = np.array([[float(a**t) for a in contractions] for t in times]) * offset
            bias = np.array([float(sum(mp.mpf(x) ** 2 for x in row)) for row in moved])
            spread = np.array(
                [float(sum(mode(a, variance, t, t) for a in contractions)) for t in times]
            )
        error = law.expected_squared_error(times)
        np.testing.assert_allclose(error, bias + spread, rtol=3 * close, atol=1e-290)
        reach = np.abs(law.minimiser).max() + np.abs(moved).sum(axis=1)
        mean = law.mean(times) - (law.minimiser + moved @ law.eigenvectors.T)
        assert np.all(np.abs(mean) <= 4 * close * reach[:, None])
        covariance = law.covariance(times)
        np.testing.assert_allclose(
            np.trace(covariance, axis1=-2, axis2=-1), spread, rtol=3 * close, atol=1e-290
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_weighted_sums_have_the_dense_law(seed: int) -> None:
    rng = np.random.default_rng(seed)
    law = drawn_law(rng)
    steps = int(rng.integers(1, 7))
    weights = rng.standard_normal((2, steps))
    bias, covariance = law.functionals(weights)
    times = np.arange(1, steps + 1)
    dense = law.covariance(times[:, None], times)
    wanted = np.einsum("at,bs,tsjj->jab", weights, weights, dense)
    np.testing.assert_allclose(covariance, wanted, rtol=1e-9, atol=1e-12 * np.abs(wanted).max())
    pulls = 1 - law.step_size * law.eigenvalues
    offset = law.eigenvectors.T @ (law.start - law.minimiser)
    moved = (pulls ** times[:, None] * offset) @ law.eigenvectors.T
    # The distance itself is formed of a difference, and summed with signs.
    scale = np.abs(law.start - law.minimiser).max()
    np.testing.assert_allclose(bias, (weights @ moved).T, rtol=1e-8, atol=1e-12 * scale)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_law_of_a_table_is_that_of_its_descent(seed: int) -> None:
    """Mean and covariance of the plain recursion with matrices, on the table itself."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 30)), int(rng.integers(1, 3))
    x = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-3, 3)
    y = rng.standard_normal(n)
    eta = rng.uniform(0.05, 1.9) / np.linalg.eigvalsh(x.T @ x / n)[-1]
    std, steps = 10.0 ** rng.uniform(-3, 3), int(rng.integers(1, 12))
    start = rng.standard_normal(p)
    law = gradient_descent_law(
        x.T @ x, x.T @ y, sample_size=n, step_size=eta, gradient_noise_std=std, start=start
    )
    theta, spread = start.copy(), np.zeros((p, p))
    transport = np.eye(p) - eta * x.T @ x / n
    for _ in range(steps):
        theta = theta - eta * x.T @ (x @ theta - y) / n
        spread = transport @ spread @ transport.T + (eta * std) ** 2 * np.eye(p)
    scale = np.abs(theta).max() + np.abs(law.minimiser).max()
    np.testing.assert_allclose(law.mean(steps), theta, atol=1e-9 * scale)
    np.testing.assert_allclose(law.covariance(steps), spread, rtol=1e-8, atol=1e-10 * spread.max())


@pytest.mark.parametrize("seed", SEEDS)
def test_the_share_that_clips_is_a_sum_of_normal_tails(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p, steps = 6, 2, int(rng.integers(1, 6))
    x = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-2, 2)
    x[0] = 0.0
    y = rng.standard_normal(n)
    eta = rng.uniform(0.1, 1.9) / np.linalg.eigvalsh(x.T @ x / n)[-1]
    std = rng.choice([0.0, 10.0 ** rng.uniform(-3, 3)])
    law = gradient_descent_law(
        x.T @ x, x.T @ y, sample_size=n, step_size=eta, gradient_noise_std=std
    )
    norms = np.linalg.norm(x, axis=1)
    clip = float(rng.choice([np.inf, 10.0 ** rng.uniform(-2, 2) * norms.max()]))
    probability, share = clipping_bound(law, x, y, clip_norm=clip, steps=steps)
    expected = 0.0
    for t in range(steps):
        for row, label, length in zip(x, y, norms, strict=True):
            centre, deviation = label - row @ law.mean(t), np.sqrt(row @ law.covariance(t) @ row)
            width = clip / length if length else np.inf
            if deviation == 0:
                expected += float(abs(centre) > width)
            else:
                expected += norm.sf(width, centre, deviation) + norm.cdf(-width, centre, deviation)
    assert share == pytest.approx(expected / (steps * n), rel=1e-7, abs=1e-12)
    assert probability == pytest.approx(min(1.0, expected), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_condition_is_the_one_with_dense_inverses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p, steps = 12, 3, int(rng.integers(1, 9))
    x = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-2, 2)
    y, target = rng.standard_normal(n), rng.standard_normal(p)
    sigma = x.T @ x / n
    eta, noise = rng.uniform(0.1, 1.5) / np.linalg.eigvalsh(sigma)[-1], 10.0 ** rng.uniform(-2, 2)
    found = no_clipping_ratios(
        x, y, target=target, step_size=eta, steps=steps, label_noise_std=noise
    )
    m, inverse = np.eye(p) - eta * sigma, np.linalg.inv(sigma)
    powers = [np.linalg.matrix_power(m, t) for t in range(1, steps + 1)]
    residual = y - x @ target
    last = max(np.abs(x @ (np.eye(p) - power) @ inverse @ x.T @ residual).max() for power in powers)
    expected = (
        np.linalg.norm(x, axis=1).max() / p**0.5,
        np.abs(residual).max() / noise,
        max(np.abs(x @ power @ target).max() for power in powers),
        last / (noise * (n * p) ** 0.5),
    )
    np.testing.assert_allclose(found[:4], expected, rtol=1e-8)
    assert found.constant == max(found[:4])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_demand_holds_from_its_sample_size_on_and_not_before(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10):
        given = {
            "features": int(10 ** rng.uniform(0, 6)),
            "steps": int(10 ** rng.uniform(0, 6)),
            "step_size": 10.0 ** rng.uniform(-6, 3),
            "rho": 10.0 ** rng.uniform(-12, 12),
            "failure": 10.0 ** rng.uniform(-12, -0.01),
        }
        constant = 10.0 ** rng.uniform(-3, 6)
        demand = no_clipping_demand(constant, label_noise_std=2.0, **given)

        def margin(n: float, constant: float = constant, given: dict = given) -> float:
            left = n / given["step_size"] * np.sqrt(given["rho"] / (2 * given["steps"]))
            log = np.log(2 * n * given["steps"] / given["failure"])
            return left / (64 * constant**2 * given["features"] * np.sqrt(log)) - 1

        assert margin(demand.sample_size) > -1e-12
        if demand.sample_size > 1:
            assert margin(demand.sample_size) < 1e-12
            assert margin(demand.sample_size * 1.01) > 0
        assert demand.clip_norm == pytest.approx(8 * constant**2 * given["features"] ** 0.5)
        rows = 10.0 ** rng.uniform(0, 12)
        found = generative_constant(rows, steps=given["steps"], failure=given["failure"])
        wanted = 12 * mp.log(5 * mp.mpf(rows) * given["steps"] / mp.mpf(given["failure"])) ** 1.5
        assert float(found) == pytest.approx(float(wanted), rel=1e-13)
