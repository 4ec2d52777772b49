"""The tail of the products that least squares sums, from a noisy histogram, and where to clip."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privreg.algorithms.split_budget import NoisyValue
from privreg.immutable import Rebuilt, frozen
from privreg.theory.bias_aware import bias_aware_quantile

FloatArray = NDArray[np.float64]
# What is assumed of the tail: standard deviation of the second difference of log counts where they
# are convex, and where they are concave. Power laws continue, lighter tails are preferred.
CONVEX, CONCAVE = 0.2, 1.0
# Probability that noise in any of the counts is taken for records, and how log counts must fall, a
# bin, beyond the last that is not: products of finite variance, as all standard errors suppose.
FALSE_ALARM, FALL, STRICT = 0.01, float(np.log(2.0)) / 2, 0.05
# Deviations of the tail's own estimate that are added to it.
CAUTION = 0.25
# Share of the largest bias that falls on one direction, for the choice of a clip.
LEAN = 0.6
PARTS = 8


@dataclass(frozen=True)
class ProductTail(Rebuilt):
    r"""Law of q/√p, q the length of a record's gradient, smoothed from a private histogram.

    .. math::
        \min_\eta\ \sum_k \frac{(h_k - e^{\eta_k})^2}{2(\sigma_h^2 + 1)}
        + \sum_k \frac{(\Delta^2\eta_k)^2}{2\tau_k^2}

    with a smaller τ where Δ²η is positive: lighter tails are believed sooner than heavier ones, and
    power laws, straight lines in these bins, continue. Within bins log counts are linear. What lies
    where counts drown in noise is assumed by that, and not bounded.

    `edges` are the upper ends of all bins but the last, factors √2 apart. `smoothed` (bins,) is
    e^η, but for the first bin, which reaches to 0 and keeps its own count.
    """

    edges: FloatArray
    counts: NoisyValue
    sample_size: float
    smoothed: FloatArray = field(init=False)
    _covariance: FloatArray = field(init=False, repr=False)
    _points: FloatArray = field(init=False, repr=False)
    _shares: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ends, counts, std = self.edges, self.counts.value, self.counts.noise_std
        n = self.sample_size
        log_counts, covariance = _smooth(counts[1:], noise_std=std, sample_size=n)
        smoothed = np.concatenate([[np.clip(counts[0], 0.0, n)], np.exp(log_counts)])
        slopes = np.gradient(log_counts)
        places = (np.arange(PARTS) + 0.5) / PARTS
        weights = np.exp(np.clip(slopes, -60, 60)[:, None] * (places - 0.5))
        weights /= weights.sum(axis=1, keepdims=True)
        for name, array in {
            "edges": ends,
            "smoothed": smoothed,
            "_covariance": covariance,
            "_points": ends[:, None] * 2.0 ** (places / 2),
            "_shares": weights,
        }.items():
            object.__setattr__(self, name, frozen(array))
        object.__setattr__(self, "counts", NoisyValue(frozen(counts), std))

    def excess(self, width: float) -> float:
        """m₁: mean of (q/√p - t)₊ at t = `width`, and a quarter of its own deviation more."""
        by_bin = np.sum(self._shares * np.maximum(self._points - width, 0.0), axis=1)
        gradient = by_bin * self.smoothed[1:] / self.sample_size
        deviation = float(np.sqrt(max(gradient @ self._covariance @ gradient, 0.0)))
        return float(gradient.sum()) + CAUTION * deviation

    def mean_square(self, width: float) -> float:
        """m₂: mean of min(q/√p, t)²."""
        by_bin = np.sum(self._shares * np.minimum(self._points, width) ** 2, axis=1)
        first = min(self.edges[0], width) ** 2 / 3 * self.smoothed[0]
        return float((by_bin @ self.smoothed[1:] + first) / self.sample_size)

    def share_beyond(self, width: float) -> float:
        """Share of the records with q/√p more than t, those that the clip touches."""
        by_bin = np.sum(self._shares * (self._points > width), axis=1)
        return float(min(by_bin @ self.smoothed[1:] / self.sample_size, 1.0))

    @property
    def seen(self) -> float:
        """Largest q/√p that counts tell from their noise, three deviations of a bin above 0."""
        last = _last_seen(self.counts.value[1:], noise_std=self.counts.noise_std)
        return float(self.edges[last]) if last >= 0 else 0.0

    def best_width(self, *, noise: float) -> float:
        r"""Clip t of the shortest interval, its allowance for bias included, at private noise ν t.

        .. math::
            \arg\min_t\ c(b/s)\,s, \qquad b = \kappa\,m_1(t),\quad s^2 = m_2(t)/n + (t\nu)^2
        """
        grid = np.geomspace(self.edges[0], 2 * self.edges[-1], 6 * len(self.edges) + 1)
        points, shares = self._points, self._shares
        beyond = np.maximum(points[None] - grid[:, None, None], 0.0)
        gradient = np.sum(shares * beyond, axis=2) * self.smoothed[1:] / self.sample_size
        deviation = np.sqrt(
            np.maximum(np.einsum("ij,jk,ik->i", gradient, self._covariance, gradient), 0.0)
        )
        bias = LEAN * (gradient.sum(axis=1) + CAUTION * deviation)
        inside = np.sum(shares * np.minimum(points[None], grid[:, None, None]) ** 2, axis=2)
        second = inside @ self.smoothed[1:] + self.edges[0] ** 2 / 3 * self.smoothed[0]
        std = np.sqrt(second / self.sample_size**2 + (noise * grid) ** 2)
        length = bias_aware_quantile(np.minimum(bias / std, 1e100)) * std
        return float(grid[np.argmin(length)])


def _smooth(
    counts: FloatArray, *, noise_std: float, sample_size: float
) -> tuple[FloatArray, FloatArray]:
    """Log counts of least penalised squares, and their covariance by curvature.

    Levenberg's damped Gauss-Newton steps; the penalty's weights follow the second differences.
    """
    size = len(counts)
    variance = noise_std**2 + 1.0
    first, second = (np.diff(np.eye(size), order, axis=0) for order in (1, 2))
    first = first[max(_last_seen(counts, noise_std=noise_std), 0) :]
    top = np.log(2 * sample_size)
    eta = np.log(np.clip(counts, np.sqrt(variance), 2 * sample_size))

    def value(log_counts: FloatArray) -> float:
        bends = second @ log_counts
        width = np.where(bends > 0, CONVEX, CONCAVE)
        misfit = counts - np.exp(log_counts)
        flat = np.maximum(first @ log_counts + FALL, 0.0) / STRICT
        penalty = np.sum((bends / width) ** 2) + flat @ flat
        return float((misfit @ misfit / variance + penalty) / 2)

    def derivatives(log_counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        mass = np.exp(log_counts)
        weights = np.where(second @ log_counts > 0, CONVEX, CONCAVE) ** -2
        flat = np.maximum(first @ log_counts + FALL, 0.0) / STRICT**2
        active = first[flat > 0] / STRICT
        penalty = second.T @ (weights[:, None] * second)
        slope = -(counts - mass) * mass / variance + penalty @ log_counts + first.T @ flat
        return slope, np.diag(mass**2 / variance) + penalty + active.T @ active

    damping, now = 1.0, value(eta)
    slope, hessian, stale = np.zeros(size), np.eye(size), True
    for _ in range(200):
        if stale:
            slope, hessian = derivatives(eta)
        moved = eta - np.linalg.solve(hessian + damping * np.eye(size), slope)
        moved = np.clip(moved, -700.0, top)
        after = value(moved)
        stale = after < now
        if stale:
            gain, eta, now, damping = now - after, moved, after, max(damping / 5, 1e-9)
            if gain < 1e-9 * (1 + now):
                break
        else:
            damping *= 4
            if damping > 1e12:
                break
    return eta, np.asarray(np.linalg.inv(hessian + 1e-9 * np.eye(size)), dtype=np.float64)


def _last_seen(counts: FloatArray, *, noise_std: float) -> int:
    """Last count beyond the largest of as many noises, but for `FALSE_ALARM`; -1 without one."""
    least = noise_std * float(ndtri(1 - FALSE_ALARM / len(counts)))
    return int(np.max(np.flatnonzero(counts > least), initial=-1))
