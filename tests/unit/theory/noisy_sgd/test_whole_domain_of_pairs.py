"""Pairs of records, their law and quadratures over whole documented domains, in many digits."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from privreg.theory.noisy_sgd.collocation import integration_matrix, interpolate, radau_nodes
from privreg.theory.noisy_sgd.pair_proxies import (
    candidate_records,
    largest_pairs,
    pair_gradient_gap,
)
from privreg.theory.noisy_sgd.population import estimated_population
from privreg.theory.noisy_sgd.shuffled_position import position_quadrature

from ..draws import LEAST, near, numbers, size

SEEDS = range(150)


def drawn_rows(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    n, d = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    unit = size(rng, -140, 140)
    rows = rng.standard_normal((n, d)) * unit
    labels = rng.standard_normal(n) * min(size(rng, -140, 140), 1e150 / unit)
    # Now and then nearly or exactly the same record twice.
    if rng.random() < 0.5:
        rows[1] = rows[0] * (1 + rng.choice([0.0, 1e-9, 1e-5]))
        labels[1] = labels[0]
    return rows, labels


def test_gaps_of_gradients() -> None:
    """Squares of gradients of 1e-170 vanished, and gaps of near records lost half their digits."""
    with mp.workdps(60):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            rows, labels = drawn_rows(rng)
            point = rng.standard_normal(rows.shape[1]) * rng.choice([0.0, 1.0])
            ridge = float(rng.choice([0.0, size(rng, -100, 100)]))
            found = pair_gradient_gap(rows, labels, point, ridge=ridge)
            z = numbers(point)
            pulls, reach = [], []
            for row, label in zip(rows, labels, strict=True):
                a, b = numbers(row), mp.mpf(float(label))
                factor = b - mp.fdot(a, z)
                pulls.append([x * factor for x in a])
                reach.append([abs(x) * (abs(b) + mp.fdot(map(abs, a), map(abs, z))) for x in a])
            shift = [mp.mpf(ridge) * x for x in z]
            for i, j in np.ndindex(found.shape):
                parts = zip(pulls[i], pulls[j], shift, strict=True)
                wanted = mp.norm([x - y - s for x, y, s in parts])
                # A few roundings of each gradient's parts.
                sizes = zip(reach[i], reach[j], shift, strict=True)
                lost = mp.mpf("1e-15") * mp.norm([x + y + abs(s) for x, y, s in sizes])
                assert near(found[i, j], wanted, 1e-8, 4 * lost + mp.mpf("1e-300")), (seed, i, j)


def test_candidates() -> None:
    """The records of largest norm and of largest gradient, whatever their size."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        rows, labels = drawn_rows(rng)
        rows = rng.standard_normal(rows.shape) * size(rng, -300, 140)
        point = rng.standard_normal(rows.shape[1])
        found = candidate_records(rows, labels, point, count=1)
        exact = [[Fraction(float(x)) for x in row] for row in rows]
        norms = [sum(x * x for x in row) for row in exact]
        gaps = [
            sum(x * Fraction(float(z)) for x, z in zip(row, point, strict=True))
            - Fraction(float(label))
            for row, label in zip(exact, labels, strict=True)
        ]
        gradients = [n * g * g for n, g in zip(norms, gaps, strict=True)]
        assert set(found) == {int(np.argmax(norms)), int(np.argmax(gradients))}, seed


def test_pairs_of_no_proxy_are_refused() -> None:
    """Beside a proxy of -inf a record was paired with itself."""
    with pytest.raises(ValueError, match="proxy must be more than -inf"):
        largest_pairs(np.full((3, 3), -inf), 3)
    top = largest_pairs([[9.0, inf], [-1e308, 9.0]], 2)
    np.testing.assert_array_equal(top, [[0, 1], [1, 0]])


def test_estimates_of_the_law_of_records() -> None:
    """Residuals of 1e-170 gave no label noise at all."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        unit, noise = size(rng, -150, 150), size(rng, -300, 149)
        rows = rng.standard_normal((9, 2)) * unit
        labels = rng.standard_normal(9) * noise
        if not 1e-280 < noise / unit < 1e280:
            # The size of the target.
            continue
        found = estimated_population(rows, labels)
        with mp.workdps(60):
            a, b = mp.matrix(rows.tolist()), mp.matrix(labels.tolist())
            moment = a.T * a / 9
            target = mp.lu_solve(moment * 9, a.T * b)
            residual = a * target - b
            spread = mp.sqrt(mp.fsum(x * x for x in residual) / 7)
            assert near(found.second_moment, list(moment), 1e-13, 1e-14 * mp.norm(moment)), seed
            lost = LEAST + mp.mpf("1e-12") * mp.norm(target)
            assert near(found.target, list(target), 0, lost), seed
            assert near(found.label_noise_std, spread, 1e-12), seed


def test_polynomials_on_panels() -> None:
    """Values between the nodes and integrals up to them, of polynomials in exact fractions."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        stages = int(rng.integers(1, 21))
        unit, scale = size(rng, -100, 100), size(rng, -200, 200)
        edges = np.cumsum([0.0, *(rng.uniform(0.1, 1, 3) * unit)])
        nodes = np.append(0.0, radau_nodes(stages))
        # A Chebyshev polynomial is bounded by 1, and as hard to interpolate as its degree allows.
        basis = np.polynomial.chebyshev.Chebyshev.basis(stages, [0, 1])
        values = np.tile((scale * basis(nodes))[None, :, None], (3, 1, 1))
        places = rng.random(5)
        panel = rng.integers(0, 3, 5)
        time = edges[panel] + np.diff(edges)[panel] * places
        found = interpolate(time, edges, values)[:, 0]
        # A rounded time on a panel of any place moves the value by its slope, stages² at most.
        np.testing.assert_allclose(
            found, scale * basis(places), atol=1e-14 * (10 + 4 * stages**2) * scale
        )
        low = np.polynomial.chebyshev.Chebyshev.basis(stages - 1, [0, 1])
        integral = low.integ(lbnd=0)
        np.testing.assert_allclose(
            integration_matrix(stages) @ low(nodes[1:]), integral(nodes[1:]), atol=1e-13
        )


def test_quadrature_over_positions() -> None:
    """Moments of each stretch between releases, whatever the sizes."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        last = size(rng, -50, 50)
        times = np.unique(last * np.append(rng.random(int(rng.integers(0, 4))), 1.0))
        finest = max(last * size(rng, -20, 1), 1e-100)
        nodes = int(rng.integers(1, 6))
        positions, weights = position_quadrature(times, finest=finest, nodes_per_panel=nodes)
        assert np.all(np.diff(positions) >= 0)
        assert np.all(weights >= 0)
        for power in range(2 * nodes):
            found: Any = np.sum(weights * (positions / last) ** power)
            assert found == pytest.approx(last / (power + 1), rel=1e-12)
        for time in times:
            before = positions < time
            assert np.sum(weights[before]) == pytest.approx(time, rel=1e-12)
