"""Closed forms of one-pass DP-GD over their whole documented domain, in many digits."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import mpmath as mp
import numpy as np
import pytest

from privreg.spectra import Spectrum, power_law_edge
from privreg.theory.one_pass_dpgd import minimax_risk, optimal_harmonic, scaling_laws, volterra
from privreg.theory.one_pass_dpgd.clipping import clip_ratio, descent_factor, variance_factor

from ..draws import Exact, near, numbers, size

SEEDS = range(200)


def setting(rng: np.random.Generator, *names: str) -> dict[str, float]:
    return {name: size(rng, -32, 32) for name in names}


def exact_factors(ratio: Exact) -> tuple[Exact, Exact]:
    """Of the drift and of the second moment, by incomplete gamma functions."""
    if ratio > 1e3:
        return mp.mpf(1), mp.mpf(1)
    half = ratio**2 / 2
    tail = ratio**2 * mp.gammainc(0.5, half, mp.inf, regularized=True)
    # The truncated second moment by its series, which has no difference.
    inside = mp.hyp1f1(1, 2.5, half) * mp.exp(-half) * half**1.5 / mp.gamma(2.5)
    return mp.erf(ratio / mp.sqrt(2)), tail + inside


def test_clipping_factors() -> None:
    with mp.workdps(60):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            risk, noise = (float(rng.choice([0.0, size(rng, -32, 32)])) for _ in range(2))
            scale = np.sqrt(2 * risk + noise**2) or 1.0
            clip = float(np.clip(rng.choice([1.0, scale]) * size(rng, -32, 32), 1e-32, 1e32))
            clip = float(rng.choice([clip, clip, clip, inf]))
            options = {"clip_constant": clip, "label_noise_std": noise}
            loss = 2 * mp.mpf(risk) + mp.mpf(noise) ** 2
            ratio = mp.inf if loss == 0 or clip == inf else mp.mpf(clip) / mp.sqrt(loss)
            if ratio != mp.inf:
                assert near(clip_ratio(risk, **options), ratio, 1e-14)
            drift, kept = exact_factors(ratio)
            assert near(descent_factor(risk, **options), drift, 1e-14), seed
            assert near(variance_factor(risk, **options), kept, 1e-13), seed


def test_kernels_of_power_laws() -> None:
    """Beyond order 170 the gamma function overflowed, and the kernel was NaN."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        phi = 1 - size(rng, -9, 2) if seed % 2 else rng.uniform(-2, 0.9)
        phi = max(phi, -100.0)
        low = max(-100.0, 1.999 - phi - size(rng, -6, 2))
        psi = float(rng.choice([rng.uniform(low, 1.999 - phi), low]))
        scale = size(rng, -32, 32)
        try:
            kernels = volterra.power_law_kernels(phi, psi, signal_scale=scale)
        except ValueError as error:
            if "double precision" not in str(error):
                raise
            continue
        x = np.append(10.0 ** rng.uniform(-20, 6, 4), [0.0, size(rng, 6, 300)])
        powers = {"signal": 1 - mp.mpf(psi), "sampling": 2, "private": 1, "mass": 0}
        with mp.workdps(40):
            edge = (2 - mp.mpf(phi)) / (1 - mp.mpf(phi))
            assert near(power_law_edge(phi), edge, 1e-15)
            for name, power in powers.items():
                order = power + 1 - mp.mpf(phi)
                front = (1 - mp.mpf(phi)) * edge**power * (scale if name == "signal" else 1)
                for at, found in zip(x, getattr(kernels, name)(x), strict=True):
                    z = 2 * edge * mp.mpf(float(at))
                    if z < 1e4:
                        wanted = mp.hyp1f1(order, order + 1, -z) / order
                    else:
                        wanted = mp.gamma(order) / z**order
                    # Rounded exponents are multiplied by logarithms.
                    digits = 1e-14 * (1 + abs(mp.log(edge) * power) + 30 * order)
                    assert near(found, front * wanted, digits), (seed, name, at)


def test_kernels_of_any_spectrum() -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        count = int(rng.integers(1, 5))
        values = size(rng, -150, 149) * 10.0 ** (-rng.choice([0, 1, 20]) * rng.random(count))
        values[0] *= rng.random() > 0.2
        shares = 10.0 ** (-rng.choice([0, 20]) * rng.random(count))
        signal = rng.choice([0.0, 1.0, 1.0], count) * size(rng, -31, 31)
        spectrum = Spectrum(values, shares / shares.sum())
        kernels = volterra.spectrum_kernels(spectrum, signal)
        x = size(rng, -3, 2) / max(values.max(), 1e-150)
        with mp.workdps(40):
            modes = list(zip(*map(numbers, (values, spectrum.weights, signal)), strict=True))
            for name, power in {"signal": 1, "sampling": 2, "private": 1, "mass": 0}.items():
                wanted = mp.fsum(
                    w * (s if name == "signal" else 1) * v**power * mp.exp(-2 * v * mp.mpf(x))
                    for v, w, s in modes
                )
                assert near(getattr(kernels, name)(x), wanted, 1e-12), (seed, name)


