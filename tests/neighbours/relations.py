"""What neighbours of a stated relation move, release by release, before noise (`transcripts`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from transcripts import RHO, Transcript, Watched, compared

from privreg.algorithms import (
    adassp,
    full_batch_dpgd,
    huber_descent,
    least_squares_descent,
    noisy_sgd,
    one_pass_dpgd,
)
from privreg.algorithms.adassp import Bounds, adassp_zcdp, clipped_sums, sensitivities
from privreg.algorithms.dp_ftrl import FTRLMechanism, dp_ftrl
from privreg.algorithms.full_batch_dpgd import exact_descent, full_batch_noise_std
from privreg.algorithms.huber_descent import HuberSettings
from privreg.algorithms.least_squares_descent import LeastSquaresSettings
from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.shaped_dp_ftrl import FixedClip, ShapedMechanism, shaped_dp_ftrl
from privreg.algorithms.whitened_descent import SplitBudget
from privreg.auditing import NeighbouringTables, Table, neighbouring_tables
from privreg.noise.covariance import identity_covariance
from privreg.noise.streams import TreeCorrelation
from privreg.noise.toeplitz import identity
from privreg.privacy.budget import Budget, Neighbours

DECLARED = 3.0
# A sum over some records of bounded vectors is rounded by some 1e-14 of the bound; one of whole
# numbers is not.
ROUNDING = 1 + 1e-9
EXACT = (
    "huber",
    "huber, own widths",
    "least squares",
    "full batch on integers",
    "AdaSSP on integers",
)
REPLACE, ADD, ZERO = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT


def generator(seed: int = 7) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


def size_of(pair: NeighbouringTables) -> float | None:
    """A public number of records, which add-remove alone must be given."""
    return DECLARED if pair.neighbours is ADD else None


def huber(
    pair: NeighbouringTables, *, common_width: bool = True, intercept: bool = False
) -> list[float]:
    settings = HuberSettings(
        warm_up_steps=2, final_steps=1, gram_rounds=2, common_width=common_width
    )
    return descent(
        pair, huber_descent, huber_descent.huber_descent, settings=settings, intercept=intercept
    )


def least_squares(pair: NeighbouringTables, *, intercept: bool = False) -> list[float]:
    return descent(
        pair,
        least_squares_descent,
        least_squares_descent.least_squares_descent,
        settings=LeastSquaresSettings(warm_up_steps=2, gram_rounds=2),
        intercept=intercept,
    )


def descent(
    pair: NeighbouringTables, module: Any, fit: Any, *, settings: Any, intercept: bool
) -> list[float]:
    """A fit that starts by whitening; its split budget is written down."""

    def run(table: Table, transcript: Transcript) -> Any:
        with written_down(module, transcript):
            return fit(
                ArraySamples(table.features, table.labels),
                feature_norm=2.0,
                label_bound=1.5,
                budget=Budget(RHO, pair.neighbours),
                settings=settings,
                rng=generator(),
                groups=table.groups,
                sample_size=size_of(pair),
                intercept=intercept,
            ).value

    return compared(run, pair)


@contextmanager
def written_down(module: Any, transcript: Transcript) -> Iterator[None]:
    def watched(total: Budget, rng: np.random.Generator | None) -> SplitBudget:
        return Watched(total, rng, transcript)

    with patch.object(module, "SplitBudget", watched):
        yield


def full_batch(pair: NeighbouringTables) -> list[float]:
    """One step from several points: its noise is for the change of a mean of clipped gradients."""
    clip_norm, moved = 0.7, []
    size = size_of(pair) or len(pair.first.labels)
    noise = full_batch_noise_std(
        clip_norm=clip_norm, rho=RHO, sample_size=size, gradients=1, neighbours=pair.neighbours
    )
    for start in (0.0, 1.0, -1e3):
        for screening in (False, True):
            runs = [
                full_batch_dpgd.full_batch_dpgd(
                    ArraySamples(each.features, each.labels),
                    clip_norm=clip_norm,
                    step_size=1e3,
                    gradient_noise_std=0.0,
                    steps=1,
                    rng=generator(),
                    start=np.full(each.features.shape[1], start),
                    screening=screening,
                    sample_size=size_of(pair),
                ).iterates[0, 0]
                for each in (pair.first, pair.second)
            ]
            change = np.linalg.norm(runs[0] - runs[1]) / 1e3
            moved.append(float(change / (noise * np.sqrt(2 * RHO))))
    return moved


def exact_full_batch(pair: NeighbouringTables) -> list[float]:
    def run(table: Table, transcript: Transcript) -> Any:
        with written_down(full_batch_dpgd, transcript):
            return exact_descent(
                ArraySamples(table.features, table.labels),
                clip_norm=0.7,
                step_size=0.3,
                steps=2,
                budget=Budget(RHO, pair.neighbours),
                n=size_of(pair) or len(table.labels),
            )

    return compared(run, pair)


def exact_sufficient_statistics(pair: NeighbouringTables) -> list[float]:
    def run(table: Table, transcript: Transcript) -> Any:
        with written_down(adassp, transcript):
            return adassp_zcdp(
                ArraySamples(table.features, table.labels),
                bounds=Bounds(2.0, 1.5),
                budget=Budget(RHO, pair.neighbours),
                rng=None,
            )

    return compared(run, pair)


def sufficient_statistics(pair: NeighbouringTables) -> list[float]:
    """The three statistics; and the estimate is a function of the sums alone, as it takes them."""
    bounds = Bounds(2.0, 1.5)
    declared = sensitivities(bounds, neighbours=pair.neighbours)
    sums = [
        clipped_sums(ArraySamples(each.features, each.labels), bounds=bounds)
        for each in (pair.first, pair.second)
    ]
    for each in sums:
        adassp_zcdp(each, bounds=bounds, budget=Budget(RHO, pair.neighbours), rng=generator())
    upper = np.triu_indices(len(sums[0].moment))
    smallest = [np.linalg.eigvalsh(each.gram)[0] for each in sums]
    return [
        float(abs(smallest[0] - smallest[1]) / declared.eigenvalue),
        float(np.linalg.norm((sums[0].gram - sums[1].gram)[upper]) / declared.gram),
        float(np.linalg.norm(sums[0].moment - sums[1].moment) / declared.moment),
    ]


def sufficient_pair(neighbours: str, count: int) -> NeighbouringTables:
    """A Gram matrix of many records and one whose two parts of an estimate's move agree."""
    if neighbours == "replace-one":
        others, theirs = np.repeat(0.5 * np.eye(2), count, axis=0), np.repeat([-1.0, 1.0], count)
        row, replacement = [1.0, 0.0], ([[0.0, 1.0]], [-1.0])
    else:
        others, theirs = np.ones((count, 1)), -np.ones(count)
        row, replacement = [1.0], None
    return neighbouring_tables(
        np.vstack([others, row]),
        np.append(theirs, 1.0),
        record=len(theirs),
        neighbours=neighbours,
        replacement=replacement,
    )


