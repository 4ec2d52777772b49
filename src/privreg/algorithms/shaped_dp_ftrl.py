r"""One-pass DP-FTRL with shaped and correlated noise, and estimates of the residual scale.

.. math:: w_{t+1} = w_t - \eta\big(\mathrm{clip}_\psi(x_t(x_t^\top w_t - y_t)) + \xi_t\big),
    \qquad \bar w_N = \frac1N\sum_{t<N} w_t

from w_0 = 0. Gradients are clipped to ψ in the norm √(gᵀΣ⁻¹g); the ξ_t are linear combinations of
draws from N(0, (τψ)²Σ). Only the average is released. Tree noise gives DP-FTRL-Σ of anon2024, and
independent noise gives DP-SGD. With Σ = I both are the usual algorithms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil, inf, isinf

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from privreg.algorithms.samples import (
    Chunk,
    Samples,
    checked_data,
    clippable_chunks,
    require_places,
    require_run,
)
from privreg.checks import (
    MOST,
    FloatArray,
    Immutable,
    Rebuilt,
    instance_of,
    require_array,
    require_count,
    require_each,
    require_fields,
    require_frozen,
    require_instance,
    require_number,
    require_rng,
    require_scale,
    scale_or_infinity,
    scale_or_zero,
    short,
)
from privreg.noise.covariance import NoiseCovariance
from privreg.noise.streams import Correlation
from privreg.privacy.budget import Budget, Neighbours, sum_sensitivity
from privreg.privacy.release import USUAL, Diagnostic, Release


def shaped_noise_multiplier(budget: Budget, *, correlation: Correlation, steps: int) -> float:
    """Least noise multiplier τ at which all iterates of one pass together cost `budget`.

    Guarantee
    ---------
    For replace-one or zero-out neighbours, the prefix sums of gradients clipped to ψ, with node
    noise τψ, are ρ-zCDP together. So are the iterates, which are functions of these sums. ψ may
    depend on earlier iterates and public rows if each node's noise has the largest ψ so far.
    """
    require_instance("budget", budget, Budget)
    factor = _sensitivity(budget.neighbours, correlation, steps)
    return factor / budget.root


def shaped_budget(
    noise_multiplier: float,
    *,
    correlation: Correlation,
    steps: int,
    neighbours: Neighbours | str = Neighbours.REPLACE_ONE,
) -> Budget:
    """zCDP budget of one pass at this noise multiplier; inverse of `shaped_noise_multiplier`."""
    ratio = _sensitivity(neighbours, correlation, steps) / noise_multiplier
    return Budget.half_square(ratio, neighbours=neighbours)


def _sensitivity(neighbours: Neighbours | str, correlation: Correlation, steps: int) -> float:
    change = float(sum_sensitivity(1.0, neighbours=require_places(neighbours)))
    return change * correlation.sensitivity(steps)


# Rows taken at once: noise for all of them is held.
_ROWS = 32


def shaped_dp_ftrl(
    samples: Samples, *, mechanism: ShapedMechanism, step_size: float, rng: np.random.Generator
) -> ShapedRun:
    r"""Run DP-FTRL with shaped noise once over the rows, in their order.

    Parameters
    ----------
    samples : Samples
        Data with as many rows as the mechanism's `sample_size`. Rows are read once, in chunks: rows
        drawn from a seed are never all in memory.
    mechanism : ShapedMechanism
        Settings of noise and clipping.
    step_size : float
        Step size η, from 1e-12 to 1e12, chosen without looking at the data.
    rng : Generator
        Source of the noise.

    Returns
    -------
    ShapedRun
        Average and diagnostics; the average is infinite if the run overflows.

    Guarantee
    ---------
    `average` is ρ-zCDP. If data sets differ in one replaced row, ρ is `mechanism.spent()`. If they
    differ in one row that is blank in one of them, ρ is `mechanism.spent(neighbours="zero-out")`.
    The guarantee assumes exact Gaussian noise; sampling in floating point is not covered.

    Examples
    --------
    >>> from privreg.algorithms.samples import ArraySamples
    >>> from privreg.noise.streams import TreeCorrelation
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
    samples = require_run(mechanism, ShapedMechanism, samples, rng)
    size, dimension = mechanism.sample_size, mechanism.covariance.dimension
    if samples.dimension != dimension:
        raise ValueError(
            f"samples must have the covariance's dimension, {dimension}, got {samples.dimension}"
        )
    eta = require_scale("step_size", step_size)
    # A clip norm that follows the residuals is as finite as they are.
    clipping = mechanism.clipping
    clip_norm = clipping.clip_norm if isinstance(clipping, FixedClip) else 1.0
    blocks = _rows_but_last(clippable_chunks(samples, np.array([clip_norm]))(), size)
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(clipping, FixedClip):
            total, clipped, largest = _fixed(blocks, mechanism, clipping, eta, rng)
        else:
            total, clipped, largest = _adaptive(blocks, mechanism, clipping, eta, rng)
    diverged = not np.all(np.isfinite(total))
    average = np.full(dimension, inf) if diverged else total / size
    share = Diagnostic(clipped / (size - 1), "share of clipped gradients")
    return ShapedRun(average, diverged, share, largest, mechanism)


