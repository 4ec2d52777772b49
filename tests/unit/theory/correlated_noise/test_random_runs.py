"""Error curves on random inputs, in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privreg.theory.correlated_noise.finite_time import error_curve


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
