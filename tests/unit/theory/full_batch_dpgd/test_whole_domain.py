"""The law of full-batch descent at sizes whose squares are no numbers, in many digits."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp

from privreg.theory.full_batch_dpgd.law import GradientDescentLaw, clipping_bound
from privreg.theory.full_batch_dpgd.no_clipping import no_clipping_ratios

from ...magnitudes import magnitude, magnitudes, near

SEEDS = pytest.mark.parametrize("seed", range(40))


def drawn_law(rng: np.random.Generator, p: int, step: float) -> GradientDescentLaw:
    """Contractions anywhere from next to 1 to some growth, in axes that are the coordinates."""
    pull = np.array([magnitude(rng, 1e-18, 2.5) for _ in range(p)])
    pull *= rng.random(p) < 0.9
    return GradientDescentLaw(
        np.minimum(pull / step, 1e30),
        np.eye(p),
        rng.standard_normal(p) * magnitude(rng, 1e-200, 1e20),
        rng.standard_normal(p) * magnitude(rng, 1e-200, 1e20),
        step,
        float(rng.choice([0.0, magnitude(rng, 1e-200, 1e30)])),
    )


def contractions(law: GradientDescentLaw) -> list[mp.mpf]:
    return [1 - mp.mpf(law.step_size) * mp.mpf(float(w)) for w in law.eigenvalues]


@SEEDS
def test_functionals_are_sums_over_the_draws(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mp.dps = 60
    law = drawn_law(rng, int(rng.integers(1, 3)), magnitude(rng, 1e-200, 1e30))
    steps, rows = int(rng.integers(1, 9)), int(rng.integers(1, 3))
    # Often as small as the noise is large.
    most = min(1e30, 1e3 / max(law.step_size * law.gradient_noise_std, 1e-27))
    weights = rng.standard_normal((rows, steps)) * magnitude(rng, 1e-250, most)
    bias, covariance = law.functionals(weights)
    w = [[mp.mpf(float(x)) for x in row] for row in weights]
    variance = (mp.mpf(law.step_size) * mp.mpf(law.gradient_noise_std)) ** 2
    for j, a in enumerate(contractions(law)):
        offset = mp.mpf(float(law.start[j])) - mp.mpf(float(law.minimiser[j]))
        # The distance itself is rounded once.
        for row, found in zip(w, bias[j], strict=True):
            terms = [x * a**t * offset for t, x in enumerate(row, 1)]
            error = abs(mp.mpf(float(found)) - mp.fsum(terms))
            assert error <= 1e-14 * steps * mp.fsum(map(abs, terms)) + mp.mpf("1e-300")
        loads = [
            [mp.fsum(row[t] * a ** (t - s) for t in range(s, steps)) for s in range(steps)]
            for row in w
        ]
        sizes = [
            mp.fsum(
                mp.fsum(abs(row[t] * a ** (t - s)) for t in range(s, steps)) ** 2
                for s in range(steps)
            )
            for row in w
        ]
        for k in range(rows):
            for m in range(rows):
                wanted = variance * mp.fsum(x * y for x, y in zip(loads[k], loads[m], strict=True))
                size = variance * mp.sqrt(sizes[k] * sizes[m])
                error = abs(mp.mpf(float(covariance[j, k, m])) - wanted)
                assert error <= 1e-13 * size + mp.mpf("1e-300")


@SEEDS
def test_variances_of_minute_noise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mp.dps = 60
    step = magnitude(rng, 1e-300, 1e30)
    w = magnitude(rng, 1e-30, 1e30)
    if not 1e-300 < step * w < 1.9:
        w = float(np.clip(magnitude(rng, 1e-20, 1.9) / step, 1e-300, 1e30))
    noise = float(rng.choice([0.0, magnitude(rng, 1e-250, 1e30)]))
    law = GradientDescentLaw([w], [[1.0]], [0.0], [0.0], step, noise)
    x = mp.mpf(step) * mp.mpf(w)
    drive = (mp.mpf(step) * mp.mpf(noise)) ** 2
    long_run = drive / (x * (2 - x))
    if long_run < 1e300:
        assert near(float(law.stationary_covariance()[0, 0]), long_run, 1e-12)
    t = int(2 ** rng.uniform(0, 53))
    wanted = drive * (1 - (1 - x) ** (2 * t)) / (x * (2 - x))
    if 1e-16 < x < 0.9 and wanted < 1e300:
        assert near(float(law.mode_covariance(t, t)[0]), wanted, 1e-10)
        assert near(float(law.expected_squared_error(t)), wanted, 1e-10)


def tail(x: mp.mpf) -> mp.mpf:
    return mp.erfc(min(max(x, mp.mpf(-40)), mp.mpf(40)) / mp.sqrt(2)) / 2


@SEEDS
def test_clipping_of_rows_of_any_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mp.dps = 40
    n, p, steps = 4, 2, int(rng.integers(1, 5))
    x = rng.standard_normal((n, p)) * magnitudes(rng, 1e-250, 1e15, n)[:, None]
    x[0] *= rng.random() < 0.8
    step = magnitude(rng, 1e-3, 1.0)
    law = GradientDescentLaw(
        rng.uniform(0.1, 1.9, p) / step,
        np.eye(p),
        np.zeros(p),
        np.zeros(p),
        step,
        float(rng.choice([0.0, magnitude(rng, 1e-200, 1e-150), magnitude(rng, 1e-200, 1e15)])),
    )
    y = np.zeros(n) if rng.random() < 0.5 else rng.standard_normal(n) * magnitude(rng, 1e-200, 1e15)
    norms = [mp.sqrt(mp.fsum(mp.mpf(float(v)) ** 2 for v in row)) for row in x]
    # Near the deviation of some row's gradient, where there is one of any size.
    scale = (
        max(norms) * mp.mpf(law.step_size * law.gradient_noise_std) + mp.mpf(abs(y).max())
    ) * max(norms)
    clip = float(max(scale, mp.mpf("1e-320"))) * 10.0 ** rng.uniform(-1, 1)
    if not 0 < clip < 1e300:
        return
    _, share = clipping_bound(law, x, y, clip_norm=clip, steps=steps)
    total = mp.mpf(0)
    variance = (mp.mpf(law.step_size) * mp.mpf(law.gradient_noise_std)) ** 2
    for t in range(steps):
        for row, label, norm in zip(x, y, norms, strict=True):
            if norm == 0:
                continue
            width, centre = mp.mpf(clip) / norm, mp.mpf(float(label))
            spread = mp.sqrt(
                variance
                * mp.fsum(
                    mp.mpf(float(v)) ** 2 * mp.fsum(a ** (2 * k) for k in range(t))
                    for v, a in zip(row, contractions(law), strict=True)
                )
            )
            if spread == 0:
                total += abs(centre) > width
            else:
                total += tail((width + centre) / spread) + tail((width - centre) / spread)
    assert near(share, total / (steps * n), 1e-9) or abs(share - total / (steps * n)) < 1e-14


@SEEDS
def test_the_condition_of_rows_of_any_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mp.dps = 60
    n, p, steps = 3, 2, int(rng.integers(1, 4))
    x = rng.uniform(-1, 1, (n, p)) * magnitude(rng, 1e-250, 1e30)
    y, theta = rng.uniform(-1, 1, n) * magnitude(rng, 1e-250, 1e30), rng.uniform(-1, 1, p)
    eta = float(
        np.clip(magnitude(rng, 1e-300, 10.0) / max(np.max(np.abs(x)), 1e-100) ** 1.9, 1e-300, 1e30)
    )
    noise = magnitude(rng, 1e-30, 1e30)
    rows, labels = mp.matrix(x.tolist()), mp.matrix(y.tolist())
    sigma = rows.T * rows / n
    m = mp.eye(p) - mp.mpf(eta) * sigma
    residual = labels - rows * mp.matrix(theta.tolist())
    sums, power, moved, reached = mp.zeros(p), mp.eye(p), mp.mpf(0), mp.mpf(0)
    for _ in range(steps):
        sums, power = sums + mp.mpf(eta) * power, power * m
        moved = max(moved, *map(abs, rows * power * mp.matrix(theta.tolist())))
        reached = max(reached, *map(abs, rows * sums * rows.T * residual))
    found = no_clipping_ratios(
        x, y, target=theta, step_size=eta, steps=steps, label_noise_std=noise
    )
    norm = max(mp.sqrt(mp.fsum(v**2 for v in rows[i, :])) for i in range(n)) / mp.sqrt(p)
    # Sums with signs: to rounding of what enters them.
    residue = np.max(np.abs(y)) + np.max(np.abs(x)) * np.abs(theta).sum()
    assert near(found.feature_norm, norm, 1e-13)
    assert abs(
        found.residual - max(map(abs, residual)) / mp.mpf(noise)
    ) <= 1e-14 * residue / mp.mpf(noise)
    assert near(found.transported, moved, 1e-9)
    assert near(found.accumulated, reached / (mp.mpf(noise) * mp.sqrt(n * p)), 1e-8)


def test_what_overflows_is_refused() -> None:
    law = GradientDescentLaw([1e30], [[1.0]], [0.0], [1.0], 1e30, 1.0)
    with pytest.raises(ValueError, match="weights must be"):
        law.functionals(np.ones((1, 9)))
    wide = GradientDescentLaw([1.0], [[1.0]], [0.0], [1.0], 1e30, 0.0)
    with pytest.raises(ValueError, match="features must be"):
        clipping_bound(wide, [[1e30], [-1e30]], [1.0, 1.0], clip_norm=1.0, steps=11)
