"""How many rows the expansions in p/n need, whatever the method."""

from __future__ import annotations

from privreg.prediction.problem import Problem

# Derived in `too_few_rows`.
MOST_RATIO, MOST_RATIO_WHOLE = 0.15, 0.11


def too_few_rows(problem: Problem, unclipped: float) -> str | None:
    r"""Why there are too few rows for descent on clipped gradients, or None.

    The second moment of n rows has relative eigenvalues up to :math:`(1 + \sqrt\kappa)^2` with
    κ = p/n (Marchenko and Pastur). A step that is full for the population stays stable along them
    while this is below 2, for κ < (√2 - 1)² = 0.172: κ is to be at most 0.15. Of the rows a share s
    has an unclipped gradient, and they alone have curvature: for κ/s the edge is to be at most
    1.77, κ/s = 0.11, beyond which simulations left the band of 10 %.

    Source
    ------
    Marčenko and Pastur (1967) for the edge; the simulations are those of docs/prediction.md.
    """
    ratio = problem.dimension / problem.sample_size
    if ratio <= MOST_RATIO and ratio / max(unclipped, 1e-3) <= MOST_RATIO_WHOLE:
        return None
    return (
        f"too few rows: {problem.sample_size} for {problem.dimension} features, of whose "
        f"gradients {unclipped:.0%} are not clipped"
    )
