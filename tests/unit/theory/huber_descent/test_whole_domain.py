"""Laws of the last iterate over the whole range of doubles, in two hundred digits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from privreg.theory.huber_descent.last_iterate import privacy_covariance, sandwich

EPS = float(np.finfo(float).eps)


def exact(matrix: np.ndarray) -> mp.matrix:
    return mp.matrix(matrix.tolist())


def drawn(rng: np.random.Generator, p: int, end: float) -> np.ndarray:
    """A symmetric matrix of any size, now and then of low rank or zero."""
    root = rng.standard_normal((p, p)) * rng.choice([0.0, 1.0, 1.0, 1.0], p)
    return root @ root.T * 10.0 ** rng.uniform(-end, end)


def test_the_last_iterate_over_the_whole_domain() -> None:
    """Squares of small noise vanished beside large steps: whole covariances became 0."""
    right = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        p, steps = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        slope, start = drawn(rng, p, 300), drawn(rng, p, 300)
        unit = 10.0 ** rng.uniform(-300, 300)
        matrices = rng.standard_normal((steps, p, p)) * unit
        stds = rng.choice([0.0, 1.0], steps) * np.clip(
            10.0 ** rng.uniform(-99, 99) / unit, 0, 1e300
        )
        unknown = float(rng.choice([0.0, min(10.0 ** rng.uniform(-99, 99) / unit, 1e150)]))
        try:
            found = privacy_covariance(
                slope, matrices, stds, start_covariance=start, curvature_noise=unknown
            )
        except ValueError as error:
            if "double precision" not in str(error):
                raise
            continue
        with mp.workdps(200):
            wanted, one = exact(start), mp.eye(p)
            rounding = np.abs(np.array(start)) * mp.mpf(1)
            for matrix, std in zip(matrices, stds, strict=True):
                step = exact(matrix)
                kept = one - step * exact(slope)
                trace = mp.fsum(wanted[i, i] for i in range(p))
                missed = mp.mpf(unknown) ** 2 / 2 * (trace * one + wanted)
                wanted = kept * wanted * kept.T
                wanted += step * (missed + mp.mpf(float(std)) ** 2 * one) * step.T
                # What rounding can change: the same sums of absolute values.
                size, sizes = np.abs(matrix) * mp.mpf(1), np.abs(slope) * mp.mpf(1)
                reach = np.eye(p) * mp.mpf(1) + size.dot(sizes)
                spread = np.trace(rounding) * np.eye(p) + rounding
                fresh = mp.mpf(unknown) ** 2 / 2 * spread + mp.mpf(float(std)) ** 2 * np.eye(p)
                rounding = reach.dot(rounding).dot(reach.T) + size.dot(fresh).dot(size.T)
            tolerance = 100 * steps * p * EPS * rounding + mp.mpf("1e-290")
            off = np.abs(found - np.array(wanted.tolist(), dtype=object).reshape(p, p)) - tolerance
        assert np.all(off <= 0), seed
        right += 1
    assert right > 75


def test_the_sandwich_over_the_whole_domain() -> None:
    right = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(1, 4))
        slope = rng.standard_normal((p, p)) * 10.0 ** rng.uniform(-300, 300)
        middle, n = drawn(rng, p, 300), 10.0 ** rng.uniform(0, 300)
        try:
            found = sandwich(slope, middle, sample_size=n)
        except ValueError as error:
            if "double precision" not in str(error) and "invertible" not in str(error):
                raise
            continue
        with mp.workdps(200):
            inverse = exact(slope) ** -1
            wanted = inverse * exact(middle) * inverse.T / mp.mpf(n)
            largest = mp.mnorm(inverse, 1) ** 2 * mp.mnorm(exact(middle), 1) / mp.mpf(n)
            condition = float(mp.mnorm(inverse, 1) * mp.mnorm(exact(slope), 1))
            tolerance = 100 * p * condition * EPS * largest + mp.mpf("1e-290")
            assert mp.mnorm(exact(found) - wanted, 1) <= tolerance, seed
        right += 1
    assert right > 60


def test_a_sample_of_less_than_one_record_is_refused() -> None:
    """What is left of a subnormal number would be divided by it."""
    with pytest.raises(ValueError, match="sample_size must be"):
        sandwich([[1e160]], [[1e-160]], sample_size=1e-300)
