"""Curvature and mean square of the clipped gradient from private statistics of known noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from privreg.algorithms.huber_descent import HuberFit
from privreg.algorithms.split_budget import NoisyValue
from privreg.theory.huber_descent.known_noise import shrink_to, shrink_to_identity
from privreg.validation import require_answer

FloatArray = NDArray[np.float64]
# Of a direction's own noise: what it must exceed to be seen, and how far shrinkage may take it.
VISIBLE, LIMIT = 1.645, 1.0


@dataclass(frozen=True)
class ShrunkMoments:
    """A and B in whitened coordinates, and the noise that is left in them."""

    curvature: FloatArray  # A
    second_moment: FloatArray  # B
    mean_curvature: float  # tr(A)/p
    # Standard deviations in uᵀAu and uᵀBu for a unit vector u, where the two were released.
    curvature_noise: float
    second_moment_noise: float
    # G, where A and B are multiples of the rows' second moment: uᵀGu is its deviation along u.
    gram_noise: FloatArray

    @property
    def step_noise(self) -> float:
        """Noise left in uᵀAu for a typical u, however A was found."""
        typical = float(np.trace(self.gram_noise)) / len(self.gram_noise)
        return max(self.curvature_noise, self.mean_curvature * typical)

    def relative_noise(
        self, direction: FloatArray, sampling: FloatArray, privacy: FloatArray, target: str
    ) -> float:
        r"""Standard deviation of the noise in the estimate of uᵀCu, relative to it.

        .. math::
            \delta(u^\top C u) = -2\,a^\top E_A\,c + a^\top E_B\,a/n, \qquad
            a = A^{-1}u,\ c = C u

        with C the covariance about the target. Where A = πΣ and B = mΣ the sampling part is
        proportional to Σ⁻¹ and the private one to its square.
        """
        direction = _unit(direction)
        # In rows, so that sums have one order.
        sampling, privacy = np.ascontiguousarray(sampling), np.ascontiguousarray(privacy)
        population = target == "population"
        covariance = sampling + privacy if population else privacy
        a, c = np.linalg.solve(self.curvature, direction), covariance @ direction
        whole = float(direction @ c)
        if not whole > 0:
            raise ValueError(
                f"sampling and privacy must leave a variance along the direction, got {whole:g}"
            )
        parts = np.array([direction @ sampling @ direction, direction @ privacy @ direction])
        variance = 2 * self.curvature_noise**2 * ((a @ a) * (c @ c) + (a @ c) ** 2)
        shape = float(direction @ self.gram_noise @ direction)
        shape *= float(population) * parts[0] + 2 * parts[1]
        if population and self.second_moment_noise > 0:
            middle = float(a @ self.second_moment @ a)
            variance += (parts[0] * self.second_moment_noise * (a @ a) / middle) ** 2
        thinness = self.mean_curvature * float(a @ direction)
        noise = np.asarray(np.sqrt(variance + (shape * thinness) ** 2)) / whole
        return float(require_answer("sampling and privacy", noise))

    def along(self, fit: HuberFit, direction: FloatArray) -> ShrunkMoments | None:
        """Moments along a direction, within a deviation of its own noisy value; None if unseen.

        Shrinkage looks at all entries at once and can hide a single thin direction. Where its own
        value is no more than noise, nothing bounds a coefficient along it.
        """
        unit = _unit(direction)
        shrunk = float(unit @ self.curvature @ unit)
        if fit.curvature is not None:
            found, std = float(unit @ fit.curvature.value @ unit), fit.curvature.noise_std
        else:
            before = fit.last_root @ unit
            found = self.mean_curvature * float(before @ fit.gram.value @ before)
            std = self.mean_curvature * fit.gram.noise_std * float(before @ before)
        if found <= VISIBLE * std:
            return None
        limited = found + LIMIT * std
        if limited >= shrunk:
            return self
        corrected = replace(
            self,
            curvature=_lifted(
                self.curvature - (shrunk - limited) * np.outer(unit, unit), 0.5 * limited
            ),
            second_moment=_scaled(self.second_moment, unit, limited / shrunk),
        )
        if fit.curvature is not None:
            return replace(corrected, curvature_noise=std)
        return replace(corrected, gram_noise=std / self.mean_curvature * np.eye(len(unit)))


def shrunk_moments(fit: HuberFit) -> ShrunkMoments:
    r"""A and B from what a fit released, between the plug-in and the sandwich.

    .. math::
        \hat A = \hat\pi\hat\Sigma + \omega_A(\tilde A - \hat\pi\hat\Sigma), \qquad
        \hat B = \hat m\hat\Sigma + \omega_B(\tilde B - \hat m\hat\Sigma)

    with the noisy Ã and B̃ of the fit, the weights of `shrink_to`, the private means π̂ and m̂ of
    their diagonals, and the rows' second moment Σ̂ in whitened coordinates: the identity, but for
    directions so thin that whitening stopped at the noise. At ω = 0 this is the plug-in for errors
    that do not depend on the features, at ω = 1 the sandwich.
    """
    p = fit.parameters.size
    # Below this weight the noise would hide a deviation from the identity.
    hidden = min(1.0, 2 / np.sqrt(p * (p + 1)))
    normal = 2 * float(ndtr(fit.settings.clip_width)) - 1
    bound = fit.clip_norm**2 / p
    mean = float(np.clip(_mean(fit.curvature, fit.mean_curvature, p), 0.1 * normal, 1.5))
    square = float(np.clip(_mean(fit.second_moment, fit.mean_square, p), 1e-3 * bound, bound))
    shape = _rows_second_moment(fit)
    if fit.curvature is None or fit.second_moment is None:
        left = fit.gram.noise_std * float(np.sqrt(max(fit.gram_weight, hidden)))
        return ShrunkMoments(
            curvature=mean * shape,
            second_moment=square * shape,
            mean_curvature=mean,
            curvature_noise=0.0,
            second_moment_noise=0.0,
            gram_noise=left * fit.last_root.T @ fit.last_root,
        )
    matrix = (fit.curvature.value + fit.curvature.value.T) / 2
    a = shrink_to(mean * shape, matrix, noise_std=fit.curvature.noise_std)
    b = shrink_to(square * shape, fit.second_moment.value, noise_std=fit.second_moment.noise_std)
    return ShrunkMoments(
        curvature=_lifted(a.matrix, 0.05 * mean),
        second_moment=_lifted(b.matrix, 0.02 * square),
        mean_curvature=mean,
        curvature_noise=fit.curvature.noise_std * float(np.sqrt(max(a.weight, hidden))),
        second_moment_noise=fit.second_moment.noise_std * float(np.sqrt(max(b.weight, hidden))),
        gram_noise=np.zeros((p, p)),
    )


def _rows_second_moment(fit: HuberFit) -> FloatArray:
    """Σ̂ of mean diagonal 1: what the last root has made of the shrunk Gram matrix."""
    shrunk = shrink_to_identity(fit.gram.value, noise_std=fit.gram.noise_std).matrix
    found = _lifted(fit.last_root.T @ shrunk @ fit.last_root, 0.05)
    return found * (len(found) / float(np.trace(found)))


def _mean(matrix: NoisyValue | None, number: NoisyValue, p: int) -> float:
    """Mean of a diagonal, from the number and the matrix where there is one, by their noise."""
    if matrix is None:
        return float(number.value)
    first, second = matrix.noise_std**2 / p, number.noise_std**2
    weight = second / (first + second) if first + second > 0 else 0.5
    return float(weight * np.trace(matrix.value) / p + (1 - weight) * float(number.value))


def _scaled(matrix: FloatArray, unit: FloatArray, ratio: float) -> FloatArray:
    """The matrix with its form along a unit vector multiplied by the ratio."""
    scaling = np.eye(len(unit)) + (np.sqrt(ratio) - 1) * np.outer(unit, unit)
    scaled: FloatArray = scaling @ matrix @ scaling
    return scaled


def _unit(direction: FloatArray) -> FloatArray:
    """The direction, of entries up to 1e100, at length 1."""
    found = direction / float(np.max(np.abs(direction)))
    return np.asarray(found / np.linalg.norm(found))


def _lifted(matrix: FloatArray, floor: float) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    lifted: FloatArray = (vectors * np.maximum(values, floor)) @ vectors.T
    return lifted
