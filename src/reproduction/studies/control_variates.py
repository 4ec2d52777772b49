r"""Control variates of mean zero for the excess risk of simulated runs, from the runs' own draws.

A run's error is nearly linear in its random draws,

.. math:: \theta - \theta^* \approx b + u + g,\qquad
    u = \sum_i U_i s_i,\quad g = \sum_k G_k z_k,

where s_i is the sign of a label's noise, independent of its size and of the rows under every
symmetric law, and z_k are the standard normals of the private noise. If b and U_i depend only on
the rows, the sizes of label noise and earlier private noise, and G_k on all that precedes z_k, then

.. math:: c = \tfrac12\Big(\|b + u + g\|^2_\Lambda - \|b\|^2_\Lambda
    - \sum_i \|U_i\|^2_\Lambda - \sum_k \|\Lambda^{1/2} G_k\|_F^2\Big)

has mean zero exactly, however rough the approximation is. Given everything else, products of
different signs or normals have mean zero, and the means of squares are subtracted.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, lru_cache, singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import oaconvolve

from privreg.algorithms import one_pass_dpgd
from privreg.algorithms.adassp import RELEASES, clipped_sums, sensitivities
from privreg.algorithms.full_batch_dpgd import full_batch_noise_std
from privreg.algorithms.one_pass_dpgd import CHUNK
from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.whitened_descent import length_edges, scale_edges
from privreg.kernels import standard_normal
from privreg.methods.adassp import AdaSSP
from privreg.methods.clipping import noise_moments
from privreg.methods.correlated_noise import CorrelatedNoise
from privreg.methods.full_batch_dpgd import FullBatchDPGD
from privreg.methods.huber import PrivateHuber
from privreg.methods.method import Declared
from privreg.methods.one_pass_dpgd import OnePassDPGD
from privreg.methods.problem import Problem, rows_of
from privreg.noise.toeplitz import damped_square_root, damped_square_root_encoder
from privreg.privacy.budget import Budget, sum_sensitivity

FloatArray = NDArray[np.float64]
Found = tuple[FloatArray, FloatArray]
Rng = np.random.Generator
# At larger step sizes a linear descent diverges although a clipped one does not.
LONGEST_PULL = 2.0
# Rows per feature from which off-diagonal sums, of relative size √(p/n), are left out.
MANY_ROWS = 1000
NUMBERS_PER_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a problem, shape (n, p), and the budget of the fits."""

    problem: Problem
    budget: Budget
    rows: FloatArray
    labels: FloatArray

    @cached_property
    def errors(self) -> FloatArray:
        return np.asarray(self.labels - self.rows @ self.problem.signal)

    @property
    def samples(self) -> ArraySamples:
        return ArraySamples(self.rows, self.labels)

    def control(
        self, bias: FloatArray, sampling: FloatArray, private: FloatArray, mean: FloatArray | float
    ) -> FloatArray:
        """Half the weighted square of the sum, shape (runs,), less its mean."""
        weights = self.problem.eigenvalues
        return np.asarray(
            ((bias + sampling + private) ** 2 @ weights - bias**2 @ weights - mean) / 2
        )


@dataclass(frozen=True, eq=False)
class Curvature:
    r"""Mean derivative and sum of the clipped gradients at θ*, with the sum of their squares.

    .. math:: \hat A = \frac1n\sum_i \ell_i x_i x_i^\top 1\{|\xi_i| \le w_i\},\qquad
        s = \frac1n\sum_i \psi_i x_i,\qquad Q = \frac1{n^2}\sum_i \psi_i^2 x_i x_i^\top,
        \qquad \psi_i = \ell_i\,\mathrm{clip}(\xi_i, \pm w_i)

    If there are many rows per feature, only diagonals are computed: the map from s to u is then
    diagonal, and the mean of its square needs only the diagonal of Q.
    """

    matrix: FloatArray
    score: FloatArray
    squares: FloatArray

    @classmethod
    def of(
        cls, sample: Sample, widths: FloatArray | float, leverage: FloatArray | float = 1.0
    ) -> Curvature:
        (n, p), rows = sample.rows.shape, sample.rows
        kept = np.asarray(leverage * (np.abs(sample.errors) <= widths), dtype=np.float64)
        scored = leverage * np.clip(sample.errors, -widths, widths)
        product = (lambda x, w: np.diag(squares(x, w))) if p * MANY_ROWS <= n else gram
        return cls(product(rows, kept) / n, scored @ rows / n, product(rows, scored**2) / n**2)

    def reached(self, reach: FloatArray, eigenvalues: FloatArray) -> tuple[FloatArray, float]:
        """u, the image of s under a map, and the mean of the weighted square of u."""
        mean = np.sum((reach.T * eigenvalues) @ reach * self.squares)
        return reach @ self.score, float(mean)


