"""What a plan says."""

from __future__ import annotations

from dataclasses import dataclass

from privreg.methods.method import Method
from privreg.planning.text import table
from privreg.prediction.problem import Problem
from privreg.prediction.result import Prediction
from privreg.privacy.budget import Budget


@dataclass(frozen=True)
class Alternative:
    """A method with its settings, and what it is predicted to do.

    Attributes
    ----------
    name : str
        Under which the method lists its candidates.
    method : Method
        The method with its settings, which can be run and fitted.
    predictions : tuple of Prediction
        One for each problem that was stated, in order.
    regret : float
        Largest ratio of its objective to the least one of any alternative, over what is stated as
        `plan_run` takes it.
    """

    name: str
    method: Method
    predictions: tuple[Prediction, ...]
    regret: float

    @property
    def holds(self) -> bool:
        """Whether the theory holds for every problem."""
        return all(each.holds for each in self.predictions)

    @property
    def worst(self) -> Prediction:
        """The prediction of largest excess risk."""
        return max(self.predictions, key=lambda each: each.excess_risk)


@dataclass(frozen=True)
class TargetCost:
    """What intervals for a target cost beside least squares on the same rows without privacy.

    Attributes
    ----------
    name : str
        Of the alternative.
    supposes : str
        What of the errors makes the target that of least squares; empty where nothing does.
    lengths : tuple of float
        Length of an interval over that of least squares, one for each problem that was stated.
    """

    name: str
    supposes: str
    lengths: tuple[float, ...]


@dataclass(frozen=True)
class Plan:
    """Alternatives, the best first.

    Attributes
    ----------
    problems : tuple of Problem
        What was stated.
    budget : Budget
        What any alternative costs.
    alternatives : tuple of Alternative
        The best settings of each method, those whose theory holds first, as `plan_run`
        orders them.
    worthwhile : bool
        Whether the best is predicted to do better than predicting the mean for some problem.
    verdict : str
        One plain sentence.
    """

    problems: tuple[Problem, ...]
    budget: Budget
    alternatives: tuple[Alternative, ...]
    worthwhile: bool
    verdict: str

    @property
    def best(self) -> Alternative:
        """What to run."""
        return self.alternatives[0]

    @property
    def targets(self) -> tuple[TargetCost, ...]:
        """What intervals cost with each alternative that has them."""
        return tuple(
            TargetCost(
                each.name,
                each.method.supposes,
                tuple(
                    found.interval_length / problem.least_squares_length
                    for found, problem in zip(each.predictions, self.problems, strict=True)
                ),
            )
            for each in self.alternatives
            if each.method.has_intervals
        )

    def __str__(self) -> str:
        null = max(problem.null_risk for problem in self.problems)
        lines = [
            table(self.alternatives),
            "",
            f"Predicting the mean: {null:.3g}. {self.verdict}",
            *map(self._cost, self.targets),
        ]
        return "\n".join(lines)

    def _cost(self, target: TargetCost) -> str:
        lengths = ", ".join(
            f"{length:.3g} ({problem.label_noise_law.replace('_', ' ')} errors)"
            for length, problem in zip(target.lengths, self.problems, strict=True)
        )
        # Corners that share a law and a length are said once.
        lengths = ", ".join(dict.fromkeys(lengths.split(", ")))
        meant = f"least squares if {target.supposes}" if target.supposes else "least squares"
        name = target.name.replace("_", " ")
        return f"Intervals of {name}: {lengths} times those without privacy; target {meant}."