def test_squares_of_eigenvalues_that_overflow_are_refused() -> None:
    """The kernel of sampling noise was infinite at 0 and NaN behind it."""
    with pytest.raises(ValueError, match="eigenvalues of spectrum must"):
        volterra.spectrum_kernels(Spectrum(np.array([1e300]), np.ones(1)))


def test_limits_of_the_best_harmonic_rate() -> None:
    with mp.workdps(60):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            options = setting(rng, "clip_constant", "label_noise_std")
            clip, noise = numbers(list(options.values()))
            drift, kept = exact_factors(clip / noise)
            found = optimal_harmonic.sampling_limit(**options)
            assert near(found, kept * (noise / drift) ** 2 / 2, 1e-12), seed
            found = optimal_harmonic.privacy_limit(**options)
            assert near(found, mp.mpf(27) / 2 * (clip / drift) ** 2, 1e-12), seed


@pytest.mark.parametrize("seed", range(100))
def test_least_risk(seed: int) -> None:
    """The time that the fastest descent takes to the risk found, by quadrature."""
    rng = np.random.default_rng(seed)
    options = setting(rng, "aspect_ratio", "clip_constant", "label_noise_std", "start")
    if seed % 2:
        options["label_noise_std"] = size(rng, -8, 4) * np.sqrt(options["start"])
        near_noise = options["label_noise_std"] * size(rng, -6, 6)
        options["clip_constant"] = float(np.clip(near_noise, 1e-32, 1e32))
        options["aspect_ratio"] = size(rng, -10, 3)
    options["label_noise_std"] = float(np.clip(options["label_noise_std"], 1e-32, 1e32))
    try:
        found = optimal_harmonic.least_risk(**options)
    except ValueError as error:
        if "start must" not in str(error) and "least risk" not in str(error):
            raise
        return
    start, gamma = options["start"], options["aspect_ratio"]
    factors = {name: options[name] for name in ("clip_constant", "label_noise_std")}

    def density(depth: np.ndarray) -> np.ndarray:
        risk = start * np.exp(-depth)
        kick = variance_factor(risk, **factors) * (risk + options["label_noise_std"] ** 2 / 2)
        return kick / (descent_factor(risk, **factors) ** 2 * risk)

    depth = float(-mp.log(mp.mpf(found) / mp.mpf(start)))
    points, weights = np.polynomial.legendre.leggauss(20)
    width = depth / (1 + int(2 * depth))
    nodes = width * (np.arange(1 + int(2 * depth))[:, None] + (points + 1) / 2)
    time = np.sum(density(nodes) * weights * width / 2)
    # What an error of the risk of 1e-6 is worth.
    assert abs(time - 1 / gamma) <= 1e-6 * density(np.array(depth)), seed


def test_explicit_constants() -> None:
    right = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        options = setting(rng, "aspect_ratio", "zcdp_root", "label_noise_std", "start")
        if seed % 2:
            options |= {name: size(rng, -6, 6) for name in options}
        options |= {"smallest": size(rng, -32 + 26 * (seed % 2), 0)}
        options |= {"largest": size(rng, 0, 32 - 26 * (seed % 2))}
        try:
            found = optimal_harmonic.explicit_constants(**options)
        except ValueError as error:
            if "beta and tau" not in str(error):
                raise
            continue
        with mp.workdps(40):
            gamma, rho, noise, start, smallest, largest = numbers(list(options.values()))
            numerator = 3 * mp.sqrt(start + noise**2 / 2 + 90) / smallest
            clip = mp.sqrt(2) * numerator
            first, second = largest * clip**2 * gamma / 2, 4 * (clip * gamma / rho) ** 2
            offset = max(first, 2 * mp.sqrt(second))
            bound = offset**3 * start + numerator**2 * (first / 2 + second * 5 / 2)
        assert near(found.schedule.numerator, numerator, 1e-14), seed
        assert near(found.schedule.offset, offset, 1e-14), seed
        assert near(found.clip_constant, clip, 1e-14), seed
        assert near(found.bound, bound, 1e-13), seed
        right += 1
    assert right > 60


