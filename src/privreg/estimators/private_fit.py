"""One private fit of either target: what it spends in which order, and what it leaves."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from privreg.algorithms.huber_descent import huber_descent
from privreg.algorithms.huber_fit import HuberFit
from privreg.algorithms.huber_settings import HuberSettings
from privreg.algorithms.least_squares_descent import least_squares_descent
from privreg.algorithms.least_squares_fit import LeastSquaresFit
from privreg.algorithms.least_squares_settings import LeastSquaresSettings
from privreg.algorithms.records import Persons
from privreg.algorithms.samples import Samples
from privreg.algorithms.split_budget import private_count
from privreg.estimators.bounds import Frame
from privreg.estimators.outlook import Outlook, advice, least_squares_outlook, outlook
from privreg.estimators.refits import counted
from privreg.estimators.report import PrivacyStatement
from privreg.estimators.table_quality import TableQuality
from privreg.noise.source import NOT_PRIVATE, NoiseSource, Seeded
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.privacy.release import Release

FitTarget = Literal["least_squares", "robust"]
FIT_TARGETS: tuple[FitTarget, ...] = get_args(FitTarget)
SETTINGS: dict[str, type[HuberSettings] | type[LeastSquaresSettings]] = {
    "least_squares": LeastSquaresSettings,
    "robust": HuberSettings,
}
COUNT_SHARE = 0.01
CLIPPED = "features and labels outside the declared bounds are clipped to them, row by row"


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
class Fitted:
    """What a fit leaves: all of it is private, and paid for."""

    fit: HuberFit | LeastSquaresFit
    outlook: Outlook
    quality: TableQuality | None
    privacy: PrivacyStatement


def fit_privately(
    job: Job,
    *,
    budget: Budget,
    target: FitTarget,
    settings: HuberSettings | LeastSquaresSettings | None,
    source: NoiseSource,
) -> Fitted:
    """Draw noise, and release.

    Parameters
    ----------
    job : Job
    budget : Budget
        Of all together, for mechanisms that only add Gaussian noise.
    target : {"least_squares", "robust"}
    settings : optional
        Planned from public numbers by default.
    source : NoiseSource
    """
    left = budget
    rng, count = source.generator(), float(job.records)
    spent: dict[str, Release[Any]] = {}
    seeded = isinstance(source, Seeded)
    if seeded:
        warnings.warn(f"{NOT_PRIVATE}, since random_state is given", UserWarning, stacklevel=5)
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
        foreseen = _foreseen(max(1, round(count)), job.frame, left, target, settings)
        fit: Callable[..., Release[Any]] = (
            huber_descent if target == "robust" else least_squares_descent
        )
        release = fit(
            job.samples,
            feature_norm=job.frame.feature_norm,
            label_bound=1.0,
            budget=left,
            settings=foreseen.settings,
            rng=rng,
            groups=job.persons,
            sample_size=count,
            intercept=job.frame.intercept,
            threads=job.threads,
        )
    texts = (text for each in (*spent.values(), release) for text in each.assumptions)
    statement = PrivacyStatement(
        with_secret_noise=budget,
        unit="row" if job.persons is None else "person",
        spending=(*((what, each.budget) for what, each in spent.items()), *release.value.spending),
        assumptions=tuple(dict.fromkeys((CLIPPED, *texts, *source.assumptions))),
        seeded=seeded,
    )
    return Fitted(release.value, foreseen, quality, statement)


def _foreseen(
    sample_size: int,
    frame: Frame,
    budget: Budget,
    target: FitTarget,
    settings: HuberSettings | LeastSquaresSettings | None,
) -> Outlook:
    if budget.neighbours is Neighbours.ADD_REMOVE:
        # A noisy number: a plan for two digits of it serves many fits.
        sample_size = max(1, int(float(f"{sample_size:.2g}")))
    size = sample_size, frame.dimension, budget
    foresee: Callable[..., Outlook] = outlook if target == "robust" else least_squares_outlook
    found = foresee(*size, intercept=frame.intercept, settings=settings)
    if found.predictions and not found.worthwhile:
        what_to_do = advice(*size, intercept=frame.intercept, target=target)
        warnings.warn(f"{found.doubt}: {what_to_do}", UserWarning, stacklevel=6)
    return found
