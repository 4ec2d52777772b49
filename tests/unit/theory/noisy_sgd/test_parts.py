"""Parts of the losses: candidate records, their law, panels, mixtures over positions."""

from __future__ import annotations

from fractions import Fraction

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
from reproduction.papers.lin2025.experiments.hidden_state_bounds import shuffled_hidden_state_loss
from reproduction.papers.lin2025.worst_pairs import candidate_records, largest_pairs

SEEDS = pytest.mark.parametrize("seed", range(12))


@SEEDS
def test_candidates_are_the_records_of_largest_norm_and_gradient(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((5, 3)) * 10.0 ** rng.uniform(-11, 11)
    labels = rng.standard_normal(5) * 10.0 ** rng.uniform(-11, 11)
    # Now and then exactly or nearly the same record twice.
    rows[1], labels[1] = rows[0] * (1 + rng.choice([0.0, 1e-9, 1.0])), labels[0]
    point = rng.standard_normal(3)
    exact = [[Fraction(x) for x in row] for row in rows.tolist()]
    norms = [sum(x * x for x in row) for row in exact]
    gaps = [
        sum(x * Fraction(z) for x, z in zip(row, point.tolist(), strict=True)) - Fraction(label)
        for row, label in zip(exact, labels.tolist(), strict=True)
    ]
    gradients = [n * g * g for n, g in zip(norms, gaps, strict=True)]
    found = candidate_records(rows, labels, point, count=1)
    assert set(found) == {int(np.argmax(norms)), int(np.argmax(gradients))}


def test_largest_pairs_are_of_two_records() -> None:
    top = largest_pairs([[9.0, np.inf], [-1e12, 9.0]], 2)
    np.testing.assert_array_equal(top, [[0, 1], [1, 0]])


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


@SEEDS
def test_a_hidden_state_at_a_random_position_is_a_mixture(seed: int) -> None:
    rng = np.random.default_rng(seed)
    records = int(rng.integers(1, 30))
    count = int(rng.integers(0, records + 1))
    given = {
        "clip_norm": 1.0,
        "gradient_noise_std": 10.0 ** rng.uniform(-1, 2),
        "step_size": 0.3,
        "strong_convexity": rng.uniform(0, 3),
        "order": 1 + 10.0 ** rng.uniform(-3, 1),
        "bound": ("contraction", "reconstruction")[seed % 2],
    }
    square = (1 - 0.3 * given["strong_convexity"]) ** 2
    sums = np.cumsum(square ** np.arange(records + 1.0))
    gain = 0.0
    for position in range(count):
        later = count - 1 - position
        share = square**later / sums[later]
        if given["bound"] == "reconstruction":
            share = square**later * sums[position] / sums[position + later]
        loss = given["order"] / 2 * (2 / given["gradient_noise_std"]) ** 2 * share
        gain += np.expm1((given["order"] - 1) * loss) / records
    (found,) = shuffled_hidden_state_loss([count], records=records, **given)
    assert found == pytest.approx(np.log1p(gain) / (given["order"] - 1), rel=1e-11)