def run_with_control(method: Any, sample: Sample, rng: Rng, *, runs: int) -> Found:
    """Estimates of runs on one sample and their control variates, shapes (runs, p) and (runs,).

    The estimates and the state of the generator afterwards are those of `method.simulate`.
    """
    twin = deepcopy(rng)
    estimates, controls = _run(method, sample, rng, twin, runs)
    if twin.random() != deepcopy(rng).random():
        raise RuntimeError(f"{method.name} draws other noise than its control variate expects")
    return estimates, controls


@singledispatch
def _run(method: Any, sample: Sample, rng: Rng, twin: Rng, runs: int) -> Found:
    """Runs with one generator, and their controls with a copy of it."""
    raise TypeError(f"method must be one with a control variate, got {type(method).__name__}")


@_run.register
def _full_batch(method: FullBatchDPGD, sample: Sample, rng: Rng, twin: Rng, runs: int) -> Found:
    problem, p = sample.problem, sample.problem.dimension
    estimates = _simulated(method, sample, rng, runs)
    std = method.step_size * float(
        full_batch_noise_std(
            clip_norm=method.clip_norm,
            rho=sample.budget.rho,
            sample_size=problem.sample_size,
            gradients=method.steps,
            neighbours=sample.budget.neighbours,
        )
    )
    curvature = Curvature.of(sample, method.clip_norm / _norms(sample.rows))
    values, vectors = np.linalg.eigh(curvature.matrix)
    contraction = 1 - method.step_size * values
    powers = contraction ** np.arange(method.steps)[:, None]
    reach = (vectors * (method.step_size * powers.sum(axis=0))) @ vectors.T
    private = np.zeros((runs, p))
    for _ in range(method.steps):
        normals = standard_normal(twin, (runs, p))
        private += std * normals - method.step_size * private @ curvature.matrix
    sampling, mean = curvature.reached(reach, problem.eigenvalues)
    mean += std**2 * float((powers**2).sum(axis=0) @ (vectors**2).T @ problem.eigenvalues)
    bias = -(vectors * contraction**method.steps) @ (vectors.T @ problem.signal)
    return estimates, sample.control(bias, sampling, private, mean)


@_run.register
def _one_pass(method: OnePassDPGD, sample: Sample, rng: Rng, twin: Rng, runs: int) -> Found:
    problem = sample.problem
    n, p = sample.rows.shape
    mechanism = _mechanism(method, n, p, sample.budget)
    norms = _norms(sample.rows)
    clip, amplitude = float(mechanism.clip_norm[0]), float(mechanism.amplitude[0])
    rates = amplitude * mechanism.step_shape
    stds = 2 * clip * amplitude * mechanism.noise_shape
    taken = np.minimum(rates, 2 / norms**2)
    scores = taken * np.clip(sample.errors, -clip / norms, clip / norms)
    later = np.cumsum(rates[::-1])[::-1] - rates
    groups = _groups(problem, clip)
    left = [np.exp(-pull * later) for _, pull in groups]
    bias, sampling, mean = -problem.signal, np.empty(p), 0.0
    for (own, pull), kept in zip(groups, left, strict=True):
        bias[own] *= np.exp(-pull * rates.sum())
        sampling[own], spread = _scored(sample, own, kept * scores)
        mean += spread + problem.eigenvalues[own].sum() * float(np.sum((kept * stds) ** 2))
    estimates, private = np.empty((runs, p)), np.zeros((runs, p))
    # A chunk without noise draws none.
    drawn = np.repeat(np.logical_or.reduceat(stds > 0, np.arange(0, n, CHUNK)), CHUNK)[:n]
    loads = [(own, (kept * stds)[drawn]) for (own, _), kept in zip(groups, left, strict=True)]
    for run in range(runs):
        estimates[run] = one_pass_dpgd.fit(mechanism, sample.rows, sample.labels, rng)[0]
        for block in blocks(int(drawn.sum()), p):
            normals = standard_normal(twin, (block.stop - block.start, p))
            for own, load in loads:
                private[run, own] += load[block] @ normals[:, own]
    return estimates, sample.control(bias, sampling, private, mean)


