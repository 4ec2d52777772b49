r"""DP-FTRL for least squares: clipped gradients and Gaussian noise that is correlated over steps.

.. math:: \theta_{t+1} = \theta_t - \eta_t\Big(\frac1m\sum_{i\in\mathcal B_t}
    \mathrm{clip}_G\big(x_i(x_i^\top\theta_t-y_i)\big) + \delta\theta_t
    + \sum_{\tau\le t}B_{t,\tau}w_\tau\Big),\qquad w_\tau\sim N(0,\sigma^2I)

FTRL stands for "follow the regularized leader". B = I gives DP-SGD without random batches. Without
clipping, the method is called Noisy-FTRL and promises no privacy. Every epoch visits the records in
their given order. 𝓑_t holds the records of step t, at most m of them. δ is the ridge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import ceil, inf, isinf

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.samples import (
    Samples,
    clippable_chunks,
    initial_point,
    require_increasing,
    require_places,
    require_run,
)
from privreg.checks import (
    LEAST,
    MOST,
    FloatArray,
    Immutable,
    require_count,
    require_fields,
    require_frozen,
    require_instance,
    require_number,
    require_real,
    require_scale,
    scale_or_infinity,
    short,
)
from privreg.kernels import standard_normal
from privreg.noise.sensitivity import (
    fixed_order_sensitivity,
    multi_participation_bound,
    multi_participation_sensitivity,
    single_participation_sensitivity,
)
from privreg.noise.streams import ToeplitzNoise, correlate_noise
from privreg.noise.toeplitz import bounded_inverse
from privreg.privacy.budget import Budget, Neighbours, sum_sensitivity
from privreg.privacy.release import USUAL, Diagnostic, Release

# Above this many steps the matrix of a Toeplitz encoder is not built.
DENSE_STEPS = 4096
# Corrections of a sensitivity for the encoder's error are dropped below this share of it: 16 ulp.
ROUNDING = 2.0**-48
# Columns of noise transformed at once: the transform of a column is twice its size, and complex.
COLUMNS = 16


@dataclass(frozen=True, eq=False)
class FTRLMechanism(Immutable):
    r"""All settings that determine the privacy of a DP-FTRL run, and no others.

    Parameters
    ----------
    decoder : array_like, shape (steps,) or (steps, steps)
        Lower-triangular matrix B, or its first column if B is Toeplitz (`privreg.noise.toeplitz`);
        kept as a read-only copy. The encoder is C = B⁻¹. Entries are at most 1e12 in size, and
        diagonal entries at least 1e-12. B is refused if C cannot be computed in double precision,
        for example if an entry of B is above about 1e15 times the first entry.
    gradient_noise_std : float
        Standard deviation σ of each coordinate of the white noise w, in units of the mean gradient;
        from 0 to 1e12. Gradients get the noise Bw, which has a different deviation.
    clip_norm : float
        Clipping norm G, from 1e-12 to 1e12; or `inf`, which clips nothing and gives no privacy.
    sample_size, epochs : int
        Number n of records, which is public, and number of passes over them.
    batch_size : int
        Number m of records per step. The last step of an epoch may have fewer; its sum is also
        divided by m. `decoder` must have epochs × ⌈n/m⌉ steps.

    Attributes
    ----------
    sensitivity : float
        Largest norm γ by which :math:`B^{-1}s` can change if each gradient of one record changes by
        at most 1; s holds the gradient sums of all steps. γ is exact for one epoch. For several
        epochs it is exact if the encoder's columns have non-negative inner products, else an upper
        bound. For more than about 16,000 steps, γ is increased by a relative 1e-13 × steps,
        to allow for rounding in the inverse.

    Guarantee
    ---------
    All iterates together are ρ-zCDP with ρ = `spent(...)` for replace-one or zero-out neighbours,
    if step sizes and start are chosen without the data. The same holds for everything computed from
    the iterates. A record enters steps i, i + b, i + 2b, ... for b steps per epoch. One Gaussian
    mechanism releases :math:`B^{-1}g + w` for the mean gradients g of all steps at once. ρ follows
    from the norm by which one record changes :math:`B^{-1}g`. Composition over steps is not valid,
    since their noise is dependent. g may depend on earlier iterates because B is lower triangular.

    Source
    ------
    choquettechoo2024, Theorem 1.1 (one epoch); Choquette-Choo et al. (2023), Multi-Epoch Matrix
    Factorization Mechanisms.
    """

    decoder: FloatArray
    gradient_noise_std: float
    clip_norm: float
    sample_size: int
    epochs: int = 1
    batch_size: int = 1
    sensitivity: float = field(init=False)

    def __post_init__(self) -> None:
        require_fields(
            self,
            sample_size=require_count,
            epochs=require_count,
            batch_size=require_count,
            gradient_noise_std=partial(require_number, least=0, most=MOST),
            clip_norm=scale_or_infinity,
        )
        # The sensitivity is that of these numbers for as long as they are used.
        require_fields(self, decoder=partial(require_frozen, shape=(..., self.steps)))
        gamma = _sensitivity(self.decoder, epochs=self.epochs, steps_per_epoch=self.steps_per_epoch)
        object.__setattr__(self, "sensitivity", gamma)

    @classmethod
    def for_budget(
        cls,
        decoder: ArrayLike,
        *,
        clip_norm: float,
        budget: Budget,
        sample_size: int,
        epochs: int = 1,
        batch_size: int = 1,
    ) -> FTRLMechanism:
        r"""Mechanism whose iterates together cost `budget`; σ is least if `sensitivity` is exact.

        .. math:: \sigma = \frac{\gamma\,\Delta}{m\sqrt{2\rho}},\qquad
            \Delta = 2G \text{ (replace-one)},\quad \Delta = G \text{ (zero-out)}

        with sensitivity γ, clipping norm G, batch size m and the budget's ρ.

        Examples
        --------
        >>> from privreg.noise.toeplitz import damped_square_root
        >>> mechanism = FTRLMechanism.for_budget(
        ...     damped_square_root(1000, damping=0.01),
        ...     clip_norm=1.0,
        ...     budget=Budget.zcdp(0.5, neighbours="zero-out"),
        ...     sample_size=1000,
        ... )
        >>> round(mechanism.gradient_noise_std, 4)
        1.4618
        """
        require_instance("budget", budget, Budget)
        mechanism = cls(decoder, 0.0, clip_norm, sample_size, epochs, batch_size)  # type: ignore[arg-type]
        change = _record_change(mechanism.clip_norm, budget.neighbours)
        std = mechanism.sensitivity * change / (batch_size * budget.root)
        if std > MOST:
            raise ValueError(
                "clip_norm must give noise of standard deviation at most 1e12 at "
                f"{budget}, got {clip_norm}: the standard deviation would be {std:g}"
            )
        # The sensitivity does not depend on the noise, and is what takes time.
        object.__setattr__(mechanism, "gradient_noise_std", std)
        return mechanism

    @property
    def steps_per_epoch(self) -> int:
        """Number b of steps per epoch, ⌈n/m⌉."""
        return ceil(self.sample_size / self.batch_size)

    @property
    def steps(self) -> int:
        """Number of steps, epochs × ⌈n/m⌉."""
        return self.epochs * self.steps_per_epoch

    def spent(self, *, neighbours: Neighbours | str = Neighbours.REPLACE_ONE) -> float:
        r"""zCDP budget of releasing all iterates, :math:`\rho = (\gamma\Delta/m)^2/(2\sigma^2)`.

        Symbols are as in `for_budget`. ρ is `inf` without noise or clipping. Neighbours are
        replace-one or zero-out. Add-remove is not covered: it moves later records to other steps.
        """
        change = self.sensitivity * _record_change(self.clip_norm, neighbours)
        if self.gradient_noise_std == 0 or isinf(change):
            return inf
        return 0.5 * (change / (self.batch_size * self.gradient_noise_std)) ** 2


@dataclass(frozen=True, eq=False)
class FTRLRun:
    """Iterates of a run of DP-FTRL.

    Attributes
    ----------
    iterates : ndarray, shape (len(times), p)
        Iterates; `release` returns them with their budget.
    times : ndarray of int, shape (len(times),)
        Step of each iterate, counted from 1.
    clipped_fraction : Diagnostic of float
        Share of all gradients that were clipped; it is not private.
    mechanism : FTRLMechanism
        Settings of the run; they fix its budget.
    """

    iterates: FloatArray
    times: NDArray[np.int64]
    clipped_fraction: Diagnostic[float]
    mechanism: FTRLMechanism

    def release(
        self, *, neighbours: Neighbours | str = Neighbours.REPLACE_ONE
    ) -> Release[FloatArray]:
        """Return the iterates with the mechanism's budget, which covers all iterates of the run.

        Neighbours are replace-one or zero-out. Without noise or clipping, the release is refused.
        """
        relation = Neighbours(neighbours)
        budget = Budget(self.mechanism.spent(neighbours=relation), relation)
        return Release(self.iterates, budget, USUAL)


def dp_ftrl(
    samples: Samples,
    *,
    mechanism: FTRLMechanism,
    step_size: ArrayLike,
    rng: np.random.Generator,
    ridge: float = 0.0,
    start: ArrayLike | None = None,
    times: ArrayLike | None = None,
) -> FTRLRun:
    r"""Run DP-FTRL on a data set for one or several epochs, in the order of its rows.

    Parameters
    ----------
    samples : Samples
        Data with p features and n rows, where n is the mechanism's `sample_size`.
    mechanism : FTRLMechanism
        Settings of correlation, noise, clipping, epochs and batches.
    step_size : array_like, shape () or (steps,)
        Step sizes η_t in (0, 1e12], independent of the data; refused if the iterates overflow.
    rng : Generator
        Source of the noise.
    ridge : float
        Factor δ of the penalty δ/2 ‖θ‖², 0 or from 1e-12 to 1e12; its gradient is not clipped.
    start, times
        Start θ_0, by default 0, and increasing steps at which iterates are returned, by default the
        last; otherwise as for `full_batch_dpgd`.

    Guarantee
    ---------
    All iterates together are ρ-zCDP with ρ = `mechanism.spent()` for data sets of equal size that
    differ in one replaced record. ``spent(neighbours="zero-out")`` is ρ for data sets that
    differ in one record, which is blank (features and label 0) in one of them. Gaussian noise is
    assumed exact; sampling in floating point is not covered.

    Examples
    --------
    >>> from privreg.algorithms.samples import ArraySamples
    >>> from privreg.noise.toeplitz import damped_square_root
    >>> rng = np.random.Generator(np.random.SFC64(0))
    >>> features = rng.standard_normal((2000, 3))
    >>> labels = features @ [1.0, -1.0, 0.5] + 0.1 * rng.standard_normal(2000)
    >>> mechanism = FTRLMechanism.for_budget(
    ...     damped_square_root(2000, damping=0.01),
    ...     clip_norm=2.0,
    ...     budget=Budget.zcdp(0.5),
    ...     sample_size=2000,
    ... )
    >>> run = dp_ftrl(ArraySamples(features, labels), mechanism=mechanism, step_size=0.01, rng=rng)
    >>> bool(np.linalg.norm(run.iterates[-1] - [1.0, -1.0, 0.5]) < 0.2)
    True

    Source
    ------
    choquettechoo2024, Algorithm 1 (batches of one, one epoch).
    """
    samples = require_run(mechanism, FTRLMechanism, samples, rng)
    steps, p = mechanism.steps, samples.dimension
    sizes = require_real("step_size", step_size, above=0, most=MOST)
    if sizes.shape not in ((), (steps,)):
        raise ValueError(f"step_size must have shape () or ({steps},), got {sizes.shape}")
    penalty = require_scale("ridge", ridge, zero=True)
    theta = initial_point(start, p)
    chunks = clippable_chunks(samples, np.array([mechanism.clip_norm]))
    wanted = require_increasing("times", [steps] if times is None else times, most=steps)
    etas = np.ascontiguousarray(np.broadcast_to(sizes, (steps,)))
    take_noise = _noise_source(mechanism.decoder, mechanism.gradient_noise_std, p, rng)
    released = np.zeros((wanted.size, p))
    progress = np.zeros(4, dtype=np.int64)
    settings = (etas, penalty, mechanism.clip_norm, mechanism.batch_size, wanted)
    state = (theta, np.zeros(p), progress, released)
    for epoch in range(mechanism.epochs):
        seen = 0
        for features, labels, norms in chunks():
            seen += len(features)
            last = seen == mechanism.sample_size
            reached = mechanism.steps_per_epoch if last else seen // mechanism.batch_size
            count = epoch * mechanism.steps_per_epoch + reached - int(progress[0])
            step_rows(features, labels, norms, take_noise(count), last, settings, state)
    if not (np.all(np.isfinite(theta)) and np.all(np.isfinite(released))):
        # Without the penalty's limit, it depends on the rows.
        limit = f"at most {2 / penalty:.4g}" if penalty * etas.max() > 2 else "small enough"
        raise ValueError(
            f"step_size must be {limit} for iterates to stay finite, got {short(step_size)}"
        )
    clipped = int(progress[3]) / (mechanism.epochs * mechanism.sample_size)
    share = Diagnostic(clipped, "share of clipped gradients")
    return FTRLRun(released, wanted, share, mechanism)


def simulate_ftrl(
    eigenvalues: FloatArray,
    *,
    step_size: float,
    decoder: ArrayLike,
    gradient_noise_std: float,
    steps: int,
    rng: np.random.Generator,
    label_noise_std: float = 0.0,
    initial_error: ArrayLike = 0.0,
) -> FloatArray:
    r"""Excess risks (steps + 1,) of a one-pass run without clipping on fresh samples.

    A risk is half the sum of λ_j e_j² for the error e = θ - θ*. Not private. Samples are
    :math:`N(0,\mathrm{diag}\,\lambda)` with the `eigenvalues` λ (d,), one sample per step.
    `decoder` holds coefficients β of `privreg.noise.toeplitz`; missing coefficients are 0.
    `initial_error` is θ_0 - θ* in the eigenbasis. Risks are `inf` if the iteration is unstable.
    """
    scales = np.sqrt(eigenvalues)
    noise, risks = np.zeros((steps, scales.size)), np.zeros(steps + 1)
    if gradient_noise_std > 0:
        kernel = np.trim_zeros(np.asarray(decoder, dtype=np.float64), "b")
        for left in range(0, scales.size, COLUMNS):
            block = standard_normal(rng, (steps, min(COLUMNS, scales.size - left)))
            block *= gradient_noise_std
            noise[:, left : left + COLUMNS] = correlate_noise(kernel, block)
    error = np.zeros(scales.size) + np.asarray(initial_error)
    draw_and_step(rng, scales, error, float(label_noise_std), float(step_size), noise, risks)
    # An unstable iteration leaves double precision, by way of opposite infinities.
    risks[np.isnan(risks)] = inf
    return risks


def _record_change(clip_norm: float, neighbours: Neighbours | str) -> float:
    """Largest change that one record makes to a batch's sum of clipped gradients."""
    return float(sum_sensitivity(clip_norm, neighbours=require_places(neighbours)))


