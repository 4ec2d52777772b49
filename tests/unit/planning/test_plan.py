"""Plans: what is chosen, what is said, what is refused."""

import json

import numpy as np
import pytest
from scipy.special import ndtr

from privreg import planning
from privreg.algorithms.huber_descent import best_clip_width
from privreg.methods.full_batch_dpgd import FullBatchDPGD
from privreg.methods.method import Candidates
from privreg.methods.problem import Problem
from privreg.planning import (
    MARGIN,
    WORTH,
    draw,
    least_budget,
    plain,
    plan_run,
)
from privreg.privacy.budget import Budget

QUICK = ("full_batch", "adassp")


def problem(n=5000, p=10, **changes):
    stated = {"signal": 1.0, "label_noise_std": 1.0} | changes
    return Problem(n, np.ones(p), **stated)


def test_the_best_comes_first_and_is_what_predict_says():
    case, budget = problem(), Budget.zcdp(0.2)
    plan = plan_run(case, budget)
    assert {each.name for each in plan.alternatives} == set(planning.searched())
    held = [each for each in plan.alternatives if each.holds]
    assert plan.alternatives[: len(held)] == tuple(held)
    assert [each.regret for each in held] == sorted(each.regret for each in held)
    assert plan.best.regret == pytest.approx(1.0)
    alone = plan.best.method.predict(case, budget)
    assert plan.best.predictions[0].excess_risk == pytest.approx(alone.excess_risk)
    assert plan.worthwhile
    for rows, rho, verdict in ((5000, 0.2, "at most"), (100, 1e-4, "not"), (60, 0.2, "predicted:")):
        assert verdict in plan_run(problem(rows), Budget.zcdp(rho), methods=QUICK).verdict


def test_the_search_finds_what_a_fine_grid_finds():
    case, budget = problem(p=20), Budget.zcdp(0.02)
    found = plan_run(case, budget, methods=["full_batch"]).best.predictions[0].excess_risk
    unit = np.sqrt(20)
    grid = [
        FullBatchDPGD(steps, size, clip * unit)
        for steps in (2, 3, 5, 8, 12, 20, 35)
        for size in np.geomspace(0.2, 2.5, 10)
        for clip in np.geomspace(0.2, 4, 10)
    ]
    of_grid = FullBatchDPGD.predictions(grid, case, budget)
    best = min(each.excess_risk for each in of_grid if each.holds)
    # Up to a tenth goes to a wider clip than is best where errors are as stated.
    assert best * 0.95 < found < (WORTH + 0.05) * best


def test_over_a_range_no_case_is_forgotten():
    cases = problem().over(signal=(0.5, 2.0), label_noise_std=(0.5, 2.0))
    budget = Budget.zcdp(0.1)
    plan = plan_run(cases, budget, methods=QUICK)
    assert len(plan.best.predictions) == 4
    # Settings that are best for one case do worse in another.
    least = [
        plan_run(each, budget, methods=QUICK).best.predictions[0].excess_risk for each in cases
    ]
    for case in cases:
        single = plan_run(case, budget, methods=QUICK).best.method
        found = [single.predict(each, budget) for each in cases]
        if all(each.holds for each in found):
            worst = max(np.divide([each.excess_risk for each in found], least))
            assert plan.best.regret <= worst * WORTH
    # What no single case would choose does better in all of them together.
    assert plan.best.regret < 3


def test_a_plan_says_what_each_target_costs_and_what_buys_the_shorter_one():
    cases = problem(n=10_000).over(noise_shapes=[("gaussian", 0.0), ("laplace", 0.0)])
    budget = Budget.approximate(1.0, 1e-6).gaussian()
    plan = plan_run(cases, budget, methods=["huber", "least_squares", "adassp"])
    assert plan.best.name == "huber"
    costs = {each.name: each for each in plan.targets}
    # Sufficient statistics have no intervals.
    assert costs.keys() == {"huber", "least_squares"}
    robust, squares = costs["huber"], costs["least_squares"]
    for shorter, longer in zip(robust.lengths, squares.lengths, strict=True):
        assert shorter < 0.85 * longer
    # Laplace's errors are of use to a robust fit, and cost least squares a wider clip.
    assert robust.lengths[1] < robust.lengths[0] < squares.lengths[0] < squares.lengths[1]
    assert "symmetric given the features, or independent" in robust.supposes
    assert squares.supposes == ""
    text = " ".join(str(plan).split())
    assert "Target: least squares if errors are symmetric" in text
    assert "Target: least squares." in text
    assert "laplace errors" in text
    assert plain(plan)["targets"][0]["lengths"] == plan.targets[0].lengths


