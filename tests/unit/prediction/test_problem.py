"""A problem: what it derives, what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

from privreg.methods.clipping import slope_shift, whole_labels
from privreg.methods.least_squares import predicted_length
from privreg.methods.problem import Problem, rows_of
from privreg.privacy.budget import Budget


def test_null_risk_and_label_std():
    problem = Problem(100, [1.0, 4.0], signal=[3.0, 0.5], label_noise_std=2.0)
    assert problem.null_risk == pytest.approx((9 + 1) / 2)
    assert problem.label_std == pytest.approx(np.sqrt(10 + 4))
    assert problem.label_bound == pytest.approx(4 * problem.label_std)
    assert problem.feature_norm == pytest.approx(np.sqrt(10))


def test_a_signal_norm_is_spread_evenly():
    problem = Problem(100, np.ones(16), signal=2.0, label_noise_std=1.0)
    np.testing.assert_allclose(problem.signal, 0.5)


def test_over_keeps_the_declared_bounds():
    base = Problem(100, np.ones(4), signal=1.0, label_noise_std=2.0)
    found = base.over(signal=(0.5, 2.0), label_noise_std=(1.0, 3.0))
    assert [(each.signal[0], each.label_noise_std) for each in found] == [
        (0.25, 2.0),
        (0.25, 6.0),
        (1.0, 2.0),
        (1.0, 6.0),
    ]
    assert {each.label_bound for each in found} == {base.label_bound}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sample_size": 1}, "sample_size must be"),
        ({"eigenvalues": [1.0, -1.0]}, "eigenvalues must be"),
        ({"eigenvalues": [1.0, np.nan]}, "eigenvalues must be"),
        ({"signal": [1.0, 2.0, 3.0]}, "signal must have shape"),
        ({"signal": np.nan}, "signal must be"),
        ({"label_noise_std": 0.0}, "label_noise_std must be"),
        ({"feature_law": "gausian"}, "did you mean 'gaussian'"),
        ({"feature_law": "one_hot"}, "sum to 1"),
        ({"feature_norm": -1.0}, "feature_norm must be"),
        ({"label_bound": np.inf}, "label_bound must be"),
        ({"label_noise_law": "cauchy"}, "label_noise_law must be"),
        ({"misfit": -0.1}, "misfit must be"),
    ],
)
def test_errors_name_the_argument(changes, message):
    stated = {"sample_size": 100, "eigenvalues": [1.0, 2.0], "signal": 1.0, "label_noise_std": 1.0}
    with pytest.raises(ValueError, match=message):
        Problem(**(stated | changes))


@pytest.mark.parametrize(("law", "mean"), [("binary", 0.1), ("poisson", 0.07)])
def test_the_mean_of_labels_that_are_whole_numbers_follows_from_their_variance(law, mean):
    found = Problem(100, [1.0], signal=0.02**0.5, label_noise_std=0.07**0.5, label_noise_law=law)
    assert found.label_noise_law == f"{law}_{mean:.6f}"
    assert replace(found, signal=[9.0]).label_noise_law == found.label_noise_law
    values, chances = whole_labels(found.label_noise_law)
    assert [values @ chances, values**2 @ chances] == pytest.approx([0, 1])
    for stated in ("binary", "binary_1.5", "binary_x"):
        with pytest.raises(ValueError, match="must be"):
            replace(found, label_noise_std=0.6, label_noise_law=stated)


@pytest.mark.parametrize("law", ["exponential", "lognormal"])
def test_a_skewed_law_of_the_label_noise_is_refused_with_what_predicts_it(law):
    with pytest.raises(ValueError, match=r"symmetric.*predicted_length"):
        Problem(1000, [1.0, 1.0], signal=1.0, label_noise_std=1.0, label_noise_law=law)
    problem = Problem(1000, [1.0, 1.0], signal=1.0, label_noise_std=1.0)
    with pytest.raises(ValueError, match=r"label_noise_law must be symmetric"):
        problem.over(noise_shapes=[(law, 0.0)])
    assert predicted_length(problem, Budget.zcdp(0.5), errors=law).length > 1


def test_a_clip_changes_slopes_of_labels_0_and_1_by_their_equation():
    """The clipped residual is w at a label 1 and -(m + g) at a label 0, of mean m + f and slope g.

    Its mean rises by w + m with f, and falls by 1 - m with g.
    """
    m, w = 0.39, 0.5
    law = {"label_noise_law": f"binary_{m}", "label_noise_std": np.sqrt(m * (1 - m))}
    case = Problem(1000, [1.0], signal=1e-9, label_bound=1.0, **law)
    rows = rows_of(case)
    shift = slope_shift(case, rows, np.full((1, len(rows.norms)), w))
    assert shift == pytest.approx([(w + m) / (1 - m) - 1], rel=1e-6)
