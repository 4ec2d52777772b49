"""What a fit's coefficients are, and what their intervals rest on, in words for a report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privreg.algorithms.huber_descent import HuberFit
from privreg.algorithms.least_squares_descent import LeastSquaresFit
from privreg.inference.least_squares_intervals import robust_difference
from privreg.inference.population_intervals import CoefficientIntervals
from privreg.inference.robust_gain import robust_gain
from privreg.methods.method import Method
from privreg.methods.runs import Fitted

# Level of the test whether a robust fit would tell another story.
ALARM = 0.05
# Ratio of variances from which a robust fit's standard errors are said to be half as long or less.
LEAST_GAIN = 4.0


def target_sentences(
    method: Method,
    fit: Fitted,
    intervals: CoefficientIntervals,
    names: Sequence[str],
    *,
    weighted: bool = False,
) -> list[str]:
    """The target, the clip, the tail, and why intervals are infinite.

    Parameters
    ----------
    method : Method
        What was run.
    fit : Fitted
        What it released.
    intervals : CoefficientIntervals
        Of the coefficients.
    names : sequence of str
        Of the coefficients.
    weighted : bool
        Whether rows have weights; then nothing is said of a robust fit.
    """
    if not method.has_intervals:
        return [f"No intervals are known for {method.name.replace('_', ' ')}: they are infinite."]
    covered = f"Intervals are for the {intervals.target} coefficients; all noise is counted."
    if isinstance(fit, HuberFit):
        return [
            "Target: a robust fit, the minimiser of a Huber loss. Its slopes are those of least "
            "squares if errors are symmetric given the features, or independent of them.",
            covered,
        ]
    if not isinstance(fit, LeastSquaresFit):
        return [covered]
    share = fit.tail.share_beyond(fit.clip_width)
    found = [
        "Target: least squares, the best linear prediction of the mean label.",
        f"{covered} They allow for what the clip may leave out.",
        f"The clip touches about {100 * share:.2g} % of the records, by their private histogram.",
        "Assumed of the tail that noise hides: it goes on as where it is seen, no heavier than a "
        "power law. A few records far beyond it are not counted.",
    ]
    # The start clips the weighted residual, a robust fit of weighted rows the residual itself.
    if np.isfinite(fit.parameters).all() and not weighted:
        test = robust_difference(fit)
        differs = "would tell another story" if test.p_value < ALARM else "would not be told apart"
        found.append(
            f"A robust fit {differs}: its slopes differ by {test.statistic:.3g}, where chance "
            f"gives {test.degrees_of_freedom} (p = {test.p_value:.2g})."
        )
        gain = robust_gain(fit)
        if gain >= LEAST_GAIN:
            found.append(
                f'Private noise: target="robust" would have standard errors about {gain**0.5:.2g} '
                "times smaller, for the same slopes only if errors are symmetric given the "
                "features, or independent of them."
            )
    for reason in dict.fromkeys(filter(None, intervals.reasons)):
        whose = [name for name, own in zip(names, intervals.reasons, strict=True) if own == reason]
        found.append(f"No interval for {', '.join(whose)}: {reason}.")
    return found
