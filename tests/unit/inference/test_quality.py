"""One call for what intervals will be worth, against the calls that it composes."""

import numpy as np
import pytest

from privreg.algorithms.full_batch_dpgd import full_batch_noise_std
from privreg.algorithms.samples import ArraySamples, moments
from privreg.inference.intervals import (
    CONSTRUCTIONS,
    expected_half_width,
    interval_quality,
    interval_quality_of_data,
    replicate_weights,
    t_interval_coverage,
)
from privreg.privacy.budget import Budget
from privreg.theory.full_batch_dpgd import clipping_bound, gradient_descent_law

GRADIENTS, CLIP_NORM, STEP_SIZE = 260, 20.0, 0.2


@pytest.fixture(scope="module")
def samples():
    rng = np.random.Generator(np.random.SFC64(5))
    features = rng.standard_normal((1500, 3))
    return ArraySamples(features, features @ [0.5, -0.2, 0.1] + 0.3 * rng.standard_normal(1500))


def law_of(samples, *, rho=0.5, neighbours="replace-one"):
    noise = full_batch_noise_std(
        clip_norm=CLIP_NORM,
        rho=rho,
        sample_size=samples.sample_size,
        gradients=GRADIENTS,
        neighbours=neighbours,
    )
    return gradient_descent_law(
        *moments(samples),
        sample_size=samples.sample_size,
        step_size=STEP_SIZE,
        gradient_noise_std=float(noise),
    )


def of_data(samples, budget=None, **changes):
    chosen = {
        "budget": budget or Budget.zcdp(0.5),
        "clip_norm": CLIP_NORM,
        "step_size": STEP_SIZE,
        "gradients": GRADIENTS,
    } | changes
    return interval_quality_of_data(samples, **chosen)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_the_one_call_is_the_composed_calls(samples, construction):
    law, m = law_of(samples), 10
    weights = replicate_weights(construction, gradients=GRADIENTS)
    bias, covariance = law.functionals(weights)
    if construction == "independent_runs":
        bias, covariance = np.repeat(bias, m, axis=-1), covariance * np.eye(m)
    found = of_data(samples, construction=construction)
    np.testing.assert_array_equal(found.coverage, t_interval_coverage(bias, covariance, level=0.95))
    np.testing.assert_array_equal(
        found.expected_length, 2 * expected_half_width(bias, covariance, level=0.95)
    )
    runs = m if construction == "independent_runs" else 1
    _, fraction = clipping_bound(
        law, samples.features, samples.labels, clip_norm=CLIP_NORM, steps=GRADIENTS // runs
    )
    # The total over runs of a share of all gradients.
    expected = fraction * (GRADIENTS // runs) * runs * samples.sample_size
    assert found.clipping == pytest.approx(min(1.0, expected), rel=1e-9, abs=1e-300)


def test_clipping_is_a_probability_and_no_business_of_the_law(samples):
    assert of_data(samples, clip_norm=0.5).clipping == 1.0
    assert interval_quality(law_of(samples), gradients=GRADIENTS).clipping == 0.0


@pytest.mark.parametrize("step_size", [2.0, 2.5])
def test_descent_must_settle(step_size):
    """Second moments of exactly 1: at a step size of 2 an error keeps its size for good."""
    samples = ArraySamples(np.ones((4, 1)), [1.0, 2.0, 1.0, 3.0])
    with pytest.raises(ValueError, match="step_size must be small enough for descent to settle"):
        of_data(samples, step_size=step_size)


def test_length_follows_the_budget_and_its_neighbours(samples):
    # From the minimiser there is no bias, and length is proportional to the noise.
    start = law_of(samples).minimiser
    tight = of_data(samples, start=start).expected_length
    loose = of_data(samples, Budget.zcdp(2.0), start=start).expected_length
    np.testing.assert_allclose(tight, 2 * loose, rtol=1e-9)
    half = Budget.zcdp(0.5, neighbours="add-remove")
    removed = of_data(samples, half, start=start).expected_length
    np.testing.assert_allclose(tight, 2 * removed, rtol=1e-9)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"construction": "batches"}, "construction must be one of .*did you mean 'batch_means'"),
        ({"budget": 0.5}, "budget must be a Budget"),
        ({"budget": Budget.zcdp(np.inf)}, "budget must be finite"),
        ({"clip_norm": np.inf}, "clip_norm must be"),
        ({"step_size": 0.0}, "step_size must be"),
        ({"gradients": 10.5}, "gradients must be a whole number"),
        ({"gradients": 200, "construction": "independent_runs"}, "burn_in must be less than 20"),
        ({"gradients": 25}, "burn_in must be at most 15"),
        ({"level": 1.0}, "level must be"),
        ({"start": [0.0]}, "start must have shape"),
        ({"replicates": 1}, "replicates must be"),
    ],
)
def test_refusals_name_the_argument(samples, changes, words):
    with pytest.raises(ValueError, match=words):
        of_data(samples, **changes)
