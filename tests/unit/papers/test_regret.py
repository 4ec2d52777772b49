"""Settings as text, cases and the choice of a grid's best."""

import numpy as np
import pytest

from privreg.methods.adassp import AdaSSP
from privreg.methods.correlated_noise import CorrelatedNoise
from privreg.methods.full_batch_dpgd import FullBatchDPGD
from privreg.methods.huber import PrivateHuber
from privreg.methods.one_pass_dpgd import OnePassDPGD
from privreg.schedules import Harmonic, Polynomial
from reproduction.studies.regret import risks, synthetic_case
from reproduction.studies.written_methods import from_text, to_text

METHODS = (
    None,
    PrivateHuber(clip_width=0.7, common_width=False),
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


def test_settings_are_judged_on_the_same_rows_and_noise():
    case = synthetic_case(0, 3000)
    method = FullBatchDPGD(4, 0.4, 2.0)
    found = risks(case, [method, None, method], np.random.Generator(np.random.SFC64(3)))
    assert found[0] == found[2] != found[1] == case.truth.null_risk
