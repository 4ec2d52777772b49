"""The law of the records as the theories of noisy SGD need it, and its estimate from records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.immutable import Immutable
from privreg.theory.noisy_sgd.diffusion import RidgeRegression
from privreg.validation import require_answer, require_array, require_frozen, require_number

FloatArray = NDArray[np.float64]
# Squares of larger residuals leave double precision.
LARGEST_NOISE = 1e150


@dataclass(frozen=True, eq=False)
class Population(Immutable):
    r"""Second moment of the features, ground truth and label noise.

    .. math:: b = a^\top\tilde x + \xi, \qquad \Sigma = \mathbb E[aa^\top], \qquad
        \zeta^2 = \mathbb E\,\xi^2

    Parameters
    ----------
    second_moment : array_like, shape (d, d)
        Σ, not centred; symmetric and positive semidefinite.
    target : array_like, shape (d,)
        Ground truth x̃.
    label_noise_std : float
        ζ, at least 0.

    Source
    ------
    lin2025, section 2.
    """

    second_moment: FloatArray
    target: FloatArray
    label_noise_std: float

    def __post_init__(self) -> None:
        target = require_frozen("target", self.target, shape=(None,))
        moment = require_frozen("second_moment", self.second_moment, shape=(target.size,) * 2)
        if np.max(np.abs(moment - moment.T)) > 1e-9 * np.max(np.abs(moment)):
            raise ValueError("second_moment must be symmetric, got another matrix")
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "second_moment", moment)
        require_number("label_noise_std", self.label_noise_std, least=0, most=LARGEST_NOISE)

    def regression(
        self, *, start: ArrayLike | None = None, ridge: float = 0.0
    ) -> tuple[RidgeRegression, FloatArray]:
        """The regression in the eigenbasis of Σ, and that basis.

        Parameters
        ----------
        start : array_like, shape (d,), optional
            x_0, at least -1e30 and at most 1e30; 0 by default.
        ridge : float
            δ, at least 0.

        Returns
        -------
        problem : RidgeRegression
        basis : ndarray, shape (d, d)
            Eigenvectors in its columns: `vectors @ basis` are coordinates.
        """
        eigenvalues, basis = np.linalg.eigh(self.second_moment)
        if eigenvalues[0] < -1e-9 * abs(eigenvalues[-1]):
            raise ValueError("second_moment must be positive semidefinite, got another matrix")
        origin = np.zeros_like(self.target)
        if start is not None:
            limits = {"least": -1e30, "most": 1e30}
            origin = require_array("start", start, shape=self.target.shape, **limits)
        problem = RidgeRegression(
            np.maximum(eigenvalues, 0.0),
            self.target @ basis,
            origin @ basis,
            label_noise_std=self.label_noise_std,
            ridge=require_number("ridge", ridge, least=0),
        )
        return problem, basis


def estimated_population(features: ArrayLike, labels: ArrayLike) -> Population:
    r"""Law of the records as least squares sees it.

    .. math::
        \hat\Sigma = \tfrac1n\sum_k a_ka_k^\top, \qquad
        \hat x = \arg\min_x \sum_k (a_k^\top x - b_k)^2, \qquad
        \hat\zeta^2 = \tfrac1{n-d}\sum_k (a_k^\top\hat x - b_k)^2

    Parameters
    ----------
    features : array_like, shape (n, d)
    labels : array_like, shape (n,)
        More records than dimensions, linearly independent; rough unless they are many more.

    Guarantee
    ---------
    None: computed from the records without noise.

    Examples
    --------
    >>> found = estimated_population([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0])
    >>> round(float(found.target[0]), 6), round(float(found.second_moment[0, 0]), 6)
    (1.0, 4.666667)
    """
    rows = require_array("features", features, shape=(None, None))
    n, d = rows.shape
    targets = require_array("labels", labels, shape=(n,))
    if n <= d:
        raise ValueError(
            "features must have more records than dimensions where no population is given, "
            f"got {n} records of dimension {d}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        moment = require_answer("features", rows.T @ rows / n)
        target, _, rank, _ = np.linalg.lstsq(rows, targets)
        residual = rows @ target - targets
        # In units of the largest, so that no square of a small residual vanishes.
        unit = np.max(np.abs(residual)) or 1.0
        root = unit * np.sqrt(np.sum((residual / unit) ** 2) / (n - d))
        spread = require_answer("labels", np.asarray(root))
    if spread > LARGEST_NOISE:
        raise ValueError(f"labels must leave residuals of at most {LARGEST_NOISE:g}, got larger")
    if rank < d:
        raise ValueError(
            f"features must be linearly independent where no population is given, got rank {rank} "
            f"of {d}"
        )
    return Population(moment, np.asarray(target, dtype=np.float64), float(spread))
