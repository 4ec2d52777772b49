"""Law of noisy homogenised SGD on ridge-regularised least squares: mean, variance and risk.

Homogenised SGD is the diffusion

    dX = -γ(t) ∇R(X) dt + γ(t) ((2 P(X) Σ + σ² I) / d)^{1/2} dB,    X_0 = x_0.

One-pass noisy SGD in d dimensions with step size γ(k/d)/d follows the diffusion at time k/d. If the
risk is replaced by its mean, the law is Gaussian, with diagonal covariance in the eigenbasis of Σ.
The mean risk also solves Volterra equations. `mean_risk` gives the risk of the discrete algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, partial
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import ArrayLike

from privreg.checks import (
    LEAST,
    MOST,
    Computed,
    FloatArray,
    Immutable,
    frozen,
    require_answer,
    require_array,
    require_count,
    require_each,
    require_fields,
    require_frozen,
    require_instance,
    require_real,
    require_scale,
    require_scales,
    scale_or_zero,
    short,
    warn_beyond,
)
from privreg.schedules import RateWithIntegral, require_rate

# Signed settings, and records that no bounds clip.
WITHIN = {"least": -MOST, "most": MOST}
# Exponents of decay up to which a gradient flow is written as a move from its start.
EARLY = 1e-6
# Linear systems of so many panels and eigenvalues are solved in one call; they stay in cache.
SYSTEMS_AT_ONCE = 100
# Of a panel's collocation: order 23 at its end.
STAGES = 12
MOST_PANELS = 1e6
# Two decay times of the fastest variance a panel leave twelve stages at rounding error.
LARGEST_EXPONENT = 2.0
RESOLUTION = 1e-13
# Of the Volterra solution's change by halving, between the 2 of order 1 and the 4 of order 2.
LEAST_GAIN = 2.5
EXTRAPOLATIONS = 3
# Of an integral that is computed to a few units in the last place.
ROUNDING = 64 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class RidgeRegression(Immutable):
    r"""Ridge regression in the eigenbasis of the second moment Σ: risk P and regularised risk R.

    .. math::
        P(x) = \tfrac12\sum_i w_i\lambda_i(x_i-\tilde x_i)^2 + \tfrac12\zeta^2,\qquad
        R(x) = P(x) + \tfrac\delta2\sum_i w_ix_i^2,\qquad d = \sum_i w_i

    Parameters
    ----------
    eigenvalues : array_like, shape (m,)
        Eigenvalues λ of Σ = E[a aᵀ] for features a (not centred), from 0 to 1e12.
    target, initial : array_like, shape (m,)
        Ground truth x̃ and starting point x_0 in the eigenbasis, at most 1e12 in size.
    label_noise_std, ridge : float
        Standard deviation ζ of the label noise, and penalty δ; each is 0 or from 1e-12 to 1e12.
    multiplicities : array_like, shape (m,), optional
        Weights w from 1e-12 to 1e12; ones by default. Entry i stands for w_i coordinates with equal
        eigenvalue, target and start. For a limiting spectrum, w are quadrature weights times d.

    Attributes
    ----------
    curvatures : ndarray, shape (m,)
        Eigenvalues of the regularised Hessian, λ + δ.
    minimiser : ndarray, shape (m,)
        Ridge solution r = λ x̃ / (λ + δ); equal to the start in directions without curvature.
    bias : ndarray, shape (m,)
        Minimiser minus target, computed as -δ x̃ / (λ + δ), without a subtraction.

    Source
    ------
    lin2025, section 2 and Appendix A.
    """

    eigenvalues: FloatArray
    target: FloatArray
    initial: FloatArray
    label_noise_std: float
    ridge: float
    multiplicities: FloatArray
    curvatures: FloatArray = field(init=False)
    minimiser: FloatArray = field(init=False)
    bias: FloatArray = field(init=False)

    def __init__(
        self,
        eigenvalues: ArrayLike,
        target: ArrayLike,
        initial: ArrayLike,
        *,
        label_noise_std: float = 0.0,
        ridge: float = 0.0,
        multiplicities: ArrayLike | None = None,
    ) -> None:
        spectrum = require_frozen("eigenvalues", eigenvalues, shape=(None,), least=0, most=MOST)
        shape = spectrum.shape
        vector = partial(require_frozen, shape=shape, least=-MOST, most=MOST)
        truth, start = require_each(vector, target=target, initial=initial)
        weights = np.ones(shape) if multiplicities is None else multiplicities
        weights = require_frozen("multiplicities", weights, shape=shape, least=LEAST, most=MOST)
        noise, penalty = require_scales(zero=True, label_noise_std=label_noise_std, ridge=ridge)
        curvatures = spectrum + penalty
        flat = curvatures == 0
        slope = np.where(flat, 1.0, curvatures)
        values = {
            "eigenvalues": spectrum,
            "target": truth,
            "initial": start,
            "label_noise_std": noise,
            "ridge": penalty,
            "multiplicities": weights,
            "curvatures": frozen(curvatures),
            "minimiser": frozen(np.where(flat, start, spectrum * truth / slope)),
            "bias": frozen(np.where(flat, start - truth, -penalty * truth / slope)),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def dimension(self) -> float:
        """Number d of coordinates, the sum of the multiplicities."""
        return float(self.multiplicities.sum())

    def gradient_flow(self, integral: ArrayLike) -> FloatArray:
        """Gradient flow r + exp(-(λ+δ)Γ)(x_0 - r) at Γ = `integral`, (...) -> (..., m)."""
        exponent = np.asarray(integral, dtype=np.float64)[..., None] * self.curvatures
        decay = np.exp(-exponent)
        flow = self.minimiser + decay * (self.initial - self.minimiser)
        # A start far smaller than the minimiser would be lost in it.
        early = decay * self.initial - np.expm1(-exponent) * self.minimiser
        return np.where(exponent < EARLY, early, flow)

    def risk(self, point: ArrayLike, variance: ArrayLike = 0.0) -> FloatArray:
        """Expected P if coordinates have mean `point` and this `variance`, (..., m) -> (...)."""
        centre, width = self._law(point, variance)
        spread = (centre - self.target) ** 2 + width
        return 0.5 * (spread @ (self.multiplicities * self.eigenvalues) + self.label_noise_std**2)

    def penalty(self, point: ArrayLike, variance: ArrayLike = 0.0) -> FloatArray:
        """Expected penalty R - P, if coordinates have mean `point` and this `variance`."""
        centre, width = self._law(point, variance)
        return 0.5 * self.ridge * ((centre**2 + width) @ self.multiplicities)

    def _law(self, point: ArrayLike, variance: ArrayLike) -> tuple[FloatArray, ...]:
        # In rows, so that sums have one order.
        centre = np.ascontiguousarray(point, dtype=np.float64)
        return centre, np.asarray(variance, dtype=np.float64)


class HomogenisedSGD(Computed):
    r"""Gaussian law N(m(t), V(t)) of noisy homogenised SGD on [0, horizon].

    .. math::
        m(t) = r + e^{-A\Gamma(t)}(x_0-r),\qquad
        \dot V_i = -2\gamma A_iV_i + \tfrac{\gamma^2}d(2P_t\lambda_i+\sigma^2),\qquad
        P_t = P(m(t)) + \tfrac12\textstyle\sum_i w_i\lambda_iV_i

    The problem has minimiser r, start x_0, curvatures A (diagonal), population risk P, eigenvalues
    λ and multiplicities w. The variances are solved once, for distinct eigenvalues only, by Radau
    collocation of order 23: each panel reduces to one linear system for the risk. Panels are cut
    until, on each panel, the rate, its integral and the fastest decay are nearly polynomials.
    Variances between nodes have a relative error of about 1e-11. More than 1e6 panels are refused.

    Parameters
    ----------
    problem : RidgeRegression
        Objective, start and label noise.
    schedule : RateWithIntegral
        Rate γ(t) = d η, piecewise smooth and positive on [0, horizon], with exact integral Γ.
    gradient_noise_std, horizon : float
        Standard deviation σ ≥ 0 of each gradient coordinate's noise; last time, n/d for n steps.
    minimum_panels : int
        Least number of panels; use more for a rate with a bump far shorter than a panel.

    Source
    ------
    lin2025, equations (1), (5), (9), (10) and Theorem 4.2 in the eigenbasis of Σ.
    """

    def __init__(
        self,
        problem: RidgeRegression,
        schedule: RateWithIntegral,
        *,
        gradient_noise_std: float,
        horizon: float,
        minimum_panels: int = 16,
    ) -> None:
        require_instance("problem", problem, RidgeRegression)
        self.problem = problem
        self.schedule = require_rate(schedule)
        self.gradient_noise_std = require_scale("gradient_noise_std", gradient_noise_std, zero=True)
        self.horizon = require_scale("horizon", horizon)
        edges = resolved_panels(
            schedule,
            horizon=self.horizon,
            fastest=float(problem.curvatures.max()),
            feedback=float(problem.multiplicities @ problem.eigenvalues**2 / problem.dimension),
            minimum=require_count("minimum_panels", minimum_panels),
        )
        self._edges = frozen(edges)
        distinct, group = np.unique(problem.eigenvalues, return_inverse=True)
        self.distinct_eigenvalues, self.group = frozen(distinct), frozen(group)
        # Sums over the coordinates that share an eigenvalue: a risk costs O(g), not O(d).
        weights = problem.multiplicities * problem.eigenvalues
        bias = problem.bias
        start = problem.initial - problem.minimiser
        self._risk_weights = np.bincount(self.group, weights)
        self._energies = [
            np.bincount(self.group, weights * e) for e in (bias**2, 2.0 * bias * start, start**2)
        ]
        # At too large a rate the risk grows exponentially.
        with np.errstate(over="ignore", invalid="ignore"):
            values = _collocate(self)
        self._values = require_answer("problem, schedule and horizon", values)

    def mean(self, time: ArrayLike) -> FloatArray:
        """Mean m(t), shape (..., m)."""
        return self.problem.gradient_flow(self.schedule.integral(self.checked(time)))

    def variance(self, time: ArrayLike) -> FloatArray:
        """Variance V(t) by coordinate, shape (..., m)."""
        return self.variance_by_eigenvalue(time)[..., self.group]

    def variance_by_eigenvalue(self, time: ArrayLike) -> FloatArray:
        """Variance V(t) by distinct eigenvalue, shape (..., number of distinct eigenvalues)."""
        return interpolate(self.checked(time), self._edges, self._values)

    def risk(self, time: ArrayLike) -> FloatArray:
        """Mean population risk P_t, shape (...)."""
        integral = self.schedule.integral(self.checked(time))
        return self._flow_risk(integral) + 0.5 * (
            self.variance_by_eigenvalue(time) @ self._risk_weights
        )

    def regularised_risk(self, time: ArrayLike) -> FloatArray:
        """Mean regularised risk R_t, shape (...)."""
        return self.risk(time) + self.problem.penalty(self.mean(time), self.variance(time))

    def transition(self, time: ArrayLike, start: ArrayLike) -> FloatArray:
        """Diagonal of Φ(t, s) = exp(-A(Γ(t) - Γ(s))) for times t ≥ `start` s, shape (..., m)."""
        begin, end = self.checked(start, "start"), self.checked(time)
        if np.any(end < begin):
            raise ValueError("time must not be before start, got an earlier time")
        elapsed = self.schedule.integral(end) - self.schedule.integral(begin)
        return np.exp(-self.problem.curvatures * np.asarray(elapsed)[..., None])

    def _flow_risk(self, integral: FloatArray) -> FloatArray:
        decay = np.exp(-integral[..., None] * (self.distinct_eigenvalues + self.problem.ridge))
        still, linear, square = self._energies
        excess = still.sum() + decay @ linear + decay**2 @ square
        return np.asarray(0.5 * (excess + self.problem.label_noise_std**2))

    def checked(self, time: ArrayLike, name: str = "time") -> FloatArray:
        """Check that times are in [0, horizon]."""
        # A grid such as k/d may end one rounding error beyond the horizon.
        t = require_real(name, time, least=0, most=self.horizon * (1 + 1e-12))
        return np.minimum(t, self.horizon)


@dataclass(frozen=True, eq=False)
class Population(Immutable):
    r"""Second moment of the features, ground truth and label noise.

    .. math:: b = a^\top\tilde x + \xi, \qquad \Sigma = \mathbb E[aa^\top], \qquad
        \zeta^2 = \mathbb E\,\xi^2

    Parameters
    ----------
    second_moment : array_like, shape (d, d)
        Σ, not centred; symmetric and positive semidefinite, with entries up to 1e12.
    target : array_like, shape (d,)
        Ground truth x̃, at most 1e12 in size.
    label_noise_std : float
        ζ, 0 or from 1e-12 to 1e12.

    Source
    ------
    lin2025, section 2.
    """

    second_moment: FloatArray
    target: FloatArray
    label_noise_std: float

    def __post_init__(self) -> None:
        vector = partial(require_frozen, shape=(None,), least=-MOST, most=MOST)
        require_fields(self, target=vector, label_noise_std=scale_or_zero)
        require_fields(self, second_moment=partial(vector, shape=(self.target.size,) * 2))
        moment = self.second_moment
        if np.max(np.abs(moment - moment.T)) > 1e-9 * np.max(np.abs(moment)):
            raise ValueError("second_moment must be symmetric, got an asymmetric matrix")

    def regression(
        self, *, start: ArrayLike | None = None, ridge: float = 0.0
    ) -> tuple[RidgeRegression, FloatArray]:
        """Regression problem in the eigenbasis of Σ, and this basis, shape (d, d).

        The penalty δ is `ridge`; the start x_0, shape (d,), is 0 by default. The basis has the
        eigenvectors as columns: `vectors @ basis` gives the coordinates in this basis.
        """
        eigenvalues, basis = np.linalg.eigh(self.second_moment)
        if eigenvalues[0] < -1e-9 * abs(eigenvalues[-1]):
            raise ValueError("second_moment must be positive semidefinite, got another matrix")
        start = np.zeros_like(self.target) if start is None else start
        origin = require_array("start", start, shape=self.target.shape, **WITHIN)
        problem = RidgeRegression(
            np.maximum(eigenvalues, 0.0),
            self.target @ basis,
            origin @ basis,
            label_noise_std=self.label_noise_std,
            ridge=ridge,
        )
        return problem, basis


def estimated_population(rows: FloatArray, labels: FloatArray) -> Population:
    r"""Law of records, estimated by least squares from (n, d) features and labels; not private.

    The variance of the label noise is the sum of squared residuals divided by n - d.
    """
    n, d = rows.shape
    if n <= d:
        raise ValueError(
            "features must have more records than dimensions if no population is given, "
            f"got {n} records of dimension {d}"
        )
    target, _, rank, _ = np.linalg.lstsq(rows, labels)
    truth = np.asarray(target, dtype=np.float64)
    if rank < d:
        raise ValueError(
            f"features must be linearly independent if no population is given, got rank {rank} "
            f"of {d}"
        )
    spread = float(np.linalg.norm(rows @ truth - labels)) / sqrt(n - d)
    # Residuals of the size of their rounding are none.
    return Population(rows.T @ rows / n, truth, spread if spread >= LEAST else 0.0)


def require_records(
    features: ArrayLike, labels: ArrayLike, dimension: int | None = None, of: str = ""
) -> tuple[FloatArray, FloatArray]:
    """Check features (n, d) and labels (n,), at most 1e12 in size, for use without clipping."""
    rows = require_array(f"{of}features", features, shape=(None, dimension), **WITHIN)
    return rows, require_array(f"{of}labels", labels, shape=rows.shape[:1], **WITHIN)


def mean_risk(
    problem: RidgeRegression,
    step_sizes: ArrayLike,
    *,
    gradient_noise_std: float,
    kurtosis: float = 3.0,
) -> FloatArray:
    r"""Mean population risk of discrete noisy SGD, before each step and after the last step.

    .. math::
        \mu_i^+ = (1-\eta A_i)\mu_i - \eta\delta\tilde x_i,\qquad
        q_i^+ = \big((1-\eta\delta)^2 - 2(1-\eta\delta)\eta\lambda_i
        + \eta^2(\beta-1)\lambda_i^2\big)q_i
        + \eta^2\lambda_i\Big(\sum_jw_j\lambda_jq_j + \zeta^2\Big)
        - 2\eta\delta\tilde x_i(1-\eta A_i)\mu_i + \eta^2(\delta^2\tilde x_i^2+\sigma^2)

    where μ is the mean and q the second moment of the error x - x̃, A_i = λ_i + δ, and a plus marks
    the next step. No limit of large d is taken. The coordinates of the features are independent
    with mean 0, variance λ_i and fourth moment βλ_i².

    Parameters
    ----------
    problem : RidgeRegression
        Objective, start and label noise.
    step_sizes : array_like, shape (n,)
        Discrete step sizes η = γ(k/d)/d, from 0 to 1e12.
    gradient_noise_std, kurtosis : float
        Standard deviation σ of the gradient noise, which may be 0; and kurtosis β from 1 to 1e12: 3
        for Gaussian features (in any basis), 9/5 for uniform features.

    Source
    ------
    The second moment of lin2025, equation (26).
    """
    kurtosis = require_scale("kurtosis", kurtosis, least=1)
    std = require_scale("gradient_noise_std", gradient_noise_std, zero=True)
    steps = require_array("step_sizes", step_sizes, shape=(None,), least=0, most=MOST)
    eigenvalues, target, ridge = problem.eigenvalues, problem.target, problem.ridge
    weights = problem.multiplicities * eigenvalues
    with np.errstate(over="ignore", invalid="ignore"):
        mean = problem.initial - target
        second = mean**2
        risk = np.empty(steps.size + 1)
        for k in range(steps.size + 1):
            excess = float(weights @ second)
            risk[k] = 0.5 * (excess + problem.label_noise_std**2)
            if k == steps.size:
                break
            step = steps[k]
            shrink = 1.0 - step * ridge
            contraction = shrink - step * eigenvalues
            second = (
                (
                    shrink**2
                    - 2 * shrink * step * eigenvalues
                    + step**2 * (kurtosis - 1) * eigenvalues**2
                )
                * second
                + step**2 * eigenvalues * (excess + problem.label_noise_std**2)
                - 2 * step * ridge * target * contraction * mean
                + step**2 * (ridge**2 * target**2 + std**2)
            )
            mean = contraction * mean - step * ridge * target
    return require_answer("step_sizes", risk)


def stationary_risk(problem: RidgeRegression, *, rate: float, gradient_noise_std: float) -> float:
    r"""Limit of the mean population risk as time grows, at a constant scaled rate.

    .. math::
        P_\infty = \frac{P(r) + \frac{\sigma^2\gamma}{4d}\operatorname{tr}(\Sigma A^{-1})}
        {1 - \frac\gamma{2d}\operatorname{tr}(\Sigma^2A^{-1})},\qquad A = \Sigma+\delta I,\quad
        r = A^{-1}\Sigma\tilde x

    The limit is `inf` unless the denominator is positive, which is the stability condition.

    Parameters
    ----------
    problem : RidgeRegression
        Objective and label noise; the start has no effect.
    rate, gradient_noise_std : float
        Scaled rate γ = d η, and standard deviation σ of the gradient noise. Either may be 0; a rate
        of 0 gives the limit of small rates.

    Source
    ------
    The fixed point of lin2025, equation (6). The paper does not print it.
    """
    rate, std = require_scales(zero=True, rate=rate, gradient_noise_std=gradient_noise_std)
    moving = problem.eigenvalues > 0
    share = problem.eigenvalues / np.where(moving, problem.curvatures, 1.0)
    share *= problem.multiplicities / problem.dimension
    gain = float(0.5 * rate * (share @ problem.eigenvalues))
    noise = float(0.25 * rate * std**2 * share.sum())
    if gain >= 1.0:
        return np.inf
    weights = problem.multiplicities * problem.eigenvalues
    flow = 0.5 * (weights @ problem.bias**2 + problem.label_noise_std**2)
    return float((flow + noise) / (1.0 - gain))


class VolterraRisk(NamedTuple):
    """Mean risks, shape (intervals + 1,), and `error`: estimated largest relative error of both."""

    time: FloatArray
    risk: FloatArray
    regularised_risk: FloatArray
    error: float


def solve_volterra(
    problem: RidgeRegression,
    schedule: RateWithIntegral,
    *,
    gradient_noise_std: float,
    horizon: float,
    intervals: int = 200,
    rtol: float = 1e-6,
) -> VolterraRisk:
    r"""Mean risks from the Volterra equations, by the trapezoid rule with extrapolation.

    .. math::
        P_t = P(X^{\rm gf}_{\Gamma(t)}) + \int_0^tG(t,s;\Sigma)P_sds
        + \int_0^tG'(t,s;\Sigma)ds,\qquad
        R_t = R(X^{\rm gf}_{\Gamma(t)}) + \int_0^tG(t,s;A)P_sds + \int_0^tG'(t,s;A)ds

    with :math:`G(t,s;M) = \frac{\gamma(s)^2}d\operatorname{tr}(\Sigma M\Phi(t,s)^2)` and
    :math:`G'(t,s;M) = \frac{\sigma^2\gamma(s)^2}{2d}\operatorname{tr}(M\Phi(t,s)^2)`; X^gf is the
    `gradient_flow` of the problem, A = Σ + δI, and Φ(t,s) = exp(-A(Γ(t) - Γ(s))). In the variable
    Γ, the integrals are convolutions with γP and σ²γ/2, for any schedule.

    Parameters
    ----------
    problem : RidgeRegression
        Objective, start and label noise.
    schedule : RateWithIntegral
        Scaled rate; it must be positive, so that Γ can be inverted.
    gradient_noise_std, horizon : float
        Standard deviation σ of the gradient noise, and last time; either may be 0.
    intervals : int
        Number of intervals of the coarsest grid, uniform in Γ, on which the answer is returned. All
        intervals are halved three times. For a smooth rate the error is of order 8 in their width.
    rtol : float
        Relative error in (0, 1) above which a warning is given. The error is estimated by the last
        extrapolation, or by the last halving if errors are not of order 2.

    Warns
    -----
    AccuracyWarning
        If the estimated error exceeds `rtol`, so that more `intervals` are needed.

    Source
    ------
    lin2025, Theorem 4.2, equations (6) and (7).
    """
    std, horizon = require_scales(zero=True, gradient_noise_std=gradient_noise_std, horizon=horizon)
    table: list[list[FloatArray]] = []
    # At too large a rate the risk grows exponentially.
    with np.errstate(over="ignore", invalid="ignore"):
        for level in range(EXTRAPOLATIONS + 1):
            fine = _trapezoid(problem, schedule, std, horizon, intervals * 2**level)
            row = [fine[:, :: 2**level]]
            for column in range(level):
                weight = 4.0 ** (column + 1)
                row.append((weight * row[column] - table[-1][column]) / (weight - 1.0))
            table.append(row)
        time, risk, regularised = require_answer("problem, schedule and horizon", table[-1][-1])
        # The time is exact; risks are positive unless nothing is left to lose.
        best, other = table[-1][-1][1:], table[-1][-2][1:]
        change = np.abs(best - other)
        # Beside a jump of the rate the rule has order 1, and extrapolation hides its error.
        before, last = np.abs(np.diff([row[0][1:] for row in table[-3:]], axis=0))
        change = np.where(before < LEAST_GAIN * last, np.maximum(change, last), change)
        error = float(np.max(np.divide(change, np.abs(best), out=change, where=change > 0)))
    warn_beyond("risk", error=error, tolerance=rtol)
    return VolterraRisk(time, risk, regularised, error)


def _collocate(law: HomogenisedSGD) -> FloatArray:
    """Variances by distinct eigenvalue at each panel's nodes, (panels, stages + 1, g)."""
    panels, groups = law._edges.size - 1, law.distinct_eigenvalues.size
    values = np.zeros((panels, STAGES + 1, groups))
    current, half = np.zeros(groups), 0.5 * law._risk_weights
    at_once = max(SYSTEMS_AT_ONCE // groups, 1)
    for first in range(0, panels, at_once):
        part = slice(first, first + at_once)
        kept, added, gain, known, inverse = _panel_systems(law, law._edges[first : part.stop + 1])
        risks, starts = np.empty_like(known), np.empty((len(known), groups))
        # A panel needs of the one before it the variances at its end alone.
        ends = zip(kept[:, :, -1], added[:, :, -1], gain[:, :, -1], strict=True)
        for panel, (keeps, adds, gains) in enumerate(ends):
            starts[panel] = current
            risks[panel] = inverse[panel] @ (known[panel] + (half * current) @ kept[panel])
            current = keeps * current + adds + gains @ risks[panel]
        values[part, 0] = starts
        stages = kept * starts[:, :, None] + added + np.einsum("pgij,pj->pgi", gain, risks)
        values[part, 1:] = stages.swapaxes(1, 2)
    return values


def _panel_systems(law: HomogenisedSGD, edges: FloatArray) -> tuple[FloatArray, ...]:
    """Solutions of the linear systems of the panels between these edges, given their starts.

    With variances V at the start of a panel and half the risk's weights w, risks at its stages are
    inverse @ (known + w @ (V kept)), and variances there V kept + added + gain @ risks.
    """
    problem, eigenvalues, weights = law.problem, law.distinct_eigenvalues, law._risk_weights
    nodes, matrix, identity = radau_nodes(STAGES), integration_matrix(STAGES), np.eye(STAGES)
    widths = np.diff(edges)[:, None]
    times = edges[:-1, None] + widths * nodes
    rates = np.asarray(law.schedule.rate(times), dtype=np.float64)
    square, step = rates**2, widths / problem.dimension
    slopes = (2.0 * widths * (eigenvalues + problem.ridge))[:, :, None, None]
    drift = identity + slopes * (matrix * rates[:, None, None, :])
    right = np.empty((*drift.shape[:3], STAGES + 2))
    right[..., 0] = 1.0
    right[..., 1] = (step * law.gradient_noise_std**2 * (square @ matrix.T))[:, None, :]
    sources = (2.0 * step * eigenvalues)[:, :, None, None]
    right[..., 2:] = sources * (matrix * square[:, None, None, :])
    response = np.asarray(np.linalg.solve(drift, right), dtype=np.float64)
    kept, added, gain = response[..., 0], response[..., 1], response[..., 2:]
    flow_risk = law._flow_risk(np.asarray(law.schedule.integral(times)))
    known = flow_risk + 0.5 * weights @ added
    feedback = identity - 0.5 * np.einsum("pgij,g->pij", gain, weights)
    return kept, added, gain, known, np.linalg.inv(feedback)


def resolved_panels(
    schedule: RateWithIntegral, *, horizon: float, fastest: float, feedback: float, minimum: int
) -> FloatArray:
    r"""Edges of panels from 0 to the horizon that resolve a schedule, shape (panels + 1,).

    The largest curvature is a = `fastest`; f = `feedback` is the risk's growth per unit of ∫γ².
    Equal panels are cut until :math:`\max(2a, f\max\gamma)\,\Delta\Gamma \le 2` on each. The
    collocation equations must also hold to 1e-13 for two known solutions, the integral Γ
    of the rate and :math:`e^{-2a\Gamma}`. Panels around a jump are halved to neighbouring doubles.
    """
    edges = np.linspace(0.0, horizon, minimum + 1)
    exponents, _ = _examine(schedule, edges[:-1], edges[1:], fastest, feedback)
    needed = float(exponents.sum()) / LARGEST_EXPONENT
    if not needed <= MOST_PANELS:
        raise ValueError(
            f"horizon must be at most {horizon * MOST_PANELS / needed:g} for these rates and "
            f"eigenvalues, got {horizon}"
        )
    edges = np.linspace(0.0, horizon, max(minimum, int(np.ceil(needed))) + 1)
    left, right = edges[:-1], edges[1:]
    accepted: list[FloatArray] = []
    count = 0
    while left.size:
        exponents, error = _examine(schedule, left, right, fastest, feedback)
        pieces = np.ceil(exponents / LARGEST_EXPONENT * (1 - 1e-9))
        middle = left + (right - left) / 2
        divisible = (middle > left) & (middle < right)
        pieces = np.where(divisible, np.maximum(pieces, np.where(error > 1, 2.0, 1.0)), 1.0)
        whole = pieces <= 1
        accepted.append(left[whole])
        count += int(whole.sum())
        if not count + pieces[~whole].sum() <= MOST_PANELS:
            raise ValueError(
                "schedule must be piecewise smooth, with an integral that is exact to rounding; "
                f"{MOST_PANELS:g} panels do not resolve it, got {type(schedule).__name__}"
            )
        counts = pieces[~whole].astype(np.int64)
        owner = np.repeat(np.flatnonzero(~whole), counts)
        place = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
        start, end, parts = left[owner], right[owner], pieces[owner]
        left = start + (end - start) * (place / parts)
        right = np.where(place + 1 == parts, end, start + (end - start) * ((place + 1) / parts))
    return np.append(np.sort(np.concatenate(accepted)), horizon)


def _examine(
    schedule: RateWithIntegral, left: FloatArray, right: FloatArray, fastest: float, feedback: float
) -> tuple[FloatArray, FloatArray]:
    """Exponent of each panel, and the residuals of known solutions in units of the tolerance."""
    matrix = integration_matrix(STAGES)
    width = (right - left)[:, None]
    times = left[:, None] + width * radau_nodes(STAGES)
    rate, integral = schedule.rate(times), schedule.integral(times)
    if not (np.all(np.isfinite(rate)) and np.all(rate > 0)):
        raise ValueError(f"schedule must be positive and finite on [0, horizon], got {short(rate)}")
    begin = schedule.integral(left)[:, None]
    passed = integral - begin
    length = passed[:, -1]
    exponent = np.maximum(2.0 * fastest, feedback * rate.max(axis=1)) * length
    rounding = ROUNDING * integral[:, -1]
    lag = np.max(np.abs(width * (rate @ matrix.T) - passed), axis=1)
    decay = np.exp(-2.0 * fastest * passed)
    pull = 2.0 * fastest * width * rate * decay
    left_over = np.max(np.abs(pull @ matrix.T - (1.0 - decay)), axis=1)
    return exponent, np.maximum(
        lag / (RESOLUTION * length + rounding), left_over / (RESOLUTION + 2.0 * fastest * rounding)
    )


@cache
def radau_nodes(stages: int) -> FloatArray:
    """Right Radau nodes on (0, 1], ascending, at most 20; the last node is 1.

    They are the zeros of the difference of two neighbouring Legendre polynomials.
    """
    coefficients = np.zeros(stages + 1)
    coefficients[stages - 1 :] = -1.0, 1.0
    roots = np.sort(legendre.legroots(coefficients).real)
    derivative = legendre.legder(coefficients)
    for _ in range(3):
        roots -= legendre.legval(roots, coefficients) / legendre.legval(roots, derivative)
    roots[-1] = 1.0
    return frozen(0.5 * (roots + 1.0))


@cache
def integration_matrix(stages: int) -> FloatArray:
    """Matrix of Radau IIA: it maps values at the Radau nodes to integrals from 0 to each node."""
    x = 2.0 * radau_nodes(stages) - 1.0
    values = legendre.legvander(x, stages - 1)
    integrals = np.column_stack(
        [legendre.legval(x, legendre.legint(row, lbnd=-1)) for row in np.eye(stages)]
    )
    return frozen(0.5 * integrals @ np.linalg.inv(values))


def interpolate(time: FloatArray, edges: FloatArray, values: FloatArray) -> FloatArray:
    """Evaluate a piecewise polynomial from values at each panel's left edge and Radau nodes.

    The result has shape (..., g). For these nodes, the barycentric formula is stable.
    """
    nodes = np.concatenate([[0.0], radau_nodes(values.shape[1] - 1)])
    flat = np.atleast_1d(time).ravel()
    panel = np.clip(np.searchsorted(edges, flat, side="right") - 1, 0, edges.size - 2)
    position = (flat - edges[panel]) / (edges[panel + 1] - edges[panel])
    offset = position[:, None] - nodes
    # Nearer than this the weight overflows, and the polynomial is its value at the node.
    hit = np.abs(offset) < 1e-290
    weights = _barycentric_weights(nodes.size - 1) / np.where(hit, 1.0, offset)
    exact = hit.any(axis=1)
    weights[exact] = hit[exact]
    weights /= weights.sum(axis=1, keepdims=True)
    result = np.einsum("tj,tjg->tg", weights, values[panel])
    return result.reshape(*np.shape(time), values.shape[2])


@cache
def _barycentric_weights(stages: int) -> FloatArray:
    nodes = np.concatenate([[0.0], radau_nodes(stages)])
    gaps = nodes[:, None] - nodes + np.eye(nodes.size)
    return frozen(1.0 / np.prod(gaps, axis=1))


def _trapezoid(
    problem: RidgeRegression,
    schedule: RateWithIntegral,
    gradient_noise_std: float,
    horizon: float,
    intervals: int,
) -> FloatArray:
    """Rows time, risk and regularised risk by the trapezoid rule on a uniform grid of Γ."""
    end = float(schedule.integral(horizon))
    step = end / intervals
    integral = step * np.arange(intervals + 1, dtype=np.float64)
    time = _inverse_integral(schedule, integral, horizon)
    rate = schedule.rate(time)
    spectrum, group = np.unique(problem.eigenvalues, return_inverse=True)
    curvature = spectrum + problem.ridge
    weight = np.bincount(group, problem.multiplicities) / problem.dimension
    decay = np.exp(-2.0 * integral[:, None] * curvature)
    risk_kernel = decay @ (weight * spectrum**2)
    regularised_kernel = decay @ (weight * spectrum * curvature)
    noise = 0.5 * gradient_noise_std**2
    flow = problem.gradient_flow(integral)
    flow_risk = problem.risk(flow)
    forcing = flow_risk + noise * _convolve(decay @ (weight * spectrum), rate, step)

    risk = np.empty(intervals + 1)
    source = np.empty(intervals + 1)
    risk[0] = forcing[0]
    source[0] = rate[0] * risk[0]
    reversed_kernel = risk_kernel[::-1].copy()
    for k in range(1, intervals + 1):
        history = 0.5 * risk_kernel[k] * source[0]
        history += reversed_kernel[intervals - k + 1 : intervals] @ source[1:k]
        risk[k] = (forcing[k] + step * history) / (1.0 - 0.5 * step * risk_kernel[0] * rate[k])
        source[k] = rate[k] * risk[k]
    regularised = (
        flow_risk
        + problem.penalty(flow)
        + _convolve(regularised_kernel, source, step)
        + noise * _convolve(decay @ (weight * curvature), rate, step)
    )
    return np.stack([time, risk, regularised])


def _convolve(kernel: FloatArray, source: FloatArray, step: float) -> FloatArray:
    """Trapezoid rule for the convolution of two functions on a uniform grid."""
    size = kernel.size
    length = 2 * size
    full = np.fft.irfft(np.fft.rfft(kernel, length) * np.fft.rfft(source, length), length)[:size]
    result = step * (full - 0.5 * (kernel * source[0] + kernel[0] * source))
    result[0] = 0.0
    return result


def _inverse_integral(
    schedule: RateWithIntegral, integral: FloatArray, horizon: float
) -> FloatArray:
    """Times at which the integrated rate takes given values, to a few ulp of times or values."""
    low, high = np.zeros(integral.size), np.where(integral > 0.0, horizon, 0.0)
    time = 0.5 * (low + high)
    turn = 0
    while True:
        turn += 1
        excess = schedule.integral(time) - integral
        low, high = np.where(excess < 0.0, time, low), np.where(excess < 0.0, high, time)
        newton = time - excess / schedule.rate(time)
        # Each third time halves what is left, whatever the rate does.
        inside = (newton >= low) & (newton <= high) & (turn % 3 > 0)
        following = np.where(inside, newton, 0.5 * (low + high))
        found = np.abs(excess) <= 4 * np.spacing(integral)
        if np.all(found | (np.abs(following - time) <= 4 * np.spacing(time))):
            return time
        time = np.where(found, time, following)
