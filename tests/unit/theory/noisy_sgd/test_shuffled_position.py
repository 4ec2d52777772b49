"""Losses at a random position: mixtures, their bound, and the nodes over positions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from privreg.privacy.renyi import renyi_divergence
from privreg.theory.noisy_sgd.renyi_loss import position_quadrature, shuffled_loss


def test_mixture_bounds_the_divergence_of_mixtures() -> None:
    """Two mixtures of three normals each: their divergence by quadrature is at most the bound."""
    shifts = np.array([0.0, 0.3, 1.0])
    order = 2.0

    def integrand(x: float) -> float:
        p = norm.pdf(x, shifts, 1.0).mean()
        q = norm.pdf(x, 0.0, 1.1)
        return float(p**order * q ** (1 - order))

    true = np.log(quad(integrand, -15, 15, epsrel=1e-11)[0]) / (order - 1)
    parts = [renyi_divergence([s], [1.0], [1.21], order=order) for s in shifts]
    bound = float(shuffled_loss(parts, np.full(3, 1 / 3), horizon=1.0, order=order))
    assert 0 < true <= bound <= max(parts)


def test_shuffled_loss() -> None:
    half = np.full(4, 0.25)
    assert shuffled_loss(np.full(4, 0.7), half, horizon=1.0, order=3.0) == pytest.approx(0.7)
    direct = np.log(0.5 + 0.5 * np.exp(2 * 0.7)) / 2
    assert shuffled_loss(np.full(4, 0.7), half, horizon=2.0, order=3.0) == pytest.approx(direct)
    tiny = shuffled_loss(np.full(4, 1e-12), half, horizon=2.0, order=2.0)
    assert tiny == pytest.approx(5e-13, rel=1e-9)
    huge = shuffled_loss([1000.0, 5000.0], [1.0, 1.0], horizon=4.0, order=2.0)
    assert huge == pytest.approx(5000 - np.log(4), rel=1e-12)
    assert shuffled_loss([1.0, np.inf], [1.0, 1.0], horizon=4.0, order=2.0) == np.inf
    batch = shuffled_loss(np.array([[0.1, 0.2], [50.0, 1.0]]), [1.0, 1.0], horizon=4.0, order=2.0)
    assert batch == pytest.approx(
        [np.log(0.5 + np.exp([0.1, 0.2]).mean() / 2), np.log(0.5 + np.exp([50.0, 1.0]).mean() / 2)]
    )
    with pytest.raises(ValueError, match="weights"):
        shuffled_loss([1.0], [2.0], horizon=1.0, order=2.0)


def test_position_quadrature_resolves_both_layers() -> None:
    nodes, weights = position_quadrature([0.7, 1.5], finest=1e-3)
    assert weights.sum() == pytest.approx(1.5, rel=1e-13)
    assert np.all(np.diff(nodes) > 0)
    for rate in (1.0, 40.0, 2000.0):
        for start in (0.0, 0.7, 1.5):
            layer = weights @ np.where(nodes < start, np.exp(-rate * np.abs(nodes - start)), 0.0)
            assert layer == pytest.approx(-np.expm1(-rate * start) / rate, rel=1e-4)
