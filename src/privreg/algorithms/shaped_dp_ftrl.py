r"""One-pass DP-FTRL whose private noise has a shape in space and a correlation in time.

.. math:: w_{t+1} = w_t - \eta\big(\mathrm{clip}_\psi(x_t(x_t^\top w_t - y_t)) + \xi_t\big),
    \qquad \bar w_N = \frac1N\sum_{t<N} w_t

from w_0 = 0, where gradients are clipped in the norm √(gᵀΣ⁻¹g) and the increments ξ_t are made of
N(0, (τψ)²Σ) noise. Only the average is released. The tree makes it anon2024's DP-FTRL-Σ,
independent noise makes it DP-SGD, Σ = I the usual algorithms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from privreg.algorithms.clipped_gradient import rescale_samples
from privreg.algorithms.samples import Samples, as_samples
from privreg.algorithms.shaped_dp_ftrl_kernel import step_rows
from privreg.algorithms.shaped_mechanism import LARGEST, FixedClip, ResidualClip, ShapedMechanism
from privreg.noise.correlations import Correlation
from privreg.privacy import assumptions
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.privacy.release import Diagnostic, Release
from privreg.validation import (
    FloatArray,
    require_instance,
    require_number,
    require_rng,
)

# Rows taken at once: noise for all of them is held.
_ROWS = 32


@dataclass(frozen=True, eq=False)
class ShapedRun:
    """What a run leaves.

    Attributes
    ----------
    average : ndarray, shape (d,)
        The average iterate, which `release` hands out; all `inf` for a run that overflowed.
    diverged : bool
        Whether it did.
    clipped_fraction : Diagnostic of float
        Share of clipped gradients, computed without noise.
    largest_clip_norm : float
        Largest ψ used, a function of the iterates and of public rows.
    mechanism : ShapedMechanism
        What made it.
    """

    average: FloatArray
    diverged: bool
    clipped_fraction: Diagnostic[float]
    largest_clip_norm: float
    mechanism: ShapedMechanism

    def release(
        self, *, neighbours: Neighbours | str = Neighbours.REPLACE_ONE
    ) -> Release[FloatArray]:
        """The average with the budget that the mechanism spends on all iterates.

        Parameters
        ----------
        neighbours : Neighbours
            Replace-one or zero-out.

        Raises
        ------
        ValueError
            If the mechanism has no noise or no clipping.
        """
        public = "the rows that made the noise's shape and the clip norms are public"
        relation = Neighbours(neighbours)
        budget = Budget(self.mechanism.spent(neighbours=relation), relation)
        return Release(self.average, budget, (*assumptions.USUAL, public))


def shaped_dp_ftrl(
    samples: Samples, *, mechanism: ShapedMechanism, step_size: float, rng: np.random.Generator
) -> ShapedRun:
    r"""Run DP-FTRL with shaped noise once over the rows, in their order.

    Parameters
    ----------
    samples : Samples
        As many rows as the mechanism's `sample_size`; walked once, in chunks, so that rows drawn
        from a seed are never held together.
    mechanism : ShapedMechanism
        Shape, correlation, clipping and noise.
    step_size : float
        η, more than 0 and at most 1e50, chosen without looking at the data.
    rng : Generator
        Source of the noise.

    Returns
    -------
    ShapedRun
        A run that overflows is kept, with an infinite average.

    Guarantee
    ---------
    `average` is ρ-zCDP with ρ = `mechanism.spent()` for data sets that differ in one replaced row,
    and `mechanism.spent(neighbours="zero-out")` for those where one row is blank in one of the two.
    The guarantee is that of exact Gaussian noise; sampling in
    floating point is not covered.

    Examples
    --------
    >>> from privreg.algorithms.samples import ArraySamples
    >>> from privreg.noise.correlations import TreeCorrelation
    >>> from privreg.noise.covariance import population_covariance
    >>> rng = np.random.Generator(np.random.SFC64(0))
    >>> eigenvalues = np.arange(1, 401) ** -2.0
    >>> features = rng.standard_normal((200, 400)) * np.sqrt(eigenvalues)
    >>> labels = features[:, 0] + 0.1 * rng.standard_normal(200)
    >>> mechanism = ShapedMechanism.for_budget(
    ...     Budget.approximate(8.0, 1e-5),
    ...     covariance=population_covariance(eigenvalues, horizon=200 * 0.2),
    ...     correlation=TreeCorrelation(),
    ...     clipping=FixedClip(8.0),
    ...     sample_size=200,
    ... )
    >>> run = shaped_dp_ftrl(
    ...     ArraySamples(features, labels), mechanism=mechanism, step_size=0.2, rng=rng
    ... )
    >>> run.average.shape, run.diverged
    ((400,), False)

    Source
    ------
    anon2024, Algorithms 1 and 3, with steps counted from 1.
    """
    require_instance("mechanism", mechanism, ShapedMechanism)
    samples = as_samples(samples)
    require_rng("rng", rng)
    size, dimension = mechanism.sample_size, mechanism.covariance.dimension
    if samples.sample_size != size:
        raise ValueError(
            f"samples must have the mechanism's sample_size rows, {size}, got {samples.sample_size}"
        )
    if samples.dimension != dimension:
        raise ValueError(
            f"samples must have the covariance's dimension, {dimension}, got {samples.dimension}"
        )
    eta = require_number("step_size", step_size, above=0, most=LARGEST)
    # A clip norm that follows the residuals is as finite as they are.
    clipping = mechanism.clipping
    clip_norm = clipping.clip_norm if isinstance(clipping, FixedClip) else 1.0
    rescaled = rescale_samples(samples, np.array([clip_norm]))
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(mechanism.clipping, FixedClip):
            total, clipped, largest = _fixed(rescaled, mechanism, mechanism.clipping, eta, rng)
        else:
            total, clipped, largest = _adaptive(rescaled, mechanism, mechanism.clipping, eta, rng)
    diverged = not np.all(np.isfinite(total))
    average = np.full(dimension, inf) if diverged else total / size
    share = Diagnostic(clipped / (size - 1), "share of clipped gradients")
    return ShapedRun(average, diverged, share, largest, mechanism)


def _fixed(
    samples: Samples,
    mechanism: ShapedMechanism,
    clipping: FixedClip,
    step_size: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, float, float]:
    covariance, dimension = mechanism.covariance, mechanism.covariance.dimension
    noisy = mechanism.noise_multiplier > 0
    parameters, total = np.zeros((dimension, 1)), np.zeros((dimension, 1))
    clipped = np.zeros(1)
    strength = step_size * mechanism.noise_multiplier * clipping.clip_norm if noisy else 0.0
    scale = np.full((dimension, 1), strength)
    steps = mechanism.sample_size - 1
    stream = mechanism.correlation.stream(covariance.draws, steps=steps, rng=rng)
    none = np.zeros((0, dimension))
    for features, labels in _rows_but_last(samples):
        if noisy:
            noise = covariance.root_multiply(stream.draw(len(features)))
        else:
            noise = np.zeros_like(features)
        norms = covariance.inverse_norms(features)[:, None]
        step_rows(
            features,
            labels,
            norms,
            noise,
            none,
            scale,
            np.zeros(1),
            np.array([step_size]),
            np.array([clipping.clip_norm]),
            parameters,
            total,
            clipped,
        )
    return total[:, 0], float(clipped[0]), clipping.clip_norm


def _adaptive(
    samples: Samples,
    mechanism: ShapedMechanism,
    clipping: ResidualClip,
    step_size: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, float, float]:
    covariance = mechanism.covariance
    parameters, total = np.zeros(covariance.dimension), np.zeros(covariance.dimension)
    clipped, largest, step = 0.0, 0.0, 0
    # The nodes that later steps take back: each with the scale that it was made with.
    kept: dict[int, FloatArray] = {}
    for features, labels in _rows_but_last(samples):
        norms = covariance.inverse_norms(features)
        for row, label, norm in zip(features, labels, norms, strict=True):
            step += 1
            clip_norm = clipping._scale(parameters)
            largest = max(largest, clip_norm)
            if not np.isfinite(clip_norm):
                return np.full_like(total, inf), clipped, inf
            residual = float(row @ parameters - label)
            if abs(residual) * norm > clip_norm:
                residual, clipped = float(np.copysign(clip_norm / norm, residual)), clipped + 1
            move = residual * row
            if mechanism.noise_multiplier > 0:
                normals = rng.standard_normal(covariance.draws)
                kept[step] = (
                    mechanism.noise_multiplier * largest * covariance.root_multiply(normals)
                )
                taken_back, forgotten = _terms(mechanism.correlation, step)
                move = move + kept[step]
                for earlier in taken_back:
                    move -= kept[earlier]
                for earlier in forgotten:
                    del kept[earlier]
            parameters = parameters - step_size * move
            total += parameters
    return total, clipped, largest


def _terms(correlation: Correlation, step: int) -> tuple[list[int], list[int]]:
    terms = correlation.increment_terms(step)
    assert terms is not None
    return terms


def _rows_but_last(samples: Samples) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Small blocks of rows; the last row of all enters no iterate that is averaged."""
    left = samples.sample_size - 1
    for features, labels, _ in samples.chunks():
        for first in range(0, min(len(features), left), _ROWS):
            rows = slice(first, min(first + _ROWS, left))
            yield features[rows], labels[rows]
        left -= len(features)
