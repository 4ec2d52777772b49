"""Every divergence formula against a second computation, and the paper's variants of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import Strict
from privreg.experiment.quantities import Dimension, PositiveDeviation, RenyiOrder, Some
from privreg.papers.lin2025.setting import Design

if TYPE_CHECKING:
    import xarray as xr

    from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD
    from privreg.theory.noisy_sgd.renyi_loss import Record

PLACE = "Lemmas C.2 and C.3, Theorems 4.3-4.5, equations (14)-(24)"


class Parameters(Strict):
    """The design for the large comparison; the others are in a few dimensions."""

    design: Design
    gradient_noise_std: PositiveDeviation = Field(description="Gradient noise sigma.")
    orders: Some[RenyiOrder] = Field(description="Rényi orders, more than 1.")
    small_dimension: Annotated[Dimension, Field(ge=2)] = Field(
        description="Dimension of the stacked dense laws."
    )


class _Event(NamedTuple):
    time: float
    is_release: bool


def theory(parameters: Parameters) -> xr.Dataset:
    """Relative differences of the formulas to quadrature or dense laws, and the slips' sizes."""
    import xarray as xr

    from privreg.privacy.gaussian import renyi_divergence

    lemma = _lemma_example()
    variables = {
        "quadrature_error": _scalar(
            _quadrature_error(parameters.orders),
            "relative difference of the Gaussian divergence and its integral in one dimension",
        ),
        "cubature_error": _scalar(
            _cubature_error(parameters.orders),
            "relative difference of the Gaussian divergence and its integral in three dimensions",
        ),
        "lemma_printed": _scalar(lemma[0], "Lemma C.2 as printed, N(0, 1) against N(0.5, 1.5)"),
        "lemma_reverse": _scalar(lemma[1], "the divergence by quadrature, reverse direction"),
        "lemma_function": _scalar(
            renyi_divergence([0.5], [1.0], [1.5], order=2.0), "the library's divergence"
        ),
        "low_rank_error": _scalar(
            _low_rank_error(parameters),
            "relative difference of the low-rank and the dense divergence at full dimension",
        ),
        **_releases(parameters),
        **_mixtures(),
    }
    return xr.Dataset(variables)


def _scalar(value: float, long_name: str) -> tuple:
    return variable((), value, long_name)


def _lemma_example() -> tuple[float, float]:
    """Printed formula and D(Q||P) by quadrature, order 2, for P = N(0, 1) and Q = N(0.5, 1.5)."""
    mixture = 2.0 * 1.0 - 1.5
    printed = 0.5**2 / mixture + 0.5 * np.log(1.0**2 / 1.5 / mixture)
    return printed, _integral((0.5, 1.5), (0.0, 1.0), 2.0)


def _integral(p: tuple[float, float], q: tuple[float, float], order: float) -> float:
    """Divergence of two normal laws (mean, variance) in one dimension, by quadrature."""
    from scipy.integrate import quad

    def integrand(x: float) -> float:
        log_p, log_q = (-0.5 * (x - m) ** 2 / v - 0.5 * np.log(2.0 * np.pi * v) for m, v in (p, q))
        return float(np.exp(order * log_p + (1.0 - order) * log_q))

    value = quad(integrand, -60.0, 60.0, points=[-3.0, 0.0, 3.0], epsabs=0, epsrel=1e-12, limit=400)
    return float(np.log(value[0]) / (order - 1.0))


def _quadrature_error(orders: list[float]) -> float:
    from privreg.privacy.gaussian import renyi_divergence

    laws = [(0.0, 1.0), (0.7, 1.1), (-0.4, 0.95), (0.1, 1.3)]
    errors = [0.0]
    for order in orders:
        for p in laws:
            for q in laws:
                if p == q or (1.0 - order) * p[1] + order * q[1] <= 0.2:
                    continue
                formula = renyi_divergence([p[0] - q[0]], [p[1]], [q[1]], order=order)
                errors.append(abs(formula / _integral(p, q, order) - 1.0))
    return max(errors)


