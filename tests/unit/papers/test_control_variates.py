"""Control variates of simulated runs: exactly zero mean, the runs unchanged, variance explained."""

import itertools

import numpy as np
import pytest

from privreg.methods.adassp import AdaSSP
from privreg.methods.correlated_noise import CorrelatedNoise
from privreg.methods.full_batch_dpgd import FullBatchDPGD
from privreg.methods.huber import PrivateHuber
from privreg.methods.method import Declared
from privreg.methods.one_pass_dpgd import OnePassDPGD
from privreg.methods.problem import LABEL_NOISE_LAWS
from privreg.privacy.budget import Budget
from privreg.schedules import Harmonic, Polynomial
from reproduction.studies.control_variates import Sample, run_with_control
from reproduction.studies.experiments.prediction import controlled
from reproduction.studies.private_runs import draw, excess_risk, problem_of

METHODS = (
    FullBatchDPGD(7, 0.5, 2.0),
    OnePassDPGD(Harmonic(4.0, 0.1), 0.8),
    OnePassDPGD(Polynomial(3.0, 0.5), 0.8),
    CorrelatedNoise(20, 0.1, 1.5, 0.05),
    AdaSSP(),
    PrivateHuber(moment_share=0.0, common_width=False),
    PrivateHuber(clip_width=0.7),
)
BUDGET = Budget.zcdp(0.02)


def generator(*seed):
    return np.random.Generator(np.random.SFC64(seed))


def sample(*seed, rows=2000, law="gaussian", noise_law="laplace"):
    spectrum = np.array([0.3, 1.0, 1.0])
    problem = problem_of(rows, spectrum, norm=1.0, noise=0.7, law=law, noise_law=noise_law)
    return Sample(problem, BUDGET, *draw(problem, generator(*seed)))


@pytest.mark.parametrize("method", METHODS, ids=lambda each: each.name)
def test_runs_and_the_generator_are_those_of_the_method(method):
    one, other, own = generator(1), generator(1), sample(2)
    found, _ = run_with_control(method, own, one, runs=2)
    declared = Declared.of(own.problem)
    expected = method.simulate(own.samples, BUDGET, other, declared=declared, runs=2)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert one.random() == other.random()


def test_the_mean_over_all_signs_of_the_errors_is_zero(monkeypatch):
    # Without private noise the mean is a finite sum: every row's error with either sign.
    problem = problem_of(8, np.array([0.5, 1.0]), norm=0.0, noise=0.7, law="gaussian")
    rows, labels = draw(problem, generator(5))
    infinite = Budget.zcdp(1e12)
    for method in (FullBatchDPGD(3, 0.2, 0.9), AdaSSP(), OnePassDPGD(Harmonic(1.0, 1.0), 0.8)):
        controls = np.array(
            [
                run_with_control(
                    method, Sample(problem, infinite, rows, labels * signs), generator(6), runs=1
                )[1][0]
                for signs in itertools.product((-1.0, 1.0), repeat=8)
            ]
        )
        assert np.std(controls) > 0
        assert abs(controls.mean()) < 1e-9 * np.abs(controls).max()


@pytest.mark.parametrize("method", METHODS, ids=lambda each: each.name)
def test_the_mean_over_the_private_noise_is_known(method):
    # Given the rows, controls are a number of theirs plus noise of mean zero; so is the number
    # of other rows: the mean over both is zero.
    controls = np.concatenate(
        [run_with_control(method, sample(7, k), generator(8, k), runs=4)[1] for k in range(80)]
    ).reshape(80, 4)
    means = controls.mean(axis=1)
    assert abs(means.mean()) < 4 * means.std(ddof=1) / np.sqrt(len(means))


@pytest.mark.parametrize("method", METHODS, ids=lambda each: each.name)
def test_controls_rise_with_the_risk(method):
    risks, controls = [], []
    noise_law = LABEL_NOISE_LAWS[METHODS.index(method) % len(LABEL_NOISE_LAWS)]
    for k in range(60):
        own = sample(9, k, noise_law=noise_law)
        found, control = run_with_control(method, own, generator(10, k), runs=1)
        risks.append(excess_risk(own.problem, found)[0])
        controls.append(control[0])
    ranks = [np.argsort(np.argsort(each)) for each in (risks, controls)]
    # Four standard errors of the correlation of ranks where there is none.
    assert np.corrcoef(*ranks)[0, 1] > 4 / np.sqrt(59)


def test_coefficients_of_the_other_trials_leave_no_bias_and_find_a_linear_part():
    rng = generator(11)
    control = rng.standard_normal((4000, 6))
    value = 1.0 + 2.0 * control + 0.1 * rng.standard_normal(control.shape)
    # One run a trial: its moments are its own squares.
    found = controlled(value, control, control**2, value * control)
    errors = found.mean(axis=1) - 1.0
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(len(errors))
    assert np.median(np.abs(errors)) < 0.2 * np.median(np.abs(value.mean(axis=1) - 1.0))
