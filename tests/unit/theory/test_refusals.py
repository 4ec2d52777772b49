"""Refusals of the theories that the validation of single arguments does not make."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from privreg.schedules import ConstantRate
from privreg.spectra import Spectrum
from privreg.theory import huber_descent, shaped_noise
from privreg.theory.correlated_noise import bounds as ftrl_bounds
from privreg.theory.correlated_noise import stationary
from privreg.theory.correlated_noise.bounds import SectorProgram, quadratic_envelope
from privreg.theory.correlated_noise.finite_time import error_curve
from privreg.theory.correlated_noise.stationary import stability_limit
from privreg.theory.full_batch_dpgd import gradient_descent_law
from privreg.theory.noisy_sgd.diffusion import (
    HomogenisedSGD,
    Population,
    RidgeRegression,
    estimated_population,
)
from privreg.theory.noisy_sgd.last_iterate_loss import (
    fixed_order_divergence,
    shuffled_hidden_state_loss,
)
from privreg.theory.noisy_sgd.renyi_loss import position_quadrature, release_loss, shuffled_loss
from privreg.theory.noisy_sgd.worst_pairs import largest_pairs
from privreg.theory.one_pass_dpgd import deterministic_equivalent, volterra
from privreg.theory.one_pass_dpgd.rates import optimal_exponent
from privreg.theory.shaped_noise import PowerLawDecay, general_bound

INDEPENDENT = stationary.StationaryNoise.independent()
PROGRAM = partial(SectorProgram, strong_convexity=0.5, step_size=1.0, lags=2, nodes_per_panel=2)
CURVE = partial(error_curve, step_size=0.1, coefficients=[1.0], steps=1)
ONE_PASS = {"aspect_ratio": 0.1, "clip_constant": 1.0, "label_noise_std": 0.1, "zcdp_root": 1.0}
GENERAL = partial(
    general_bound,
    target=[1.0, 1.0],
    covariance=[1.0, 1.0],
    sample_size=10,
    step_size=0.1,
    noise_multiplier=1.0,
    clip_norm=1.0,
    label_noise_std=1.0,
)
ROWS = np.random.default_rng(0).standard_normal((40, 2))
RELEASE = partial(
    release_loss,
    ROWS,
    ROWS[:, 0],
    record=3,
    replacement=(-ROWS[5], 1.0),
    schedule=ConstantRate(0.4),
    gradient_noise_std=0.7,
    order=2.0,
)
LAW = HomogenisedSGD(
    RidgeRegression([1.0], [1.0], [0.0]), ConstantRate(0.1), gradient_noise_std=1.0, horizon=1.0
)


class Rising:
    """A user's schedule that grows: its private noise would have a negative variance."""

    amplitude = 0.5

    def shape(self, times):
        return 1.0 + np.asarray(times, dtype=float)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        # Correlated noise
        (partial(PROGRAM, strong_convexity=2.0), "strong_convexity"),
        (partial(PROGRAM, step_size=2.0), "step_size must be at least 2e-10 and less than 2"),
        (partial(PROGRAM().bound, [1.0]), "power must have shape"),
        (
            partial(quadratic_envelope, 0.1, strong_convexity=0.5, smoothness=1.0, step_size=2.0),
            "step_size",
        ),
        (partial(CURVE, [1.0], coefficients=[1.0, 1.0]), "coefficients must have at most 1"),
        (partial(CURVE, [1.0], initial_error=[1.0, 2.0]), "initial_error must have shape"),
        (partial(CURVE, [1.0], step_size=60.0, steps=500), "step_size must be less than 0.6667 "),
        (partial(stability_limit, [1.0, 0.0]), "eigenvalues"),
        (partial(ftrl_bounds.effective_dimension, [0.0]), "eigenvalues must not all be 0"),
        (
            partial(
                ftrl_bounds.stationary_upper_bound,
                [1.0],
                step_size=0.5,
                noise=INDEPENDENT,
                gradient_noise_std=1.0,
            ),
            "step_size must be .* less than",
        ),
        # Shaped noise
        (partial(GENERAL, [0.5, 1.0]), "eigenvalues must be non-increasing"),
        (partial(PowerLawDecay(1.2).shaped_trace, 1e12), "horizon must be at most"),
        (
            partial(shaped_noise.toeplitz_factor, 0.1, decoder=[1.0], sample_size=4),
            "decoder must have at least 3 coefficients",
        ),
        (
            partial(
                shaped_noise.private_risk,
                [1.0],
                covariance=[1.0],
                noise_std=1.0,
                step_size=0.1,
                sample_size=4,
                decoder=[1.0],
            ),
            "decoder must have at least 3 coefficients",
        ),
        # Full-batch and Huber descent
        (
            partial(
                gradient_descent_law,
                np.zeros((2, 2)),
                np.ones(2),
                sample_size=9,
                step_size=0.1,
                gradient_noise_std=1.0,
            ),
            "gram must be positive definite",
        ),
        # Of rank two up to rounding.
        (
            partial(
                huber_descent.sandwich,
                np.outer([1.0, 3.0, 7.0], [0.1, 0.3, 0.7]) / 11
                + np.outer([1, 0, 0], [0, 0.2, 0.1]),
                np.eye(3),
                sample_size=10.0,
            ),
            "curvature must be invertible",
        ),
        # Noisy SGD
        (partial(RidgeRegression, [1.0], [1.0, 2.0], [0.0]), "target must have shape"),
        (partial(LAW.risk, 2.0), "time must be at least 0 and at most 1"),
        (partial(RELEASE, release="mean"), "release must be one of"),
        (partial(RELEASE, release="all"), "steps must be given for the release 'all'"),
        (partial(RELEASE, release="all", steps=[3, 2]), "steps must be ascending"),
        (partial(RELEASE, steps=[41]), "steps must be"),
        (partial(RELEASE, steps=[3, 4]), "steps must hold one step"),
        (partial(RELEASE, record=40), "record must be a whole number, at most 39"),
        (partial(RELEASE, replacement=(np.zeros(3), 0.0)), "replacement features must have shape"),
        (partial(RELEASE, replacement=3), "replacement must be a pair"),
        (partial(RELEASE, start=np.zeros(3)), "start must have shape"),
        (
            partial(RELEASE, population=Population(np.eye(3), np.zeros(3), 0.0)),
            "population must have dimension",
        ),
        # The second step projects on a line: of what is left across it rounding takes digits.
        (
            partial(
                fixed_order_divergence,
                [[1.0, 0.2], [0.3, 0.7]],
                [0.0, 0.0],
                initial=[0.0, 0.0],
                positions=[0],
                replacement_features=[[0.0, 1.0]],
                replacement_labels=[1.0],
                release_steps=[2],
                step_sizes=[1e6, 1 / 0.58],
                gradient_noise_std=1e-6,
                ridge=0.0,
                order=2.0,
            ),
            "double precision",
        ),
        (partial(Population, np.triu(np.ones((2, 2))), np.zeros(2), 0.0), "must be symmetric"),
        (Population(-np.eye(2), np.zeros(2), 0.0).regression, "must be positive semidefinite"),
        (partial(estimated_population, np.ones((2, 3)), np.ones(2)), "must have more records"),
        (partial(estimated_population, np.ones((5, 2)), np.ones(5)), "linearly independent"),
        (partial(shuffled_loss, [1.0], [2.0], horizon=1.0, order=2.0), "weights must have a sum"),
        (partial(position_quadrature, [2.0, 1.0], finest=0.1), "times must be strictly ascending"),
        (partial(largest_pairs, np.full((3, 3), -np.inf), 3), "proxy must be more than -inf"),
        (
            partial(
                shuffled_hidden_state_loss,
                [1],
                records=2,
                clip_norm=1.0,
                gradient_noise_std=1.0,
                step_size=0.5,
                strong_convexity=2.0,
                order=2.0,
            ),
            "strong_convexity must be in",
        ),
        # One-pass DP-GD
        *(
            (partial(optimal_exponent, *powers), message)
            for powers, message in (
                ((1.0, 0.5, 1.0, 0.5), "spectrum_power must be"),
                ((0.25, 0.8, 1.0, 0.5), "signal_power must be"),
                ((0.25, 0.5, -0.1, 0.5), "schedule_power must be"),
                ((0.25, 0.5, 1.0, 1.0), "privacy_power must be"),
            )
        ),
        (partial(volterra.power_law_kernels, 0.25, 2.5), r"signal_power must.*2\.5"),
        (
            partial(deterministic_equivalent.solve, Spectrum([1.0], [1.0]), Rising(), **ONE_PASS),
            "schedule must not increase",
        ),
        (
            partial(
                volterra.solve,
                volterra.spectrum_kernels(Spectrum([1.0], [1.0])),
                Rising(),
                [0.0, 0.5, 1.0],
                **ONE_PASS,
            ),
            "schedule must not increase",
        ),
    ],
)
def test_what_no_formula_covers_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
