"""A search goes on beyond the edge of its grid, and not where its best lies inside."""

import numpy as np
import pytest

from privreg.algorithms.huber_settings import best_clip_width
from privreg.estimators.outlook import _floor, problem_in_bounds
from privreg.planning.least_budget import MARGIN, least_budget
from privreg.planning.plan import plan_run
from privreg.prediction.problem import Problem
from privreg.privacy.budget import Budget


def test_a_budget_below_the_smallest_that_was_tried_is_found():
    many = Problem(10**9, np.ones(2), signal=1.0, label_noise_std=1.0)
    target = {"methods": ["full_batch"]}
    plan = least_budget(many, target_risk=1e-6, **target)
    assert plan.budget.rho < 5e-8
    assert plan.best.predictions[0].excess_risk <= 1e-6 / MARGIN
    # Half of it is too little, or so little that no prediction holds.
    less = plan_run(many, plan.budget.share(0.5), **target).best
    assert not less.holds or less.predictions[0].excess_risk > 1e-6 / MARGIN


def test_a_target_that_any_budget_meets_is_said_to_be_one():
    problem = Problem(1000, np.ones(2), signal=1.0, label_noise_std=1.0)
    plan = least_budget(problem, target_risk=50.0, methods=["one_pass_harmonic", "adassp"])
    assert plan.budget.rho == pytest.approx(1e-12)
    assert plan.verdict.startswith("The least budget that is searched, 1e-12, meets the target.")


def test_a_target_that_a_very_large_budget_meets_is_met():
    problem = Problem(1000, np.ones(10), signal=1.0, label_noise_std=1.0)
    plan = least_budget(problem, target_risk=0.00556, methods=["full_batch"])
    assert plan.budget.rho > 1e3


@pytest.mark.parametrize("price", [0.0, 1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6, 1e100])
def test_the_ends_of_the_clip_widths_are_limits(price):
    """Beyond either declared end the criterion gains less than three hundredths."""
    from scipy.special import ndtr

    def criterion(width):
        inside = 2 * ndtr(width) - 1
        density = np.exp(-(width**2) / 2) / np.sqrt(2 * np.pi)
        square = inside - 2 * width * density + width**2 * (1 - inside)
        return (square + price * width**2) / inside**2

    everywhere = np.min(criterion(np.geomspace(1e-3, 30, 4000)))
    declared = np.geomspace(0.25, 2.5, 200)
    assert np.min(criterion(declared)) < 1.03 * everywhere
    assert declared[0] <= best_clip_width(price) <= declared[-1]


@pytest.mark.parametrize("rho", [1e-12, 1e-4, 1.0, 1e6])
def test_the_bound_that_a_fit_is_compared_with_has_no_edge(rho):
    """Clip widths from 0.1 to 4 hold the least value to a hundredth, whatever noise costs."""
    problem = problem_in_bounds(10_000, 5, 0.5)
    price = 4 * 5 / (2 * 10_000 * rho)
    width = np.geomspace(1e-3, 40, 4000)
    from privreg.prediction.clipping import clipped_moments

    share, square = clipped_moments(width, np.ones_like(width))
    least = np.min((square + price * width**2) / share**2)
    least *= problem.label_noise_std**2 * 5 / (2 * 10_000)
    assert _floor(problem, Budget.zcdp(rho)) == pytest.approx(least, rel=0.01)