@_run.register
def _correlated_noise(
    method: CorrelatedNoise, sample: Sample, rng: Rng, twin: Rng, runs: int
) -> Found:
    problem = sample.problem
    n, p = sample.rows.shape
    estimates = _simulated(method, sample, rng, runs)
    steps = -(-n // method.batch_size)
    decoder = damped_square_root(steps, damping=method.damping)
    encoder = damped_square_root_encoder(steps, damping=method.damping)
    change = float(sum_sensitivity(method.clip_norm, neighbours=sample.budget.neighbours))
    std = float(np.sqrt(encoder @ encoder)) * change / (method.batch_size * sample.budget.root)
    widths = method.clip_norm / _norms(sample.rows)
    scores = np.clip(sample.errors, -widths, widths) / method.batch_size
    later = np.arange(steps)[::-1]
    of_row = np.arange(n) // method.batch_size
    normals = np.array([standard_normal(twin, (steps, p)) for _ in range(runs)])
    bias, sampling, private, mean = -problem.signal, np.empty(p), np.empty((runs, p)), 0.0
    for own, pull in _groups(problem, method.clip_norm):
        contraction = 1 - method.step_size * pull
        loads = method.step_size * contraction**later
        # Reversed in time, the transposed product is a convolution; the noise is subtracted.
        carried = -std * oaconvolve(loads[::-1], decoder)[:steps][::-1]
        bias[own] *= contraction**steps
        sampling[own], spread = _scored(sample, own, loads[of_row] * scores)
        private[:, own] = carried @ normals[:, :, own]
        mean += spread + problem.eigenvalues[own].sum() * float(np.sum(carried**2))
    return estimates, sample.control(bias, sampling, private, mean)


@_run.register
def _adassp(method: AdaSSP, sample: Sample, rng: Rng, twin: Rng, runs: int) -> Found:
    problem, p = sample.problem, sample.problem.dimension
    bounds = Declared.of(problem).require_bounds(method.name)
    sums = clipped_sums(sample.samples, bounds=bounds)
    limits = sensitivities(bounds, neighbours=sample.budget.neighbours)
    estimates = _simulated(method, sample, rng, runs)
    multiplier = np.sqrt(RELEASES / (2 * sample.budget.rho))
    gram_std, moment_std = multiplier * limits.gram, multiplier * limits.moment
    shrink = np.minimum(1.0, bounds.feature_norm / _norms(sample.rows))
    score = shrink * np.clip(sample.errors, -bounds.label, bounds.label)
    scored = score @ sample.rows
    scores = gram(sample.rows, score**2)
    explained = (shrink * (sample.rows @ problem.signal)) @ sample.rows
    wanted = gram_std * np.sqrt(p * np.log(2 * p**2 / method.ridge_failure))
    shift = np.sqrt(-2 * np.log(method.ridge_failure))
    smallest = float(np.linalg.eigvalsh(sums.gram)[0])
    weights, controls = problem.eigenvalues, np.empty(runs)
    for run in range(runs):
        eigenvalue = smallest + multiplier * limits.eigenvalue * (twin.standard_normal() - shift)
        ridge = max(0.0, wanted - max(0.0, eigenvalue))
        inverse = np.linalg.inv(sums.gram + ridge * np.eye(p))
        upper = np.triu(standard_normal(twin, (p, p)))
        symmetric = upper + np.triu(upper, 1).T
        mean_estimate = inverse @ explained
        private = inverse @ (
            moment_std * twin.standard_normal(p) - gram_std * symmetric @ mean_estimate
        )
        through = (inverse * weights) @ inverse
        # The rows of W c have covariance |c|² I + c c' - diag(c²).
        moved = (
            np.trace(through) * (mean_estimate @ mean_estimate)
            + mean_estimate @ through @ mean_estimate
            - np.diag(through) @ mean_estimate**2
        )
        mean = np.sum(through * scores) + moment_std**2 * np.trace(through) + gram_std**2 * moved
        controls[run] = sample.control(
            mean_estimate - problem.signal, inverse @ scored, private, mean
        )
    return estimates, controls


@_run.register
def _private_regression(
    method: PrivateHuber, sample: Sample, rng: Rng, twin: Rng, runs: int
) -> Found:
    """Control variate from the noise of the final steps, whose weights are known."""
    problem = sample.problem
    n, p = sample.rows.shape
    fit = method._prepare(sample.samples, sample.budget, Declared.of(problem))
    # Whitened by the true covariance, since private whitening depends on the errors' signs.
    lengths = np.sqrt(sample.rows**2 @ (1 / problem.eigenvalues) / p)
    width = method.clip_width * problem.label_noise_std
    if method.common_width:
        leverage, widths = 1 / np.maximum(lengths, 1.0), np.full(n, width)
    else:
        leverage, widths = np.ones(n), width / np.maximum(lengths, 1e-300)
    curvature = Curvature.of(sample, widths, leverage)
    inverse = np.asarray(np.linalg.inv(curvature.matrix))
    sampling, spread = curvature.reached(inverse, problem.eigenvalues)
    # Normals that a fit draws before and after its final steps.
    lengths_drawn, scales_drawn = len(length_edges(1.0)) + 1, len(scale_edges(1.0)) + 1
    moments_drawn = p * p if method.moment_share > 0 else 0
    before = lengths_drawn + method.gram_rounds * p * p + scales_drawn + moments_drawn
    before += method.warm_up_steps * (p + scales_drawn)
    estimates, controls = np.empty((runs, p)), np.empty(runs)
    for run in range(runs):
        fitted = fit(rng)
        estimates[run] = fitted.parameters
        twin.standard_normal(before)
        private, left = np.zeros(p), list[FloatArray]()
        for matrix, std in zip(
            fitted.step_matrices[method.warm_up_steps :],
            fitted.gradient_noise_stds[method.warm_up_steps :],
            strict=True,
        ):
            step = fitted.whitening @ matrix
            pull = step @ fitted.whitening.T @ curvature.matrix
            normals = twin.standard_normal(p)
            # The choice depends only on values known before these normals are drawn.
            if not left and np.abs(np.linalg.eigvals(pull)).max() > LONGEST_PULL:
                continue
            moved = std * step
            private = private - pull @ private + moved @ normals
            left = [each - pull @ each for each in left] + [moved]
        twin.standard_normal(moments_drawn + 2)
        mean = spread + sum(float(np.sum(problem.eigenvalues @ each**2)) for each in left)
        controls[run] = sample.control(np.zeros(p), sampling, private, mean)
    return estimates, controls


def _simulated(method: Any, sample: Sample, rng: Rng, runs: int) -> FloatArray:
    found = method.simulate(
        sample.samples, sample.budget, rng, declared=Declared.of(sample.problem), runs=runs
    )
    return np.asarray(found)


def _norms(rows: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(np.einsum("ij,ij->i", rows, rows), 1e-300))


def _scored(sample: Sample, own: slice, weights: FloatArray) -> tuple[FloatArray, float]:
    """Weighted sum of coordinates of the rows, and the mean of its square over signs."""
    rows = np.ascontiguousarray(sample.rows[:, own])
    return weights @ rows, float(squares(rows, weights**2) @ sample.problem.eigenvalues[own])


def _groups(problem: Problem, clip_norm: float) -> list[tuple[slice, float]]:
    """Groups of coordinates with nearly equal eigenvalues, and their mean curvature."""
    rows = rows_of(problem)
    if np.any(np.diff(problem.eigenvalues) < 0):
        raise ValueError("problem must have eigenvalues that do not fall")
    share, _ = noise_moments(
        clip_norm / np.maximum(rows.norms, 1e-300),
        label_noise_std=problem.label_noise_std,
        law=problem.label_noise_law,
    )
    ends = np.cumsum(rows.multiplicities).astype(int)
    pulls = rows.per_coordinate(share).tolist()
    return [
        (slice(start, end), pull)
        for start, end, pull in zip([0, *ends[:-1]], ends, pulls, strict=True)
    ]


@lru_cache(maxsize=2)
def _mechanism(method: OnePassDPGD, n: int, p: int, budget: Budget) -> one_pass_dpgd.Mechanism:
    """The mechanism of a setting, computed once, since this takes a third of a run's time."""
    return one_pass_dpgd.Mechanism.from_schedule(
        method.schedule,
        sample_size=n,
        dimension=p,
        budget=budget,
        clip_constant=method.clip_constant,
    )


def gram(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Sum over rows of w x xᵀ, shape (p, p), with weights w of at least 0."""
    total, roots = np.zeros((rows.shape[1],) * 2), np.sqrt(weights)
    for block in blocks(*rows.shape):
        weighted = rows[block] * roots[block, None]
        total += weighted.T @ weighted
    return total


def squares(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Diagonal of `gram`, shape (p,)."""
    total = np.zeros(rows.shape[1])
    for block in blocks(*rows.shape):
        total += weights[block] @ rows[block] ** 2
    return total


def blocks(n: int, p: int) -> Iterator[slice]:
    """Blocks of consecutive rows that fit in a cache and reuse memory."""
    size = max(1, NUMBERS_PER_BLOCK // p)
    return (slice(first, min(n, first + size)) for first in range(0, n, size))
