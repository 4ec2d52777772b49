"""Dense laws of the released iterates and divergences by quadrature: second routes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD
    from privreg.theory.noisy_sgd.renyi_loss import Record
    from reproduction.papers.lin2025.setting import Design

    Pair = tuple[Record, Record]

Normal = tuple[float, float]  # mean and variance
Law = tuple[np.ndarray, np.ndarray]  # mean and covariance


def apart(found: float, reference: float) -> float:
    """Relative difference, none of equal values: both are infinite beyond an order."""
    return 0.0 if found == reference else abs(found / reference - 1.0)


def normal_divergence(first: Normal, second: Normal, order: float) -> float:
    """Divergence of two normal laws in one dimension, by quadrature."""
    from scipy.integrate import quad

    def integrand(x: float) -> float:
        logs = [-0.5 * (x - m) ** 2 / v - 0.5 * np.log(2.0 * np.pi * v) for m, v in (first, second)]
        return float(np.exp(order * logs[0] + (1.0 - order) * logs[1]))

    value = quad(integrand, -60.0, 60.0, points=[-3.0, 0.0, 3.0], epsabs=0, epsrel=1e-12, limit=400)
    return float(np.log(value[0]) / (order - 1.0))


def dense_divergence(
    law: HomogenisedSGD,
    pair: Pair,
    times: list[float] | np.ndarray,
    position: float,
    *,
    average: bool = False,
) -> float:
    """Divergence of order 2 of the stacked iterates, or of their average."""
    from privreg.privacy.gaussian import renyi_divergence

    (mean, covariance), (other_mean, other) = (
        stacked_law(law, record, times, position) for record in pair
    )
    shift = mean - other_mean
    if average:
        fold = np.kron(np.full((1, len(times)), 1.0 / len(times)), np.eye(len(law.problem.initial)))
        shift, covariance, other = fold @ shift, fold @ covariance @ fold.T, fold @ other @ fold.T
    return renyi_divergence(shift, covariance, other, order=2.0)


def record_pair(rows: np.ndarray, labels: np.ndarray) -> Pair:
    from privreg.theory.noisy_sgd.renyi_loss import Record

    return Record(rows[0], float(labels[0])), Record(rows[1], float(labels[1]))


def stacked_law(
    law: HomogenisedSGD, record: Record, times: list[float] | np.ndarray, position: float
) -> Law:
    """Dense mean and covariance of the stacked iterates, as a linear map of independent noises."""
    d = law.problem.initial.size
    step = float(law.schedule.rate(position)) / d
    matrix = (1.0 - step * law.problem.ridge) * np.eye(d)
    matrix -= step * np.outer(record.features, record.features)
    mean, factor, now = law.problem.initial, np.zeros((d, 0)), 0.0
    means, factors = [], []
    for time, is_release in sorted([*((float(t), True) for t in times), (position, False)]):
        decay = law.transition(time, now)
        fresh = law.variance(time) - decay**2 * law.variance(now)
        noise = np.diag(np.sqrt(np.maximum(fresh, 0.0)))
        mean = law.problem.minimiser + decay * (mean - law.problem.minimiser)
        factor = np.hstack([decay[:, None] * factor, noise])
        now = time
        if is_release:
            means.append(mean)
            factors.append(factor)
        else:
            mean = matrix @ mean + step * record.label * record.features
            factor = np.hstack([matrix @ factor, step * law.gradient_noise_std * np.eye(d)])
    width = factors[-1].shape[1]
    stacked = np.vstack([np.pad(f, ((0, 0), (0, width - f.shape[1]))) for f in factors])
    return np.concatenate(means), stacked @ stacked.T


def evolved_laws(law: HomogenisedSGD, laws: list[Law], start: float, end: float) -> list[Law]:
    """Dense means and covariances at a later time, by the moments' differential equations of (9).

    dm/dt = -gamma (A m - Sigma x~) and dV/dt = -gamma (A V + V A) + gamma^2 Q, solved together.
    """
    from scipy.integrate import solve_ivp

    problem = law.problem
    curvatures, d = problem.curvatures, problem.initial.size
    pull = problem.eigenvalues * problem.target

    def moments(state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = state.reshape(len(laws), d + d * d)
        return rows[:, :d], rows[:, d:].reshape(-1, d, d)

    def slope(time: float, state: np.ndarray) -> np.ndarray:
        mean, covariance = moments(state)
        rate = float(law.schedule.rate(time))
        noise = (2.0 * law.risk(time) * problem.eigenvalues + law.gradient_noise_std**2) / d
        moved = curvatures[:, None] * covariance + covariance * curvatures
        drift = -rate * moved + rate**2 * np.diag(noise)
        return np.hstack([-rate * (curvatures * mean - pull), drift.reshape(len(laws), -1)]).ravel()

    given = np.concatenate([np.concatenate([mean, spread.ravel()]) for mean, spread in laws])
    found = solve_ivp(slope, (start, end), given, method="DOP853", rtol=1e-13, atol=1e-16)
    return list(zip(*moments(found.y[:, -1]), strict=True))


def small_case(design: Design, d: int, gradient_noise_std: float) -> tuple[HomogenisedSGD, Pair]:
    """A diffusion in a few dimensions, and two of its records."""
    from privreg.schedules import ConstantRate
    from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression

    rng = np.random.Generator(np.random.SFC64(d))
    problem = RidgeRegression(
        np.linspace(0.2, 1.8, d) / d,
        rng.standard_normal(d) / np.sqrt(d),
        rng.standard_normal(d),
        label_noise_std=design.label_noise_std,
        ridge=design.ridge,
    )
    rate = ConstantRate(d * design.step_size)
    law = HomogenisedSGD(problem, rate, gradient_noise_std=gradient_noise_std, horizon=9.0)
    rows = np.sqrt(problem.eigenvalues) * rng.standard_normal((2, d))
    return law, record_pair(rows, rows @ problem.target)


def mixture_ratio_of(first_laws: list[Normal], second_laws: list[Normal]) -> float:
    """Divergence of order 2 of two mixtures over the bound of Lemma C.3."""
    from scipy.integrate import quad

    from privreg.theory.noisy_sgd.shuffled_position import shuffled_loss

    def mixture(x: float, laws: list[Normal]) -> float:
        return sum(
            0.5 * np.exp(-0.5 * (x - m) ** 2 / v) / np.sqrt(2.0 * np.pi * v) for m, v in laws
        )

    centres = sorted({mean for mean, _ in (*first_laws, *second_laws)})
    integral = quad(
        lambda x: mixture(x, first_laws) ** 2.0 * mixture(x, second_laws) ** (1.0 - 2.0),
        centres[0] - 12.0, centres[-1] + 12.0, points=centres, epsabs=0, epsrel=1e-11, limit=400,
    )[0]  # fmt: skip
    each = [
        normal_divergence(first, second, 2.0)
        for first, second in zip(first_laws, second_laws, strict=True)
    ]
    return float(np.log(integral) / float(shuffled_loss(each, [0.5, 0.5], horizon=1.0, order=2.0)))