def _noise_source(
    decoder: FloatArray, std: float, dimension: int, rng: np.random.Generator
) -> Callable[[int], FloatArray]:
    """A function that returns the correlated noise of the next `count` steps; `count` may be 0."""
    if decoder.ndim == 1:
        return ToeplitzNoise(decoder, dimension=dimension, rng=rng, std=std).draw
    rows = iter(decoder @ (std * standard_normal(rng, (len(decoder), dimension))))
    return lambda count: np.array([next(rows) for _ in range(count)]).reshape(count, dimension)


def _sensitivity(decoder: FloatArray, *, epochs: int, steps_per_epoch: int) -> float:
    encoder, column_error = bounded_inverse("decoder", decoder)
    diagonal = np.diag(decoder) if decoder.ndim == 2 else decoder[:1]
    if np.min(np.abs(diagonal)) < LEAST:
        raise ValueError(f"decoder must have diagonal entries of at least {LEAST:g}, got less")
    if epochs == 1:
        gamma = single_participation_sensitivity(encoder)
    else:
        measure = fixed_order_sensitivity
        # Without a matrix: the same number for encoders that fall, else a bound.
        if encoder.ndim == 1 and np.all(encoder >= 0) and np.all(np.diff(encoder) <= 0):
            measure = multi_participation_sensitivity
        elif encoder.ndim == 1 and encoder.size > DENSE_STEPS:
            measure = multi_participation_bound
        gamma = measure(encoder, participations=epochs, separation=steps_per_epoch)
    # A record moves a sum of one column an epoch, each wrong by this much at most.
    error = epochs * column_error
    return float(gamma if error <= ROUNDING * gamma else gamma + error)