def test_the_prior_of_the_lower_bounds() -> None:
    """In exact fractions; what rounding the edge of the support changes is allowed."""
    eps = Fraction(1, 2**52)
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        d = int(size(rng, 0, 15))
        inside = min(1 - size(rng, -16, 0), 1.0)
        z = float(
            rng.choice([-1, 1]) * inside / np.sqrt(d) * rng.choice([0.0, 1.0, size(rng, -300, 0)])
        )
        point = Fraction(z)
        left = max(Fraction(1, d) - point**2, Fraction(0))
        unit = Fraction(float(mp.mpf(15) / 16 * mp.mpf(d) ** 2.5))
        wanted = unit * left**2
        slack = 16 * eps * (wanted + 2 * unit * left * 4 / d) + (16 * eps / d) ** 2 * unit
        found = Fraction(float(minimax_risk.prior_density(z, dimension=d)))
        assert abs(found - wanted) <= slack, seed
        if left > 0 and abs(z) < 1 / np.sqrt(d):
            found = Fraction(float(minimax_risk.prior_score(z, dimension=d)))
            wanted = -4 * point / left
            assert abs(found - wanted) <= abs(wanted) * 16 * eps * (1 + 1 / d / left), seed


def test_lower_bounds() -> None:
    """Beyond a root of 26.6 the private bound was 0, where it can be 1e-180."""
    with mp.workdps(40):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            options = setting(rng, "aspect_ratio", "zcdp_root", "label_noise_std", "smallest")
            if seed % 2:
                options["zcdp_root"] = rng.uniform(0.01, 40)
            gamma, rho, noise, smallest = numbers(list(options.values()))
            wanted = min(smallest / 80, noise**2 / 8 * gamma**2 / mp.expm1(min(rho, 1e4) ** 2))
            assert near(minimax_risk.private_bound(**options), wanted, 1e-12), seed
            share, largest = size(rng, -300, 0) * 0.999, size(rng, 0, 32)
            found = minimax_risk.statistical_bound(
                aspect_ratio=share, label_noise_std=float(noise), largest=largest
            )
            assert near(found, noise**2 * mp.mpf(share) / (8 * mp.mpf(largest)), 1e-14), seed


def drawn_powers(rng: np.random.Generator) -> tuple[float, float, float, float]:
    phi = 1 - size(rng, -12, 12)
    psi = min((1 - phi) * (1 - size(rng, -3, 3)), 1e12)
    if rng.integers(2):
        psi = 1 - phi - size(rng, -2, 12)
    psi = float(np.clip(psi, -1e12, np.nextafter(1 - phi, -inf)))
    alpha = float(rng.choice([0.0, 0.5, size(rng, -2, 12)]))
    return max(phi, -1e12), psi, alpha, 1 - min(size(rng, -12, 12), 1e12)


def test_scaling_laws_in_fractions() -> None:
    """The critical power of long schedules next to phi = 1 and psi = 0 was wrong by 1e-10."""
    corner = (0.9999999970196808, -1.8411612286586437e-06, 47460426774.83044, 0.3)
    for seed in range(500):
        powers = drawn_powers(np.random.default_rng(seed)) if seed else corner
        phi, psi, alpha, b = map(Fraction, powers)
        width, kappa = alpha + 1, 2 - phi - psi
        reach = kappa * width
        critical = (reach + 2 - max(Fraction(2), phi * width)) / (2 * (reach + 1))
        assert scaling_laws.critical_privacy_power(*powers[:3]) == pytest.approx(
            float(critical), rel=1e-12
        ), seed
        limit = min(Fraction(1), 2 * (1 - b) * kappa / (kappa + max(phi, Fraction(0))))
        found = scaling_laws.limiting_exponent(powers[0], powers[1], powers[3])
        assert found == pytest.approx(float(limit), rel=1e-12), seed
        # The best exponent and its rate follow from the terms being equal, whatever the case.
        best = scaling_laws.optimal_exponent(*powers)
        slope = max(2 / width, phi)
        rate = -width / (reach + 1) if b <= critical else -2 * (1 - b) / (kappa + slope)
        assert best.learning_rate == pytest.approx(float(rate), rel=1e-8), seed
        assert best.risk == pytest.approx(float(-kappa * rate), rel=1e-8), seed
        terms = scaling_laws.term_exponents(
            float(rate),
            spectrum_power=powers[0],
            signal_power=powers[1],
            schedule_power=powers[2],
            privacy_power=powers[3],
        )
        a = Fraction(float(rate))
        wanted = [-a * kappa, a / width + 1, 2 - 2 * b + a * slope]
        sizes = [abs(a * kappa), 1 + abs(a / width), 2 + 2 * abs(b) + abs(a * slope)]
        for term, value, scale in zip(terms, wanted, sizes, strict=True):
            assert abs(Fraction(float(term)) - value) <= scale * Fraction(1, 10**14), seed
