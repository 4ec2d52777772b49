"""Full-batch DP-GD with per-row clipping, and screening for rows that are never clipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import ClassVar

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.samples import (
    LARGEST_PARAMETER,
    Chunk,
    Samples,
    as_samples,
    build,
    clippable_chunks,
    initial_point,
    released_setting,
    require_clip_norm,
    require_increasing,
    sum_clipped,
    sum_moments,
)
from privreg.algorithms.whitened_descent import SplitBudget
from privreg.checks import (
    MOST,
    FloatArray,
    Immutable,
    Rebuilt,
    frozen,
    require_array,
    require_count,
    require_each,
    require_number,
    require_real,
    require_rng,
    require_scale,
)
from privreg.kernels import standard_normal
from privreg.noise.exact import truncated_sum
from privreg.privacy.budget import (
    Budget,
    Neighbours,
    gaussian_noise_std,
    shared_sample_size,
    sum_sensitivity,
)
from privreg.privacy.release import USUAL, Diagnostic, OneOfMany, Release

KEPT_SHARE = 0.25
KEPT_NUMBERS = 1 << 24
PILOT_ROWS = 1 << 16


@dataclass(frozen=True, eq=False, init=False)
class ScreenedSamples(Immutable):
    """Sums over rows that are not clipped near a path of iterates; `kept` has all other rows.

    Only `screen` makes instances. `centres` (points, p) holds the path, a point per step; the last
    point stands for all later steps. `gram` (p, p) and `moment` (p,) are Σ x xᵀ and Σ x y over rows
    with gradients of norm at most `clip_norm` at all points within `radius` of the path.
    """

    not_private: ClassVar[bool] = True
    samples: Samples
    centres: FloatArray
    radius: float
    clip_norm: float
    gram: FloatArray = field(repr=False)
    moment: FloatArray = field(repr=False)
    kept: Chunk = field(repr=False)

    def holds(self, parameters: FloatArray, *, step: int) -> bool:
        """True if `parameters` (p, runs) are all within `radius` of the path's point at `step`."""
        centre = self.centres[min(step, len(self.centres) - 1)]
        gap = parameters - centre[:, None]
        return bool(np.max(np.einsum("jl,jl->l", gap, gap)) <= self.radius**2)

    def clipped_gradient_sum(
        self, parameters: FloatArray, *, clip_norm: FloatArray
    ) -> tuple[FloatArray, NDArray[np.int64]]:
        """Negative sum of all rows' clipped gradients, (p, runs), and numbers of clipped rows.

        Valid if `holds` is true and no entry of `clip_norm` is below that of the screening.
        """
        sums, clipped = sum_clipped(iter([self.kept]), parameters, clip_norm)
        return sums + self.moment[:, None] - self.gram @ parameters, clipped

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """XᵀX, shape (p, p), and Xᵀy, shape (p,), for the whole data set. Not private."""
        features, labels, _ = self.kept
        return self.gram + features.T @ features, self.moment + features.T @ labels


