r"""Bounds on the excess risk of Noisy-FTRL, with their constants.

For linear regression, all functions bound the excess risk :math:`F(\theta)-F(\theta^*) =
\tfrac12\|\theta-\theta^*\|_H^2` of the paper's equation (8), half of the quantity in Appendix C.
Module `stationary` has exact values. `SectorProgram` is for convex functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.checks import (
    LEAST,
    MOST,
    FloatArray,
    require_array,
    require_choice,
    require_count,
    require_number,
    require_real,
    require_scale,
    require_scales,
    warn_beyond,
)
from privreg.theory.correlated_noise.stationary import (
    StationaryNoise,
    checked_eigenvalues,
    checked_noise,
    checked_spectrum,
    frequency_rule,
    squared_distance,
)

# Share of the bound that a better multiplier may save.
TOLERANCE = 1e-3
# Relative distance from the least cost at which to stop, growth of t, and steps at one t at most.
TARGET, GROWTH, MOST_STEPS = 1e-8, 20.0, 100
# What a step promises where it is the last, and where rounding lets it be the last.
SETTLED, ENOUGH = 1e-8, 1e-2
# Bound on λ_0, of which 4 satisfies all frequencies: for µ = L the optimum is at infinity.
LARGEST = 1e8


def effective_dimension(eigenvalues: ArrayLike) -> float:
    r"""Trace of a covariance H over its largest eigenvalue, :math:`\operatorname{tr}H/\|H\|_2`.

    Source
    ------
    choquettechoo2024, Section 1.3 and Section C.6.
    """
    values = checked_eigenvalues(eigenvalues, least=0)
    if not np.any(values):
        raise ValueError("eigenvalues must not all be 0, got only 0")
    return float(values.sum() / values.max())


def fourth_moment_bound(eigenvalues: ArrayLike) -> float:
    r"""Least R² with :math:`\mathbb E\|x\|^2xx^\top\preceq R^2H` for Gaussian x of covariance H.

    .. math:: R^2 = 2\lambda_1+\operatorname{tr}H,\qquad \lambda_1 = \max_j\lambda_j

    Source
    ------
    choquettechoo2024, the proof of Property C.3; the property states the looser 3 tr H.
    """
    values = checked_eigenvalues(eigenvalues, least=0)
    return float(2.0 * values.max() + values.sum())


def stationary_upper_bound(
    eigenvalues: ArrayLike,
    *,
    step_size: float,
    noise: StationaryNoise,
    gradient_noise_std: float,
    label_noise_std: float = 0.0,
) -> float:
    r"""Upper bound on the stationary excess risk for Gaussian features; `inf` for infinite noise.

    .. math::
        \big(1+(1-r)^{-2}\big)\eta R^2\zeta^2
        + \big(1+3(1-r)^{-2}\big)\eta\sigma^2\sum_jc_j,\qquad r=\sqrt{\eta R^2}

    with R² = `fourth_moment_bound`. The paper writes :math:`\langle\beta,T\beta\rangle` for Σ c_j.

    Parameters
    ----------
    step_size : float
        η, less than 1/R², with every ηλ at least 1e-20.
    eigenvalues, noise, gradient_noise_std, label_noise_std
        Eigenvalues λ_j of the covariance H; correlation, whose `relative_variance` at ηλ_j is c_j;
        and standard deviations σ of the white noise and ζ of the label noise.

    Notes
    -----
    The bound is loose: for λ_k = 1/k, d = 128 and η = 0.02 it is 65 times the exact value.

    Source
    ------
    choquettechoo2024, Theorem C.14, with F as in equation (8). The printed r lacks the root.
    """
    values, eta, moment = _contracting(eigenvalues, step_size)
    sigma, zeta = checked_noise(gradient_noise_std, label_noise_std)
    spread = (1.0 - sqrt(eta * moment)) ** -2
    moved = noise.relative_variance(eta * values)
    private = (1.0 + 3.0 * spread) * eta * float(moved.sum())
    return zeta**2 * ((1.0 + spread) * eta * moment) + sigma**2 * private


def stationary_lower_bound(
    eigenvalues: ArrayLike,
    *,
    step_size: float,
    noise: StationaryNoise,
    gradient_noise_std: float,
    label_noise_std: float = 0.0,
) -> float:
    r"""Lower bound on the stationary excess risk of one correlation; `inf` for infinite noise.

    .. math::
        \tfrac12\Big(\frac{\eta\zeta^2}2\operatorname{tr}H
        + \frac{\eta\sigma^2}2\sum_j\frac{2c_j}{2-\eta\lambda_j}\Big)

    Parameters
    ----------
    step_size : float
        η, with every ηλ at least 1e-20 and at most 1.
    eigenvalues, noise, gradient_noise_std, label_noise_std
        Eigenvalues λ_j of H; correlation, whose `relative_variance` at ηλ_j is c_j; and standard
        deviations σ of the white noise and ζ of the label noise.

    Source
    ------
    choquettechoo2024, Theorem C.18, halved: the paper prints a bound on
    :math:`\|\theta-\theta^*\|_H^2`, the F of its equation (22). The printed value is no bound on
    the F of equation (8): for small step sizes the exact excess risk tends to half that value.
    """
    values, eta = checked_spectrum(eigenvalues, step_size)
    sigma, zeta = checked_noise(gradient_noise_std, label_noise_std)
    moved = 2.0 * noise.relative_variance(eta * values) / (2.0 - eta * values)
    label = zeta**2 * (0.25 * eta * float(values.sum()))
    return label + sigma**2 * (0.25 * eta * float(moved.sum()))


def universal_lower_bound(
    eigenvalues: ArrayLike,
    *,
    step_size: float,
    noise_multiplier: float,
    clip_norm: float = 1.0,
    label_noise_std: float = 0.0,
) -> float:
    r"""Lower bound on the stationary excess risk that holds for every correlation.

    .. math:: \tfrac12\cdot\tfrac14\big(2\eta\zeta^2+\eta^2G^2z^2\big)\operatorname{tr}H

    Parameters
    ----------
    eigenvalues, step_size, label_noise_std
        Eigenvalues λ of H; η, with ηλ from 1e-20 to 1; and standard deviation ζ of the label noise.
    noise_multiplier, clip_norm : float
        z = :math:`1/\sqrt{2\rho}` for ρ-zCDP, and largest change G of a gradient by one record.

    Source
    ------
    choquettechoo2024, Theorem C.18, halved: the paper bounds :math:`\|\theta-\theta^*\|_H^2`.
    """
    values, eta = checked_spectrum(eigenvalues, step_size)
    multiplier, norm, zeta = require_scales(
        zero=True,
        noise_multiplier=noise_multiplier,
        clip_norm=clip_norm,
        label_noise_std=label_noise_std,
    )
    label = zeta**2 * (0.5 * eta * float(values.sum()))
    return 0.5 * (label + (eta * norm * multiplier) ** 2 * (float(values.sum()) / 4.0))


def transient_bound(
    step: ArrayLike,
    *,
    eigenvalues: ArrayLike,
    step_size: float,
    initial_risk: float,
    stationary_risk: float,
) -> FloatArray:
    r"""Upper bound on the excess risk after a number of steps, with the shape of `step`.

    .. math:: \Big(\sqrt{\tfrac{\lambda_1}{\lambda_d}e^{-\eta\lambda_dt}F_0}+\sqrt{F_\infty}\Big)^2

    Parameters
    ----------
    step : array_like, shape (...)
        Steps t, at least 0; may be empty.
    eigenvalues, step_size
        Eigenvalues λ, from λ_1 (largest) to λ_d, and η < 1/R² as in `stationary_upper_bound`.
    initial_risk, stationary_risk : float
        Excess risks F_0 of the start and F_∞ of the limit, at least 0. From the first step on, the
        noise must be calibrated to the limiting sensitivity.

    Source
    ------
    choquettechoo2024, Theorem D.11.
    """
    values, eta, _ = _contracting(eigenvalues, step_size)
    times = require_real("step", step, least=0)
    low, high = float(values.min()), float(values.max())
    # The root of the exponential, which may itself round to 0.
    start = sqrt(high / low * initial_risk) * np.exp(-0.5 * eta * low * times)
    return np.asarray((start + sqrt(stationary_risk)) ** 2)


@dataclass(frozen=True, eq=False)
class ConvexBound:
    """Bound on the excess risk, and solution of the `SectorProgram` that gives the bound.

    Attributes
    ----------
    excess_risk : float
        Bound with the constants of choquettechoo2024, equation (10), in units of dG²/ρ. Here d is
        the dimension, G the Lipschitz constant and ρ the zCDP budget under zero-out neighbours.
    frequencies, weights : ndarray, shape (n,)
        Nodes in (0, π) of a quadrature for even functions, and its weights, which sum to 2π.
    response, power : ndarray, shape (n,)
        Response ψ, and power |B|² of the correlation (given or optimised), at the frequencies.
    multiplier : ndarray, shape (2 lags + 1,)
        Coefficients λ of the multiplier at lags -lags, ..., lags; the middle entry is λ_0.
    """

    excess_risk: float
    frequencies: FloatArray
    weights: FloatArray
    response: FloatArray
    power: FloatArray
    multiplier: FloatArray


class SectorProgram:
    r"""Convex program that bounds the excess risk for one step size and any correlation.

    Gradients have d entries and norm at most G; the zCDP budget is ρ. The noise's decoder B has the
    limiting sensitivity γ_∞. The program minimises this bound over the multiplier Λ, which sets ψ.

    .. math:: \frac{Ld}{2\pi}\int_{-\pi}^{\pi}
        \frac{G^2}\rho|B(\omega)|^2\gamma_\infty^2(B)\,\psi(\omega)\,d\omega

    Parameters
    ----------
    strong_convexity, smoothness, step_size : float
        μ, L and η, with μ ≤ L, η < 2/L (a quadratic diverges at 2/L) and ημ at least 1e-10.
    lags : int
        Longest lag of the multiplier.
    multiplier : {"sound", "printed"}
        "sound": :math:`\Lambda = \lambda_0 - \sum_{t\ne0}\lambda_te^{i\omega t}`, valid for the
        gradient of every convex function. "printed": with a plus before the sum, which is not
        valid: the paper's (91) fails for the gradient max(x, 0) and the signal 1, -1, 1, -1, ... In
        both cases λ ≥ 0 and :math:`\sum_{t\ne0}\lambda_t\le\lambda_0`.
    nodes_per_panel : int
        Frequencies per octave; with 24 the error is about 1e-5.

    Source
    ------
    choquettechoo2024, Theorems 3.1 and E.1, with ψ in units of η². The sound sign is that of Zames
    and Falb; the printed sign would need an odd gradient.
    """

    def __init__(
        self,
        *,
        strong_convexity: float,
        smoothness: float = 1.0,
        step_size: float,
        lags: int = 30,
        multiplier: str = "sound",
        nodes_per_panel: int = 24,
    ) -> None:
        self.strong_convexity, self.smoothness = _curvatures(strong_convexity, smoothness)
        self.step_size = require_number(
            "step_size", step_size, least=1e-10 / self.strong_convexity, below=2.0 / self.smoothness
        )
        self.lags = require_count("lags", lags)
        require_choice("multiplier", multiplier, ("sound", "printed"))
        self.sign = -1.0 if multiplier == "sound" else 1.0
        width = min(1.0, self.step_size * self.strong_convexity)
        self.frequencies, self.weights = frequency_rule(width, nodes_per_panel=nodes_per_panel)
        self._inequality = self._sector()

    def bound(self, power: ArrayLike) -> ConvexBound:
        """Least bound for a given correlation.

        Parameters
        ----------
        power : array_like, shape (n,)
            |B|² at `frequencies`, at least 1e-24 and at most 1e24.

        Raises
        ------
        ArithmeticError
            If the step size is so close to 2/L that rounding leaves no valid multiplier.

        Warns
        -----
        AccuracyWarning
            If the bound may exceed the least one by more than a relative 1e-3. It remains valid.
        """
        density = require_array(
            "power", power, shape=self.frequencies.shape, least=LEAST**2, most=MOST**2
        )
        sensitivity = float(self.weights @ (1.0 / density)) / (2.0 * pi)
        multiplier, distance = least_multiplier(self._inequality, self.weights * density)
        warn_beyond("sector bound", error=distance, tolerance=TOLERANCE)
        response = self._inequality.response(multiplier)
        scale = self.smoothness * sensitivity
        value = scale * float(self.weights @ (density * response)) / (2.0 * pi)
        return ConvexBound(value, self.frequencies, self.weights, response, density, multiplier)

    def optimise(
        self, start: ArrayLike, *, tolerance: float = 1e-6, most_rounds: int = 30
    ) -> ConvexBound:
        r"""Optimise :math:`|B|^2\propto\psi^{-1/2}` and the multiplier in turn, to a local optimum.

        Parameters
        ----------
        start : array_like, shape (n,)
            Initial |B|², as in `bound`.
        tolerance : float
            Relative decrease of the bound per round below which the search stops.
        most_rounds : int
            Largest number of rounds.

        Warns
        -----
        AccuracyWarning
            If the last allowed round still lowered the bound by more than the tolerance.
        """
        best, decrease = self.bound(start), inf
        for _ in range(most_rounds - 1):
            power = np.maximum(best.response, 1e-12 * best.response.max()) ** -0.5
            found = self.bound(power / power.max())
            decrease = 1.0 - found.excess_risk / best.excess_risk
            if decrease <= tolerance:
                break
            best = found
        warn_beyond("optimised bound", error=decrease, tolerance=tolerance)
        return best

    def _sector(self) -> Sector:
        w = self.frequencies
        mu, smooth, eta = self.strong_convexity, self.smoothness, self.step_size
        shifts = np.arange(-self.lags, self.lags + 1)
        phases = np.exp(1j * w[:, None] * shifts) * np.where(shifts == 0, 1.0, self.sign)
        # 1 - exp(iω) without cancellation.
        d = -2j * np.sin(w / 2.0) * np.exp(0.5j * w)
        distance = 4.0 * np.sin(w / 2.0) ** 2
        return Sector(
            real=phases.real,
            imaginary=phases.imag,
            width=smooth - mu,
            alpha=2.0 * mu * smooth + distance / eta * (2.0 / eta - mu - smooth),
            beta=2.0 / eta * (mu - smooth) * d.imag,
            first=2.0 / eta * np.conj(d) - mu - smooth,
            second=1j * (smooth - mu),
        )


def quadratic_envelope(
    frequencies: ArrayLike, *, strong_convexity: float, smoothness: float, step_size: float
) -> FloatArray:
    r"""Largest squared gain from noise to iterate on quadratics: a bound for the class is no less.

    .. math:: \max_{\mu\le h\le L}\frac{\eta^2}{|1-\eta h-e^{i\omega}|^2}

    Parameters
    ----------
    frequencies : array_like, shape (...)
        ω; may be empty.
    strong_convexity, smoothness, step_size : float
        μ, L and η, with μ ≤ L, ημ at least 1e-20 and ηL at most 1.
    """
    mu, smooth = _curvatures(strong_convexity, smoothness)
    _, eta = checked_spectrum([mu, smooth], step_size)
    angle = np.asarray(frequencies, dtype=float)
    worst = np.clip(2.0 * np.sin(angle / 2.0) ** 2, eta * mu, eta * smooth)
    return eta**2 / squared_distance(angle, worst)


def _contracting(eigenvalues: ArrayLike, step_size: float) -> tuple[FloatArray, float, float]:
    """Eigenvalues λ, step size η and R², with η less than 1/R²."""
    values, eta = checked_spectrum(eigenvalues, step_size)
    moment = fourth_moment_bound(values)
    return values, require_number("step_size", eta, below=1.0 / moment), moment


def _curvatures(strong_convexity: float, smoothness: float) -> tuple[float, float]:
    smooth = require_scale("smoothness", smoothness)
    return require_number("strong_convexity", strong_convexity, least=LEAST, most=smooth), smooth


class Sector(NamedTuple):
    """Inequality αx + βy > 1 at n frequencies, with x = `real` @ λ and y = `imaginary` @ λ."""

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
        r"""Values of :math:`\psi = ((L-\mu)^2(x^2+y^2)+2x)/(\alpha x+\beta y-1)`."""
        x, y = self.real @ multiplier, self.imaginary @ multiplier
        return (self.width**2 * (x**2 + y**2) + 2 * x) / self.slack(multiplier)


def least_multiplier(sector: Sector, load: FloatArray) -> tuple[FloatArray, float]:
    r"""Multiplier of least cost, and the largest share of this cost that another one could save.

    With Λ = x + iy, :math:`\psi = |k_1x+k_2y|^2/(\alpha x+\beta y-1)-2x` is convex. The cost is
    Σ c ψ with c = `load`. Newton's method minimises t times the cost minus the log slacks of the
    constraints λ_s > 0 and :math:`\sum_{s\ne0}\lambda_s<\lambda_0`. Its steps are the same in any
    units of λ and the frequencies. At the minimum for t, the cost exceeds the least by at most the
    number of constraints divided by t (Boyd and Vandenberghe, 2004, Section 11.2).
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