@dataclass(frozen=True, eq=False)
class ShapedMechanism(Rebuilt):
    r"""All settings that determine the privacy of a run of `shaped_dp_ftrl`, and no others.

    Parameters
    ----------
    covariance : NoiseCovariance
        Shape Σ of the noise, computed without the private rows.
    correlation : Correlation
        Correlation of the noise over steps: tree, independent or damped square root.
    clipping : FixedClip or ResidualClip
        Rule for the clip norm ψ.
    noise_multiplier : float
        Ratio τ of the noise's deviation to the clip norm, both in the norm of Σ⁻¹. From 1e-12 to
        1e12; or 0, which adds no noise and gives no privacy.
    sample_size : int
        Public number N of rows, at least 2. The last row affects no released iterate.

    Guarantee
    ---------
    The iterates w_0, ..., w_{N-1} together, and so their average, are ρ-zCDP with ρ = `spent`, for
    replace-one neighbours by default. ρ counts only the N - 1 gradients that are used and, with
    tree noise, only the tree's nodes that enter a prefix sum. Public rows are not covered.

    Source
    ------
    anon2024, Algorithm 1; the accounting is that of `shaped_budget`, since the constant of the
    paper's Theorem 4.1 covers zero-out but not replace-one neighbours.
    """

    covariance: NoiseCovariance
    correlation: Correlation
    clipping: FixedClip | ResidualClip
    noise_multiplier: float
    sample_size: int

    def __post_init__(self) -> None:
        require_fields(
            self,
            covariance=instance_of(NoiseCovariance),
            correlation=instance_of(Correlation),
            noise_multiplier=scale_or_zero,
            sample_size=partial(require_count, least=2),
        )
        if not isinstance(self.clipping, (FixedClip, ResidualClip)):
            raise ValueError(
                f"clipping must be a FixedClip or a ResidualClip, got {short(self.clipping)}"
            )
        if isinstance(self.clipping, FixedClip):
            if isinf(self.clipping.clip_norm) and self.noise_multiplier > 0:
                raise ValueError("clip_norm must be finite if noise is added, got inf")
        elif self.correlation.increment_terms(1) is None:
            raise ValueError(
                "clipping must be FixedClip if noise is correlated over all steps, "
                "got ResidualClip: its scale would change between correlated steps"
            )
        elif self.clipping.features.shape[1] != self.covariance.dimension:
            raise ValueError(
                f"clipping must have features with {self.covariance.dimension} columns, "
                f"got {self.clipping.features.shape[1]}"
            )

    @classmethod
    def for_budget(
        cls,
        budget: Budget,
        *,
        covariance: NoiseCovariance,
        correlation: Correlation,
        clipping: FixedClip | ResidualClip,
        sample_size: int,
    ) -> ShapedMechanism:
        """Mechanism with the least noise for a replace-one or zero-out budget."""
        multiplier = shaped_noise_multiplier(budget, correlation=correlation, steps=sample_size - 1)
        return cls(covariance, correlation, clipping, multiplier, sample_size)

    def spent(self, *, neighbours: Neighbours | str = Neighbours.REPLACE_ONE) -> float:
        """zCDP budget of releasing all iterates; `inf` without noise."""
        if self.noise_multiplier == 0:
            return inf
        moved = _sensitivity(neighbours, self.correlation, self.sample_size - 1)
        return (moved / self.noise_multiplier) ** 2 / 2


