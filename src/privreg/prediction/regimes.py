"""Where each theory is proven, where it was seen to hold, and where it fails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privreg.prediction.huber import Outcome
from privreg.prediction.methods import CorrelatedNoise, OnePass
from privreg.prediction.problem import Problem
from privreg.prediction.result import Prediction, Regime
from privreg.prediction.rows import Rows, require_setting
from privreg.validation import require_instance, require_number

# Above these the expansions' next terms are no longer a few percent.
MOST_RATIO, MOST_RATIO_WHOLE, LEAST_UNCLIPPED = 0.15, 0.11, 0.25
MOST_SCALE_NOISE, MOST_WHITENING_NOISE, MOST_THINNESS = 0.1, 0.2, 8.0
# Share of the mean error that runs may have which go astray and end near predicting the mean.
MOST_ASTRAY = 0.1
MOST_EXCURSION, MOST_ARRIVAL = 1.3, 1.8
MOST_REACH, LONGEST_STEP = 1.75, 0.3


def full_batch(
    problem: Problem, found: Prediction, *, unclipped: float, reach: float
) -> Prediction:
    """Regime of clipped full-batch descent.

    Parameters
    ----------
    problem : Problem
    found : Prediction
    unclipped : float
        Share of gradients that are not clipped at the end, at least 0 and at most 1.
    reach : float
        Largest step times curvature at the end, at least 0; `inf` where it overflows.
    """
    _require(problem, found)
    unclipped = require_number("unclipped", unclipped, least=0, most=1 + 1e-9)
    reach = require_number("reach", reach, least=0, infinite=True)
    if not np.isfinite(found.excess_risk):
        return found
    if reach > MOST_REACH:
        return found.with_doubt(f"step size times curvature is {reach:.2f}, near or beyond 2")
    ratio = problem.dimension / problem.sample_size
    if ratio / max(unclipped, 1e-3) > MOST_RATIO_WHOLE or ratio > MOST_RATIO:
        return found.with_doubt(
            f"too few rows: {problem.sample_size} for {problem.dimension} features, of whose "
            f"gradients {unclipped:.0%} are not clipped"
        )
    if unclipped < LEAST_UNCLIPPED:
        return found.with_doubt(f"heavy clipping: only {unclipped:.0%} of gradients are whole")
    if unclipped > 0.999:
        return _marked(found, Regime.PROVEN, "nothing clips: the exact law of noisy descent")
    return _marked(
        found, Regime.EXTENDED, f"{1 - unclipped:.0%} of gradients clip: expansion around θ*"
    )


def huber(problem: Problem, found: Prediction, outcome: Outcome) -> Prediction:
    """Regime of private Huber regression.

    Parameters
    ----------
    problem : Problem
    found : Prediction
    outcome : Outcome
        Of following it.
    """
    _require(problem, found)
    require_instance("outcome", outcome, Outcome)
    if not np.isfinite(found.excess_risk):
        return found.with_doubt(
            "too few rows or too small a budget: the descent does not come near"
        )
    ratio = problem.dimension / problem.sample_size
    if ratio > MOST_RATIO or ratio / max(outcome.unclipped, 1e-3) > MOST_RATIO_WHOLE:
        return found.with_doubt(
            f"too few rows: {problem.sample_size} for {problem.dimension} features, of whose "
            f"gradients {outcome.unclipped:.0%} are not clipped"
        )
    if outcome.scale_noise > MOST_SCALE_NOISE:
        return found.with_doubt("the budget is too small for a private residual scale")
    if (
        outcome.whitening.variance > MOST_WHITENING_NOISE
        or outcome.whitening.astray * problem.null_risk > MOST_ASTRAY * found.excess_risk
    ):
        return found.with_doubt("the budget is too small for a private Gram matrix")
    if outcome.excursion > MOST_EXCURSION or outcome.arrival > MOST_ARRIVAL:
        # The clip follows the residuals and the noise the clip: means say little about such runs.
        return found.with_doubt("the noise of the warm-up steps carries the descent away")
    reason = f"{1 - outcome.unclipped:.0%} of gradients clip: expansion around θ*"
    marked = _marked(found, Regime.EXTENDED, reason)
    if outcome.whitening.thinness > MOST_THINNESS:
        thin = (
            "directions thinner than the Gram matrix's noise: the error may be half again as large"
        )
        return replace(marked, warnings=(thin,))
    return marked


def one_pass(problem: Problem, rows: Rows, method: OnePass, found: Prediction) -> Prediction:
    """Regime of one-pass DP-GD: Gaussian rows of concentrated norm, rates below the cap."""
    _require(problem, found)
    require_setting(problem, rows)
    require_instance("method", method, OnePass)
    if not np.isfinite(found.excess_risk):
        return found
    rate = float(np.asarray(method.schedule.amplitude).reshape(())) * float(
        method.schedule.shape(0.0)
    )
    reach = rate / problem.sample_size * float(problem.eigenvalues.sum()) / 2
    if reach > 1:
        return found.with_doubt("the first steps are longer than the cap on them, 2 / ‖x‖²")
    # A row moves the error along a coordinate by this share, on average over its energy.
    fourth = rows.weights @ rows.energies**2 / (rows.multiplicities**2 * rows.eigenvalues)
    if rate / problem.sample_size * float(fourth.max()) > LONGEST_STEP:
        return found.with_doubt("a single row moves the error along its direction too far")
    if problem.feature_law == "gaussian" and problem.dimension >= 20:
        return _marked(found, Regime.PROVEN, "deterministic equivalent, Gaussian rows")
    return _marked(found, Regime.EXTENDED, "deterministic equivalent with the rows' own norms")


def correlated(problem: Problem, method: CorrelatedNoise, found: Prediction) -> Prediction:
    """Regime of one epoch with correlated noise: small steps, mild clipping."""
    _require(problem, found)
    require_instance("method", method, CorrelatedNoise)
    if not np.isfinite(found.excess_risk):
        return found
    return _marked(found, Regime.EXTENDED, "second moments of linear descent, clipping on average")


def adassp(problem: Problem, found: Prediction) -> Prediction:
    """Regime of AdaSSP: the noise must leave the Gram matrix invertible."""
    _require(problem, found)
    if not np.isfinite(found.excess_risk):
        return found.with_doubt("the noise may make the Gram matrix singular")
    if problem.dimension / problem.sample_size > MOST_RATIO:
        return found.with_doubt(
            f"too few rows: {problem.sample_size} for {problem.dimension} features"
        )
    return _marked(found, Regime.EXTENDED, "deterministic equivalent of a deformed Wigner matrix")


def _require(problem: Problem, found: Prediction) -> None:
    require_instance("problem", problem, Problem)
    require_instance("found", found, Prediction)


def _marked(found: Prediction, regime: Regime, reason: str) -> Prediction:
    return replace(found, regime=regime, reason=reason)
