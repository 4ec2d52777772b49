r"""Error of full-batch descent with clipped gradients.

Around θ* the clipped residual's curvature and second moment are

.. math:: A = \mathbb E[xx^\top 1\{|r| \le w\}],\qquad B = \mathbb E[xx^\top\psi^2],\qquad
    w = \gamma/\|x\|,

and, along an eigenvector in which the sample's curvature is h times the population's, the bias c,
the sampling error f and the variance v of the private noise follow

.. math:: c \leftarrow a\,c,\quad f \leftarrow (1 - \eta A) f + \eta\sqrt{B/n},\quad
    v \leftarrow a^2 v + \eta^2\lambda^2, \qquad a = 1 - \eta A h.

A is that of the residual's size at each step: far from θ* more is clipped. The sample's residuals
are those at its own minimiser, so that f is no part of that size; its growth at finite p/n is that
of `finite_sample.sampling_inflation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.full_batch_dpgd import full_batch_noise_std
from privreg.prediction.clipping import clipped_residual, finite, noise_moments
from privreg.prediction.finite_sample import sampling_inflation
from privreg.prediction.gram_nodes import count_nodes, sample_nodes
from privreg.prediction.methods import FullBatch, require_methods
from privreg.prediction.misfit import squared_shift
from privreg.prediction.moments import ErrorMoments
from privreg.prediction.problem import Problem
from privreg.prediction.rows import Rows, require_setting
from privreg.privacy.budget import Budget

FloatArray = NDArray[np.float64]


class Curvatures(NamedTuple):
    """Relative curvature h of a sample, (settings, groups or 1, nodes), and weights alike."""

    nodes: FloatArray
    weights: FloatArray

    def of(self, settings: NDArray[np.intp]) -> Curvatures:
        return Curvatures(self.nodes[settings], self.weights[settings])

    def mean(self, values: FloatArray) -> FloatArray:
        return np.sum(values * self.weights, axis=-1)


def follow(
    problem: Problem, rows: Rows, methods: Sequence[FullBatch], budget: Budget
) -> tuple[ErrorMoments, FloatArray, FloatArray]:
    """Follow descents from zero, together.

    Parameters
    ----------
    problem : Problem
    rows : Rows
        Those of the problem.
    methods : sequence of FullBatch
        Settings.
    budget : Budget

    Returns
    -------
    moments : ErrorMoments
    unclipped : ndarray, shape (settings,)
        Share of gradients that are not clipped, at the last step.
    reach : ndarray, shape (settings,)
        Largest ηAh at the last step; beyond 2 a direction diverges.
    """
    require_setting(problem, rows, budget)
    methods = require_methods(methods, FullBatch)
    n, sigma = problem.sample_size, problem.label_noise_std
    steps, sizes, clips = (
        np.array([getattr(each, name) for each in methods])
        for name in ("steps", "step_size", "clip_norm")
    )
    noise = full_batch_noise_std(
        clip_norm=clips,
        rho=budget.rho,
        sample_size=n,
        gradients=steps,
        neighbours=budget.neighbours,
    )
    widths = clips[:, None] / np.maximum(rows.norms, 1e-300)
    settled, square = noise_moments(widths, label_noise_std=sigma, law=problem.label_noise_law)
    unclipped = settled @ rows.weights
    curvatures = _curvatures(problem, rows, unclipped)
    bias = np.ones(np.broadcast_shapes(curvatures.nodes.shape, (1, len(rows.eigenvalues), 1)))
    private, sampling = np.zeros_like(bias), np.zeros(bias.shape[:2])
    reach = np.zeros(len(methods))
    source = np.sqrt(rows.per_coordinate(square) / n)
    with np.errstate(over="ignore", invalid="ignore"):
        for taken in range(int(steps.max())):
            active = np.flatnonzero(taken < steps)
            nodes, size = curvatures.of(active), sizes[active, None]
            found = clipped_residual(
                problem,
                rows,
                widths[active],
                squared_bias=finite(nodes.mean(bias[active] ** 2) * rows.squared_signal),
                variance=finite(nodes.mean(private[active])),
            )
            pull = size * rows.per_coordinate(found.share)
            step = pull[..., None] * nodes.nodes
            contraction = 1 - step
            reach[active] = np.max(step, axis=(1, 2))
            drift = size * rows.per_coordinate(found.drift)
            bias[active] *= 1 - drift[..., None] * nodes.nodes
            private[active] = (
                contraction**2 * private[active] + (size * noise[active, None])[..., None] ** 2
            )
            sampling[active] = (1 - pull) * sampling[active] + size * source[active]
            unclipped[active] = found.share @ rows.weights
        spread = curvatures.mean(private)
        inflation = _inflation(problem, rows, curvatures, widths, spread)
        moved = squared_shift(problem, rows, widths, covered=1 - curvatures.mean(bias))
        moments = ErrorMoments(
            curvatures.mean(bias**2) * rows.squared_signal + moved,
            inflation * sampling**2 + spread,
        )
    return moments, unclipped, reach


def _curvatures(problem: Problem, rows: Rows, unclipped: FloatArray) -> Curvatures:
    n = problem.sample_size
    if problem.feature_law == "one_hot":
        counts = [count_nodes(rows.eigenvalues * share, n) for share in unclipped]
        nodes = np.array([pair[0] for pair in counts])
        return Curvatures(nodes, np.broadcast_to(counts[0][1], nodes.shape))
    ratios = problem.dimension / n / np.maximum(unclipped, 1e-9)
    found = [sample_nodes(float(min(ratio, 0.9))) for ratio in ratios]
    return Curvatures(*(np.array([pair[at] for pair in found])[:, None] for at in (0, 1)))


def _inflation(
    problem: Problem,
    rows: Rows,
    curvatures: Curvatures,
    widths: FloatArray,
    private: FloatArray,
) -> FloatArray:
    """Of the sampling variance, shape (settings, groups or 1)."""
    if problem.feature_law == "one_hot":
        # Each category is a sample of its own size.
        nodes, weights = count_nodes(rows.eigenvalues, problem.sample_size)
        return np.broadcast_to((1 / np.maximum(nodes, 1e-2)) @ weights, private.shape)
    ratio = problem.dimension / problem.sample_size
    other = finite(rows.total(rows.eigenvalues * private))
    return sampling_inflation(
        widths,
        rows.weights,
        ratio=ratio,
        label_noise_std=problem.label_noise_std,
        law=problem.label_noise_law,
        other_variance=other,
    )[:, None]