def test_least_squares_is_planned_where_clipping_moves_the_target():
    stated = {"n": 100_000, "label_noise_law": "student_t3"}
    budget, methods = Budget.zcdp(0.5), ["huber", "least_squares"]
    assert plan_run(problem(**stated, misfit=0.3), budget, methods=methods).best.name == methods[1]
    assert plan_run(problem(**stated), budget, methods=methods).best.name == methods[0]


def test_relations_leave_methods_out():
    budget = Budget.zcdp(0.2, neighbours="add-remove")
    plan = plan_run(problem(), budget)
    kinds = planning.searched().items()
    able = {name for name, kind in kinds if budget.neighbours in kind.relations}
    assert {each.name for each in plan.alternatives} == able < set(planning.searched())


def test_table_numbers_and_picture_name_every_alternative():
    plan = plan_run(problem(), Budget.zcdp(0.2), methods=QUICK)
    text = str(plan)
    assert all(len(line) <= 100 for line in text.splitlines())
    text = " ".join(text.split())
    assert all(each.name in text for each in plan.alternatives)
    assert plan.verdict in text
    assert json.loads(json.dumps(plain(plan)))["alternatives"][0]["name"] == plan.best.name
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    draw(plan, axes)
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        each.name.replace("_", " ") for each in plan.alternatives
    ]


@pytest.mark.parametrize("target", [{"target_risk": 0.004}, {"target_length": 0.15}])
def test_the_least_budget_meets_its_target_and_less_does_not(target):
    plan = least_budget(problem(), **target, methods=["full_batch"])
    (name, wanted) = next(iter(target.items()))
    objective = "excess_risk" if name == "target_risk" else "interval_length"
    met = getattr(plan.best.predictions[0], objective)
    assert 0.9 * wanted / MARGIN < met <= wanted / MARGIN
    less = plan_run(problem(), plan.budget.share(0.9), methods=["full_batch"], objective=objective)
    assert getattr(less.best.predictions[0], objective) > wanted / MARGIN


@pytest.mark.parametrize(
    ("call", "changes", "message"),
    [
        (plan_run, {"methods": ["full_bach"]}, "did you mean 'full_batch'"),
        (plan_run, {"objective": "risk"}, "objective must be"),
        (plan_run, {"problems": []}, "problems must be a Problem or a list"),
        (plan_run, {"budget": 1.0}, "budget must be a Budget"),
        (
            plan_run,
            {"budget": Budget.zcdp(0.2, neighbours="add-remove"), "methods": ["one_pass_root"]},
            "budget must have a neighbouring",
        ),
        (least_budget, {"target_risk": 1e-5}, "target_risk must exceed"),
        (least_budget, {}, "target_risk or target_length must be given"),
    ],
)
def test_wrong_arguments_are_refused(call, changes, message):
    stated = {"problems": problem(), "methods": ["full_batch"]}
    stated |= {"budget": Budget.zcdp(1.0)} if call is plan_run else {}
    with pytest.raises(ValueError, match=message):
        call(**stated | changes)


def test_rounding_decides_between_no_settings():
    values = {1.0: 1.0, 2.0: 1 - 1e-12, 3.0: 1 - 1e-11, 4.0: 0.9}

    def best(moves):
        candidates = Candidates("ties", [1.0, 2.0], [lambda _: moves])
        return candidates.best(lambda tried: [values[each] for each in tried])

    assert best([3.0]) == 1.0
    assert best([3.0, 4.0]) == 4.0


def test_a_budget_below_the_smallest_that_was_tried_is_found():
    many = Problem(10**9, np.ones(2), signal=1.0, label_noise_std=1.0)
    target = {"methods": ["full_batch"]}
    plan = least_budget(many, target_risk=1e-6, **target)
    assert plan.budget.rho < 5e-8
    assert plan.best.predictions[0].excess_risk <= 1e-6 / MARGIN
    # Half of it is too little, or so little that no prediction holds.
    less = plan_run(many, plan.budget.share(0.5), **target).best
    assert not less.holds or less.predictions[0].excess_risk > 1e-6 / MARGIN


def test_a_budget_above_the_largest_that_is_first_tried_is_found():
    few, methods = problem(30, 4), ["adassp"]
    plans = [plan_run(few, Budget.zcdp(rho), methods=methods) for rho in (1e3, 1e9)]
    target = MARGIN * np.mean([each.best.predictions[0].excess_risk for each in plans])
    assert least_budget(few, target_risk=target, methods=methods).budget.rho > 1e3


def test_a_target_that_any_budget_meets_is_said_to_be_one():
    problem = Problem(1000, np.ones(2), signal=1.0, label_noise_std=1.0)
    plan = least_budget(problem, target_risk=50.0, methods=["one_pass_harmonic", "adassp"])
    assert plan.budget.rho == pytest.approx(1e-12)
    assert plan.verdict.startswith("The smallest budget searched, rho = 1e-12, meets the target.")


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