@dataclass(frozen=True)
class FixedClip:
    """Clipping at a fixed norm ψ, chosen without looking at the private rows.

    Parameters
    ----------
    clip_norm : float
        Bound ψ on √(gᵀΣ⁻¹g) for gradients g and noise shape Σ, 1e-12 to 1e12; or `inf`, no clip.
    """

    clip_norm: float

    def __post_init__(self) -> None:
        require_fields(self, clip_norm=scale_or_infinity)


@dataclass(frozen=True, eq=False)
class ResidualClip(Immutable):
    r"""Clipping at ψ_t = C l_t, where l_t is a residual scale of public rows at step t.

    Noise is scaled by the largest ψ so far. Noise enlarges residuals, and residuals enlarge ψ. For
    feature covariance H, noise multiplier τ, noise shape Σ and N rows, ψ diverges if the step size
    exceeds about 1/(τC√(tr(HΣ) log₂N)).

    Parameters
    ----------
    per_residual : float
        Factor C, from 1e-12 to 1e12: a bound on a feature vector's norm √(xᵀΣ⁻¹x).
    features : array_like, shape (m, d)
        Public rows, which are not protected; their entries are at most 1e12 in size.
    labels : array_like, shape (m,)
        Labels of the public rows, at most 1e12 in size.

    Source
    ------
    anon2024, Algorithm 1, lines 4 to 7, and Algorithm 2, Option 1.
    """

    per_residual: float
    features: FloatArray
    labels: FloatArray

    def __post_init__(self) -> None:
        within = partial(require_frozen, least=-MOST, most=MOST)
        features = partial(within, shape=(None, None))
        require_fields(self, per_residual=require_scale, features=features)
        require_fields(self, labels=partial(within, shape=(len(self.features),)))

    def clip_norm(self, parameters: FloatArray) -> float:
        """Clip norm C√(2 × mean squared residual) at `parameters` (d,); `inf` if it overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            residuals = self.features @ parameters - self.labels
            scale = self.per_residual * float(np.sqrt(2.0 * np.mean(residuals**2)))
        return scale if np.isfinite(scale) else inf


@dataclass(frozen=True, eq=False)
class ShapedRun:
    """Average of a run of DP-FTRL with shaped noise.

    Attributes
    ----------
    average : ndarray, shape (d,)
        Average iterate; `release` returns it with its budget. All `inf` if the run overflowed.
    diverged : bool
        True if the run overflowed.
    clipped_fraction : Diagnostic of float
        Share of clipped gradients; it is not private.
    largest_clip_norm : float
        Largest clip norm ψ used, a function of the iterates and of public rows.
    mechanism : ShapedMechanism
        Settings of the run; they fix its budget.
    """

    average: FloatArray
    diverged: bool
    clipped_fraction: Diagnostic[float]
    largest_clip_norm: float
    mechanism: ShapedMechanism

    def release(
        self, *, neighbours: Neighbours | str = Neighbours.REPLACE_ONE
    ) -> Release[FloatArray]:
        """Return the average with the mechanism's budget, which covers all iterates of the run.

        Neighbours are replace-one or zero-out. Without noise or clipping, the release is refused.
        """
        public = "the rows that determined the noise's shape and the clip norms are public"
        relation = Neighbours(neighbours)
        budget = Budget(self.mechanism.spent(neighbours=relation), relation)
        return Release(self.average, budget, (*USUAL, public))


def run_settings(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    inverse_norms: ArrayLike,
    noise: ArrayLike,
    noise_scale: ArrayLike,
    step_size: ArrayLike,
    clip_norm: ArrayLike,
    shared_noise: ArrayLike | None = None,
    shared_scale: ArrayLike | None = None,
    block: int = 64,
) -> tuple[FloatArray, Diagnostic[FloatArray]]:
    """Average iterates of many settings over the same rows and noise, with fixed clip norms.

    This is the loop of `shaped_dp_ftrl` for studies that compare settings. Each setting alone has
    the law of `shaped_dp_ftrl`, but comparisons are not private. `inverse_norms` (settings, N) are
    √(xᵀΣ⁻¹x) for each setting's Σ. `noise` (N - 1, d) are increments of standard normal noise in
    the chosen correlation. `noise_scale` (settings, d) multiplies `noise`: τψ times the root of a
    diagonal Σ. `shared_noise` (N - 1, d) is a second, low-rank part of the noise
    (`PublicCovariance`), with multipliers `shared_scale` (settings,). At most `block` settings are
    run together, to fit in the cache. Averages (settings, d) are `inf` where a run overflowed.
    """
    rows, values, norms, increments, scale, eta, clips = (
        np.asarray(each, dtype=np.float64)
        for each in (features, labels, inverse_norms, noise, noise_scale, step_size, clip_norm)
    )
    (size, dimension), count = rows.shape, len(norms)
    common, weights = np.zeros((0, dimension)), np.zeros(count)
    if shared_noise is not None and shared_scale is not None:
        common, weights = np.asarray(shared_noise, float), np.asarray(shared_scale, float)
    averages = np.zeros((count, dimension))
    clipped = np.zeros(count)
    # Blocks of one width: a narrow rest would take nearly as long as a whole one.
    block = ceil(count / ceil(count / block))
    for first in range(0, count, block):
        some = slice(first, first + block)
        width = len(eta[some])
        total = np.zeros((dimension, width))
        hits = np.zeros(width)
        step_rows(
            rows[:-1],
            values,
            np.ascontiguousarray(norms[some].T),
            (increments, np.ascontiguousarray((eta[some, None] * scale[some]).T)),
            (common, eta[some] * weights[some]),
            (eta[some], clips[some]),
            (np.zeros((dimension, width)), total, hits),
        )
        averages[some], clipped[some] = total.T / size, hits / (size - 1)
    averages[~np.all(np.isfinite(averages), axis=1)] = inf
    return averages, Diagnostic(clipped, "share of clipped gradients")


def _fixed(
    blocks: Iterator[tuple[FloatArray, FloatArray]],
    mechanism: ShapedMechanism,
    clipping: FixedClip,
    step_size: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, float, float]:
    covariance, dimension = mechanism.covariance, mechanism.covariance.dimension
    noisy = mechanism.noise_multiplier > 0
    total, clipped = np.zeros((dimension, 1)), np.zeros(1)
    state = (np.zeros((dimension, 1)), total, clipped)
    strength = step_size * mechanism.noise_multiplier * clipping.clip_norm if noisy else 0.0
    scale = np.full((dimension, 1), strength)
    steps = mechanism.sample_size - 1
    stream = mechanism.correlation.stream(covariance.draws, steps=steps, rng=rng)
    shared = (np.zeros((0, dimension)), np.zeros(1))
    settings = (np.array([step_size]), np.array([clipping.clip_norm]))
    for features, labels in blocks:
        if noisy:
            noise = covariance.root_multiply(stream.draw(len(features)))
        else:
            noise = np.zeros_like(features)
        norms = covariance.inverse_norms(features)[:, None]
        step_rows(features, labels, norms, (noise, scale), shared, settings, state)
    return total[:, 0], float(clipped[0]), clipping.clip_norm


def _adaptive(
    blocks: Iterator[tuple[FloatArray, FloatArray]],
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
    for features, labels in blocks:
        norms = covariance.inverse_norms(features)
        for row, label, norm in zip(features, labels, norms, strict=True):
            step += 1
            clip_norm = clipping.clip_norm(parameters)
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
                terms = mechanism.correlation.increment_terms(step)
                assert terms is not None
                taken_back, forgotten = terms
                move = move + kept[step]
                for earlier in taken_back:
                    move -= kept[earlier]
                for earlier in forgotten:
                    del kept[earlier]
            parameters = parameters - step_size * move
            total += parameters
    return total, clipped, largest


def _rows_but_last(
    chunks: Iterable[Chunk], sample_size: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Small blocks of all rows but the last, which affects no averaged iterate."""
    left = sample_size - 1
    for features, labels, _ in chunks:
        for first in range(0, min(len(features), left), _ROWS):
            rows = slice(first, min(first + _ROWS, left))
            yield features[rows], labels[rows]
        left -= len(features)


