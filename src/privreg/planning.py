"""Plans: the best method and settings for a budget, judged on all stated problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from math import exp, log
from operator import attrgetter
from textwrap import fill
from typing import Any, Literal, get_args

import numpy as np

from privreg.checks import (
    require_choice,
    require_flag,
    require_instance,
    require_scale,
    rounded,
    short,
)
from privreg.methods.adassp import AdaSSP
from privreg.methods.correlated_noise import CorrelatedNoise
from privreg.methods.full_batch_dpgd import FullBatchDPGD
from privreg.methods.huber import PrivateHuber
from privreg.methods.least_squares import PrivateLeastSquares
from privreg.methods.method import Method
from privreg.methods.one_pass_dpgd import OnePassDPGD
from privreg.methods.problem import Prediction, Problem
from privreg.privacy.budget import Budget, Neighbours

METHODS: tuple[type[Method], ...] = (
    PrivateHuber,
    FullBatchDPGD,
    OnePassDPGD,
    CorrelatedNoise,
    AdaSSP,
    PrivateLeastSquares,
)
Objective = Literal["excess_risk", "parameter_error", "interval_length"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
# Number of rows of the features' law that a search uses.
SEARCH_ROWS = 192
# A doubtful prediction counts as worse than any that holds, but still shows a direction.
DOUBT = 1e6
# Factors by which a clip is widened, and what that may cost.
WIDENED, WORTH = (1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0), 1.1
# A method this many times worse than another one in a stated case is not searched in the others.
FAR = 2.5
# Predictions agree with simulations to 10 %: the target is met by this margin.
MARGIN = 1.1
# Start of the search, and the ends at which it stops if all budgets, or none, meet the target.
SMALLEST, LARGEST = 1e-7, 1e3
LEAST, MOST = 1e-12, 1e9
WIDER = log(1e3)
TOLERANCE, NEAR = 0.03, 1.5


def by_name() -> dict[str, type[Method]]:
    """Methods by their names."""
    return {method.name: method for method in METHODS}


def searched() -> dict[str, type[Method]]:
    """Methods by the names under which plans list their candidates."""
    return {name: method for method in METHODS for name in method.searched()}


@dataclass(frozen=True)
class Alternative:
    """A method with settings, ready to run, and its predicted errors.

    Attributes
    ----------
    name : str
        Name under which the method lists its candidates.
    method : Method
        Method with its settings; `Method.run` runs it.
    predictions : tuple of Prediction
        One prediction for each stated problem, in the order of the problems.
    lengths : tuple of float
        For each problem, the interval length divided by `Problem.least_squares_length`.
    regret : float
        Regret of the settings, as defined in `plan_run`.
    """

    name: str
    method: Method
    predictions: tuple[Prediction, ...]
    lengths: tuple[float, ...]
    regret: float

    @property
    def holds(self) -> bool:
        """True if the theory holds for every problem."""
        return all(each.holds for each in self.predictions)

    @property
    def worst(self) -> Prediction:
        """The prediction with the largest excess risk."""
        return max(self.predictions, key=attrgetter("excess_risk"))

    @property
    def supposes(self) -> str:
        """Assumption on errors under which the fit has least-squares slopes; empty if none."""
        return self.method.supposes


@dataclass(frozen=True)
class Plan:
    """Alternatives, each a method with settings, ordered from best to worst.

    Attributes
    ----------
    problems : tuple of Problem
        Problems on which all alternatives are judged.
    budget : Budget
        Budget that each alternative spends.
    alternatives : tuple of Alternative
        The best settings of each method. Alternatives for which the theory holds come first.
    worthwhile : bool
        True if the best alternative's predictions all hold and some beat predicting the mean.
    verdict : str
        The result in one sentence.
    """

    problems: tuple[Problem, ...]
    budget: Budget
    alternatives: tuple[Alternative, ...]
    worthwhile: bool
    verdict: str

    @property
    def best(self) -> Alternative:
        """The alternative to run."""
        return self.alternatives[0]

    @property
    def targets(self) -> tuple[Alternative, ...]:
        """Alternatives whose methods have intervals."""
        return tuple(each for each in self.alternatives if each.method.has_intervals)

    def __str__(self) -> str:
        null = max(problem.null_risk for problem in self.problems)
        said = f"Excess risk of predicting the mean: {rounded(null, 3)}. {self.verdict}"
        lines = [fill(each, 100) for each in (said, *map(self._cost, self.targets))]
        return "\n".join([_table(self.alternatives), "", *lines])

    def _cost(self, target: Alternative) -> str:
        lengths = [
            f"{rounded(length, 3)} ({problem.label_noise_law.replace('_', ' ')} errors)"
            for length, problem in zip(target.lengths, self.problems, strict=True)
        ]
        # Corners that share a law and a length are said once.
        told = f"{', '.join(dict.fromkeys(lengths))} times as long as without privacy. Target:"
        meant = f"least squares if {target.supposes}" if target.supposes else "least squares"
        return f"Intervals of {target.name.replace('_', ' ')}: {told} {meant}."


def _table(alternatives: Sequence[Alternative]) -> str:
    header = ("method", "excess risk", "± run", "interval", "regret", "settings")
    shared = len({each.worst.regime for each in alternatives}) == 1
    lines = [
        (
            each.name,
            rounded(each.worst.excess_risk, 3),
            rounded(each.worst.excess_risk_std),
            rounded(each.worst.interval_length, 3),
            f"{each.regret:.2f}",
            str(each.method) if shared else f"{each.method}; {each.worst.regime}",
        )
        for each in alternatives
    ]
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    indent = " " * (sum(widths[:-1]) + 2 * len(widths) - 2)
    rows = (zip(line, "<>>>><", widths, strict=True) for line in [header, *lines])
    told = ("  ".join(f"{text:{side}{width}}" for text, side, width in row) for row in rows)
    return "\n".join(fill(row.rstrip(), 100, subsequent_indent=indent) for row in told)


def plan_run(
    problems: Problem | Sequence[Problem],
    budget: Budget,
    *,
    methods: Iterable[str] | None = None,
    objective: Objective = "excess_risk",
    intervals: bool = True,
) -> Plan:
    """Find the best method and settings for a budget.

    Settings are searched by predicted error, for each problem and for all problems together. For
    each problem, the settings' objective is divided by the least objective found. The largest of
    these ratios is the settings' regret. For each method, the plan keeps the settings of least
    regret. If problems differ in both noise law and misfit, each problem is also judged with each
    combination of these laws and misfits.

    Parameters
    ----------
    problems : Problem or sequence of Problem
        Facts known without the data. If signal or noise is known only within a range, give several
        problems, such as those of `Problem.over`.
    budget : Budget
        Cost of the run, with the neighbouring relation.
    methods : iterable of str, optional
        Names from `Method.searched`, such as "huber" and "one_pass_harmonic"; all by default.
    objective : {"excess_risk", "parameter_error", "interval_length"}
        Attribute of `Prediction` to minimise.
    intervals : bool
        True if the fit must release the values that its intervals need.

    Returns
    -------
    Plan
        Each method's best settings, best method first; excess risk is half an excess squared error.

    Raises
    ------
    ValueError
        If an argument is of the wrong kind, or no method covers the budget's relation.

    Examples
    --------
    >>> problem = Problem(10_000, np.ones(10), signal=1.0, label_noise_std=1.0)
    >>> plan = plan_run(problem, Budget.zcdp(0.125), methods=["huber", "adassp"])
    >>> plan.best.name, plan.worthwhile
    ('huber', True)
    """
    given: Any = (problems,) if isinstance(problems, Problem) else problems
    if not isinstance(given, Sequence) or not given:
        raise ValueError(f"problems must be a Problem or a list of Problems, got {short(problems)}")
    stated = tuple(require_instance("problems", each, Problem) for each in given)
    require_instance("budget", budget, Budget)
    require_choice("objective", objective, OBJECTIVES)
    require_flag("intervals", intervals)
    known, names = searched(), names_of(methods)
    able = [name for name in names if budget.neighbours in known[name].relations]
    if not able:
        raise ValueError(
            f"budget must have a neighbouring relation that {' or '.join(names)} covers, "
            f"got {budget.neighbours.value!r}"
        )
    misfits = tuple(dict.fromkeys(each.misfit for each in stated))
    search = _Search(budget, objective, intervals, misfits)
    candidates = search.candidates(stated, able)
    predictions = [
        search.predictions(problem, [method for _, method in candidates])
        for problem in _corners(stated)
    ]
    values = np.array([[search.value(each) for each in row] for row in predictions])
    held = np.array([[each.holds for each in row] for row in predictions])
    trusted = np.where(held, values, np.inf).min(axis=1)
    least = np.where(np.isfinite(trusted), trusted, values.min(axis=1))
    with np.errstate(invalid="ignore"):
        regret = np.nan_to_num((values / least[:, None]).max(axis=0), nan=np.inf).tolist()
    doubted = np.logical_not(held[: len(stated)]).any(axis=0)
    chosen: dict[str, Alternative] = {}
    for at in sorted(range(len(candidates)), key=lambda at: (doubted[at], regret[at])):
        name, method = candidates[at]
        found = tuple(row[at] for row in predictions[: len(stated)])
        lengths = tuple(
            each.interval_length / problem.least_squares_length
            for each, problem in zip(found, stated, strict=True)
        )
        chosen.setdefault(name, Alternative(name, method, found, lengths, regret[at]))
    alternatives = tuple(chosen.values())
    best = alternatives[0]
    worthwhile = best.holds and any(each.beats_the_mean for each in best.predictions)
    return Plan(stated, budget, alternatives, worthwhile, _verdict(stated, budget, best))


def least_budget(
    problems: Problem | Sequence[Problem],
    *,
    target_risk: float | None = None,
    target_length: float | None = None,
    neighbours: Neighbours | str = Neighbours.REPLACE_ONE,
    methods: Iterable[str] | None = None,
) -> Plan:
    """Find the least zCDP budget that meets a target for every stated problem, and its plan.

    Predictions are accurate to 10 %, so they must meet the target divided by 1.1. The ρ of the
    plan's `budget` is accurate to 3 %. If ρ = 1e-12 meets the target, the verdict says so.

    Parameters
    ----------
    problems, methods
        As for `plan_run`.
    target_risk : float, optional
        Largest allowed mean excess risk, more than 0. Give either this or `target_length`.
    target_length : float, optional
        Largest allowed length of a 95 % interval, more than 0.
    neighbours : Neighbours
        Neighbouring relation of the budget.

    Returns
    -------
    Plan
        Plan at the least budget, which is the plan's `budget`.

    Raises
    ------
    ValueError
        If both targets or none are given, no prediction holds, or ρ = 1e9 misses the target.

    Examples
    --------
    >>> problem = Problem(10_000, np.ones(10), signal=1.0, label_noise_std=1.0)
    >>> plan = least_budget(problem, target_risk=0.002, methods=["huber"])
    >>> 0.001 < plan.budget.rho < 0.005
    True
    """
    if (target_risk is None) == (target_length is None):
        found = "none" if target_risk is None else "both"
        raise ValueError(f"target_risk or target_length must be given, but not both, got {found}")
    name = "target_risk" if target_length is None else "target_length"
    stated = target_risk if target_length is None else target_length
    target = require_scale(name, stated) / MARGIN
    objective: Objective = "excess_risk" if target_length is None else "interval_length"
    names = every = names_of(methods)
    relation = Neighbours(neighbours)

    def plan_at(logarithm: float) -> Plan:
        return plan_run(
            problems,
            Budget.zcdp(exp(logarithm), neighbours=relation),
            methods=names,
            objective=objective,
        )

    def met(plan: Plan) -> bool:
        return plan.best.holds and all(
            getattr(each, objective) <= target for each in plan.best.predictions
        )

    low, high = log(SMALLEST), log(LARGEST)
    best = plan_at(high)
    while not met(best) and high < log(MOST):
        low, high = high, min(high + WIDER, log(MOST))
        best = plan_at(high)
    if not best.best.holds:
        raise ValueError(
            f"methods must include one with predictable error at rho = {exp(high):g}, "
            f"got {', '.join(names)}"
        )
    if not met(best):
        least = max(getattr(each, objective) for each in best.best.predictions)
        raise ValueError(
            f"{name} must exceed {MARGIN * least:.3g}, the least for any budget, got {stated:g}"
        )
    tried = low > log(SMALLEST)
    while high - low > TOLERANCE:
        middle = (low + high) / 2
        plan = plan_at(middle)
        if met(plan):
            high, best = middle, plan
        else:
            low, tried = middle, True
        if high - low < NEAR:
            # This near the answer, a method that is far behind does not overtake.
            near = [each.name for each in plan.alternatives if each.regret < 1.5]
            names = near or names
        if high - low <= TOLERANCE and not tried:
            # All budgets met the target, and the answer is below them.
            low, names, tried = log(LEAST), every, True
            if met(plan := plan_at(low)):
                words = f"The smallest budget searched, rho = {LEAST:g}, meets the target. "
                return replace(plan, verdict=words + plan.verdict)
    return best


def names_of(methods: Any) -> list[str]:
    """Return names of methods after a check; None stands for all names."""
    known = searched()
    listed = isinstance(methods, Iterable) and not isinstance(methods, (str, bytes))
    names = list(known) if methods is None else list(methods) if listed else []
    if not names:
        raise ValueError(
            f"methods must be a list of one or more of {', '.join(known)}, got {short(methods)}"
        )
    return [require_choice("methods", name, known) for name in names]


@dataclass
class _Search:
    """Searches of one plan; problems that need the same computation share it."""

    budget: Budget
    objective: Objective
    intervals: bool
    misfits: tuple[float, ...]
    found: dict[tuple[Any, ...], Prediction] = field(default_factory=dict)

    def value(self, found: Prediction) -> float:
        """The objective."""
        return float(getattr(found, self.objective))

    def predictions(self, problem: Problem, methods: Sequence[Method]) -> list[Prediction]:
        """Predictions of settings for a problem with one of the misfits."""
        parts = {**vars(problem), "misfit": None}.values()
        seen = tuple(each.tobytes() if isinstance(each, np.ndarray) else each for each in parts)
        new = [
            each
            for each in dict.fromkeys(methods)
            if (seen, problem.misfit, each) not in self.found
        ]
        kinds: dict[type[Method], None] = dict.fromkeys(map(type, new))
        for kind in kinds:
            own = [each for each in new if type(each) is kind]
            over = kind.predictions_over(own, problem, self.budget, misfits=self.misfits)
            for misfit, found in zip(self.misfits, over, strict=True):
                keys = ((seen, misfit, each) for each in own)
                self.found.update(zip(keys, found, strict=True))
        return [self.found[seen, problem.misfit, each] for each in methods]

    def candidates(self, problems: tuple[Problem, ...], names: list[str]) -> list[tuple[str, Any]]:
        """Settings of every method for each problem, and for all of them together."""

        def hardness(problem: Problem) -> tuple[float, bool, float]:
            return problem.misfit, problem.label_noise_law != "gaussian", problem.label_noise_std

        # The hardest case first: a method that is far behind there cannot have the least regret.
        hardest, *others = sorted(problems, key=hardness, reverse=True)
        alone = [(name, self.best(name, hardest, [(hardest, 1.0)])) for name in names]
        if not others:
            return alone
        found = self.predictions(hardest, [each for _, each in alone])
        near = [
            name
            for name, each in zip(names, found, strict=True)
            if self.value(each) <= FAR * self.least(found)
        ]
        alone += [(name, self.best(name, each, [(each, 1.0)])) for each in others for name in near]
        methods = [method for _, method in alone]
        goals = [(each, self.least(self.predictions(each, methods))) for each in problems]
        # Settings are sized by a problem in the middle of the range.
        noises = [problem.label_noise_std for problem in problems]
        middle = sorted(problems, key=attrgetter("null_risk"))[len(problems) // 2]
        middle = replace(middle, label_noise_std=float(np.exp(np.mean(np.log(noises)))))
        return alone + [(name, self.best(name, middle, goals)) for name in near]

    def least(self, found: Sequence[Prediction]) -> float:
        """Least objective of the predictions that hold, if any."""
        return min([self.value(each) for each in found if each.holds] or map(self.value, found))

    def best(self, name: str, sized: Problem, goals: Sequence[tuple[Problem, float]]) -> Any:
        """Settings with least regret, the largest ratio of predicted to least known objective."""
        method, known = searched()[name], dict[Any, float]()

        def values(settings: Sequence[Any]) -> list[float]:
            # Moves come back to settings that others have tried.
            new = [each for each in dict.fromkeys(settings) if each not in known]
            worst = np.zeros(len(new))
            for problem, least in goals:
                found = method.predictions(new, problem, self.budget, rows=SEARCH_ROWS)
                doubts = [1.0 if each.holds else DOUBT for each in found]
                ratios = np.array([self.value(each) for each in found]) / least
                worst = np.maximum(worst, np.nan_to_num(ratios * doubts, nan=np.inf))
            known.update(zip(new, worst.tolist(), strict=True))
            return [known[each] for each in settings]

        listed = method.candidates(sized, self.budget, intervals=self.intervals)
        (candidates,) = (each for each in listed if each.name == name)
        best: Any = candidates.best(values)
        clip = candidates.clip
        if clip is None:
            return best
        # Errors whose skewness depends on the features shift what a clip estimates. A problem does
        # not state this skewness, and a wide clip is shifted less.
        wider = [replace(best, **{clip: factor * getattr(best, clip)}) for factor in WIDENED]
        (least,), costs = values([best]), values(wider)
        found = [each for each, cost in zip(wider, costs, strict=True) if cost <= WORTH * least]
        return found[-1] if found else best


def _corners(stated: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """The problems, then each with every other stated combination of law and misfit."""
    laws = dict.fromkeys(problem.label_noise_law for problem in stated)
    misfits = dict.fromkeys(problem.misfit for problem in stated)
    known = {(problem.label_noise_law, problem.misfit) for problem in stated}
    return stated + tuple(
        replace(problem, label_noise_law=law, misfit=misfit)
        for law, misfit in product(laws, misfits)
        if (law, misfit) not in known
        for problem in stated
    )


def _verdict(problems: tuple[Problem, ...], budget: Budget, best: Alternative) -> str:
    sizes = [problem.sample_size for problem in problems]
    rows = " to ".join(f"{size:,}" for size in sorted({min(sizes), max(sizes)}))
    beats = [each.beats_the_mean for each in best.predictions]
    start = f"At n = {rows} and rho = {budget.rho:.3g}"
    if not best.holds:
        return f"{start}, no method's error can be predicted: {best.worst.reason}."
    if not any(beats):
        return f"{start}, the fit will not be better than predicting the mean."
    share = max(each.excess_risk / each.null_risk for each in best.predictions)
    if not all(beats):
        worst = f"its excess risk is {share:.2g} times as large in the worst stated case"
        return f"{start}, the fit may be worse than predicting the mean: {worst}."
    return f"{start}, the fit's excess risk is at most {share:.2g} of that of predicting the mean."


def plain(plan: Plan) -> dict[str, Any]:
    """Convert a plan to numbers, texts and lists that JSON can hold."""
    return {
        "rho": plan.budget.rho,
        "neighbours": plan.budget.neighbours.value,
        "verdict": plan.verdict,
        "worthwhile": plan.worthwhile,
        "targets": [
            {"name": each.name, "supposes": each.supposes, "lengths": each.lengths}
            for each in plan.targets
        ],
        "alternatives": [
            {
                "name": each.name,
                "settings": str(each.method),
                "regret": each.regret,
                "holds": each.holds,
                "predictions": [asdict(found) for found in each.predictions],
            }
            for each in plan.alternatives
        ],
    }


def draw(plan: Plan, axes: Any) -> None:
    """Draw the excess risks of all alternatives and of predicting the mean on Matplotlib axes."""
    names = [each.name.replace("_", " ") for each in plan.alternatives]
    places = np.arange(len(names))[::-1]
    for place, each in zip(places, plan.alternatives, strict=True):
        for prediction in each.predictions:
            risk, spread = prediction.excess_risk, prediction.excess_risk_std
            if not np.isfinite(risk):
                continue
            axes.errorbar(
                risk,
                place,
                xerr=[[min(spread, 0.9 * risk)], [spread]],
                fmt="o" if prediction.holds else "x",
                color="C0" if each is plan.best else "0.5",
            )
    for problem in plan.problems:
        axes.axvline(problem.null_risk, linestyle=":", color="C3")
    axes.set_yticks(places, names)
    axes.set_xscale("log")
    axes.set_xlabel("excess risk (dotted: predicting the mean; cross: theory does not hold)")
    axes.set_title(f"n = {plan.problems[0].sample_size:,}, rho = {plan.budget.rho:.3g}")
