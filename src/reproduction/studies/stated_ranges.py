"""What to state of noise that is not known: ranges compared by predicted regret.

Problems that a range is chosen on and problems that it is reported on are two lists. Each has
every law of the label noise with and without a misfit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from privreg.planning.plan import plan_run
from privreg.prediction.problem import LABEL_NOISE_LAWS
from reproduction.studies.plan_cases import synthetic_case

CHOOSING, REPORTING = range(100, 108), range(108, 116)
MISFITS = (0.0, 0.2)
METHODS = ("huber", "full_batch")
LARGEST_SAMPLE = 12_000
Shapes = tuple[tuple[str, float], ...]
RANGES: tuple[Shapes, ...] = (
    (("gaussian", 0.0),),
    (("laplace", 0.0),),
    (("laplace", 0.15),),
    (("student_t5", 0.15),),
    (("student_t3", 0.15),),
    (("gaussian", 0.0), ("student_t3", 0.0)),
    (("gaussian", 0.0), ("laplace", 0.2)),
    (("gaussian", 0.0), ("student_t3", 0.3)),
)


def regret(number: int, shapes: Shapes) -> float:
    """Predicted error of the plan for a range over that of the plan that is told the truth.

    Parameters
    ----------
    number : int
        Of a synthetic problem, which also says what its noise is.
    shapes : sequence of (str, float)
        Laws of the label noise and misfits that are stated.
    """
    case = synthetic_case(number, LARGEST_SAMPLE)
    truth = replace(
        case.truth,
        label_noise_law=LABEL_NOISE_LAWS[number % 4],
        misfit=MISFITS[number // 4 % 2],
    )
    found, best = (
        plan_run(
            truth.over(noise_shapes=each), case.budget, methods=METHODS, intervals=False
        ).best.method.predict(truth, case.budget)
        for each in (shapes, ((truth.label_noise_law, truth.misfit),))
    )
    return found.excess_risk / best.excess_risk


def worst(numbers: Sequence[int], shapes: Shapes) -> float:
    """Largest regret over a list of problems."""
    return max(regret(number, shapes) for number in numbers)
