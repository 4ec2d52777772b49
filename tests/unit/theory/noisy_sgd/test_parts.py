"""Parts of the losses: the law of records, panels, mixtures over positions."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from privreg.theory.noisy_sgd.diffusion import (
    estimated_population,
    integration_matrix,
    interpolate,
    radau_nodes,
)
from privreg.theory.noisy_sgd.renyi_loss import shuffled_loss

SEEDS = pytest.mark.parametrize("seed", range(12))


@SEEDS
def test_an_estimated_population_is_that_of_exact_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((9, 2)) * 10.0 ** rng.uniform(-6, 6)
    labels = rng.standard_normal(9) * 10.0 ** rng.uniform(-6, 6)
    found = estimated_population(rows, labels)
    with mp.workdps(40):
        a, b = mp.matrix(rows.tolist()), mp.matrix(labels.tolist())
        moment = a.T * a / 9
        target = mp.lu_solve(moment * 9, a.T * b)
        residual = a * target - b
        spread = float(mp.sqrt(mp.fsum(x * x for x in residual) / 7))
    moment = np.array(moment.tolist(), dtype=float)
    np.testing.assert_allclose(found.second_moment, moment, atol=1e-13 * np.abs(moment).max())
    target = np.array([float(x) for x in target])
    np.testing.assert_allclose(found.target, target, atol=1e-12 * np.abs(target).max())
    assert found.label_noise_std == pytest.approx(spread, rel=1e-12)


@SEEDS
def test_panels_interpolate_and_integrate_polynomials(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stages = int(rng.integers(1, 21))
    unit, scale = 10.0 ** rng.uniform(-12, 12, 2)
    edges = np.cumsum([0.0, *(rng.uniform(0.1, 1, 3) * unit)])
    nodes = np.append(0.0, radau_nodes(stages))
    # A Chebyshev polynomial is bounded by 1, and as hard to interpolate as its degree allows.
    basis = np.polynomial.chebyshev.Chebyshev.basis(stages, [0, 1])
    values = np.tile((scale * basis(nodes))[None, :, None], (3, 1, 1))
    places, panel = rng.random(5), rng.integers(0, 3, 5)
    found = interpolate(edges[panel] + np.diff(edges)[panel] * places, edges, values)[:, 0]
    # A rounded time on a panel of any place moves the value by its slope, stages² at most.
    np.testing.assert_allclose(
        found, scale * basis(places), atol=1e-14 * (10 + 4 * stages**2) * scale
    )
    low = np.polynomial.chebyshev.Chebyshev.basis(stages - 1, [0, 1])
    integral = low.integ(lbnd=0)
    np.testing.assert_allclose(
        integration_matrix(stages) @ low(nodes[1:]), integral(nodes[1:]), atol=1e-13
    )


@SEEDS
def test_losses_of_mixtures_keep_their_digits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, order = int(rng.integers(1, 5)), 1 + 10.0 ** rng.uniform(-6, 3)
    losses = 10.0 ** rng.uniform(-12, 2, count) / (order - 1) * (rng.random(count) < 0.8)
    horizon = 10.0 ** rng.uniform(-12, 12)
    weights = rng.random(count) * 10.0 ** rng.uniform(-12, 0, count)
    weights *= horizon * 0.9 / weights.sum()
    found = float(shuffled_loss(losses, weights, horizon=horizon, order=order))
    with mp.workdps(50):
        power = mp.mpf(order) - 1
        shares = [mp.mpf(x) / mp.mpf(horizon) for x in weights.tolist()]
        gains = [mp.expm1(power * mp.mpf(x)) for x in losses.tolist()]
        gain = mp.fsum(p * x for p, x in zip(shares, gains, strict=True))
        wanted = float(mp.log1p(gain) / power)
    assert found == pytest.approx(wanted, rel=1e-12)
