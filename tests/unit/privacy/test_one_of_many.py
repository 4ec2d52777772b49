"""Of settings that share noise one is released, and every algorithm says what it costs."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from privreg import AdaSSP, OnePassDPGD
from privreg.algorithms import adassp, noisy_sgd
from privreg.algorithms.dp_ftrl import FTRLMechanism, dp_ftrl
from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
from privreg.algorithms.ols import ols
from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.shaped_dp_ftrl import FixedClip, ShapedMechanism, shaped_dp_ftrl
from privreg.methods.method import Declared
from privreg.noise.covariance import identity_covariance
from privreg.noise.streams import TreeCorrelation
from privreg.noise.toeplitz import damped_square_root
from privreg.privacy.budget import Budget
from privreg.privacy.release import Diagnostic, OneOfMany, Release, Seeded, compose
from privreg.schedules import Polynomial

N, P = 40, 2
BUDGET = Budget.zcdp(0.5)


@pytest.fixture
def rng():
    return np.random.Generator(np.random.SFC64(1))


@pytest.fixture
def data(rng):
    return ArraySamples(rng.standard_normal((N, P)), rng.standard_normal(N))


def descend(data, rng, *, clip_norm, runs=1, rho=BUDGET.rho):
    noise = full_batch_noise_std(clip_norm=clip_norm, rho=rho, sample_size=N, gradients=5 * runs)
    return full_batch_dpgd(
        data,
        clip_norm=clip_norm,
        step_size=0.1,
        gradient_noise_std=noise,
        steps=5,
        runs=runs,
        rng=rng,
    )


def sgd(data, rng, **changes):
    records = noisy_sgd.LinearRecords.uniform(mean=0.0, half_width=1.0, target=np.zeros(P))
    settings = {"gradient_noise_stds": [2.0], "clip_norms": [1.0], "ridge": 0.1, **changes}
    return noisy_sgd.run_noisy_sgd(
        data.features,
        data.labels,
        records=records,
        initial=np.zeros(P),
        step_sizes=np.full(N, 0.05),
        rng=rng,
        **settings,
    )


def test_every_algorithm_releases_at_its_price(data, rng):
    correlated = FTRLMechanism.for_budget(
        damped_square_root(N, damping=0.1), clip_norm=1.0, budget=BUDGET, sample_size=N
    )
    shaped = ShapedMechanism.for_budget(
        BUDGET,
        covariance=identity_covariance(P),
        correlation=TreeCorrelation(),
        clipping=FixedClip(1.0),
        sample_size=N,
    )
    releases = [
        descend(data, rng, clip_norm=1.0, runs=3).release(),
        dp_ftrl(data, mechanism=correlated, step_size=0.05, rng=rng).release(),
        shaped_dp_ftrl(data, mechanism=shaped, step_size=0.05, rng=rng).release(),
        OnePassDPGD(Polynomial(2.0, 0.5), 1.0).run(data, BUDGET),
        AdaSSP().run(data, BUDGET, declared=Declared(adassp.Bounds(2.0, 2.0)), noise=Seeded(3)),
        sgd(data, rng).release(),
    ]
    for found in releases:
        assert isinstance(found, Release)
        assert found.budget.rho == pytest.approx(0.5, rel=1e-12)
        assert len(found.assumptions) >= 4
    assert compose(*releases).budget.rho == pytest.approx(3.0)
    assert any("seed" in text for text in releases[4].assumptions)
    assert any("last" in text for text in releases[3].assumptions)


def test_a_second_setting_is_refused(data, rng):
    run = descend(data, rng, clip_norm=np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"setting must be an index into shape \(2,\), got None"):
        run.release()
    first = run.release(1)
    # The price of five gradients, whatever other settings there are.
    alone = descend(data, rng, clip_norm=2.0).release()
    noise = full_batch_noise_std(clip_norm=1.0, rho=BUDGET.rho, sample_size=N, gradients=5)
    assert alone.budget.rho == pytest.approx(BUDGET.rho, rel=1e-12)
    assert noise < run.gradient_noise_std[1]
    assert first.budget.rho == pytest.approx(BUDGET.rho, rel=1e-12)
    assert_array_equal(first.value, run.iterates[1])
    assert_array_equal(run.release(1).value, first.value)
    for other in (0, (0,)):
        with pytest.raises(ValueError, match="was released already"):
            run.release(other)
    for wrong in (2, (0, 0), -1, 0.5, True):
        with pytest.raises(ValueError, match="setting must be"):
            run.release(wrong)
    runs = sgd(data, rng, clip_norms=[0.5, 1.0])
    runs.release((0, 1))
    with pytest.raises(ValueError, match="settings share noise"):
        runs.release((0, 0))
    with pytest.raises(ValueError, match="schedule must have one amplitude"):
        OnePassDPGD(Polynomial([1.0, 2.0], 0.5), 1.0)


def test_the_first_setting_must_exist_as_well():
    for wrong in (2, (0, 1), (2, 0), ()):
        with pytest.raises(ValueError, match="setting must be"):
            OneOfMany((2,)).take(wrong)


def test_what_has_no_guarantee_is_not_released(data, rng):
    with pytest.raises(ValueError, match="setting must add noise"):
        sgd(data, rng, gradient_noise_stds=[0.0]).release()
    with pytest.raises(ValueError, match="setting must add noise"):
        descend(data, rng, clip_norm=1.0, rho=np.inf).release()
    with pytest.raises(ValueError, match="neighbours must be 'replace-one' or 'zero-out'"):
        sgd(data, rng).release(neighbours="add-remove")


def test_beside_a_setting_without_clipping_nothing_is_released(data, rng):
    """One row of 1e60 ends the whole run, which tells of it in the others' place."""
    options = {"step_size": 0.1, "gradient_noise_std": 1.0, "steps": 2, "rng": rng}
    for bounds in ([np.inf], [1.0, np.inf]):
        for run, setting in (
            (full_batch_dpgd(data, clip_norm=bounds, **options), 0),
            (sgd(data, rng, clip_norms=bounds), (0, 0)),
        ):
            with pytest.raises(ValueError, match="with only finite clip norms"):
                run.release(setting)
    features = data.features.copy()
    features[0] = 1e60
    beyond = ArraySamples(features, data.labels)
    with pytest.raises(ValueError, match="clip_norm must be all finite or all infinite"):
        full_batch_dpgd(beyond, clip_norm=[1.0, np.inf], **options)
    with pytest.raises(ValueError, match="features must have rows"):
        sgd(beyond, rng, clip_norms=[1.0, np.inf])
    assert np.all(np.isfinite(full_batch_dpgd(beyond, clip_norm=[1.0, 2.0], **options).iterates))
    assert np.all(np.isfinite(sgd(beyond, rng, clip_norms=[1.0, 2.0]).iterate))


