"""A search goes on beyond the edge of its grid, and not where its best lies inside."""

import numpy as np
import pytest
from scipy.special import ndtr

from privreg.algorithms.huber_descent import best_clip_width
from privreg.planning.grid_edges import beyond, next_on
from privreg.planning.least_budget import MARGIN, least_budget
from privreg.planning.plan import plan_run
from privreg.prediction.problem import Problem


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


@pytest.mark.parametrize("price", [0.0, 1e-3, 1.0, 1e6])
def test_the_ends_of_the_clip_widths_are_limits(price):
    """Beyond either declared end the criterion gains less than three hundredths."""

    def criterion(width):
        inside = 2 * ndtr(width) - 1
        density = np.exp(-(width**2) / 2) / np.sqrt(2 * np.pi)
        square = inside - 2 * width * density + width**2 * (1 - inside)
        return (square + price * width**2) / inside**2

    everywhere = np.min(criterion(np.geomspace(1e-3, 30, 4000)))
    declared = np.geomspace(0.25, 2.5, 200)
    assert np.min(criterion(declared)) < 1.03 * everywhere
    assert declared[0] <= best_clip_width(price) <= declared[-1]


@pytest.mark.parametrize(
    ("ladder", "value", "expected"),
    [
        ((0.1, 0.2, 0.4), 0.4, 0.8),
        ((0.1, 0.2, 0.4), 0.1, 0.05),
        ((0.1, 0.2, 0.4), 0.2, None),
        ((2, 3, 5), 5, 7),
        ((2, 3, 5), 4, None),
    ],
)
def test_a_ladder_goes_on_as_it_ended(ladder, value, expected):
    assert next_on(ladder, value) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("worthless", [np.nan, 0.995])
def test_the_way_out_ends_where_nothing_is_gained(worthless):
    found = beyond(0, 1.0, further=lambda x: x + 1, value=lambda _: worthless)
    assert found == (0, 1.0)
