"""Bounds of the loss of the last iterate that hide the iterates before it."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.privacy.renyi import renyi_divergence
from privreg.theory.noisy_sgd.last_iterate_loss import (
    hidden_state_divergence,
    shuffled_hidden_state_loss,
)


@pytest.mark.parametrize("clip_norm", [3.0, 7.0])
def test_hidden_state_bounds(clip_norm: float) -> None:
    shrink = 1 - 0.05 * 0.1
    options = 0.5 * 2.0 * (2 * clip_norm / 1.5) ** 2, 2 * np.log(shrink)
    for ell, later in ((0, 0), (0, 7), (12, 0), (12, 40)):
        spread = 0.0
        for _ in range(ell + 1):
            spread = shrink**2 * spread + (0.05 * 1.5) ** 2
        loss = 2.0 * (2 * clip_norm) ** 2 / (2 * 1.5**2)
        for _ in range(later):
            # One log-Sobolev step: contract, then add noise.
            contracted = shrink**2 * spread
            loss *= contracted / (contracted + (0.05 * 1.5) ** 2)
            spread = contracted + (0.05 * 1.5) ** 2
        counts = np.array(ell), np.array(later)
        value = hidden_state_divergence(*counts, *options, "reconstruction")
        tight = hidden_state_divergence(*counts, *options, "contraction")
        assert value == pytest.approx(loss, rel=1e-12)
        assert tight <= value * (1 + 1e-12)
        # A linear contraction from a fixed start attains the tight bound at the first position.
        shift, total = 0.05 * 2 * clip_norm * shrink**later, spread
        attained = renyi_divergence([shift], [total], [total], order=2.0)
        assert attained <= tight * (1 + 1e-12)
        if ell == 0:
            assert attained == pytest.approx(float(tight), rel=1e-12)


@pytest.mark.parametrize("seed", range(12))
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