@njit(cache=True, nogil=True, error_model="numpy")
def step_rows(features, labels, norms, noises, shared_noises, settings, state):  # type: ignore[no-untyped-def]
    """Make one step per row for every setting; add the iterates after each step to `total`.

    `parameters`, `total` and `noise_scale` have shape (d, settings), so that the innermost loop is
    over settings and no sum changes its order. `noise` (rows, d) is scaled by coordinate and
    setting, `shared_noise` (rows or 0, d) by setting alone. `norms` (rows, settings) are √(xᵀΣ⁻¹x).
    """
    (noise, noise_scale), (shared_noise, shared_scale) = noises, shared_noises
    step_size, clip_norm = settings
    parameters, total, clipped = state
    rows, dimension = features.shape
    count = parameters.shape[1]
    shared = shared_noise.shape[0] > 0
    prediction = np.zeros(count)
    move = np.zeros(count)
    for i in range(dimension):
        for s in range(count):
            prediction[s] += features[0, i] * parameters[i, s]
    for t in range(rows):
        for s in range(count):
            residual = prediction[s] - labels[t]
            if abs(residual) * norms[t, s] > clip_norm[s]:
                residual = math.copysign(clip_norm[s] / norms[t, s], residual)
                clipped[s] += 1
            move[s] = step_size[s] * residual
            prediction[s] = 0.0
        following = min(t + 1, rows - 1)
        for i in range(dimension):
            row, running, scale = parameters[i], total[i], noise_scale[i]
            here, ahead, increment = features[t, i], features[following, i], noise[t, i]
            if shared:
                common = shared_noise[t, i]
                for s in range(count):
                    value = (
                        row[s] - shared_scale[s] * common - move[s] * here - scale[s] * increment
                    )
                    row[s] = value
                    running[s] += value
                    prediction[s] += ahead * value
            else:
                for s in range(count):
                    value = row[s] - move[s] * here - scale[s] * increment
                    row[s] = value
                    running[s] += value
                    prediction[s] += ahead * value


