"""Every private algorithm on the worst pair of neighbours known for it, reduced to one number.

If outputs are Gaussian, the number is their projection on the direction of the likelihood ratio,
which is computed from the pair and not from runs. Algorithms with noise from the operating system
are not included, since their runs cannot be repeated; the tests audit them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from privreg.algorithms import noisy_sgd, one_pass_dpgd
from privreg.algorithms.adassp import Bounds, adassp_zcdp, clipped_sums
from privreg.algorithms.dp_ftrl import FTRLMechanism, dp_ftrl
from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.shaped_dp_ftrl import FixedClip, ShapedMechanism, shaped_dp_ftrl
from privreg.auditing import neighbouring_tables
from privreg.noise.covariance import (
    NoiseCovariance,
    PublicCovariance,
    identity_covariance,
    population_covariance,
)
from privreg.noise.streams import (
    Correlation,
    IndependentCorrelation,
    SquareRootCorrelation,
    TreeCorrelation,
)
from privreg.noise.toeplitz import damped_square_root, dense_matrix, identity
from privreg.privacy.budget import Budget
from privreg.schedules import Harmonic, Polynomial, Schedule

Run = Callable[[int, np.random.Generator], float]
Rows = tuple[np.ndarray, np.ndarray]
# The gradient is clipped at all parameters; the row is so short that later steps ignore it.
SHORT, FAR = 1e-3, 1e6


def _opposite(
    rows: int, dimension: int, *, used: int, neighbours: str = "replace-one"
) -> list[Rows]:
    """Data sets of zeros except one record, whose clipped gradients are opposite in the two.

    For add-remove and zero-out neighbours, the record is absent or blank in the second data set.
    """
    features, labels = np.zeros((rows, dimension)), np.zeros(rows)
    features[used, 0], labels[used] = SHORT, FAR
    other = (features[[used]], -labels[[used]]) if neighbours == "replace-one" else None
    pair = neighbouring_tables(
        features, labels, record=used, neighbours=neighbours, replacement=other
    )
    return [(each.features, each.labels) for each in (pair.first, pair.second)]


def one_pass(mu: float, *, schedule: Schedule, used: int) -> Run:
    """Rows before the differing record have η|x|² = 1, which cancels the noise of earlier steps."""
    budget = Budget.half_square(mu)
    mechanism = one_pass_dpgd.Mechanism.from_schedule(
        schedule, sample_size=12, dimension=3, budget=budget, clip_constant=1.3
    )
    pair = _opposite(12, 3, used=used)
    for before in range(max(0, used - 4), used):
        for features, _ in pair:
            features[before, 0] = (mechanism.amplitude[0] * mechanism.step_shape[before]) ** -0.5
    return lambda which, rng: one_pass_dpgd.fit(mechanism, *pair[which], rng)[0, 0]


def full_batch(mu: float, *, neighbours: str) -> Run:
    """Every iterate is released; the differing record moves every gradient by the same amount.

    The sample size is declared as five, also if the second data set has four rows.
    """
    budget, clip_norm, steps, rows = Budget.gaussian_dp(mu, neighbours=neighbours), 1.5, 3, 5
    noise = full_batch_noise_std(
        clip_norm=clip_norm, rho=budget.rho, sample_size=rows, gradients=steps,
        neighbours=neighbours,
    )  # fmt: skip
    pair = _opposite(rows, 2, used=2, neighbours=neighbours)
    data = [ArraySamples(*each) for each in pair]

    def run(which: int, rng: np.random.Generator) -> float:
        found = full_batch_dpgd(
            data[which], clip_norm=clip_norm, step_size=0.1, gradient_noise_std=noise, steps=steps,
            screening=False, rng=rng, sample_size=rows,
        )  # fmt: skip
        # Steps have independent noise of one variance, so that the sum is the best statistic.
        return found.iterates[0, -1, 0]

    return run


def clipped_noisy_sgd(mu: float) -> Run:
    """The last step uses the differing record; ρ = 2c²/σ² of the guarantee is μ = 2c/σ."""
    clip_norm, steps = 1.2, 4
    pair = _opposite(steps, 2, used=steps - 1)
    records = noisy_sgd.LinearRecords.uniform(mean=0.0, half_width=1.0, target=[0.0, 0.0])

    def run(which: int, rng: np.random.Generator) -> float:
        found = noisy_sgd.run_noisy_sgd(
            *pair[which], records=records, initial=[0.0, 0.0],
            step_sizes=[0.0] * (steps - 1) + [0.1], gradient_noise_stds=[2 * clip_norm / mu],
            clip_norms=[clip_norm], rng=rng,
        )  # fmt: skip
        return found.iterate[0, 0, 0]

    return run


def adassp(mu: float, *, neighbours: str) -> Run:
    r"""For a large G the estimate moves by (Δm - ΔG θ) / G; θ makes the two parts add up.

    e_1 with label 1 is replaced by e_2 with label -1, at θ = (-2, 2). This moves G by √2, and the
    moment by √2, where 2 is the most. The eigenvalue has a third of the budget, but does not affect
    an estimate whose ridge is 0.
    """
    budget, bounds, rows = Budget.gaussian_dp(mu, neighbours=neighbours), Bounds(1.0, 1.0), 8000
    if neighbours == "replace-one":
        others, theirs = np.repeat(0.5 * np.eye(2), rows, axis=0), np.repeat([-1.0, 1.0], rows)
        features, labels = np.vstack([others, [1.0, 0.0]]), np.append(theirs, 1.0)
        replacement = ([[0.0, 1.0]], [-1.0])
    else:
        features, labels = np.ones((rows, 1)), np.append(-np.ones(rows - 1), 1.0)
        replacement = None
    pair = neighbouring_tables(
        features, labels, record=len(labels) - 1, neighbours=neighbours, replacement=replacement
    )
    sums = [
        clipped_sums(ArraySamples(each.features, each.labels), bounds=bounds)
        for each in (pair.first, pair.second)
    ]

    def run(which: int, rng: np.random.Generator) -> float:
        return float(np.sum(adassp_zcdp(sums[which], bounds=bounds, budget=budget, rng=rng)))

    return run


def ftrl(mu: float, *, decoder: np.ndarray, neighbours: str, epochs: int = 1) -> Run:
    """The first record differs, in each epoch's first step; iterates give back the white noise."""
    rows = len(decoder) // epochs
    budget = Budget.half_square(mu, neighbours=neighbours)
    mechanism = FTRLMechanism.for_budget(
        decoder, clip_norm=2.0, budget=budget, sample_size=rows, epochs=epochs
    )
    data = [ArraySamples(*each) for each in _opposite(rows, 2, used=0, neighbours=neighbours)]
    inverse = np.linalg.inv(dense_matrix(decoder))
    moved = np.zeros(len(decoder))
    moved[::rows] = 1.0
    direction = (inverse @ moved) @ inverse
    times = np.arange(1, len(decoder) + 1)

    def run(which: int, rng: np.random.Generator) -> float:
        found = dp_ftrl(data[which], mechanism=mechanism, step_size=0.1, rng=rng, times=times)
        return float(direction @ np.diff(found.iterates[:, 0], prepend=0.0))

    return run