def screen(
    samples: Samples,
    *,
    clip_norm: float,
    step_size: float,
    gradient_noise_std: float,
    steps: int,
    lanes: int,
    start: FloatArray,
) -> ScreenedSamples | None:
    """Screen a data set for gradient descent with Gaussian noise; None if screening saves no time.

    The path of `ScreenedSamples` is noiseless, unclipped descent on the first 65,536 rows. With
    probability 0.999, `radius` covers the noise of all runs (`lanes`) at all steps. It also covers
    the sampling error of the first rows. Path and radius do not affect correctness, only how
    often a step must use all rows. Only the first rows are read more than once. The result is
    None if the descent diverges, or if more than 1/4 of the rows or 128 MB would have to be kept.
    """
    samples = as_samples(samples)
    chunks = clippable_chunks(samples, np.array([clip_norm]))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        radius, centres = _tube(
            chunks, samples.sample_size, start, step_size, gradient_noise_std, steps, lanes
        )
    if not (radius <= LARGEST_PARAMETER and np.max(np.abs(centres)) <= LARGEST_PARAMETER):
        return None
    p = samples.dimension
    gram, moment = np.zeros((p, p)), np.zeros(p)
    kept: list[Chunk] = [Chunk(np.empty((0, p)), np.empty(0), np.empty(0))]
    left = min(KEPT_SHARE * samples.sample_size, KEPT_NUMBERS / p)
    with np.errstate(over="ignore", invalid="ignore"):
        for features, labels, norms in chunks():
            # Centres by rows: the maximum over them then runs along contiguous numbers.
            residual = np.max(np.abs(labels - centres @ features.T), axis=0)
            # The margin covers rounding of the residuals, so that no row is called safe by an ulp.
            longest = norms * (residual + norms * radius) * (1 + 1e-9)
            safe = longest <= clip_norm
            if not np.all(safe):
                risky = ~safe
                kept.append(Chunk(features[risky], labels[risky], norms[risky]))
                left -= np.count_nonzero(risky)
                if left < 0:
                    return None
                features, labels = features[safe], labels[safe]
            gram += features.T @ features
            moment += features.T @ labels
        # No entry of a Gram matrix is larger than its largest on the diagonal.
        if not isfinite(float(gram.trace() + moment.sum())):
            return None
    return build(
        ScreenedSamples,
        samples=samples,
        centres=centres,
        radius=radius,
        clip_norm=clip_norm,
        gram=gram,
        moment=moment,
        kept=Chunk(*(frozen(np.concatenate(parts)) for parts in zip(*kept, strict=True))),
    )


