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
    law: HomogenisedSGD, record: Record, times: Array, position: float
) -> tuple[Array, Array]:
    """Mean and covariance of the stacked iterates, carried from event to event as matrices."""
    d = DIMENSION
    shrink = 1 - STEP * law.problem.ridge
    matrix = shrink * np.eye(d) - STEP * np.outer(record.features, record.features)
    mean, covariance = law.problem.initial, np.zeros((d, d))
    means: list[Array] = []
    cross: list[list[Array]] = []
    links: list[Array] = []
    now = 0.0
    events = sorted([(t, 1) for t in times] + [(position, 0)])
    for time, kind in events:
        decay = np.diag(law.transition(time, now))
        fresh = law.variance(time) - np.diag(decay) ** 2 * law.variance(now)
        mean = law.problem.minimiser + decay @ (mean - law.problem.minimiser)
        covariance = decay @ covariance @ decay + np.diag(fresh)
        links = [decay @ link for link in links]
        now = time
        if kind == 0:
            mean = matrix @ mean + STEP * record.label * record.features
            covariance = matrix @ covariance @ matrix.T
            covariance = covariance + (STEP * law.gradient_noise_std) ** 2 * np.eye(d)
            links = [matrix @ link for link in links]
        else:
            means.append(mean)
            cross.append([*links, covariance])
            links.append(covariance)
    count = len(means)
    joint = np.zeros((count * d, count * d))
    for r in range(count):
        for j in range(r + 1):
            joint[r * d : r * d + d, j * d : j * d + d] = cross[r][j]
            joint[j * d : j * d + d, r * d : r * d + d] = cross[r][j].T
    return np.concatenate(means), joint


def first_pair(law: HomogenisedSGD) -> tuple[Record, Record]:
    features, labels = small_records(law)
    return Record(features[0], labels[0]), Record(features[1], labels[1])
