"""Methods through their protocol alone: all of the library's, and one more that is one class."""

import json
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from privreg import planning
from privreg.algorithms.adassp import Bounds
from privreg.algorithms.samples import ArraySamples
from privreg.command_line.main import main
from privreg.estimators.linear_regression import PrivateLinearRegression
from privreg.estimators.outlook import problem_in_bounds
from privreg.methods.method import Candidates, Declared, Fit, Method
from privreg.methods.one_pass_dpgd import OnePassDPGD
from privreg.methods.problem import Prediction, Problem, Regime
from privreg.planning import least_budget, plan_run
from privreg.privacy.budget import Budget, Neighbours, sum_sensitivity
from privreg.privacy.release import Seeded
from privreg.schedules import Harmonic
from reproduction.studies.written_methods import from_text, to_text

BUDGET = Budget.zcdp(0.5)
PROBLEM = Problem(20_000, np.ones(4), signal=1.0, label_noise_std=1.0)


# --8<-- [start:method]
@dataclass(frozen=True)
class NoisyMoment(Method):
    """The mean of x y with Gaussian noise: least squares where features are known to be white.

    Rows are shortened to the length B and labels clipped to L, so that the noise has standard
    deviation Δ/(n√(2ρ)) with Δ = 2BL under replace-one.
    """

    name = "noisy_moment"
    relations = frozenset({Neighbours.REPLACE_ONE, Neighbours.ZERO_OUT})
    gaussian_dp = True
    shrink: float = 1.0

    @classmethod
    def candidates(cls, problem, budget, *, intervals=True):
        return [Candidates(cls.name, [cls(shrink) for shrink in (0.5, 0.9, 1.0)])]

    def _prepare(self, samples, budget, declared):
        bounds, n = declared.require_bounds(self.name), samples.sample_size
        total = np.zeros(samples.dimension)
        for features, labels, norms in samples.chunks():
            short = np.minimum(1.0, bounds.feature_norm / np.maximum(norms, 1e-300))
            total += (features * short[:, None]).T @ np.clip(labels, -bounds.label, bounds.label)
        std = self._noise_std(bounds, n, budget)
        return lambda rng: Fit(
            self.shrink * (total / n + std * rng.standard_normal(total.size))[None],
            (("moment", budget),),
        )

    @staticmethod
    def _noise_std(bounds, n, budget):
        change = sum_sensitivity(bounds.feature_norm * bounds.label, neighbours=budget.neighbours)
        return float(change) / (n * budget.root)

    @classmethod
    def _predict(cls, settings, problem, rows, budget):
        found = []
        bounds = Bounds(problem.feature_norm, problem.label_bound)
        noise = cls._noise_std(bounds, problem.sample_size, budget) ** 2
        # Var(x_j y) for Gaussian rows: the label's variance and the coordinate's own.
        sampling = (problem.label_std**2 + problem.signal**2) / problem.sample_size
        for each in settings:
            variance = each.shrink**2 * (sampling + noise)
            error = variance + (1 - each.shrink) ** 2 * problem.signal**2
            risk = float(problem.eigenvalues @ error / 2)
            length = float(2 * 1.96 * np.sqrt(np.mean(variance)))
            found.append(
                Prediction(
                    excess_risk=risk,
                    excess_risk_std=risk * (2 / problem.dimension) ** 0.5,
                    parameter_error=float(error.sum()),
                    interval_length=length,
                    null_risk=problem.null_risk,
                    regime=Regime.EXTENDED,
                    reason="white features",
                )
            )
        # A moment has no misfit.
        return lambda _: found


# --8<-- [end:method]
@pytest.fixture
def another(monkeypatch):
    monkeypatch.setattr(planning, "METHODS", (*planning.METHODS, NoisyMoment))


def gaussian_rows(problem, rng):
    rows = np.sqrt(problem.eigenvalues) * rng.standard_normal(
        (problem.sample_size, problem.dimension)
    )
    noise = problem.label_noise_std * rng.standard_normal(problem.sample_size)
    return ArraySamples(rows, rows @ problem.signal + noise)


def test_another_method_is_predicted_and_run(rng):
    """Bounds of 3√p and 5 deviations clip next to nothing, so that the law is known."""
    wide = Problem(
        20_000, np.ones(4), signal=1.0, label_noise_std=1.0, feature_norm=6.0, label_bound=7.0
    )
    predicted = NoisyMoment().predict(wide, BUDGET)
    declared = Declared.of(wide)
    errors = []
    for seed in range(60):
        samples = gaussian_rows(wide, rng)
        released = NoisyMoment().run(samples, BUDGET, declared=declared, noise=Seeded(seed))
        errors.append(np.sum((released.value.parameters - wide.signal) ** 2))
    standard_error = np.std(errors, ddof=1) / np.sqrt(len(errors))
    assert np.mean(errors) == pytest.approx(predicted.parameter_error, abs=4 * standard_error)
    assert standard_error < 0.15 * predicted.parameter_error
    assert released.budget == BUDGET


