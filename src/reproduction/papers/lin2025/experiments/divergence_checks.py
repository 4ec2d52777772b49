"""Every divergence formula against a second computation, and the paper's variants of them."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from reproduction.experiment import quantities as q
from reproduction.experiment.cells import per, stage
from reproduction.experiment.parameters import Strict
from reproduction.papers.lin2025.setting import Design

if TYPE_CHECKING:
    from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD
    from privreg.theory.noisy_sgd.renyi_loss import Record

    Pair = tuple[Record, Record]

Normal = tuple[float, float]  # mean and variance

PLACE = "Lemmas C.2 and C.3, Theorems 4.3-4.5, equations (14)-(24)"
# Positions and release times of the small case, over the horizon.
EARLY, BETWEEN, RELEASES = 0.2, 0.5, np.array([0.3, 0.6, 0.9])
# Two mixtures over two positions: the law given each.
FIRST, SECOND = [(0.0, 1.0), (0.0, 1.0)], [(0.6, 1.1), (-0.5, 1.2)]


class Parameters(Strict):
    """The design for the large comparison; the others are in a few dimensions."""

    design: Design
    gradient_noise_std: q.PositiveDeviation = Field(description="Gradient noise sigma.")
    orders: q.Some[q.RenyiOrder] = Field(description="Rényi orders, more than 1.")
    small_dimension: Annotated[q.Dimension, Field(ge=2)] = Field(
        description="Dimension of the stacked dense laws."
    )


@per(
    quadrature_error="relative difference of the Gaussian divergence (Lemma C.2, corrected) and "
    "its integral in one dimension"
)
def quadrature_error(parameters: Parameters) -> float:
    from privreg.privacy.gaussian import renyi_divergence

    laws = [(0.0, 1.0), (0.7, 1.1), (-0.4, 0.95), (0.1, 1.3)]
    errors = [0.0]
    for order, first, second in product(parameters.orders, laws, laws):
        if first == second or (1.0 - order) * first[1] + order * second[1] <= 0.2:
            continue
        shift = [first[0] - second[0]]
        formula = renyi_divergence(shift, [first[1]], [second[1]], order=order)
        errors.append(_apart(formula, _integral(first, second, order)))
    return max(errors)


@per(
    cubature_error="relative difference of the Gaussian divergence (Lemma C.2, corrected) and its "
    "integral in three dimensions"
)
def cubature_error(parameters: Parameters) -> float:
    """Against a product Gauss-Hermite rule under Q, correlated covariances."""
    from privreg.privacy.gaussian import renyi_divergence

    shift = np.array([0.3, -0.2, 0.4])
    first = np.array([[1.0, 0.1, 0.0], [0.1, 0.9, -0.05], [0.0, -0.05, 1.05]])
    second = np.array([[1.05, 0.05, 0.02], [0.05, 1.0, 0.0], [0.02, 0.0, 1.1]])
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    grid = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 3)
    mass = np.multiply.outer(np.multiply.outer(weights, weights), weights).ravel()
    mass = mass / mass.sum()
    points = grid @ np.linalg.cholesky(second).T
    centred = points - shift
    log_ratio = 0.5 * (
        np.sum(points * np.linalg.solve(second, points.T).T, axis=1)
        - np.sum(centred * np.linalg.solve(first, centred.T).T, axis=1)
        + np.linalg.slogdet(second)[1]
        - np.linalg.slogdet(first)[1]
    )

    def integral(order: float) -> float:
        return np.log(mass @ np.exp(order * log_ratio)) / (order - 1.0)

    return max(
        _apart(renyi_divergence(shift, first, second, order=order), integral(order))
        for order in parameters.orders
    )


@per(
    lemma_printed="Lemma C.2 as printed, N(0, 1) against N(0.5, 1.5)",
    lemma_reverse="the divergence by quadrature, reverse direction",
    lemma_function="the library's divergence",
)
def lemma() -> dict:
    """Printed formula and D(Q||P) by quadrature, order 2, for P = N(0, 1) and Q = N(0.5, 1.5)."""
    from privreg.privacy.gaussian import renyi_divergence

    mixture = 2.0 * 1.0 - 1.5
    return {
        "lemma_printed": 0.5**2 / mixture + 0.5 * np.log(1.0**2 / 1.5 / mixture),
        "lemma_reverse": _integral((0.5, 1.5), (0.0, 1.0), 2.0),
        "lemma_function": renyi_divergence([0.5], [1.0], [1.5], order=2.0),
    }


@per(
    low_rank_error="relative difference of the low-rank and the dense divergence (Theorem 4.3) at "
    "full dimension"
)
def low_rank_error(parameters: Parameters) -> float:
    from privreg.theory.noisy_sgd.renyi_loss import last_iterate_divergence

    design = parameters.design
    rng = np.random.Generator(np.random.SFC64(0))
    instance = design.draw(rng)
    law = design.law(instance.problem, parameters.gradient_noise_std)
    rows, labels = instance.records.sample(2, rng)
    pair = _pair(instance.basis.coordinates(rows), labels)
    time, position = 0.5 * design.horizon, 0.45 * design.horizon
    fast = last_iterate_divergence(law, *pair, time=time, position=position, order=2.0)
    return _apart(fast, _dense(law, pair, [time], position))


@per(
    gap_decay_error="relative difference of the gaps of means and covariances and the propagated "
    "ones"
)
def gap_decay_error(parameters: Parameters) -> float:
    """Gaps at a later time of the dense laws against those right after the step, both propagated.

    The transition matrix is exp(-A (Gamma(t) - Gamma(s))) for a constant rate.
    """
    law, pair = _small_case(parameters)
    d, position, time = law.problem.initial.size, EARLY * law.horizon, RELEASES[-1] * law.horizon
    laws = [_stacked(law, record, [position, time], position) for record in pair]
    mean, covariance = laws[0][0] - laws[1][0], laws[0][1] - laws[1][1]
    rate = float(law.schedule.rate(position))
    decay = np.exp(-rate * (law.problem.eigenvalues + law.problem.ridge) * (time - position))
    errors = (
        (mean[d:] - decay * mean[:d], mean[d:]),
        (covariance[d:, d:] - decay[:, None] * covariance[:d, :d] * decay, covariance[d:, d:]),
    )
    return float(max(np.abs(error).max() / np.abs(size).max() for error, size in errors))


@per(
    first_release_error="relative difference of the joint divergence, all released after the "
    "differing step, and that of the first release, Theorem 4.4",
    joint_error="relative difference of the joint divergence and the dense one, one released "
    "before, Theorem 4.4",
    suffix_ratio="divergence of the suffix alone over the joint one, same direction",
)
def joint(parameters: Parameters) -> dict:
    """All iterates, released after the differing step and on both sides of it."""
    from privreg.theory.noisy_sgd.renyi_loss import iterates_divergence, last_iterate_divergence

    law, pair = _small_case(parameters)
    times, early, between = RELEASES * law.horizon, EARLY * law.horizon, BETWEEN * law.horizon
    first = last_iterate_divergence(law, *pair, time=times[0], position=early, order=2.0)
    exact = iterates_divergence(law, *pair, times=times, position=between, order=2.0)
    suffix = last_iterate_divergence(law, *pair[::-1], time=times[1], position=between, order=2.0)
    dense = _dense(law, pair, times, between)
    return {
        "first_release_error": _apart(first, _dense(law, pair, times, early)),
        "joint_error": _apart(exact, dense),
        "suffix_ratio": suffix / dense,
    }


@per(
    average_error="relative difference of the average's divergence, Theorem 4.5, and the dense one",
    average_printed_ratio="divergence of the average with the printed blocks over the dense one",
)
def average(parameters: Parameters) -> dict:
    """The mean of the iterates, released after the differing step and on both sides of it."""
    from privreg.theory.noisy_sgd.renyi_loss import average_divergence

    law, pair = _small_case(parameters)
    options: dict[str, Any] = {"times": RELEASES * law.horizon, "order": 2.0}
    positions = [EARLY * law.horizon, BETWEEN * law.horizon]
    found = [average_divergence(law, *pair, position=at, **options) for at in positions]
    dense = [_dense(law, pair, options["times"], at, average=True) for at in positions]
    printed = average_divergence(
        law, *pair[::-1], position=positions[1], variant="paper", **options
    )
    return {
        "average_error": max(map(_apart, found, dense)),
        "average_printed_ratio": printed / dense[1],
    }


@per(mixture_ratio="divergence of mixtures over its bound, Lemma C.3")
def mixture_ratio() -> float:
    """Order 2 in one dimension."""
    from scipy.integrate import quad

    from privreg.theory.noisy_sgd.shuffled_position import shuffled_loss

    def mixture(x: float, laws: list[Normal]) -> float:
        return sum(
            0.5 * np.exp(-0.5 * (x - m) ** 2 / v) / np.sqrt(2.0 * np.pi * v) for m, v in laws
        )

    integral = quad(
        lambda x: mixture(x, FIRST) ** 2.0 * mixture(x, SECOND) ** (1.0 - 2.0),
        -30.0, 30.0, points=[0.0], epsabs=0, epsrel=1e-11, limit=400,
    )[0]  # fmt: skip
    each = [_integral(first, second, 2.0) for first, second in zip(FIRST, SECOND, strict=True)]
    return np.log(integral) / float(shuffled_loss(each, [0.5, 0.5], horizon=1.0, order=2.0))


@per(
    loss_without_plus="equation (21) as printed, last release half way, divergence 0.001 "
    "everywhere",
    loss_with_plus="the same with the plus",
)
def plus() -> dict:
    from privreg.theory.noisy_sgd.shuffled_position import (
        paper_shuffled_loss_of_iterates,
        shuffled_loss,
    )

    half: dict[str, Any] = {"weights": [0.25, 0.25], "horizon": 1.0, "order": 2.0}
    return {
        "loss_without_plus": float(paper_shuffled_loss_of_iterates([1e-3, 1e-3], **half)),
        "loss_with_plus": float(shuffled_loss([1e-3, 1e-3], **half)),
    }


theory = stage(
    {},
    quadrature_error,
    cubature_error,
    lemma,
    low_rank_error,
    gap_decay_error,
    joint,
    average,
    mixture_ratio,
    plus,
)


def _apart(found: float, reference: float) -> float:
    return abs(found / reference - 1.0)


def _integral(first: Normal, second: Normal, order: float) -> float:
    """Divergence of two normal laws in one dimension, by quadrature."""
    from scipy.integrate import quad

    def integrand(x: float) -> float:
        logs = [-0.5 * (x - m) ** 2 / v - 0.5 * np.log(2.0 * np.pi * v) for m, v in (first, second)]
        return float(np.exp(order * logs[0] + (1.0 - order) * logs[1]))

    value = quad(integrand, -60.0, 60.0, points=[-3.0, 0.0, 3.0], epsabs=0, epsrel=1e-12, limit=400)
    return float(np.log(value[0]) / (order - 1.0))


def _dense(
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
        _stacked(law, record, times, position) for record in pair
    )
    shift = mean - other_mean
    if average:
        fold = np.kron(np.full((1, len(times)), 1.0 / len(times)), np.eye(len(law.problem.initial)))
        shift, covariance, other = fold @ shift, fold @ covariance @ fold.T, fold @ other @ fold.T
    return renyi_divergence(shift, covariance, other, order=2.0)


def _small_case(parameters: Parameters) -> tuple[HomogenisedSGD, Pair]:
    from privreg.schedules import ConstantRate
    from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression

    d = parameters.small_dimension
    rng = np.random.Generator(np.random.SFC64(d))
    problem = RidgeRegression(
        np.linspace(0.2, 1.8, d) / d,
        rng.standard_normal(d) / np.sqrt(d),
        rng.standard_normal(d),
        label_noise_std=parameters.design.label_noise_std,
        ridge=parameters.design.ridge,
    )
    rate = ConstantRate(d * parameters.design.step_size)
    law = HomogenisedSGD(
        problem, rate, gradient_noise_std=parameters.gradient_noise_std, horizon=9.0
    )
    rows = np.sqrt(problem.eigenvalues) * rng.standard_normal((2, d))
    return law, _pair(rows, rows @ problem.target)


def _pair(rows: np.ndarray, labels: np.ndarray) -> Pair:
    from privreg.theory.noisy_sgd.renyi_loss import Record

    return Record(rows[0], float(labels[0])), Record(rows[1], float(labels[1]))


def _stacked(
    law: HomogenisedSGD, record: Record, times: list[float] | np.ndarray, position: float
) -> tuple[np.ndarray, np.ndarray]:
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
