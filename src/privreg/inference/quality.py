"""Exact coverage and expected length of the intervals of private gradient descent.

A construction turns the iterates of a run into replicates; the unclipped iterates are Gaussian with
a law in closed form, so coverage and length need no simulation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.full_batch_dpgd import full_batch_noise_std
from privreg.algorithms.samples import Samples, as_samples, moments
from privreg.inference.coverage import expected_half_width, t_interval_coverage
from privreg.inference.intervals import Construction, replicate_weights
from privreg.privacy.budget import Budget
from privreg.theory.full_batch_dpgd.law import (
    GradientDescentLaw,
    clipping_bound,
    gradient_descent_law,
)
from privreg.validation import (
    require_array,
    require_count,
    require_instance,
    require_number,
)

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class IntervalQuality:
    """Exact quality of intervals for the empirical minimiser, feature by feature."""

    coverage: FloatArray  # probability that an interval contains the minimiser, (p,)
    expected_length: FloatArray  # full length in units of a coefficient, (p,)
    clipping: float = 0.0  # probability that any gradient clips; `coverage` is off by no more


def interval_quality(
    law: GradientDescentLaw,
    *,
    gradients: int,
    construction: Construction = "batch_means",
    replicates: int = 10,
    burn_in: int = 20,
    level: float = 0.95,
) -> IntervalQuality:
    r"""Exact coverage and expected length under the unclipped law of the iterates.

    .. math::
        \theta^{(l)} = \sum_t W_{lt}\theta_t, \qquad
        \theta_j^{(\cdot)} - \hat\theta_j \sim N(b_j, C_j)

    A construction's replicates are weighted sums of Gaussian iterates, hence Gaussian with bias
    b_j, shape (m,), and covariance C_j, shape (m, m); Student's interval from them covers with the
    probability of `coverage.t_interval_coverage`.

    Parameters
    ----------
    law : GradientDescentLaw
        Law of the iterates, its noise scaled for `gradients`.
    gradients : int
        TOTAL number N of noisy gradients, over all runs.
    construction : {"batch_means", "checkpoints", "independent_runs"}
        How replicates are made; "independent_runs" are m runs of ⌊N / m⌋ steps each.
    replicates : int
        m, at least 2.
    burn_in : int
        First iterates left out, of the path or of every run.
    level : float
        Nominal coverage in (0, 1).

    Returns
    -------
    IntervalQuality
        With `clipping` 0: the law knows no clipping.

    Examples
    --------
    >>> import numpy as np
    >>> law = GradientDescentLaw(
    ...     eigenvalues=np.ones(2), eigenvectors=np.eye(2), minimiser=np.array([0.6, 0.8]),
    ...     start=np.zeros(2), step_size=0.25, gradient_noise_std=0.01,
    ... )
    >>> found = interval_quality(law, gradients=500)
    >>> [round(float(value), 3) for value in found.coverage]
    [0.943, 0.943]

    Source
    ------
    brown2024, sections 3 and 4.2; its coverage is simulated, the exact one is ours.
    """
    require_instance("law", law, GradientDescentLaw)
    weights = replicate_weights(
        construction, gradients=gradients, replicates=replicates, burn_in=burn_in
    )
    bias, covariance = law.functionals(weights)
    if construction == "independent_runs":
        bias = np.repeat(bias, replicates, axis=-1)
        covariance = covariance * np.eye(replicates)
    return IntervalQuality(
        coverage=t_interval_coverage(bias, covariance, level=level),
        expected_length=2 * expected_half_width(bias, covariance, level=level),
    )


def interval_quality_of_data(
    samples: Samples,
    *,
    budget: Budget,
    clip_norm: float,
    step_size: float,
    gradients: int,
    construction: Construction = "batch_means",
    replicates: int = 10,
    burn_in: int = 20,
    level: float = 0.95,
    start: ArrayLike | None = None,
) -> IntervalQuality:
    """Exact coverage and expected length of the intervals that a budget buys on a data set.

    Parameters
    ----------
    samples : Samples
        Data with more rows than features.
    budget : Budget
        Budget of all N gradients together, finite.
    clip_norm : float
        Clipping bound γ on a row's gradient norm, at least 1e-50 and at most 1e50.
    step_size : float
        η, at least 1e-50 and at most 1e50.
    gradients : int
        TOTAL number N of noisy gradients, over all runs.
    construction, replicates, burn_in, level
        As for `interval_quality`.
    start : array_like, shape (p,), optional
        θ_0, 0 by default.

    Returns
    -------
    IntervalQuality
        Coverage and length are exact without clipping; `clipping` bounds what it may change.

    Guarantee
    ---------
    None: computed from the data without noise. It is for choosing parameters on public or
    synthetic data, or for those who may see the data.

    Examples
    --------
    >>> import numpy as np
    >>> from privreg.algorithms.samples import GaussianSamples
    >>> data = GaussianSamples(
    ...     4000, target=np.full(3, 3**-0.5), label_noise_std=0.5, seed=np.random.SeedSequence(7)
    ... )
    >>> found = interval_quality_of_data(
    ...     data, budget=Budget.zcdp(0.5), clip_norm=30.0, step_size=0.25, gradients=300
    ... )
    >>> bool(np.all(found.coverage > 0.9)), found.clipping < 1e-3
    (True, True)

    Source
    ------
    brown2024, sections 3 and 4.2, Lemmas 2.1 and 2.2.
    """
    require_instance("budget", budget, Budget)
    bound = require_number("clip_norm", clip_norm, least=1e-50, most=1e50)
    rho = require_number("budget.rho", budget.rho, above=0)
    total = require_count("gradients", gradients)
    samples = as_samples(samples)
    gram, moment = moments(samples)
    origin = None if start is None else require_array("start", start, shape=(samples.dimension,))
    law = gradient_descent_law(
        gram,
        moment,
        sample_size=samples.sample_size,
        step_size=require_number("step_size", step_size, least=1e-50, most=1e50),
        gradient_noise_std=float(
            full_batch_noise_std(
                clip_norm=bound,
                rho=rho,
                sample_size=samples.sample_size,
                gradients=total,
                neighbours=budget.neighbours,
            )
        ),
        start=origin,
    )
    if np.max(np.abs(law.contraction)) >= 1:
        raise ValueError(f"step_size must be small enough for descent to settle, got {step_size}")
    found = interval_quality(
        law,
        gradients=total,
        construction=construction,
        replicates=replicates,
        burn_in=burn_in,
        level=level,
    )
    runs = replicates if construction == "independent_runs" else 1
    clipped = runs * _expected_clips(law, samples, clip_norm=bound, steps=total // runs)
    return IntervalQuality(found.coverage, found.expected_length, min(1.0, clipped))


def _expected_clips(
    law: GradientDescentLaw, samples: Samples, *, clip_norm: float, steps: int
) -> float:
    """Expected number of gradients that clip along one unclipped path."""
    return sum(
        steps
        * len(labels)
        * clipping_bound(law, features, labels, clip_norm=clip_norm, steps=steps)[1]
        for features, labels, _ in samples.chunks()
    )
