"""The best method and settings for a budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from privreg.prediction.problem import Problem
from privreg.prediction.result import Prediction
from privreg.privacy.budget import Budget


@dataclass(frozen=True)
class Alternative:
    """A method with its settings, and what it is predicted to do.

    Attributes
    ----------
    method : dataclass
        Settings: `FullBatch`, `OnePass`, `CorrelatedNoise`, `AdaSSP` or `HuberDescent`.
    predictions : tuple of Prediction
        One for each problem that was stated, in order.
    """

    method: Any
    predictions: tuple[Prediction, ...]


@dataclass(frozen=True)
class Plan:
    """Alternatives, the best first.

    Attributes
    ----------
    budget : Budget
        What any of them may cost.
    alternatives : tuple of Alternative
        The best settings of each method, the best method first.
    verdict : str
        One plain sentence.
    worthwhile : bool
        Whether the best is predicted to do better than predicting the mean.
    """

    budget: Budget
    alternatives: tuple[Alternative, ...]
    verdict: str
    worthwhile: bool

    @property
    def best(self) -> Alternative:
        return self.alternatives[0]


def plan_run(
    problems: Problem | Sequence[Problem],
    budget: Budget,
    *,
    methods: Iterable[str] | None = None,
) -> Plan:
    """Best method and settings for a budget, over all problems that are thought possible.

    Parameters
    ----------
    problems : Problem or sequence of Problem
        What is known; several, as `Problem.over` makes them, where signal and noise are known up to
        a range. The plan then has the least largest ratio of its error to the best one's.
    budget : Budget
        What the run may cost.
    methods : iterable of str, optional
        Names of methods; all by default.

    Returns
    -------
    Plan
    """
    raise NotImplementedError