def shaped(mu: float, *, covariance: NoiseCovariance, correlation: Correlation) -> Run:
    """The first of four records differs; its gradient enters every later iterate of the average."""
    rows, budget = 4, Budget.half_square(mu)
    mechanism = ShapedMechanism.for_budget(
        budget, covariance=covariance, correlation=correlation, clipping=FixedClip(2.0),
        sample_size=rows,
    )  # fmt: skip
    record = np.array([1.0, -2.0, 0.5])
    features, labels = np.zeros((rows, 3)), np.zeros(rows)
    features[0], labels[0] = SHORT * record, FAR
    data = [ArraySamples(features, sign * labels) for sign in (1.0, -1.0)]
    root = covariance.root_multiply(np.eye(covariance.draws))
    direction = np.linalg.solve(root.T @ root, record)

    def run(which: int, rng: np.random.Generator) -> float:
        found = shaped_dp_ftrl(data[which], mechanism=mechanism, step_size=0.5, rng=rng)
        return float(found.average @ direction)

    return run


def gaussian(mu: float, *, loss: float) -> Run:
    """Gaussian mechanism whose loss is this multiple of its promised loss."""
    return lambda which, rng: which * loss * mu + rng.standard_normal()


_square_root = partial(ftrl, decoder=damped_square_root(12, damping=0.05))
_isotropic = partial(shaped, covariance=identity_covariance(3))
ALGORITHMS: Mapping[str, Callable[[float], Run]] = {
    "one-pass DP-GD, constant rate": partial(one_pass, schedule=Polynomial(1.0, 0.0), used=11),
    "one-pass DP-GD, polynomial rate": partial(one_pass, schedule=Polynomial(1.0, 0.5), used=6),
    "one-pass DP-GD, harmonic rate": partial(one_pass, schedule=Harmonic(0.7, 0.3), used=11),
    "full-batch DP-GD, replace-one": partial(full_batch, neighbours="replace-one"),
    "full-batch DP-GD, add-remove": partial(full_batch, neighbours="add-remove"),
    "noisy SGD, clipped": clipped_noisy_sgd,
    "AdaSSP, replace-one": partial(adassp, neighbours="replace-one"),
    "AdaSSP, add-remove": partial(adassp, neighbours="add-remove"),
    "DP-FTRL, independent": partial(ftrl, decoder=identity(12), neighbours="replace-one"),
    "DP-FTRL, square root": partial(_square_root, neighbours="replace-one"),
    "DP-FTRL, square root, zero-out": partial(_square_root, neighbours="zero-out"),
    "DP-FTRL, square root, three epochs": partial(_square_root, neighbours="replace-one", epochs=3),
    "shaped DP-FTRL, tree": partial(_isotropic, correlation=TreeCorrelation()),
    "shaped DP-FTRL, tree, population's shape": partial(
        shaped,
        covariance=population_covariance([1.0, 0.3, 0.1], horizon=5.0),
        correlation=TreeCorrelation(),
    ),
    "shaped DP-FTRL, tree, public rows' shape": partial(
        shaped,
        covariance=PublicCovariance(np.array([[1.0, 0.5, -0.2], [0.1, 0.4, 2.0]]), ridge=0.4),
        correlation=TreeCorrelation(),
    ),
    "shaped DP-FTRL, square root": partial(_isotropic, correlation=SquareRootCorrelation(0.05)),
    "shaped DP-FTRL, independent": partial(_isotropic, correlation=IndependentCorrelation()),
}
CONTROLS: Mapping[str, Callable[[float], Run]] = {
    "no loss": partial(gaussian, loss=0.0),
    "the promised noise": partial(gaussian, loss=1.0),
    "two thirds of the noise": partial(gaussian, loss=1.5),
    "half the noise": partial(gaussian, loss=2.0),
}
