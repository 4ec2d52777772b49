"""Correlated noise over whole documented domains, in rationals and in many digits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

from privreg.privacy.budget import Budget
from privreg.theory.correlated_noise import bounds, linear_regression, mean_estimation
from privreg.theory.correlated_noise.error_curves import error_curve
from privreg.theory.correlated_noise.finite_time import (
    damped_noise,
    final_excess_risk,
    independent_noise,
    tune_step_size,
)
from privreg.theory.correlated_noise.stationary_noise import (
    StationaryNoise,
    calibrated_noise_std,
)

from ...magnitudes import magnitude, magnitudes, near, rational

SEEDS = pytest.mark.parametrize("seed", range(40))


def curve(values, eta, beta, steps, start):
    """Parts of the risk by the recursion (83) in rationals, with a double sum for c(t)."""
    lam, step = [Fraction(v) for v in values], Fraction(eta)
    beta = [Fraction(b) for b in beta] + [Fraction(0)] * steps
    parts = [[Fraction(e) ** 2 for e in start], [Fraction(0)] * len(lam), [Fraction(0)] * len(lam)]
    for t in range(steps):
        for which, s in enumerate(parts):
            q = sum(v * x for v, x in zip(lam, s, strict=True))
            for j, v in enumerate(lam):
                b = step * v
                c = sum(
                    beta[i] * beta[k] * (1 - b) ** abs(i - k)
                    for i in range(t + 1)
                    for k in range(t + 1)
                )
                drive = (0, c, v)[which]
                s[j] = (1 - 2 * b + 2 * b**2) * s[j] + step**2 * (v * q + drive)
    return [sum(v * x for v, x in zip(lam, s, strict=True)) / 2 for s in parts]


@SEEDS
def test_curves_of_any_size(seed):
    rng = np.random.default_rng(seed)
    d, steps = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    values = magnitudes(rng, 1e-250, 1e250, d) if seed % 2 else magnitudes(rng, 1e-50, 1e50, d)
    values[1:] *= rng.random(d - 1) < 0.8
    # From no movement to some growth.
    eta = float(magnitude(rng, 1e-40, 2.0) / values.max())
    beta = rng.standard_normal(int(rng.integers(1, steps + 1))) * magnitude(rng, 1e-200, 1e200)
    start = rng.standard_normal(d) * magnitude(rng, 1e-200, 1e200)
    wanted = curve(values.tolist(), eta, beta.tolist(), steps, start.tolist())
    given = {"step_size": eta, "coefficients": beta, "steps": steps, "initial_error": start}
    if any(rational(part) > 1e290 for part in wanted):
        with pytest.raises(ValueError, match="overflows"):
            error_curve(
                values, **{**given, "initial_error": start * 1e90, "coefficients": beta * 1e90}
            )
        return
    found = error_curve(values, **given)
    for part, exact in zip((found.initial, found.private, found.label), wanted, strict=True):
        assert near(part[-1], exact, 1e-11), (part[-1], float(rational(exact)))
    sigma, zeta = magnitude(rng, 1e-250, 1e100), magnitude(rng, 1e-250, 1e100)
    total = wanted[0] + Fraction(sigma) ** 2 * wanted[1] + Fraction(zeta) ** 2 * wanted[2]
    if rational(total) < 1e290:
        risk = found.excess_risk(gradient_noise_std=sigma, label_noise_std=zeta)[-1]
        assert near(risk, total, 1e-11)


@SEEDS
def test_last_risks_and_tuned_steps_of_any_size(seed):
    """A change of all units at once: λ by s, η by 1/s, θ by t, gradients by s t, labels by t √s."""
    rng = np.random.default_rng(seed)
    values = magnitudes(rng, 1e-3, 1e3, 3)
    steps = int(rng.integers(1, 40))
    shift, size = int(rng.integers(-70, 70)) * 2, int(rng.integers(-560, 30))
    unit, root, scale = 2.0**shift, 2.0 ** (shift // 2), 2.0**size
    plain = {
        "noise_multiplier": float(rng.choice([0.0, magnitude(rng, 1e-3, 1e6)])),
        "clip_norm": 1.0,
        "initial_error": rng.standard_normal(3),
        "label_noise_std": float(rng.choice([0.0, 1.0])),
        "steps": steps,
    }
    other = {
        **plain,
        "noise_multiplier": plain["noise_multiplier"] * scale,
        "clip_norm": unit,
        "initial_error": plain["initial_error"] * scale,
        "label_noise_std": plain["label_noise_std"] * scale * root,
    }
    if not other["noise_multiplier"] <= 1e40:
        return
    rate = float(values.min())
    for noise, moved in (
        (independent_noise, independent_noise),
        (damped_noise(rate), damped_noise(rate * unit)),
    ):
        first = tune_step_size(values, correlations=noise, **plain)
        second = tune_step_size(values * unit, correlations=moved, **other)
        changed = mp.mpf(first.excess_risk) * mp.mpf(scale) ** 2 * unit
        if changed == 0 or changed > 1e-290:
            assert near(second.step_size * unit, first.step_size, 2e-3)
            assert near(second.excess_risk, changed, 1e-5)
        eta = float(magnitude(rng, 1e-6, 0.5) / values.sum())
        one = final_excess_risk(values, step_size=eta, correlations=noise, **plain)
        two = final_excess_risk(values * unit, step_size=eta / unit, correlations=moved, **other)
        assert near(two, mp.mpf(one) * mp.mpf(scale) ** 2 * unit, 1e-12)


@SEEDS
def test_stationary_risks_of_any_size(seed):
    rng = np.random.default_rng(seed)
    mp.dps = 260
    values = magnitudes(rng, 1e-50, 1e50, int(rng.integers(1, 5)))
    limit = linear_regression.stability_limit(values)
    least = 1.01e-100 / values.min()
    if least > 0.9 * limit:
        return
    eta = float(np.clip(limit * magnitude(rng, 1e-60, 0.9), least, 0.9 * limit))
    nu = float(rng.choice([0.0, magnitude(rng, 1e-100, 1.0)]))
    noise = StationaryNoise.damped_anti_pgd(nu)
    sigma, zeta = (float(rng.choice([0.0, magnitude(rng, 1e-200, 1e100)])) for _ in range(2))
    common = {"step_size": eta, "noise": noise, "gradient_noise_std": sigma}
    common["label_noise_std"] = zeta
    lam, step, damp = [mp.mpf(v) for v in values], mp.mpf(eta), mp.mpf(nu)
    c = [damp**2 + 2 * (1 - damp) * step * v for v in lam]
    gain = [step / 2 / (1 - step * v) for v in lam]
    rest = 1 - mp.fsum(g * v for g, v in zip(gain, lam, strict=True))
    private = mp.mpf(sigma) ** 2 * mp.fsum(g * x for g, x in zip(gain, c, strict=True)) / rest
    label = mp.mpf(zeta) ** 2 * (1 - rest) / rest
    found = linear_regression.stationary_error(values, **common)
    assert near(found.private, private / 2, 1e-10)
    assert near(found.label, label / 2, 1e-10)
    assert near(found.excess_risk, (private + label) / 2, 1e-10)
    for s, g, v, x in zip(found.variances, gain, lam, c, strict=True):
        drive = mp.mpf(zeta) ** 2 + mp.mpf(sigma) ** 2 * x / v
        assert near(s, g * (private + label + drive), 1e-10)
    linear = linear_regression.linear_response_risk(values, **common)
    pairs = list(zip(lam, c, strict=True))
    wanted = mp.fsum(
        step / 2 * (mp.mpf(sigma) ** 2 * x + mp.mpf(zeta) ** 2 * v) / (2 - step * v)
        for v, x in pairs
    )
    assert near(linear, wanted, 1e-12)
    below = bounds.stationary_lower_bound(values, domain="time", **common)
    total = mp.mpf(zeta) ** 2 * mp.fsum(lam) + mp.mpf(sigma) ** 2 * mp.fsum(c)
    assert near(below, step / 4 * total, 1e-12)
    moment = float(rng.choice([magnitude(rng, 1e-100, 0.5), 0.999999]) / eta)
    if moment <= 1e50:
        above = bounds.stationary_upper_bound(values, fourth_moment=moment, kurtosis=2.0, **common)
        x = step * mp.mpf(moment)
        spread = 1 / (1 - mp.sqrt(x)) ** 2
        wanted = (1 + spread) * x * mp.mpf(zeta) ** 2
        wanted += (1 + 2 * spread) * step * mp.mpf(sigma) ** 2 * mp.fsum(c)
        assert near(above, wanted, 1e-9)
    z, norm = magnitude(rng, 1e-200, 1e50), magnitude(rng, 1e-200, 1e50)
    plain = bounds.universal_lower_bound(
        values, step_size=eta, noise_multiplier=z, clip_norm=norm, label_noise_std=zeta
    )
    wanted = 2 * step * mp.mpf(zeta) ** 2 + (step * mp.mpf(z) * mp.mpf(norm)) ** 2
    assert near(plain, wanted * mp.fsum(lam) / 8, 1e-12)


@SEEDS
def test_means_under_noise_of_any_size(seed):
    rng = np.random.default_rng(seed)
    rate, law = magnitude(rng, 1e-100, 1.0), magnitude(rng, 1e-250, 1e250)
    sigma, spread = (float(rng.choice([0.0, magnitude(rng, 1e-200, 1e100)])) for _ in range(2))
    r, moved = mp.mpf(rate), mp.mpf(sigma) ** 2 * mp.mpf(law)
    noise = StationaryNoise(1.0, np.ones_like, lambda b: np.full_like(b, law))
    given = {"noise": noise, "gradient_noise_std": sigma, "sample_std": spread}
    if moved > 1e300:
        with pytest.raises(ValueError, match="noise must be of a size"):
            mean_estimation.stationary_excess_risk(rate, **given)
        return
    found = float(mean_estimation.stationary_excess_risk(rate, **given))
    assert near(found, r / (2 * (2 - r)) * (moved + mp.mpf(spread) ** 2), 1e-12)


@SEEDS
def test_transients_keep_what_is_left_of_the_start(seed):
    """An upper bound of 0 would be false: (λ₁/λ_d) F₀ can outweigh an exponential that is 0."""
    rng = np.random.default_rng(seed)
    mp.dps = 60
    values = magnitudes(rng, 1e-50, 1e50, 3)
    eta = magnitude(rng, 1e-6, 0.9) / bounds.fourth_moment_bound(values)
    step = rng.uniform(0, 1200) / (eta * values.min())
    first, last = (float(rng.choice([0.0, magnitude(rng, 1e-100, 1e100)])) for _ in range(2))
    found = bounds.transient_bound(
        step, eigenvalues=values, step_size=eta, initial_risk=first, stationary_risk=last
    )
    low, high = mp.mpf(values.min()), mp.mpf(values.max())
    start = mp.sqrt(high / low * mp.mpf(first) * mp.exp(-mp.mpf(eta) * low * mp.mpf(step)))
    assert near(float(found), (start + mp.sqrt(mp.mpf(last))) ** 2, 1e-11)


@SEEDS
def test_calibrated_noise_of_any_size(seed):
    rng = np.random.default_rng(seed)
    squared, rho = magnitude(rng, 1e-300, 1e300), magnitude(rng, 5e-324, 1.7e308)
    norm = magnitude(rng, 1e-100, 1e100)
    found = calibrated_noise_std(
        squared_sensitivity=squared, clip_norm=norm, budget=Budget.zcdp(rho, neighbours="zero-out")
    )
    wanted = mp.sqrt(mp.mpf(squared) / (2 * mp.mpf(rho))) * mp.mpf(norm)
    assert near(found, wanted, 1e-14)


@pytest.mark.parametrize("seed", range(12))
def test_any_spectrum_in_any_unit(seed):
    """A power of two in the spectrum moves the sensitivity and the variance by powers of two."""
    rng = np.random.default_rng(seed)
    radius, unit = rng.uniform(0.0, 0.95), 2.0 ** int(rng.integers(-900, 900))

    def power(w):
        return 1 + radius**2 - 2 * radius * np.cos(w)

    noise = StationaryNoise.from_power(lambda w: unit * power(w), smallest_frequency=1.0)
    assert near(noise.squared_sensitivity, 1 / mp.mpf(unit) / (1 - mp.mpf(radius) ** 2), 1e-10)
    b = magnitude(rng, 1e-100, 1.0)
    law = 1 + mp.mpf(radius) ** 2 - 2 * mp.mpf(radius) * (1 - mp.mpf(b))
    assert near(float(noise.relative_variance(b)), law * mp.mpf(unit), 1e-9)
    values = magnitudes(rng, 1e-50, 1e50, int(rng.integers(1, 4)))
    eta = float(np.clip(magnitude(rng, 1e-40, 1.0) / values.max(), 1e-100 / values.min(), None))
    if eta * values.max() <= 1:
        best = StationaryNoise.regression_optimal(values, step_size=eta)
        moved = best.relative_variance(np.maximum(eta * values, 1e-100))
        # Cauchy-Schwarz with equality, for features that do not fluctuate.
        risk = np.sum(moved / (eta * (2 - eta * values)))
        assert near(risk, best.squared_sensitivity, 1e-8)
