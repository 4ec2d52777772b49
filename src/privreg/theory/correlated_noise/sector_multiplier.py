r"""The multiplier of least cost, where a solver of conic programs leaves too much.

For the forms F, S, R and I of `convex_bound`, each linear in λ, the cost

.. math::
    f(\lambda) = \sum_\omega c_\omega\Big(\frac{(R\lambda)_\omega^2 + (I\lambda)_\omega^2}
    {(F\lambda)_\omega - 1} - (S\lambda)_\omega\Big)

is convex where Fλ > 1, and has few variables. Newton's steps on :math:`t f(\lambda)` with
logarithms of the constraints λ_s > 0 and :math:`\lambda_0 > \sum_{s\ne0}\lambda_s` are the same in
any units of λ and of the frequencies, whose costs may be many powers of ten apart.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Forms = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
# Relative distance from the least cost at which to stop, growth of t, and steps at one t at most.
TARGET, GROWTH, MOST_STEPS = 1e-5, 20.0, 100
# What a step promises where it is the last, and where rounding lets it be the last.
SETTLED, ENOUGH = 1e-8, 1e-2


class _Point(NamedTuple):
    """A multiplier inside the constraints: its cost, Fλ - 1, Rλ, Iλ and λ_0 - Σ λ_s."""

    multiplier: FloatArray
    cost: float
    slack: FloatArray
    real: FloatArray
    imaginary: FloatArray
    rest: float


def least_multiplier(forms: Forms, load: FloatArray, start: FloatArray) -> tuple[FloatArray, float]:
    """Multiplier of least cost, and the share of its cost that a better one may save.

    Parameters
    ----------
    forms : tuple of ndarray, shape (n, 2 lags + 1)
        F, S, R and I.
    load : ndarray, shape (n,)
        c, more than 0.
    start : ndarray, shape (2 lags + 1,)
        λ with Fλ > 1, λ ≥ 0 and Σ λ_s ≤ λ_0, the entry in the middle.

    Returns
    -------
    multiplier : ndarray, shape (2 lags + 1,)
    distance : float
        `inf` where rounding leaves no step.

    Source
    ------
    Boyd and Vandenberghe (2004), Section 11.2: at the centre of t the cost is at most the number of
    constraints over t above the least.
    """
    unit = float(start[start.size // 2])
    first, second, real, imaginary = (form * unit for form in forms)
    point = _point((first, second, real, imaginary), load, _inside(first, start / unit))
    assert point is not None
    load, point = load / point.cost, point._replace(cost=1.0)
    distance, weight = inf, float(start.size)
    while distance > TARGET:
        found = _centred((first, second, real, imaginary), load, point, weight)
        if found is None:
            break
        point, distance = found, start.size / weight / found.cost
        weight *= GROWTH
    return unit * point.multiplier, distance


def _inside(first: FloatArray, start: FloatArray) -> FloatArray:
    """A multiplier that meets no constraint with equality."""
    middle, share = start.size // 2, 1e-3 / start.size
    while True:
        # Twice the start leaves Fλ - 1 at least 1.
        found = 2 * start + share
        found[middle] += share * start.size
        if np.all(first @ found > 1.5):
            return found
        share /= 2


def _point(forms: Forms, load: FloatArray, multiplier: FloatArray) -> _Point | None:
    first, second, real, imaginary = forms
    middle = multiplier.size // 2
    slack, rest = first @ multiplier - 1, float(2 * multiplier[middle] - multiplier.sum())
    if not (np.all(slack > 0) and rest > 0 and np.all(multiplier > 0)):
        return None
    a, b = real @ multiplier, imaginary @ multiplier
    cost = float(load @ ((a**2 + b**2) / slack - second @ multiplier))
    return _Point(multiplier, cost, slack, a, b, rest)


def _centred(forms: Forms, load: FloatArray, point: _Point, weight: float) -> _Point | None:
    """The point of least t f - Σ ln λ_s - ln(λ_0 - Σ λ_s), by Newton's method with halved steps."""
    first, second, real, imaginary = forms
    others = np.arange(first.shape[1]) != first.shape[1] // 2
    signs = np.where(others, -1.0, 1.0)

    def objective(at: _Point) -> float:
        barrier = np.sum(np.log(at.multiplier[others])) + np.log(at.rest)
        return weight * at.cost - float(barrier)

    for _ in range(MOST_STEPS):
        x, y = point.real / point.slack, point.imaginary / point.slack
        inverse = np.where(others, 1 / point.multiplier, 0.0)
        gradient = 2 * ((load * x) @ real + (load * y) @ imaginary)
        gradient -= (load * (x**2 + y**2)) @ first + load @ second
        gradient = weight * gradient - inverse - signs / point.rest
        root = np.sqrt(2 * weight * load / point.slack)[:, None]
        along = root * (real - x[:, None] * first), root * (imaginary - y[:, None] * first)
        hessian = along[0].T @ along[0] + along[1].T @ along[1]
        hessian += np.diag(inverse**2) + np.outer(signs, signs) / point.rest**2
        size = 1 / np.sqrt(np.diag(hessian))
        step = -size * np.linalg.solve(size[:, None] * hessian * size, size * gradient)
        decrease, before, share = -float(gradient @ step), objective(point), 1.0
        if decrease < SETTLED:
            return point
        while True:
            found = _point(forms, load, point.multiplier + share * step)
            if found is not None and objective(found) <= before - 0.1 * share * decrease:
                break
            share /= 2
            if share < 1e-12:
                return point if decrease < ENOUGH else None
        point = found
    return None
