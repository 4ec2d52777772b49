"""Settings as text, cases and the choice of a grid's best."""

import numpy as np
import pytest

from privreg.methods.adassp import AdaSSP
from privreg.methods.correlated_noise import CorrelatedNoise
from privreg.methods.full_batch_dpgd import FullBatchDPGD
from privreg.methods.one_pass_dpgd import OnePassDPGD
from privreg.methods.private_regression import PrivateRegression
from privreg.schedules import Harmonic, Polynomial
from reproduction.studies.plan_cases import synthetic_case, table_case
from reproduction.studies.regret import grid, risks
from reproduction.studies.written_methods import from_text, to_text

METHODS = (
    None,
    PrivateRegression(clip_width=0.7, common_width=False),
    FullBatchDPGD(7, 0.3, 2.5),
    OnePassDPGD(Harmonic(2.0, 0.1), 0.8),
    OnePassDPGD(Polynomial(3.0, 0.5), 0.8),
    CorrelatedNoise(20, 0.1, 1.5, 0.05),
    AdaSSP(0.1),
)


@pytest.mark.parametrize("method", METHODS)
def test_settings_come_back_from_text(method):
    assert to_text(from_text(to_text(method))) == to_text(method)
    assert type(from_text(to_text(method))) is type(method)


def test_a_grid_has_at_least_a_hundred_settings_of_every_kind():
    case = synthetic_case(0, 3000)
    methods = grid(case.truth, case.budget)
    assert len(methods) >= 100
    assert {type(each) for each in methods} == {type(each) for each in METHODS} - {type(None)}


def test_settings_are_judged_on_the_same_rows_and_noise():
    case = synthetic_case(0, 3000)
    method = FullBatchDPGD(4, 0.4, 2.0)
    found = risks(case, [method, None, method], np.random.Generator(np.random.SFC64(3)))
    assert found[0] == found[2] != found[1] == case.truth.null_risk


def test_a_table_is_its_own_population():
    rng = np.random.Generator(np.random.SFC64(4))
    features = rng.standard_normal((3000, 4)) @ rng.standard_normal((4, 4))
    labels = features @ [1.0, 2.0, 0.0, -1.0] + rng.standard_normal(3000)
    case = table_case("made up", features, labels, sample_size=500, rho=0.1)
    rows, drawn = case.draw(rng)
    assert rows.shape == (500, 4)
    assert drawn.shape == (500,)
    explained = 2 * case.truth.null_risk
    assert explained + case.truth.label_noise_std**2 == pytest.approx(1.0, rel=1e-9)
    assert [each.misfit > 0 for each in case.stated] == [False, True]
    for each in case.stated:
        assert each.label_std == pytest.approx(1.0, rel=1e-9)