# β_1 of the paper, "some large constant": groups that a private estimate needs, per log/ε.
GROUPS_FACTOR = 8.0


def public_residual_scale(
    features: FloatArray, labels: FloatArray, parameters: FloatArray
) -> float:
    r"""Root of twice the mean squared residual of public rows (Option 1).

    .. math:: l = \sqrt{\frac2m\sum_{i\le m}(\tilde y_i - \tilde x_i^\top w)^2}

    l² estimates 2 (‖w - w*‖²_H + σ²), with feature covariance H and label noise of deviation σ.
    Source: anon2024, Algorithm 2, Option 1.
    """
    return ResidualClip(1.0, features, labels).clip_norm(parameters)


def private_residual_scale(
    features: ArrayLike,
    labels: ArrayLike,
    parameters: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    failure_probability: float,
    rng: np.random.Generator,
) -> float:
    """Private residual scale from a stability histogram of group means (Option 2).

    Squared residuals are averaged in g groups. The share of group means in each nonempty bin [2^k,
    2^(k+1)) gets Laplace noise of scale 2/(εg). Bins with a noisy share below 2 ln(2/δ)/(εg) + 1/g
    are dropped. The scale is √(2 b) for the upper end b of the fullest bin. Its square is 2 to 4
    times the mean of a typical group. The scale is 0 if the group means are 0, and `inf` if they
    overflow or no bin is left. Fewer rows than `private_groups_needed` are refused.

    Guarantee
    ---------
    The estimate is (ε, δ)-DP for replacing one of these rows, if no other computation uses them. At
    most one group's mean moves to another bin, which changes two shares by 1/g each.

    Source: anon2024, Algorithm 2, Option 2, after Karwa and Vadhan (2017), Lemma 2.3. As printed,
    lines 9 to 12 add noise only to shares below the threshold and drop those above. This would
    return an almost empty bin without privacy. Here the noisy share is compared, as in the lemma.
    """
    rows, values = checked_data(features, labels, shape=(None, None))
    point = require_array("parameters", parameters, shape=(rows.shape[1],))
    require_rng("rng", rng)
    with np.errstate(over="ignore", invalid="ignore"):
        residuals = values - rows @ point
        # Opposite infinities inside a product: a residual beyond double precision all the same.
        squared = np.where(np.isnan(residuals), np.inf, residuals) ** 2
    groups = private_groups_needed(
        epsilon=epsilon, delta=delta, failure_probability=failure_probability
    )
    if squared.size < groups:
        raise ValueError(
            f"labels must have at least {groups} rows for a private residual estimate at "
            f"epsilon = {epsilon:.3g}, got {squared.size}; use public rows or a fixed clip norm"
        )
    with np.errstate(divide="ignore", over="ignore"):
        # If sizes are unequal, the first groups have one more row.
        places = np.arange(groups)
        starts = places * (squared.size // groups) + np.minimum(places, squared.size % groups)
        means = np.add.reduceat(squared, starts) / np.diff(starts, append=squared.size)
        exponents = np.floor(np.log2(means))
    bins, counts = np.unique(exponents, return_counts=True)
    noisy = counts / groups + rng.laplace(0.0, 2.0 / (epsilon * groups), bins.size)
    threshold = 2.0 * np.log(2.0 / delta) / (epsilon * groups) + 1.0 / groups
    fullest = int(np.argmax(noisy))
    if noisy[fullest] < threshold:
        # No bin is full enough to be named; the widest that a caller can still clip by is none.
        return float("inf")
    with np.errstate(over="ignore"):
        return float(np.sqrt(2.0 * np.exp2(bins[fullest] + 1)))


def private_groups_needed(*, epsilon: float, delta: float, failure_probability: float) -> int:
    """Least number of groups, and so of rows, for a private estimate: ⌈8 ln(1/(βδ)) / ε⌉.

    δ and the failure probability β are at least 1e-150.
    """
    share = require_scale("epsilon", epsilon)
    chances = partial(require_number, least=1e-150, below=1)
    small, chance = require_each(chances, delta=delta, failure_probability=failure_probability)
    return int(np.ceil(GROUPS_FACTOR * np.log(1.0 / (chance * small)) / share))


def private_share(*, epsilon: float, delta: float, calls: int) -> tuple[float, float]:
    r"""Share of (ε, δ) that each of N private estimates gets: ε/√(8 N ln(2/δ)) and δ/(2N).

    Guarantee
    ---------
    All calls together are (ε, δ)-DP by advanced composition, for ε below about 4 ln(2/δ).

    Source: anon2024, Theorem 4.1.
    """
    largest = 4 * np.log(2 / delta)
    share = float(epsilon / np.sqrt(2 * calls * largest))
    # What composition adds to ε/2 is Nε̃(e^ε̃ - 1), at most ε²(1 + ε̃)/(2·largest) for ε̃ ≤ 1.
    if epsilon * (1 + share) > largest or share > 1:
        raise ValueError(f"epsilon must be less than {largest:.3g}, got {epsilon}")
    return share, delta / (2 * calls)
