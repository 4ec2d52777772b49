"""Error curves and tuned step sizes on random inputs, in rational arithmetic and by brute force."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privreg.theory.correlated_noise.finite_time import (
    Correlation,
    damped_noise,
    error_curve,
    final_excess_risk,
    independent_noise,
    tune_step_size,
)
from privreg.theory.correlated_noise.stationary import stability_limit


def spectrum(rng: np.random.Generator) -> np.ndarray:
    """Eigenvalues of several sizes, some of them 0."""
    d = int(rng.integers(1, 6))
    values = 10.0 ** (rng.uniform(-9, 3) + rng.choice([0.0, 1.0, 6.0]) * rng.random(d))
    values[rng.random(d) < 0.2] = 0.0
    return values


def _exact_curve(values, eta, beta, steps, start, sigma2, zeta2):
    """Risks by the recursion (83), its c(t) a double sum over the decoder, in rationals."""
    lam, step = [Fraction(v) for v in values], Fraction(eta)
    beta = [Fraction(b) for b in beta] + [Fraction(0)] * steps
    s = [Fraction(e) ** 2 for e in start]
    risks = [sum(v * x for v, x in zip(lam, s, strict=True)) / 2]
    for t in range(steps):
        q = sum(v * x for v, x in zip(lam, s, strict=True))
        moved = []
        for v, x in zip(lam, s, strict=True):
            b = step * v
            c = sum(
                beta[i] * beta[j] * (1 - b) ** abs(i - j)
                for i in range(t + 1)
                for j in range(t + 1)
            )
            noise = step**2 * (v * (q + zeta2) + sigma2 * c)
            moved.append((1 - 2 * b + 2 * b**2) * x + noise)
        s = moved
        risks.append(sum(v * x for v, x in zip(lam, s, strict=True)) / 2)
    return risks


@pytest.mark.parametrize("seed", range(10))
def test_curves_are_exact(seed):
    rng = np.random.default_rng(seed)
    values = spectrum(rng)
    eta = float(rng.choice([rng.random(), 5.0]) / max(values.max(), 1e-12))
    steps = int(rng.integers(1, 8))
    beta = rng.standard_normal(int(rng.integers(1, steps + 1))) * 10.0 ** rng.uniform(-9, 9)
    start = rng.standard_normal(values.size) * 10.0 ** rng.uniform(-9, 9)
    sigma, zeta = 10.0 ** rng.uniform(-5, 5, 2)
    curve = error_curve(values, step_size=eta, coefficients=beta, steps=steps, initial_error=start)
    found = curve.excess_risk(gradient_noise_std=sigma, label_noise_std=zeta)
    squares = Fraction(sigma) ** 2, Fraction(zeta) ** 2
    lists = values.tolist(), eta, beta.tolist(), steps, start.tolist()
    wanted = _exact_curve(*lists, *squares)
    np.testing.assert_allclose(found, [float(risk) for risk in wanted], rtol=1e-11)
    squared, multiplier = 10.0 ** rng.uniform(-3, 3, 2)
    last = final_excess_risk(
        values,
        step_size=eta,
        steps=steps,
        correlations=lambda *_: Correlation(beta, squared),
        noise_multiplier=multiplier,
        clip_norm=0.7,
        initial_error=start,
        label_noise_std=zeta,
    )
    scale = Fraction(squared) * (Fraction(multiplier) * Fraction(0.7)) ** 2
    assert last == pytest.approx(
        float(_exact_curve(*lists, scale, squares[1])[-1]), rel=1e-10, abs=0
    )


@pytest.mark.parametrize("seed", range(8))
def test_no_step_size_is_better_than_the_tuned_one(seed):
    rng = np.random.default_rng(seed)
    values = 10.0 ** (rng.uniform(-6, 6) + rng.choice([0.0, 2.0]) * rng.random(3))
    steps = int(rng.integers(1, 60))
    correlations = independent_noise if seed % 2 else damped_noise(float(values.min()))
    settings = {
        "steps": steps,
        "correlations": correlations,
        # From none to far more than any step is worth.
        "noise_multiplier": float(rng.choice([0.0, 10.0 ** rng.uniform(-3, 12)])),
        "clip_norm": float(values.max() ** 0.5),
        "initial_error": rng.standard_normal(3) * rng.choice([0.0, 1.0]),
        "label_noise_std": float(rng.choice([0.0, 1.0])),
    }
    best = tune_step_size(values, **settings)
    idle = 0.5 * float(values @ settings["initial_error"] ** 2)
    highest = 0.999 * stability_limit(values)
    risks = [
        final_excess_risk(values, step_size=eta, **settings)
        for eta in highest * np.geomspace(1e-20, 1, 600)
    ]
    assert best.excess_risk <= min(*risks, idle) * (1 + 1e-3)
    if best.step_size:
        attained = final_excess_risk(values, step_size=best.step_size, **settings)
        assert best.excess_risk == pytest.approx(attained, rel=1e-12, abs=0)
    else:
        assert best.excess_risk == idle


def test_heavy_noise_leaves_minute_steps():
    """A search that ended at its least step called DP-SGD 31 times worse than it is."""
    values, start = 1 / np.arange(1, 9.0), np.full(8, 0.014)
    for correlations, multiplier in ((independent_noise, 10.0), (damped_noise(0.125), 1e3)):
        best = tune_step_size(
            values,
            steps=1000,
            correlations=correlations,
            noise_multiplier=multiplier,
            clip_norm=1.0,
            initial_error=start,
        )
        assert 0 < best.step_size < 1e-5
        assert best.excess_risk < 0.5 * float(values @ start**2)
