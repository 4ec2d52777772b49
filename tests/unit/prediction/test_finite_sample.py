"""Fixed points behind the predictions, against their equations where iterations are slow."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from privreg.methods.adassp import _resolvent
from privreg.prediction.finite_sample import sampling_inflation


def kept(width: float, variance: float) -> tuple[float, float]:
    """Probability of |r| ≤ w and E clip(r, ±w)², for r ~ N(0, variance), from the normal law."""
    reach = width / np.sqrt(variance)
    inside = 2 * norm.cdf(reach) - 1
    square = inside - 2 * reach * norm.pdf(reach) + reach**2 * 2 * norm.sf(reach)
    return inside, variance * square


@pytest.mark.parametrize("seed", range(8))
def test_inflation_solves_its_equations_at_any_width_and_ratio(seed: int) -> None:
    """It ended after twelve iterations: 22 % low at p = 0.89 n, and circled at narrow widths."""
    rng = np.random.default_rng(seed)
    width, ratio = 10.0 ** rng.uniform(-1, 1), rng.uniform(0.01, 0.97)
    std = 10.0 ** rng.uniform(-2, 2)
    found = sampling_inflation(
        np.full((1, 3), width * std), np.array([0.2, 0.3, 0.5]), ratio=ratio, label_noise_std=std
    )
    inside, square = kept(width, 1.0)
    variance = float(found[0]) * ratio * square / inside**2

    def excess(part: float) -> float:
        return part * kept(width / (1 - part), 1 + variance)[0] - ratio

    part = float(brentq(excess, ratio, 1 - 1e-12, xtol=1e-14))
    again = part**2 * kept(width / (1 - part), 1 + variance)[1] / ratio
    # The last change of an iteration that is left; bracketed solutions have all digits.
    assert again == pytest.approx(variance, rel=1e-3)


@pytest.mark.parametrize("ratio", [0.05, 0.9])
def test_inflation_at_narrow_clips_is_that_of_least_absolute_deviations(ratio: float) -> None:
    """There κ = P(|r| ≤ u) and κτ² = E clip(r, ±u)², of which the width itself is no part."""
    std, other = 0.3, 0.1
    widths = 10.0 ** np.array([-4.5, -8, -11.5])[:, None]
    found = sampling_inflation(
        widths, np.ones(1), ratio=ratio, label_noise_std=std, other_variance=other
    )

    def gain(variance: float) -> float:
        spread = std**2 + variance
        reach = norm.isf((1 - ratio) / 2) * np.sqrt(spread + other)
        return kept(reach, spread)[1] / ratio - variance

    variance = float(brentq(gain, 1e-15, 1e6, xtol=1e-18, rtol=1e-12))
    expected = variance / (ratio * (std**2 + other) * np.pi / 2)
    # A settled iteration is left at its last change.
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize("excess", [1e-1, 1e-6])
def test_resolvent_is_the_root_of_its_quadratic_up_to_the_edge(excess: float) -> None:
    count, tau = 7.0, 0.4
    diagonal = 2 * tau * np.sqrt(count * (1 + excess))
    rows: Any = SimpleNamespace(total=lambda values: values @ np.array([count]))
    total = (diagonal - np.sqrt(diagonal**2 - 4 * tau**2 * count)) / (2 * tau**2)
    found, _ = _resolvent(np.array([diagonal]), rows, tau)
    assert found[0] == pytest.approx(1 / (diagonal - tau**2 * total), rel=1e-7)