def _place(pair: NeighbouringTables) -> int:
    """The row in which two tables of one size differ."""
    differ = np.any(pair.first.features != pair.second.features, axis=1)
    differ |= pair.first.labels != pair.second.labels
    return int(np.argmax(differ))


def correlated_noise(pair: NeighbouringTables) -> list[float]:
    """Equal iterates before the record's step, which moves by a clipped gradient, at most."""
    size, place = len(pair.first.labels), _place(pair)
    silent = FTRLMechanism(identity(size), 0.0, 0.7, size)
    noise = FTRLMechanism.for_budget(
        identity(size), clip_norm=0.7, budget=Budget(RHO, pair.neighbours), sample_size=size
    )
    paths = [
        dp_ftrl(
            ArraySamples(each.features, each.labels),
            mechanism=silent,
            step_size=1.0,
            rng=generator(),
            ridge=0.3,
            start=np.ones(each.features.shape[1]),
            times=np.arange(1, size + 1),
        ).iterates
        for each in (pair.first, pair.second)
    ]
    np.testing.assert_array_equal(paths[0][:place], paths[1][:place])
    change = np.linalg.norm(paths[0][place] - paths[1][place])
    return [float(change / (noise.gradient_noise_std * np.sqrt(2 * RHO)))]


def shaped_noise(pair: NeighbouringTables) -> list[float]:
    """The rows up to the record's and one more, whose average ends with the record's step."""
    place, dimension = _place(pair), pair.first.features.shape[1]
    steps, clip_norm = place + 1, FixedClip(0.7)
    of = {"covariance": identity_covariance(dimension), "correlation": TreeCorrelation()}
    silent = ShapedMechanism(**of, clipping=clip_norm, noise_multiplier=0.0, sample_size=steps + 1)
    budget = Budget(RHO, pair.neighbours)
    noisy = ShapedMechanism.for_budget(budget, **of, clipping=clip_norm, sample_size=steps + 1)
    totals = []
    for each in (pair.first, pair.second):
        rows = np.vstack([each.features[:steps], np.zeros(dimension)])
        samples = ArraySamples(rows, np.append(each.labels[:steps], 0.0))
        run = shaped_dp_ftrl(samples, mechanism=silent, step_size=1.0, rng=generator())
        totals.append((steps + 1) * run.average)
    correlation = of["correlation"].sensitivity(steps)
    change = correlation * np.linalg.norm(totals[0] - totals[1]) / clip_norm.clip_norm
    return [float(change / (noisy.noise_multiplier * np.sqrt(2 * RHO)))]