def _cubature_error(orders: list[float]) -> float:
    """Against a product Gauss-Hermite rule under Q, correlated covariances."""
    from privreg.privacy.gaussian import renyi_divergence

    shift = np.array([0.3, -0.2, 0.4])
    p = np.array([[1.0, 0.1, 0.0], [0.1, 0.9, -0.05], [0.0, -0.05, 1.05]])
    q = np.array([[1.05, 0.05, 0.02], [0.05, 1.0, 0.0], [0.02, 0.0, 1.1]])
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    grid = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 3)
    mass = np.multiply.outer(np.multiply.outer(weights, weights), weights).ravel()
    mass = mass / mass.sum()
    points = grid @ np.linalg.cholesky(q).T
    centred = points - shift
    log_ratio = 0.5 * (
        np.sum(points * np.linalg.solve(q, points.T).T, axis=1)
        - np.sum(centred * np.linalg.solve(p, centred.T).T, axis=1)
        + np.linalg.slogdet(q)[1]
        - np.linalg.slogdet(p)[1]
    )
    errors = []
    for order in orders:
        integral = np.log(mass @ np.exp(order * log_ratio)) / (order - 1.0)
        errors.append(abs(renyi_divergence(shift, p, q, order=order) / integral - 1.0))
    return max(errors)


def _low_rank_error(parameters: Parameters) -> float:
    from privreg.privacy.gaussian import renyi_divergence
    from privreg.theory.noisy_sgd.renyi_loss import Record, last_iterate_divergence

    design = parameters.design
    rng = np.random.Generator(np.random.SFC64(0))
    instance = design.draw(rng)
    law = design.law(instance.problem, parameters.gradient_noise_std)
    rows, labels = instance.records.sample(2, rng)
    rows = instance.basis.coordinates(rows)
    pair = [Record(rows[k], float(labels[k])) for k in range(2)]
    time, position = 0.5 * design.horizon, 0.45 * design.horizon
    fast = last_iterate_divergence(law, *pair, time=time, position=position, order=2.0)
    laws = [_stacked(law, record, [time], position) for record in pair]
    shift = laws[0][0] - laws[1][0]
    return abs(fast / renyi_divergence(shift, laws[0][1], laws[1][1], order=2.0) - 1.0)


def _releases(parameters: Parameters) -> dict[str, tuple]:
    from privreg.privacy.gaussian import renyi_divergence
    from privreg.theory.noisy_sgd.renyi_loss import (
        average_divergence,
        iterates_divergence,
        last_iterate_divergence,
    )

    law, pair = _small_case(parameters)
    d = parameters.small_dimension
    times = np.array([0.3, 0.6, 0.9]) * law.horizon
    options: dict[str, Any] = {"times": times, "order": 2.0}

    def dense(position: float) -> tuple[float, float]:
        laws = [_stacked(law, record, times, position) for record in pair]
        shift = laws[0][0] - laws[1][0]
        joint = renyi_divergence(shift, laws[0][1], laws[1][1], order=2.0)
        fold = np.kron(np.full((1, times.size), 1.0 / times.size), np.eye(d))
        folded = [fold @ covariance @ fold.T for _, covariance in laws]
        return joint, renyi_divergence(fold @ shift, *folded, order=2.0)

    early, between = 0.2 * law.horizon, 0.5 * law.horizon
    joint_early, average_early = dense(early)
    joint, average = dense(between)
    first = last_iterate_divergence(law, *pair, time=times[0], position=early, order=2.0)
    exact = iterates_divergence(law, *pair, position=between, **options)
    reverse = last_iterate_divergence(law, *pair[::-1], time=times[1], position=between, order=2.0)
    found = average_divergence(law, *pair, position=between, **options)
    found_early = average_divergence(law, *pair, position=early, **options)
    printed = average_divergence(law, *pair[::-1], position=between, variant="paper", **options)
    return {
        "gap_decay_error": _scalar(
            _gap_decay_error(law, pair, times[-1], early),
            "relative difference of the gaps of means and covariances and the propagated ones",
        ),
        "first_release_error": _scalar(
            abs(first / joint_early - 1.0),
            "relative difference of the joint divergence, all released after the differing step, "
            "and that of the first release",
        ),
        "joint_error": _scalar(
            abs(exact / joint - 1.0),
            "relative difference of the joint divergence and the dense one, one released before",
        ),
        "suffix_ratio": _scalar(
            reverse / joint, "divergence of the suffix alone over the joint one, same direction"
        ),
        "average_error": _scalar(
            max(abs(found / average - 1.0), abs(found_early / average_early - 1.0)),
            "relative difference of the average's divergence and the dense one",
        ),
        "average_printed_ratio": _scalar(
            printed / average,
            "divergence of the average with the printed blocks over the dense one",
        ),
    }  # fmt: skip


