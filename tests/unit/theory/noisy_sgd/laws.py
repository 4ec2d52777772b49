"""A small law of noisy SGD, its records, and the law of its iterates as dense matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privreg.schedules import ConstantRate
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression
from privreg.theory.noisy_sgd.renyi_loss import Record

Array = NDArray[np.float64]
DIMENSION, STEP = 6, 0.05


def small_law(*, isotropic: bool = False, gradient_noise_std: float = 1.5) -> HomogenisedSGD:
    rng = np.random.default_rng(4)
    spectrum = np.full(DIMENSION, 0.2) if isotropic else rng.uniform(0.05, 0.4, DIMENSION)
    problem = RidgeRegression(
        spectrum,
        rng.standard_normal(DIMENSION),
        rng.standard_normal(DIMENSION),
        ridge=0.1,
        label_noise_std=0.1**0.5,
    )
    return HomogenisedSGD(
        problem, ConstantRate(STEP * DIMENSION), gradient_noise_std=gradient_noise_std, horizon=9.0
    )


def small_records(law: HomogenisedSGD, count: int = 12) -> tuple[Array, Array]:
    rng = np.random.default_rng(5)
    features = np.sqrt(law.problem.eigenvalues) * rng.standard_normal((count, DIMENSION))
    return features, features @ law.problem.target + 0.3 * rng.standard_normal(count)


def dense_joint(
    law: HomogenisedSGD, variances: dict[float, Array], record: Record, times: Array, place: float
) -> tuple[Array, Array]:
    """Mean and covariance of the stacked iterates, carried from event to event as matrices."""
    problem = law.problem
    size = problem.eigenvalues.size
    step = float(law.schedule.rate(place)) / problem.dimension
    matrix = (1 - step * problem.ridge) * np.eye(size)
    matrix = matrix - step * np.outer(record.features, record.features)
    mean, covariance = problem.initial, np.zeros((size, size))
    means: list[Array] = []
    links: list[Array] = []
    rows: list[list[Array]] = []
    now = 0.0
    for time, release in sorted([*((float(t), 1) for t in times), (place, 0)]):
        passed = float(law.schedule.integral(time)) - float(law.schedule.integral(now))
        decay = np.exp(-problem.curvatures * passed)
        mean = problem.minimiser + decay * (mean - problem.minimiser)
        fresh = variances[time] - decay**2 * variances[now]
        covariance = decay[:, None] * covariance * decay + np.diag(fresh)
        links = [decay[:, None] * link for link in links]
        now = time
        if release:
            means.append(mean)
            rows.append([*links, covariance])
            links.append(covariance)
        else:
            mean = matrix @ mean + step * record.label * record.features
            covariance = matrix @ covariance @ matrix.T
            covariance = covariance + (step * law.gradient_noise_std) ** 2 * np.eye(size)
            links = [matrix @ link for link in links]
    joint = np.zeros((len(means) * size,) * 2)
    for r, row in enumerate(rows):
        for j, block in enumerate(row):
            joint[r * size : (r + 1) * size, j * size : (j + 1) * size] = block
            joint[j * size : (j + 1) * size, r * size : (r + 1) * size] = block.T
    return np.concatenate(means), joint


def first_pair(law: HomogenisedSGD) -> tuple[Record, Record]:
    features, labels = small_records(law)
    return Record(features[0], labels[0]), Record(features[1], labels[1])
