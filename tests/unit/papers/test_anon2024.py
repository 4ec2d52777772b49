"""The recipes of anon2024: arms are runs of the library and keep their budgets."""

import numpy as np
import pytest

from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.shaped_dp_ftrl import FixedClip, ShapedMechanism, shaped_dp_ftrl
from privreg.noise.covariance import DiagonalCovariance
from privreg.privacy.budget import Budget
from reproduction.engine.trials import shard_of
from reproduction.papers.anon2024.experiments import (
    clip_feedback,
    tuned_risk,
)
from reproduction.papers.anon2024.setting import CORRELATIONS, correlation_named

PROBLEM = {"decay": 2.0, "dimension": 24, "sample_size": 16, "label_noise_std": 0.5}
STEPS = {"low": 0.01, "high": 0.2, "count": 3}


def tuned(**changes):
    values = {
        **PROBLEM,
        "epsilons": [1.0, 16.0],
        "delta": 1e-5,
        "step_sizes": STEPS,
        "public_ratios": [1],
    }
    return tuned_risk.Parameters(**(values | changes))


def test_an_arm_of_the_study_is_a_run_of_the_library():
    parameters = tuned()
    found = tuned_risk.simulate(parameters, shard_of(3, "anon2024/tuned_risk", 1, index=0, count=1))
    trials = shard_of(3, "anon2024/tuned_risk", 1, index=0, count=1)
    rng = trials.generator(0)
    samples = ArraySamples(*parameters.model.sample(parameters.sample_size, rng))
    seed = int(rng.integers(2**63))
    eta = float(parameters.step_sizes.values()[1])
    for correlation in CORRELATIONS:
        shape = parameters.shape("population", eta)
        mechanism = ShapedMechanism(
            DiagonalCovariance(shape),
            correlation_named(correlation),
            FixedClip(parameters.clip_norm(shape)),
            parameters.multiplier(correlation, 16.0),
            parameters.sample_size,
        )
        run = shaped_dp_ftrl(
            samples,
            mechanism=mechanism,
            step_size=eta,
            rng=np.random.Generator(np.random.SFC64(seed)),
        )
        risk = found.risk.sel(arm=f"{correlation}, population", epsilon=16.0, step_size=eta).item()
        assert risk == pytest.approx(float(parameters.model.excess_risk(run.average)), rel=1e-9)


def test_every_arm_keeps_its_budget():
    parameters = tuned()
    for correlation in CORRELATIONS:
        noise = correlation_named(correlation)
        mechanism = ShapedMechanism(
            DiagonalCovariance(np.ones(24)),
            noise,
            FixedClip(1.0),
            parameters.multiplier(correlation, 1.0),
            16,
        )
        assert Budget.zcdp(mechanism.spent()).epsilon(delta=1e-5) <= 1.0 + 1e-6


def test_runs_that_diverge_stay_infinite():
    parameters = clip_feedback.Parameters(
        **PROBLEM,
        relative_steps={"low": 0.01, "high": 1e14, "count": 3},
        estimating_rows=8,
        epsilon=1.0,
        delta=1e-5,
    )
    trials = shard_of(1, "anon2024/clip_feedback", 2, index=0, count=1)
    found = clip_feedback.simulate(parameters, trials).assign_coords(trial=[0, 1])
    assert not np.any(np.isnan(found.risk))
    assert np.all(np.isinf(found.risk.sel(constant="paper").isel(step_size=-1)))
    assert np.all(np.isfinite(found.risk.sel(constant="practical").isel(step_size=0)))
    summary = clip_feedback.summarise(parameters, found)
    assert np.all(summary.median_risk.sel(constant="paper").values[:, -1] == np.inf)