def noisy_descent(pair: NeighbouringTables) -> list[float]:
    """The iterate after the record's step, from a start at which the penalty is clipped, too."""
    steps, dimension = _place(pair) + 1, pair.first.features.shape[1]
    law = noisy_sgd.LinearRecords.uniform(mean=0.0, half_width=1.0, target=np.zeros(dimension))
    settings = {"records": law, "initial": np.full(dimension, 3.0), "clip_norms": [0.7]}
    ends = [
        noisy_sgd.run_noisy_sgd(
            each.features[:steps],
            each.labels[:steps],
            step_sizes=np.ones(steps),
            gradient_noise_stds=[0.0],
            ridge=0.3,
            rng=generator(),
            **settings,
        ).iterate[0, 0]
        for each in (pair.first, pair.second)
    ]
    noisy = noisy_sgd.run_noisy_sgd(
        pair.first.features,
        pair.first.labels,
        step_sizes=np.ones(len(pair.first.labels)),
        gradient_noise_stds=[1.3],
        rng=generator(),
        **settings,
    )
    rho = noisy.release(neighbours=pair.neighbours).budget.rho
    return [float(np.linalg.norm(ends[0] - ends[1]) / (1.3 * np.sqrt(2 * rho)))]


def one_pass(pair: NeighbouringTables) -> list[float]:
    """The iterate after the record's step moves by 2ηC, at most."""
    steps, dimension = _place(pair) + 1, pair.first.features.shape[1]
    mechanism = one_pass_dpgd.Mechanism(
        np.full(steps, 0.2), np.zeros(steps), [1.0], [0.7], Budget(np.inf, pair.neighbours)
    )
    ends = [
        one_pass_dpgd.fit(mechanism, each.features[:steps], each.labels[:steps], generator())[0]
        for each in (pair.first, pair.second)
    ]
    assert ends[0].shape == (dimension,)
    return [float(np.linalg.norm(ends[0] - ends[1]) / (2 * 0.2 * 0.7))]


def most(name: str) -> float:
    """What the worst record may move of what an algorithm's noise covers."""
    return 1.0 if name in EXACT else ROUNDING


EVERY: tuple[Neighbours, ...] = (REPLACE, ADD, ZERO)
SAME_PLACES = (REPLACE, ZERO)
# What each algorithm takes, and how much of what its noise covers the worst record moves.
ALGORITHMS: Mapping[str, tuple[Callable[[NeighbouringTables], list[float]], Any]] = {
    "huber": (huber, EVERY),
    "huber, own widths": (lambda pair: huber(pair, common_width=False), EVERY),
    "least squares": (least_squares, EVERY),
    "full batch": (full_batch, EVERY),
    "full batch on integers": (exact_full_batch, EVERY),
    "AdaSSP": (sufficient_statistics, EVERY),
    "AdaSSP on integers": (exact_sufficient_statistics, EVERY),
    "DP-FTRL": (correlated_noise, SAME_PLACES),
    "shaped DP-FTRL": (shaped_noise, SAME_PLACES),
    "noisy SGD": (noisy_descent, SAME_PLACES),
    "one pass": (one_pass, (REPLACE,)),
}

# Records (x, y): blank, ordinary, opposite, along one axis, and beyond every range.
RECORDS = [
    ((0.0, 0.0), 0.0),
    ((0.0, 0.0), 5.0),
    ((1e3, 1e3), 1e3),
    ((-1e3, -1e3), 1e3),
    ((3.0, 0.0), 3.0),
    ((-3.0, 0.0), 3.0),
    ((0.0, 3.0), -3.0),
    ((0.4, -0.3), 0.2),
    ((1e-160, 0.0), 1e300),
    ((1e300, -1e300), 1e300),
    ((5e-324, 0.0), 0.0),
]


def table_of(records: Sequence[tuple[Any, float]]) -> tuple[np.ndarray, np.ndarray]:
    features = np.array([row for row, _ in records], dtype=float).reshape(len(records), 2)
    return features, np.array([label for _, label in records], dtype=float)


def pairs(
    relation: Neighbours, others: Sequence[int], *, intercept: bool = False
) -> Iterator[NeighbouringTables]:
    """All pairs by a relation whose first table has these other records, at both ends of them."""
    rest = [RECORDS[each] for each in others]
    for number, record in enumerate(RECORDS):
        for place in sorted({0, len(rest)}):
            features, labels = table_of([*rest[:place], record, *rest[place:]])
            for row, label in RECORDS[:number] if relation is REPLACE else RECORDS[:1]:
                new = ([[1.0, *row]] if intercept else [row], [label])
                yield neighbouring_tables(
                    np.column_stack([np.ones(len(labels)), features]) if intercept else features,
                    labels,
                    record=place,
                    neighbours=relation,
                    replacement=new if relation is REPLACE else None,
                )
