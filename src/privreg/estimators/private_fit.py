"""One private fit by any method: what it spends in which order, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privreg.algorithms.adassp import Bounds
from privreg.algorithms.huber_descent import HuberFit
from privreg.algorithms.least_squares_descent import LeastSquaresFit
from privreg.algorithms.records import Persons
from privreg.algorithms.samples import Samples
from privreg.algorithms.split_budget import private_count
from privreg.estimators.bounds import Frame
from privreg.estimators.odometer import Odometer
from privreg.estimators.outlook import FitTarget, Outlook, advice, outlook
from privreg.estimators.refits import counted
from privreg.estimators.report import PrivacyStatement
from privreg.estimators.table_quality import TableQuality
from privreg.estimators.weights import WEIGHTS
from privreg.inference.least_squares_intervals import least_squares_law
from privreg.inference.population_intervals import last_iterate_law
from privreg.methods.method import Method
from privreg.methods.runs import Declared, Fitted
from privreg.noise.source import Ongoing, Secret, Seeded
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.privacy.release import Release

COUNT_SHARE = 0.01
CLIPPED = "features and labels outside the declared bounds are clipped to them, row by row"
INPUTS = (
    "inputs are functions of one record and of public values, which what a scaler learns from the "
    "table is not"
)
FEW = "there are no more records than coefficients"
HOPELESS = (
    "what was released does not tell the fit from noise, and it is likely worse than predicting "
    "the mean: take more records, a larger budget, fewer features or narrower bounds"
)


@dataclass(frozen=True)
class Quality:
    """What buys the shares of incomplete and clipped records: a release, and its share."""

    release: Callable[..., Release[TableQuality]]
    share: float


@dataclass(frozen=True)
class Job:
    """A fit that has not happened.

    Parameters
    ----------
    samples : Samples
        Rows in the units of the frame.
    frame : Frame
    records : int
        Number of rows or persons.
    persons : Persons, optional
    threads : int
    quality : Quality, optional
    """

    samples: Samples
    frame: Frame
    records: int
    persons: Persons | None = None
    threads: int = 1
    quality: Quality | None = None


@dataclass(frozen=True)
class Done:
    """What a fit leaves: all of it is private, and paid for."""

    fit: Fitted
    method: Method
    outlook: Outlook
    quality: TableQuality | None
    privacy: PrivacyStatement
    warnings: list[str]


def fit_privately(
    job: Job,
    *,
    budget: Budget,
    target: FitTarget,
    settings: Method | None,
    source: Secret | Seeded,
    odometer: Odometer | None = None,
) -> Done:
    """Draw noise, and release.

    Parameters
    ----------
    job : Job
    budget : Budget
        Of all together. A method that only adds Gaussian noise may spend `Budget.gaussian` of it.
    target : {"least_squares", "robust"}
        Which method is planned where none is given.
    settings : Method, optional
        Planned from public numbers by default.
    source : Secret or Seeded
    odometer : Odometer, optional
        Counts the whole budget before noise is drawn, or refuses the fit.
    """
    gaussian = settings is None or settings.gaussian_dp
    budget = left = budget.gaussian() if gaussian else budget
    seeded, unit = isinstance(source, Seeded), "row" if job.persons is None else "person"
    if odometer is not None:
        whole = (("fit", budget),)
        odometer.add(PrivacyStatement(budget, unit, whole, source.assumptions, seeded, gaussian))
    rng, count = source.generator(), float(job.records)
    spent: dict[str, Release[Any]] = {}
    with counted(budget, seeded=seeded):
        if budget.neighbours is Neighbours.ADD_REMOVE:
            counting = private_count(job.records, budget=left.share(COUNT_SHARE), rng=rng)
            count, left = counting.value, left.share(1 - COUNT_SHARE)
            spent["number of records"] = counting
        quality = None
        if job.quality is not None:
            share = job.quality.share
            found = job.quality.release(sample_size=count, budget=left.share(share), rng=rng)
            quality, left = found.value, left.share(1 - share)
            spent["incomplete and clipped records"] = found
        foreseen, doubts = _foreseen(max(1, round(count)), job.frame, left, target, settings)
        declared = Declared(
            Bounds(job.frame.feature_norm, 1.0),
            sample_size=count,
            groups=job.persons,
            intercept=job.frame.intercept,
            threads=job.threads,
        )
        method = foreseen.settings
        release = method.run(job.samples, left, declared=declared, noise=Ongoing(rng, source))
    own = (WEIGHTS,) if getattr(job.samples, "weighted", False) else ()
    texts = (text for each in (*spent.values(), release) for text in each.assumptions)
    statement = PrivacyStatement(
        with_secret_noise=budget,
        unit=unit,
        spending=(*((what, each.budget) for what, each in spent.items()), *release.value.spending),
        assumptions=tuple(dict.fromkeys((CLIPPED, INPUTS, *own, *texts, *source.assumptions))),
        seeded=seeded,
        gaussian_dp=method.gaussian_dp,
    )
    # A user who reads one of them needs no second warning of the same.
    doubts += _hopeless(release.value, count)
    said = [*([] if quality is None else quality.warnings), *filter(None, ["; ".join(doubts)])]
    return Done(release.value, method, foreseen, quality, statement, said)


def _foreseen(
    sample_size: int,
    frame: Frame,
    budget: Budget,
    target: FitTarget,
    settings: Method | None,
) -> tuple[Outlook, list[str]]:
    if budget.neighbours is Neighbours.ADD_REMOVE:
        # A noisy number: a plan for two digits of it serves many fits.
        sample_size = max(1, int(float(f"{sample_size:.2g}")))
    size = sample_size, frame.dimension, budget
    found = outlook(*size, intercept=frame.intercept, target=target, settings=settings)
    if not found.predictions or found.worthwhile:
        return found, []
    what_to_do = advice(*size, intercept=frame.intercept, target=target)
    return found, [f"{found.doubt}; {what_to_do}"]


def _hopeless(fit: Fitted, records: float) -> list[str]:
    r"""Whether a fit is likely worse than predicting the mean, from what it released.

    .. math:: \operatorname{tr} V \ge \|(I - m m^\top)\hat\varphi\|^2

    with V the covariance of φ̂ = W⁻¹θ̂, where the rows' second moment is near the identity, and m the
    direction of the intercept. Simulated (n of 50 to 10⁵, 1 to 30 features, ε of .1 to 4) it holds
    for 99 % of the fits that are worse than predicting the mean, and for 2 % of those that miss
    less than a tenth of what the features explain.
    """
    found = [FEW] if records <= fit.parameters.size else []
    if isinstance(fit, LeastSquaresFit):
        law = least_squares_law(fit).last_iterate(fit.sample_size)
    elif isinstance(fit, HuberFit):
        law = last_iterate_law(fit)
    else:
        return found
    estimate = np.linalg.solve(fit.whitening, fit.parameters)
    if fit.centre is not None:
        constant = np.linalg.solve(fit.whitening, np.eye(estimate.size)[0])
        estimate = estimate - constant * (constant @ estimate) / (constant @ constant)
    seen = float(np.trace(law.sampling + law.privacy)) < float(estimate @ estimate)
    return found if seen else [*found, HOPELESS]