def test_diagnostics_of_runs_stay_in_the_house(data, rng):
    bounds = adassp.bounds_from_data(data)
    sums = adassp.clipped_sums(data, bounds=bounds.non_private)
    runs = [descend(data, rng, clip_norm=1.0), sgd(data, rng)]
    for secret in (bounds, *runs, sums, ols(data), data, [ols(data)]):
        with pytest.raises(ValueError, match="value must be private throughout"):
            Release(secret, BUDGET)
    assert isinstance(runs[0].clipped_fraction, Diagnostic)
    assert isinstance(runs[1].risk, Diagnostic)
    with pytest.raises(ValueError, match="bounds must be"):
        adassp.clipped_sums(data, bounds=bounds)
    with pytest.raises(ValueError, match="noise must be Secret"):
        AdaSSP().run(data, BUDGET, declared=Declared(bounds.non_private), noise=3)


ROUTES = [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]


@pytest.mark.parametrize("route", [*ROUTES, dataclasses.replace])
@pytest.mark.parametrize("algorithm", ["noisy SGD", "full batch"])
def test_a_copied_run_releases_one_setting_at_its_price(data, rng, algorithm, route):
    """Two settings share their noise, and their difference would hold none of it."""
    if algorithm == "noisy SGD":
        run, settings = sgd(data, rng, clip_norms=[0.5, 1.0]), ((0, 0), (0, 1))
    else:
        run, settings = descend(data, rng, clip_norm=np.array([1.0, 2.0])), (0, 1)
    other = route(run)
    price = run.release(settings[0]).budget
    with pytest.raises(ValueError, match="setting must be"):
        other.release(settings[1])
    again = route(run)
    held = again.clip_norms if algorithm == "noisy SGD" else again.clip_norm
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        held.flags.writeable = True
    assert again.release(settings[0]).budget == price
    with pytest.raises(ValueError, match="was released already"):
        again.release(settings[1])
    alone = descend(data, rng, clip_norm=1.0)
    assert route(alone).release().budget == alone.release().budget
