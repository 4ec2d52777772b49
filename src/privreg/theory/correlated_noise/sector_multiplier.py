r"""The multiplier of least cost, by an interior-point method.

At each frequency the least response that a multiplier Λ = x + iy allows is

.. math::
    \psi = \frac{(L-\mu)^2(x^2+y^2)+2x}{\alpha x+\beta y-1}
    = \frac{|k_1x+k_2y|^2}{\alpha x+\beta y-1}-2x,

of which the first form loses no digits and the second is convex. The cost Σ c ψ is minimised over
the few λ by Newton's steps on t times the cost, with logarithms of the constraints λ_s > 0 and
:math:`\sum_{s\ne0}\lambda_s<\lambda_0`. They are the same in any units of λ and of the frequencies,
whose costs may be many powers of ten apart.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
# Relative distance from the least cost at which to stop, growth of t, and steps at one t at most.
TARGET, GROWTH, MOST_STEPS = 1e-8, 20.0, 100
# What a step promises where it is the last, and where rounding lets it be the last.
SETTLED, ENOUGH = 1e-8, 1e-2
# Bound on λ_0, of which 4 satisfies all frequencies: for µ = L the optimum is at infinity.
LARGEST = 1e8


class Sector(NamedTuple):
    """The inequality at n frequencies: matrices from λ to x and y, and L - µ, α, β, k_1 and k_2."""

    real: FloatArray
    imaginary: FloatArray
    width: float
    alpha: FloatArray
    beta: FloatArray
    first: NDArray[np.complex128]
    second: complex

    def slack(self, multiplier: FloatArray) -> FloatArray:
        """Values of αx + βy - 1."""
        x, y = self.real @ multiplier, self.imaginary @ multiplier
        return self.alpha * x + self.beta * y - 1

    def response(self, multiplier: FloatArray) -> FloatArray:
        """Values of ψ."""
        x, y = self.real @ multiplier, self.imaginary @ multiplier
        return (self.width**2 * (x**2 + y**2) + 2 * x) / self.slack(multiplier)


def least_multiplier(sector: Sector, load: FloatArray) -> tuple[FloatArray, float]:
    """Multiplier of least cost, and the share of its cost that a better one may save.

    Parameters
    ----------
    sector : Sector
    load : ndarray, shape (n,)
        c, more than 0.

    Returns
    -------
    multiplier : ndarray, shape (2 lags + 1,)
        With λ_0 in the middle.
    distance : float
        `inf` where rounding leaves no step.

    Raises
    ------
    ArithmeticError
        If α is not positive: the step size is too close to 2/L.

    Source
    ------
    Boyd and Vandenberghe (2004), Section 11.2: at the centre of t the cost is at most the number of
    constraints over t above the least.
    """
    least = float(sector.alpha.min())
    if least <= 0:
        raise ArithmeticError("step_size must be less than 2 / smoothness by more than rounding")
    unit = 4.0 / least
    scaled = sector._replace(real=unit * sector.real, imaginary=unit * sector.imaginary)
    # λ_0 = 1 leaves αx at least 4; the other entries take away at most 1.
    size, largest = sector.real.shape[1], np.hypot(sector.alpha, sector.beta).max()
    point = np.full(size, 1.0 / (size * unit * largest))
    point[size // 2] = 1.0
    load = load / (load @ scaled.response(point))
    distance, weight = inf, float(size)
    while distance > TARGET:
        found = _centred(scaled, load, point, weight)
        if found is None:
            break
        point = found
        distance = (size + 1) / weight / float(load @ scaled.response(point))
        weight *= GROWTH
    return unit * point, distance


def _centred(sector: Sector, load: FloatArray, point: FloatArray, t: float) -> FloatArray | None:
    """The minimum of t Σ c ψ - Σ ln(constraints), by Newton's method with halved steps."""
    size, middle = point.size, point.size // 2
    # The constraints' values are `normals` @ λ + `offsets`.
    normals = np.eye(size + 1, size)
    normals[middle] = -1.0
    normals[middle, middle], normals[size, middle] = 1.0, -1.0
    offsets = np.zeros(size + 1)
    offsets[size] = LARGEST

    def objective(at: FloatArray) -> float:
        values = normals @ at + offsets
        if min(values.min(), sector.slack(at).min()) <= 0:
            return inf
        return t * float(load @ sector.response(at)) - float(np.log(values).sum())

    for _ in range(MOST_STEPS):
        x, y, slack = sector.real @ point, sector.imaginary @ point, sector.slack(point)
        psi, square = sector.response(point), sector.width**2
        along_x = t * load * (2 * square * x + 2 - psi * sector.alpha) / slack
        along_y = t * load * (2 * square * y - psi * sector.beta) / slack
        inverse = normals / (normals @ point + offsets)[:, None]
        gradient = along_x @ sector.real + along_y @ sector.imaginary - inverse.sum(axis=0)
        mixed = sector.first * sector.beta - sector.second * sector.alpha
        root = np.sqrt(2 * t * load / slack) / slack
        rows = (root * (y * mixed - sector.first))[:, None] * sector.real
        rows -= (root * (x * mixed + sector.second))[:, None] * sector.imaginary
        hessian = (rows.conj().T @ rows).real + inverse.T @ inverse
        scale = 1 / np.sqrt(np.diag(hessian))
        step = -scale * np.linalg.solve(scale[:, None] * hessian * scale, scale * gradient)
        decrease, before, share = -float(gradient @ step), objective(point), 1.0
        if decrease < SETTLED:
            return point
        while objective(point + share * step) > before - 0.1 * share * decrease:
            share /= 2
            if share < 1e-12:
                return point if decrease < ENOUGH else None
        point = point + share * step
    return point if decrease < ENOUGH else None