def test_another_method_is_planned_and_told_a_budget(another):
    plan = plan_run(PROBLEM, BUDGET, methods=["noisy_moment", "adassp"])
    chosen = {each.name: each for each in plan.alternatives}["noisy_moment"].method
    # Of three candidates the one of least predicted error.
    risks = [NoisyMoment(each).predict(PROBLEM, BUDGET).excess_risk for each in (0.5, 0.9, 1.0)]
    assert chosen.predict(PROBLEM, BUDGET).excess_risk == min(risks)
    assert "shrink" in str(plan)
    assert least_budget(PROBLEM, target_risk=0.01, methods=["noisy_moment"]).budget.rho > 0
    with pytest.raises(ValueError, match="budget must have a neighbouring relation that noisy_m"):
        plan_run(PROBLEM, Budget.zcdp(0.5, neighbours="add-remove"), methods=["noisy_moment"])


def test_another_method_is_on_the_command_line(another, capsys):
    problem = ["--sample-size", "20000", "--dimension", "4", "--rho", "0.5"]
    words = ["--method", "noisy_moment", "--set", "shrink=0.9", "--json"]
    assert main(["predict", *problem, *words]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["excess_risk"] == NoisyMoment(0.9).predict(PROBLEM, BUDGET).excess_risk
    assert main(["plan", *problem, "--methods", "noisy_moment"]) == 0
    assert "noisy_moment" in capsys.readouterr().out


def test_another_method_is_fitted(rng):
    features = rng.uniform(-1, 1, (4000, 2))
    labels = features @ [0.5, -0.5]
    model = PrivateLinearRegression(
        Budget.zcdp(1e4),
        feature_bounds=(-1, 1),
        label_bounds=(-1, 1),
        settings=NoisyMoment(),
        fit_intercept=False,
        random_state=1,
    ).fit(features, labels)
    # E x y = θ/3 for uniform features.
    assert model.coef_ == pytest.approx(features.T @ labels / 4000, abs=0.01)


@dataclass(frozen=True)
class Counted(NoisyMoment):
    steps: int = 1


def test_a_command_s_whole_numbers_are_whole_in_any_file():
    """With annotations as text, as in the library, and as types, as here."""
    assert isinstance(Counted.from_numbers({"steps": 3.0}, PROBLEM, BUDGET).steps, int)
    found = planning.by_name()["correlated_noise"].from_numbers(
        {"batch_size": 3.0, "step_size": 1.0, "clip_norm": 1.0, "damping": 1.0}, PROBLEM, BUDGET
    )
    assert isinstance(found.batch_size, int)


# Two schedules of one method are enough.
KINDS = set(planning.searched()) - {"one_pass_constant", "one_pass_linear"}


@pytest.mark.parametrize("name", sorted(KINDS))
@pytest.mark.filterwarnings("ignore:not private")
def test_what_a_plan_finds_best_is_run_and_fitted(name, rng):
    """A plan in the units of the bounds; the fit's error is that of the plan's prediction."""
    n, p, budget = 20_000, 3, Budget.zcdp(0.5)
    problem = problem_in_bounds(n, p + 1, 0.65)
    best = plan_run(problem, budget, methods=[name]).best
    assert best.holds
    model = PrivateLinearRegression(
        budget,
        feature_bounds=(-4, 4),
        label_bounds=(-4, 4),
        settings=best.method,
        random_state=3,
    )
    features = rng.standard_normal((n, p))
    theta = np.full(p, np.sqrt(0.65 / p))
    labels = features @ theta + np.sqrt(0.35) * rng.standard_normal(n)
    model.fit(features, labels)
    assert model.settings_ == best.method
    assert model.outlook_.worthwhile
    # Half the squared error over that of predicting the mean: within six deviations of a run.
    missed = np.sum((model.coef_ - theta) ** 2) / 0.65
    most = best.predictions[0].excess_risk + 6 * best.predictions[0].excess_risk_std
    assert missed < most / problem.null_risk
    assert sum(spent.rho for _, spent in model.privacy_.spending) == pytest.approx(budget.rho)
    intervals = model.confidence_intervals()
    known = type(best.method).has_intervals
    assert bool(np.all(np.isfinite(intervals.half_width))) is known
    assert not np.any(np.isnan([intervals.centre, intervals.lower, intervals.upper]))
    report = model.report()
    assert ("No intervals are known" in report) is not known
    assert "nan" not in report
    assert str(best.method) in report


@pytest.mark.parametrize("method", planning.METHODS, ids=lambda each: each.name)
def test_every_method_keeps_the_protocol(method, rng):
    assert method.relations <= frozenset(Neighbours)
    names = method.searched()
    budget = Budget.zcdp(0.5)
    found = list(method.candidates(PROBLEM, budget))
    assert tuple(each.name for each in found) == names
    for candidates in found:
        settings = candidates.settings(candidates.starts[0])
        assert type(settings) is method
        assert candidates.clip is None or getattr(settings, candidates.clip) > 0
        assert from_text(to_text(settings)) == settings
    samples, declared = gaussian_rows(PROBLEM, rng), Declared.of(PROBLEM)
    run = partial(settings.run, samples, budget, declared=declared)
    released, again = run(noise=Seeded(7)), run(noise=Seeded(7))
    assert released.budget == budget
    assert set(method.assumptions) <= set(released.assumptions)
    assert np.array_equal(released.value.iterates, again.value.iterates)
    assert released.value.parameters.shape == (PROBLEM.dimension,)
    # The law that is simulated is that of a run: the same stream gives the same estimate.
    drawn = settings.simulate(samples, budget, Seeded(7).generator(), declared=declared, runs=1)
    assert np.array_equal(drawn[0], released.value.parameters)


@pytest.mark.parametrize("relation", Neighbours, ids=lambda each: each.value)
@pytest.mark.parametrize("method", planning.METHODS, ids=lambda each: each.name)
def test_relations_and_groups_that_are_not_covered_are_refused_before_noise(method, relation, rng):
    settings = next(iter(method.candidates(PROBLEM, BUDGET)))
    settings = settings.settings(settings.starts[0])
    budget = Budget.zcdp(0.5, neighbours=relation)
    samples, declared = gaussian_rows(PROBLEM, rng), Declared.of(PROBLEM)
    groups = np.arange(PROBLEM.sample_size) // 2
    model = PrivateLinearRegression(
        budget, feature_bounds=(-4, 4), label_bounds=(-8, 8), settings=settings
    )
    if relation not in method.relations:
        message = f"neighbours with {method.name}"
        refused = [
            lambda: settings.predict(PROBLEM, budget),
            lambda: settings.run(samples, budget, declared=declared),
            lambda: settings.simulate(samples, budget, rng, declared=declared),
            lambda: model.fit(samples.features, samples.labels),
        ]
    else:
        message = "groups must be None"
        refused = [
            lambda: settings.run(samples, budget, declared=Declared(groups=groups)),
            lambda: model.fit(samples.features, samples.labels, groups=groups),
        ] * (not method.takes_groups)
        assert settings.predict(PROBLEM, budget).excess_risk > 0
        assert settings.run(samples, budget, declared=declared).budget == budget
    for call in refused:
        with pytest.raises(ValueError, match=message) as caught:
            call()
        # Nothing was spent.
        assert not getattr(caught.value, "__notes__", ())


@pytest.mark.filterwarnings("ignore:.*predicting the mean")
def test_exact_accounting_is_for_methods_that_only_add_gaussian_noise(rng):
    features, stated = rng.standard_normal((2000, 2)), Budget.approximate(2.0, 1e-6)
    for method, exact in ((OnePassDPGD(Harmonic(20.0, 0.1), 0.2), False), (None, True)):
        privacy = (
            PrivateLinearRegression(
                stated, feature_bounds=(-4, 4), label_bounds=(-8, 8), settings=method
            )
            .fit(features, features @ [1.0, -1.0])
            .privacy_
        )
        assert privacy.rho == (stated.gaussian().rho if exact else stated.rho)
        assert np.isfinite(privacy.mu) is np.bool_(exact)
        # A stated ε becomes ρ to a relative 1e-9.
        assert privacy.epsilon(1e-6) == pytest.approx(2.0, abs=1e-8)
        assert "(2, 1e-06)-differentially private" in privacy.sentence


def test_bounds_and_a_finite_budget_are_needed(rng):
    samples = gaussian_rows(PROBLEM, rng)
    for name in ("huber", "least_squares", "adassp"):
        first = next(iter(planning.by_name()[name].candidates(PROBLEM, BUDGET)))
        with pytest.raises(ValueError, match=f"bounds must be declared with {name}"):
            first.starts[0].run(samples, BUDGET)
    with pytest.raises(ValueError, match="budget must be finite"):
        NoisyMoment().run(samples, Budget.zcdp(np.inf), declared=Declared.of(PROBLEM))