def _gap_decay_error(
    law: HomogenisedSGD, pair: tuple[Record, Record], time: float, position: float
) -> float:
    """Gaps at a later time of the dense laws against those right after the step, both propagated.

    The transition matrix is exp(-A (Gamma(t) - Gamma(s))) for a constant rate.
    """
    d = law.problem.initial.size
    laws = [_stacked(law, record, [position, time], position) for record in pair]
    rate = float(law.schedule.rate(position))
    decay = np.exp(-rate * (law.problem.eigenvalues + law.problem.ridge) * (time - position))
    mean, covariance = laws[0][0] - laws[1][0], laws[0][1] - laws[1][1]
    errors = (
        (mean[d:] - decay * mean[:d], mean[d:]),
        (covariance[d:, d:] - decay[:, None] * covariance[:d, :d] * decay, covariance[d:, d:]),
    )
    return float(max(np.abs(error).max() / np.abs(size).max() for error, size in errors))


def _mixtures() -> dict[str, tuple]:
    """A one-dimensional mixture over positions against its bound, and equation (21) as printed."""
    from scipy.integrate import quad

    from privreg.theory.noisy_sgd.shuffled_position import (
        paper_shuffled_loss_of_iterates,
        shuffled_loss,
    )

    first, second, order = [(0.0, 1.0), (0.0, 1.0)], [(0.6, 1.1), (-0.5, 1.2)], 2.0

    def mixture(x: float, laws: list[tuple[float, float]]) -> float:
        return sum(
            0.5 * np.exp(-0.5 * (x - m) ** 2 / v) / np.sqrt(2.0 * np.pi * v) for m, v in laws
        )

    integral = quad(
        lambda x: mixture(x, first) ** order * mixture(x, second) ** (1.0 - order),
        -30.0, 30.0, points=[0.0], epsabs=0, epsrel=1e-11, limit=400,
    )[0]  # fmt: skip
    each = [_integral(p, q, order) for p, q in zip(first, second, strict=True)]
    bound = shuffled_loss(each, [0.5, 0.5], horizon=1.0, order=order)
    half: dict[str, Any] = {"weights": [0.25, 0.25], "horizon": 1.0, "order": order}
    return {
        "mixture_ratio": _scalar(
            np.log(integral) / (order - 1.0) / float(bound), "divergence of mixtures over its bound"
        ),
        "loss_without_plus": _scalar(
            float(paper_shuffled_loss_of_iterates([1e-3, 1e-3], **half)),
            "equation (21) as printed, last release half way, divergence 0.001 everywhere",
        ),
        "loss_with_plus": _scalar(
            float(shuffled_loss([1e-3, 1e-3], **half)), "the same with the plus"
        ),
    }


def _small_case(parameters: Parameters) -> tuple[HomogenisedSGD, tuple[Record, Record]]:
    from privreg.schedules import ConstantRate
    from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression
    from privreg.theory.noisy_sgd.renyi_loss import Record

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
    labels = rows @ problem.target
    return law, (Record(rows[0], float(labels[0])), Record(rows[1], float(labels[1])))


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
    events = sorted([_Event(float(t), True) for t in times] + [_Event(position, False)])
    for event in events:
        decay = law.transition(event.time, now)
        fresh = law.variance(event.time) - decay**2 * law.variance(now)
        noise = np.diag(np.sqrt(np.maximum(fresh, 0.0)))
        mean = law.problem.minimiser + decay * (mean - law.problem.minimiser)
        factor = np.hstack([decay[:, None] * factor, noise])
        now = event.time
        if event.is_release:
            means.append(mean)
            factors.append(factor)
        else:
            mean = matrix @ mean + step * record.label * record.features
            factor = np.hstack([matrix @ factor, step * law.gradient_noise_std * np.eye(d)])
    width = factors[-1].shape[1]
    stacked = np.vstack([np.pad(f, ((0, 0), (0, width - f.shape[1]))) for f in factors])
    return np.concatenate(means), stacked @ stacked.T