@njit(cache=True, nogil=True, error_model="numpy")
def step_rows(features, labels, norms, noise, epoch_ends, settings, state):  # type: ignore[no-untyped-def]
    """Add gradients of rows; make a step after each full batch and at the end of an epoch.

    `gradient` sums the batch so far; `progress` counts steps, rows in the batch, iterates released
    and gradients clipped; `noise` has a row for each step that these rows complete.
    """
    step_sizes, ridge, clip_norm, batch_size, times = settings
    theta, gradient, progress, released = state
    rows, dimension = features.shape
    used = 0
    for i in range(rows):
        residual = -labels[i]
        for j in range(dimension):
            residual += features[i, j] * theta[j]
        if abs(residual) * norms[i] > clip_norm:
            residual = math.copysign(clip_norm / norms[i], residual)
            progress[3] += 1
        for j in range(dimension):
            gradient[j] += residual * features[i, j]
        progress[1] += 1
        if progress[1] == batch_size or (epoch_ends and i == rows - 1):
            step = progress[0]
            eta = step_sizes[step]
            for j in range(dimension):
                mean = gradient[j] / batch_size
                theta[j] -= eta * (mean + ridge * theta[j] + noise[used, j])
                gradient[j] = 0.0
            used += 1
            progress[0] = step + 1
            progress[1] = 0
            if progress[2] < len(times) and times[progress[2]] == step + 1:
                released[progress[2]] = theta
                progress[2] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def draw_and_step(rng, scales, error, label_noise_std, step_size, noise, risks):  # type: ignore[no-untyped-def]
    """Descend on fresh Gaussian rows from `error` = θ - θ*, with given noise; write to `risks`."""
    steps, dimension = noise.shape
    sample = np.empty(dimension)
    for step in range(steps + 1):
        if step > 0:
            residual = 0.0
            for j in range(dimension):
                sample[j] = scales[j] * rng.standard_normal()
                residual += sample[j] * error[j]
            residual -= label_noise_std * rng.standard_normal()
            for j in range(dimension):
                error[j] -= step_size * (residual * sample[j] + noise[step - 1, j])
        risk = 0.0
        for j in range(dimension):
            move = scales[j] * error[j]
            risk += move * move
        risks[step] = 0.5 * risk
