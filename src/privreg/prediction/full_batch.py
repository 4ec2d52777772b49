r"""Error of full-batch descent with clipped gradients, with or without a preconditioner.

Around θ* the clipped residual's curvature and second moment are

.. math:: A = \mathbb E[xx^\top 1\{|r| \le w\}],\qquad B = \mathbb E[xx^\top\psi^2],\qquad
    w = \gamma/\|x\|,

and, along an eigenvector in which the sample's second moment is h times the population's, the
bias c, the sampling error f and the variance v of the private noise follow

.. math:: c \leftarrow a\,c,\quad f \leftarrow a f + \eta P\sqrt{hB/n},\quad
    v \leftarrow a^2 v + \eta^2 P^2\lambda^2, \qquad a = 1 - \eta P A h.

A is that of the residual's size at each step: far from θ* more is clipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.prediction.clipping import clipped_moments
from privreg.prediction.gram_nodes import count_nodes, sample_nodes
from privreg.prediction.moments import ErrorMoments
from privreg.prediction.problem import Problem
from privreg.prediction.rows import Rows

FloatArray = NDArray[np.float64]


class Nodes(NamedTuple):
    """Relative curvature and preconditioner along an eigenvector, as a quadrature rule.

    Attributes
    ----------
    curvature : ndarray, shape (nodes,) or (groups, nodes)
        h.
    preconditioner : ndarray, shape (nodes,) or (groups, nodes)
        P over its nominal value.
    weights : ndarray, shape (nodes,)
        Of sum 1.
    """

    curvature: FloatArray
    preconditioner: FloatArray
    weights: FloatArray

    def mean(self, values: FloatArray) -> FloatArray:
        return values @ self.weights


def plain_nodes(problem: Problem, rows: Rows) -> Nodes:
    """Nodes without a preconditioner."""
    n = problem.sample_size
    if problem.feature_law == "one_hot":
        curvature, weights = count_nodes(rows.eigenvalues, n)
    else:
        curvature, weights = sample_nodes(min(problem.dimension / n, 0.99))
    return Nodes(curvature, np.ones_like(curvature), weights)


@dataclass(frozen=True, eq=False)
class Descent:
    """Settings of descents that are followed together.

    Parameters
    ----------
    steps : array_like of int, shape (settings,)
    step_size : array_like, shape (settings,) or (settings, most steps)
    clip_norm : array_like, shape (settings,) or (settings, most steps)
    gradient_noise_std : array_like, shape (settings,) or (settings, most steps)
        Of the mean gradient's coordinates.
    """

    steps: ArrayLike
    step_size: ArrayLike
    clip_norm: ArrayLike
    gradient_noise_std: ArrayLike

    def at(self, step: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Step size, clip norm and noise of a step, shape (settings,) each."""
        values = [np.asarray(each, dtype=float) for each in self._per_step]
        return tuple(each[:, step] if each.ndim == 2 else each for each in values)  # type: ignore[return-value]

    @property
    def _per_step(self) -> tuple[ArrayLike, ...]:
        return self.step_size, self.clip_norm, self.gradient_noise_std


def follow(
    problem: Problem,
    rows: Rows,
    descent: Descent,
    *,
    nodes: Nodes,
    preconditioner: FloatArray | float = 1.0,
    norms: FloatArray | None = None,
) -> tuple[ErrorMoments, FloatArray]:
    """Follow descents from zero; the error's moments, and the least share of unclipped gradients.

    Parameters
    ----------
    problem : Problem
    rows : Rows
        Those of the problem.
    descent : Descent
        Settings.
    nodes : Nodes
        Of the sample's curvature.
    preconditioner : float or ndarray, shape (groups,)
        Nominal P.
    norms : ndarray, shape (rows,), optional
        Length of a row that clipping sees; the Euclidean one by default.

    Returns
    -------
    moments : ErrorMoments
    unclipped : ndarray, shape (settings,)
        Share of gradients that are not clipped, at the last step.
    """
    steps = np.asarray(descent.steps, dtype=int)
    settings, groups, count = len(steps), len(rows.eigenvalues), nodes.weights.size
    lengths = rows.norms if norms is None else norms
    sigma = problem.label_noise_std
    factor = np.broadcast_to(np.asarray(preconditioner, float)[..., None], (groups, 1))
    factor = factor * nodes.preconditioner
    bias = np.ones((settings, groups, count))
    sampling = np.zeros_like(bias)
    private = np.zeros_like(bias)
    unclipped = np.ones(settings)
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(int(steps.max())):
            active = np.flatnonzero(step < steps)
            size, clip, noise = (each[active] for each in descent.at(step))
            widths = clip[:, None] / lengths
            energy = nodes.mean(
                bias[active] ** 2 * rows.squared_signal[:, None]
                + sampling[active] ** 2
                + private[active]
            )
            # What has diverged stays so; the row's residuals need a number.
            energy = np.minimum(np.nan_to_num(energy, nan=1e100, posinf=1e100), 1e100)
            share, _ = clipped_moments(widths, np.sqrt(sigma**2 + rows.quadratic(energy)))
            _, square = clipped_moments(widths, np.full_like(widths, sigma))
            curvature = rows.per_coordinate(share)[..., None] * nodes.curvature
            source = rows.per_coordinate(square)[..., None] * nodes.curvature
            pull = size[:, None, None] * factor
            contraction = 1 - pull * curvature
            bias[active] *= contraction
            sampling[active] = contraction * sampling[active] + pull * np.sqrt(
                source / problem.sample_size
            )
            private[active] = contraction**2 * private[active] + (pull * noise[:, None, None]) ** 2
            unclipped[active] = share @ rows.weights
        moments = ErrorMoments(
            nodes.mean(bias**2) * rows.squared_signal, nodes.mean(sampling**2 + private)
        )
    return moments, unclipped