def _first_rows(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    left = PILOT_ROWS
    for features, labels, norms in chunks:
        yield Chunk(features[:left], labels[:left], norms[:left])
        left -= labels.size
        if left <= 0:
            return


def _tube(
    chunks: Callable[[], Iterator[Chunk]],
    sample_size: int,
    start: FloatArray,
    step_size: float,
    gradient_noise_std: float,
    steps: int,
    lanes: int,
) -> tuple[float, FloatArray]:
    """Radius and centre path of `ScreenedSamples`, from the first rows."""
    rows = min(sample_size, PILOT_ROWS)
    totals = sum_moments(_first_rows(chunks()), start.size)
    covariance, moment = (total / rows for total in totals)
    if not (np.all(np.isfinite(covariance)) and np.all(np.isfinite(moment))):
        return np.inf, start[None]
    eigenvalues = np.linalg.eigvalsh(covariance)
    contraction = 1 - step_size * eigenvalues
    powers = np.zeros_like(contraction)
    for _ in range(min(steps, 10_000)):
        powers = 1 + contraction**2 * powers
    variances = (step_size * gradient_noise_std) ** 2 * powers
    # A Gaussian vector's norm exceeds √tr C + √(2 ‖C‖ ln(1/β)) with probability at most β.
    radius = np.sqrt(np.sum(variances)) + np.sqrt(
        2 * np.max(variances) * np.log(1000.0 * steps * lanes)
    )
    centres = [start]
    while len(centres) < min(steps, 500):
        move = step_size * (moment - covariance @ centres[-1])
        centres.append(centres[-1] + move)
        if not np.linalg.norm(move) > 1e-3 * radius:
            break
    path = np.array(centres)
    if rows < sample_size:
        # Twice the sampling error of a least-squares fit to the pilot rows alone.
        square = np.mean(np.concatenate([labels for _, labels, _ in _first_rows(chunks())]) ** 2)
        radius += 2 * np.sqrt(square * np.sum(1 / np.maximum(eigenvalues, 0)) / rows)
    # Without noise the radius is rounding's alone.
    return float(radius + 1e-9 * np.max(np.linalg.norm(path, axis=1))), path


@dataclass(frozen=True, eq=False)
class FullBatchIterates(Rebuilt):
    """Iterates of full-batch private gradient descent, for one or several settings.

    Attributes
    ----------
    iterates : ndarray, shape (*settings, runs, len(times), p)
        All iterates, for studies; `release` returns those of one setting with their budget.
    times : ndarray, shape (len(times),)
        Steps of the iterates, counted from 1; the start, step 0, is not released.
    clipped_fraction : Diagnostic of ndarray, shape (*settings, runs, steps)
        Share of rows with a clipped gradient at each step, computed without noise.
    clip_norm, gradient_noise_std : ndarray, shape settings
        Clipping bound γ and noise deviation λ of each setting.
    sample_size : float
        Divisor n of the gradient sums.
    """

    iterates: FloatArray
    times: NDArray[np.int64]
    clipped_fraction: Diagnostic[FloatArray]
    clip_norm: FloatArray
    gradient_noise_std: FloatArray
    sample_size: float
    _declared_size: float | None
    _settings: OneOfMany = field(repr=False)

    def __post_init__(self) -> None:
        # A release is accounted with these numbers.
        for name in ("clip_norm", "gradient_noise_std"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def release(
        self,
        setting: int | tuple[int, ...] | None = None,
        *,
        neighbours: Neighbours | str = Neighbours.REPLACE_ONE,
    ) -> Release[FloatArray]:
        r"""Return one setting's iterates, from all m runs of T steps, with their budget.

        .. math:: \rho = \frac{mT}2\Big(\frac{\Delta}{n\lambda}\Big)^2,\qquad
            \Delta = 2\gamma \text{ (replace-one)},\quad \gamma \text{ (otherwise)}

        with clipping bound γ, noise deviation λ and divisor n.

        Parameters
        ----------
        setting : int or tuple of int, optional
            Index of the setting; optional if there is only one. Refused if another setting was
            released before, if this one has no noise, or if any setting of the run has no clipping.
        neighbours : Neighbours
            Neighbouring relation; add-remove requires that the run's `sample_size` was declared.

        Source
        ------
        brown2024, Lemma 2.1.
        """
        relation = Neighbours(neighbours)
        size = shared_sample_size(
            self._declared_size, records=int(self.sample_size), neighbours=relation
        )
        index, bound, noise = released_setting(
            self._settings, setting, clip_norm=self.clip_norm, noise=self.gradient_noise_std
        )
        gradients = np.prod(self.clipped_fraction.non_private.shape[-2:])
        change = float(sum_sensitivity(bound, neighbours=relation)) / size
        budget = Budget(float(gradients) * (change / noise) ** 2 / 2, relation)
        return Release(self.iterates[index], budget, USUAL)


def full_batch_noise_std(
    *,
    clip_norm: ArrayLike,
    rho: ArrayLike,
    sample_size: float,
    gradients: ArrayLike,
    neighbours: Neighbours | str = Neighbours.REPLACE_ONE,
) -> FloatArray:
    r"""Noise deviation λ of mean clipped gradients at which all released iterates together cost ρ.

    .. math::
        \lambda = \Delta\sqrt{\frac{T}{2\rho}}
        = \sqrt{\frac{2T}{\rho}}\,\frac{\gamma}{n} \quad\text{(replace-one, } \Delta = 2\gamma/n)

    Parameters
    ----------
    clip_norm : array_like, shape (...)
        Clipping bound γ on a row's gradient norm, from 1e-12 to 1e12; `inf` clips nothing.
    rho : array_like, shape (...)
        Total zCDP budget ρ, more than 0; `inf` needs no noise.
    sample_size : float
        Divisor n of the run's sums, from 1 to 1e15.
    gradients : array_like, shape (...)
        TOTAL number T of noisy gradients released, at least 1: steps times runs on the same data.
    neighbours : Neighbours
        Neighbouring relation, replace-one by default.

    Returns
    -------
    ndarray, shape (...)
        λ before multiplication by the step size; `inf` for an infinite clipping bound.

    Guarantee
    ---------
    Releasing every iterate of every run at this `sample_size` is ρ-zCDP under `neighbours`.

    Source
    ------
    brown2024, Lemma 2.1 with equality.
    """
    n = require_number("sample_size", sample_size, least=1, most=1e15)
    count = require_real("gradients", gradients, least=1)
    bound = require_clip_norm(clip_norm)
    change = sum_sensitivity(bound, neighbours=neighbours) / n
    return np.sqrt(count) * gaussian_noise_std(sensitivity=change, rho=rho)


def full_batch_dpgd(
    samples: Samples,
    *,
    clip_norm: ArrayLike,
    step_size: float,
    gradient_noise_std: ArrayLike,
    steps: int,
    rng: np.random.Generator,
    runs: int = 1,
    sample_size: float | None = None,
    start: ArrayLike | None = None,
    times: ArrayLike | None = None,
    screening: bool | ScreenedSamples = True,
) -> FullBatchIterates:
    r"""Minimise the mean squared loss by gradient descent with clipping and Gaussian noise.

    .. math::
        \theta_t = \theta_{t-1} - \frac\eta n\sum_{i=1}^n
        \mathrm{CLIP}_\gamma\big(-\mathbf x_i(y_i - \mathbf x_i^\top\theta_{t-1})\big) + \eta z_t,
        \qquad z_t \sim N(0, \lambda^2 I_p)

    where CLIP_γ(v) = v min(1, γ/‖v‖) and rows (x_i, y_i) have shapes (p,) and ().

    Parameters
    ----------
    samples : Samples
        Data: `ArraySamples(features, labels)`, or `GaussianSamples`, which are not held in memory.
    clip_norm : array_like, shape settings
        Clipping bound γ, from 1e-12 to 1e12; or `inf`, which clips nothing.
    step_size : float
        Step size η, from 1e-12 to 1e12; refused if the iterates overflow.
    gradient_noise_std : array_like, shape settings
        Noise deviation λ as in `full_batch_noise_std`, from 0 to 1e12; broadcast with `clip_norm`.
        All settings share the standard normal draws, so only one setting may be released.
    steps : int
        Number of steps T of each run, at least 1.
    rng : Generator
        Source of the noise; each step draws one (runs, p) block.
    runs : int
        Number of independent runs on the same data.
    sample_size : float, optional
        Divisor n of the sums, from 1 to 1e15: a number of rows that is public or already released
        (`private_count`). The default is the number of rows, which replace-one and zero-out
        neighbours share. A release under add-remove requires a given `sample_size`.
    start : array_like, shape (p,), optional
        Start θ_0, independent of the data, with entries at most 1e12 in size; 0 by default.
    times : array_like of int, shape (k,), optional
        Increasing steps, from 1 to T, at which iterates are returned; may be empty; all by default.
    screening : bool or ScreenedSamples
        If True, rows that provably cannot be clipped enter through their Gram matrix (`screen`). A
        given `ScreenedSamples` must be made from these samples, with a clipping bound no larger
        than any in `clip_norm`. The iterates agree with those of a plain pass up to rounding.

    Guarantee
    ---------
    One run's iterates together are ρ-zCDP. Under replace-one neighbours, ρ = T (2γ/n)² / (2λ²).
    Under zero-out neighbours, and under add-remove ones if n is declared as `sample_size`,
    ρ = T (γ/n)² / (2λ²). m released runs cost m times as much. The guarantee is for real arithmetic
    and one setting: settings share noise, so that their differences have less noise. It does not
    cover floating-point leaks, which `exact_descent` avoids, or running times that depend on the
    data. `times` and any function of the iterates are post-processing. The budget of one setting
    comes with `FullBatchIterates.release`.

    Source
    ------
    brown2024, Algorithm 1 and Lemma 2.1. Step t has noise z_t there, z_{t-1} in equation (2).
    """
    noise = require_array(
        "gradient_noise_std", gradient_noise_std, shape=(...,), least=0, most=MOST
    )
    bounds = require_clip_norm(clip_norm)
    bounds, noise = map(frozen, np.broadcast_arrays(bounds, noise))
    steps, runs = require_each(require_count, steps=steps, runs=runs)
    step_size = require_scale("step_size", step_size)
    require_rng("rng", rng)
    screened = screening if isinstance(screening, ScreenedSamples) else None
    if screened is not None:
        known = screened.samples
        if samples is not known and samples is not getattr(known, "samples", None):
            raise ValueError("screening must be of these samples, got screening of other data")
        if screened.clip_norm > bounds.min():
            raise ValueError(
                f"screening must have a clip norm of at most {bounds.min():g}, the smallest in "
                f"clip_norm, got {screened.clip_norm:g}"
            )
        # What was screened knows what rows it gave.
        samples = known
    samples = as_samples(samples)
    rows, p = samples.sample_size, samples.dimension
    # Which relation it is for is said at the release, which asks for a declared number itself.
    n = shared_sample_size(sample_size, records=rows, neighbours=Neighbours.REPLACE_ONE)
    origin = initial_point(start, p)
    times = np.arange(1, steps + 1) if times is None else times
    wanted = require_increasing("times", times, most=steps)

    settings, lanes = bounds.size, bounds.size * runs
    lane_clip_norm = bounds.repeat(runs)
    scale = step_size * noise.reshape(1, settings, 1)
    if screened is None and screening:
        screened = screen(
            samples,
            clip_norm=float(bounds.min()),
            step_size=step_size,
            gradient_noise_std=float(noise.max()),
            steps=steps,
            lanes=lanes,
            start=origin,
        )
    chunks = clippable_chunks(samples, lane_clip_norm)
    theta = origin[:, None].repeat(lanes, axis=1)
    iterates = np.empty((lanes, wanted.size, p))
    clipped_fraction = np.empty((lanes, steps))
    slot = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(1, steps + 1):
            if screened is not None and screened.holds(theta, step=step - 1):
                descent, clipped = screened.clipped_gradient_sum(theta, clip_norm=lane_clip_norm)
            else:
                descent, clipped = sum_clipped(chunks(), theta, lane_clip_norm)
            normals = standard_normal(rng, (runs, p)).T[:, None, :]
            theta += (step_size / n) * descent + (scale * normals).reshape(p, lanes)
            # Larger ones would leave double precision inside a sum; NaN compares as too large.
            if not np.maximum.reduce(np.abs(theta), axis=None) <= LARGEST_PARAMETER:
                raise ValueError(
                    f"step_size must be small enough for stable descent, got {step_size}: "
                    f"the iterates overflow at step {step}"
                )
            clipped_fraction[:, step - 1] = clipped / max(rows, 1)
            if slot < wanted.size and step == wanted[slot]:
                iterates[:, slot] = theta.T
                slot += 1
    shape = (*bounds.shape, runs)
    return FullBatchIterates(
        iterates=iterates.reshape(*shape, wanted.size, p),
        times=wanted,
        clipped_fraction=Diagnostic(
            clipped_fraction.reshape(*shape, steps), "share of clipped rows"
        ),
        clip_norm=bounds,
        gradient_noise_std=noise,
        sample_size=n,
        _declared_size=None if sample_size is None else n,
        _settings=OneOfMany(bounds.shape),
    )


def exact_descent(
    samples: Samples, budget: Budget, *, clip_norm: float, step_size: float, steps: int, n: float
) -> FloatArray:
    """Iterates (steps, p) as in `full_batch_dpgd`, by sums of whole numbers with secure noise.

    Guarantee
    ---------
    Under the budget's neighbouring relation the iterates together spend the budget, also in machine
    arithmetic (`privreg.noise.exact`). They are a function of the divisor n and of noisy sums of
    whole numbers. Each row's whole numbers depend on that row and the previous iterate alone.
    """
    shares, theta, iterates = SplitBudget(budget, None), np.zeros(samples.dimension), []
    for _ in range(steps):
        total = np.zeros(samples.dimension, dtype=object)
        for rows, labels, _ in samples.chunks():
            factors = np.empty(len(labels))
            _clip_factors(rows, labels, theta, clip_norm, factors)
            total += truncated_sum(rows, factors, clip_norm).astype(np.int64)
        gradient = shares.vector("steps", 1 / steps, total, clip_norm, n).value
        theta = theta + step_size * gradient
        iterates.append(theta)
    return np.array(iterates)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _clip_factors(
    rows: FloatArray, labels: FloatArray, theta: FloatArray, clip_norm: float, factors: FloatArray
) -> None:
    """Residuals r, scaled down where ‖x‖ |r| exceeds the clipping norm."""
    for i in range(len(rows)):
        residual, square = labels[i], 0.0
        for j in range(rows.shape[1]):
            residual -= rows[i, j] * theta[j]
            square += rows[i, j] ** 2
        factors[i] = residual * min(1.0, clip_norm / (np.sqrt(square) * abs(residual)))
