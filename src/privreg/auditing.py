"""Lower bounds on a mechanism's privacy loss, from its runs on two neighbouring data sets.

A guarantee is an upper bound on an observer's ability to tell two neighbouring data sets apart. An
audit gives a lower bound. It runs the mechanism on both data sets and applies a test that tells
them apart. The test's error rates give a lower bound on the loss. A bound above the guaranteed loss
refutes the guarantee. A bound far below the guaranteed loss has two possible causes. The audit is
weak (its neighbours, test or number of runs), or the guaranteed loss is larger than needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.special import betaincinv, ndtri

from privreg.algorithms.records import require_names
from privreg.algorithms.samples import checked_data
from privreg.checks import (
    FloatArray,
    plain_array,
    require_array,
    require_count,
    require_instance,
    require_number,
)
from privreg.privacy.budget import Budget, Neighbours


class Table(NamedTuple):
    """Features (n, p), labels (n,), and the person of each row (n,) if a record is a person."""

    features: FloatArray
    labels: FloatArray
    groups: NDArray[np.generic] | None = None


class NeighbouringTables(NamedTuple):
    """Two tables and their neighbouring relation; not private, so a `Release` refuses the pair."""

    first: Table
    second: Table
    neighbours: Neighbours

    @property
    def not_private(self) -> bool:
        return True


def neighbouring_tables(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    record: int,
    neighbours: Neighbours | str,
    replacement: tuple[ArrayLike, ArrayLike] | None = None,
    groups: ArrayLike | None = None,
) -> NeighbouringTables:
    """A table and its neighbour, which differs in one record.

    Under replace-one, the second table has `replacement` instead of the record: features (m, p) and
    labels (m,), with m = 1 unless a record is a person. Under add-remove the second table lacks the
    record's rows. Under zero-out the record's labels and rows are 0, including an intercept's
    column. `record` is the index of any of its rows. `groups` has each row's person, if any.

    Raises
    ------
    ValueError
        If `replacement` is missing under replace-one, or given under another relation.

    Examples
    --------
    >>> pair = neighbouring_tables(np.eye(3), [1.0, 2.0, 3.0], record=1, neighbours="add-remove")
    >>> len(pair.first.labels), pair.second.labels.tolist()
    (3, [1.0, 3.0])
    """
    relation = Neighbours(neighbours)
    rows, values = map(np.array, checked_data(features, labels))
    at = require_count("record", record, least=0, most=len(rows) - 1)
    if (replacement is not None) != (relation is Neighbours.REPLACE_ONE):
        raise ValueError("replacement must be given for replace-one and None otherwise")
    names = np.arange(len(rows)) if groups is None else require_names(groups, len(rows))
    first = Table(rows, values, None if groups is None else names)
    own = names == names[at]
    if relation is Neighbours.ZERO_OUT:
        blank = Table(np.where(own[:, None], 0.0, rows), np.where(own, 0.0, values), first.groups)
        return NeighbouringTables(first, blank, relation)
    others = np.flatnonzero(~own)
    place = int(np.count_nonzero(others < at))
    new, targets = np.empty((0, rows.shape[1])), np.empty(0)
    if replacement is not None:
        given: Any = replacement
        if not isinstance(given, tuple) or len(given) != 2:
            raise ValueError("replacement must be a pair of rows and labels, got another value")
        count = 1 if groups is None else None
        new = require_array("replacement", given[0], shape=(count, rows.shape[1]))
        targets = require_array("replacement", given[1], shape=new.shape[:1])
    second = Table(
        np.insert(rows[others], place, new, axis=0),
        np.insert(values[others], place, targets),
        None if groups is None else np.insert(names[others], place, [names[at]] * len(new)),
    )
    return NeighbouringTables(first, second, relation)


Mechanism = Callable[[Any, int, np.random.Generator], ArrayLike]
LEAST_RUNS = 20
ORDERS = 1.0 + np.geomspace(1e-3, 1e3, 200)


@dataclass(frozen=True)
class PrivacyLoss:
    """Lower bounds on a mechanism's privacy loss; the confidence holds for each bound separately.

    Attributes
    ----------
    mu, rho : float
        The mechanism is not μ'-Gaussian-DP for any μ' < `mu`, nor ρ'-zCDP for any ρ' < `rho`.
    confidence : float
        Probability, over the runs, that a bound holds.
    runs : int
        Runs on each of the two data sets.
    neighbours : Neighbours or None
        Neighbouring relation of the two data sets, if stated.
    """

    mu: float
    rho: float
    confidence: float
    runs: int
    neighbours: Neighbours | None
    _choose: tuple[FloatArray, FloatArray] = field(repr=False, compare=False)
    _judge: tuple[FloatArray, FloatArray] = field(repr=False, compare=False)

    def epsilon(self, *, delta: float) -> float:
        r"""Largest ε that the runs refute at δ: the mechanism is not (ε', δ)-DP for any ε' < ε.

        .. math:: \varepsilon = \max\Big(0,\ \ln\frac{1 - \delta - \bar\beta}{\bar\alpha},\
            \ln\frac{1 - \delta - \bar\alpha}{\bar\beta}\Big)

        where ᾱ and β̄ are the upper confidence bounds of the error rates, as in `audit`. The
        two logarithms are for the two orders of the data sets. δ is in [0, 1).
        """
        delta = require_number("delta", delta, least=0, below=1)

        def refuted(alpha: FloatArray, beta: FloatArray) -> FloatArray:
            with np.errstate(divide="ignore"):
                one = np.log(np.maximum(1 - delta - beta, 0)) - np.log(alpha)
                other = np.log(np.maximum(1 - delta - alpha, 0)) - np.log(beta)
            return np.maximum(0.0, np.maximum(one, other))

        return _bound(self._choose, self._judge, refuted, self.confidence)

    def share(self, promised: Budget) -> float:
        """Ratio of `mu` to √(2ρ), the μ of a Gaussian mechanism with the `promised` budget ρ.

        A ratio above 1 refutes a promise of Gaussian DP, which all purely Gaussian mechanisms make.
        A promise of zCDP alone is refuted if `rho` exceeds the promised ρ.
        """
        require_instance("promised", promised, Budget)
        if self.neighbours not in (None, promised.neighbours):
            raise ValueError(
                f"promised must be for {self.neighbours.value} neighbours, like the two data "
                f"sets, got {promised.neighbours.value!r}"
            )
        return self.mu / promised.root


def audit(
    outputs: ArrayLike,
    neighbour_outputs: ArrayLike,
    *,
    direction: ArrayLike | None = None,
    confidence: float = 0.999,
    neighbours: Neighbours | str | None = None,
) -> PrivacyLoss:
    r"""Lower bound on the privacy loss from a mechanism's outputs on two neighbouring data sets.

    .. math::
        \mu \ge \Phi^{-1}(1 - \bar\alpha) - \Phi^{-1}(\bar\beta), \qquad
        \rho \ge \max_{a > 1} \frac{1}{a(a-1)}
        \ln\big(p^a q^{1-a} + (1-p)^a (1-q)^{1-a}\big),\quad p = 1 - \bar\beta,\ q = \bar\alpha

    Each output is reduced to one number, and a threshold decides between the data sets. Reduction,
    threshold and the side that raises an alarm are chosen on the first half of the runs. The
    second half gives the rates α of false alarms and β of misses. Bounds on the loss follow from
    Clopper–Pearson upper bounds ᾱ and β̄ on these rates, each with half the allowed error.

    Parameters
    ----------
    outputs, neighbour_outputs : array_like, shape (runs,) or (runs, p)
        Independent outputs on each data set, equally many, at least 20. Outputs that are not finite
        count as outcomes, so a mechanism that fails on only one data set is caught.
    direction : array_like, shape (p,), optional
        Direction for reducing vectors to one component. By default, the better of the linear and
        quadratic likelihood ratio of Gaussians fitted to the first half, best for Gaussian outputs.
    confidence : float
        Confidence level of each bound, in (0, 1).
    neighbours : Neighbours, optional
        Neighbouring relation of the two data sets; `share` refuses a budget for another relation.

    Returns
    -------
    PrivacyLoss
        Lower bounds on μ and ρ, and on ε at each δ.

    Raises
    ------
    ValueError
        If the outputs differ in shape or are fewer than 20 on each data set.

    Examples
    --------
    >>> rng = np.random.Generator(np.random.SFC64(1))
    >>> loss = audit(rng.standard_normal(40_000), 1 + rng.standard_normal(40_000))
    >>> 0.9 < loss.mu < 1, loss.epsilon(delta=1e-5) > 0.9
    (True, True)
    >>> loss.share(Budget.gaussian_dp(0.5)) > 1
    True

    Source
    ------
    Nasr, Hayes, Steinke, Balle, Tramèr, Jagielski, Carlini and Terzis (2023), section 4, for μ;
    Jagielski, Ullman and Oprea (2020) for ε; for ρ the data processing inequality of the Rényi
    divergence, from the mechanism to the two outcomes of the test.
    """
    confidence = require_number("confidence", confidence, above=0, below=1)
    relation = None if neighbours is None else Neighbours(neighbours)
    first = _outputs("outputs", outputs)
    second = _outputs("neighbour_outputs", neighbour_outputs)
    if first.shape != second.shape:
        raise ValueError(
            f"neighbour_outputs must have the shape of outputs, {first.shape}, got {second.shape}"
        )
    runs = first.shape[0]
    half = runs // 2
    candidates = [
        (statistic(first), statistic(second))
        for statistic in _statistics(first[:half], second[:half], direction)
    ]

    def best(bound: Callable[[FloatArray, FloatArray], FloatArray]) -> tuple[float, int]:
        choices = [
            _chosen((one[:half], two[:half]), bound, confidence)[0] for one, two in candidates
        ]
        index = int(np.argmax(choices))
        one, two = candidates[index]
        halves = ((one[:half], two[:half]), (one[half:], two[half:]))
        return _bound(*halves, bound, confidence), index

    # A small rate keeps its digits: Φ^{-1}(1 - α) = -Φ^{-1}(α).
    mu, index = best(lambda alpha, beta: np.maximum(0.0, -ndtri(alpha) - ndtri(beta)))
    one, two = candidates[index]
    return PrivacyLoss(
        mu=mu,
        rho=best(_concentrated)[0],
        confidence=confidence,
        runs=runs,
        neighbours=relation,
        _choose=(one[:half], two[:half]),
        _judge=(one[half:], two[half:]),
    )


def audit_mechanism(
    mechanism: Mechanism,
    data: Any,
    neighbour: Any,
    *,
    runs: int,
    rng: np.random.Generator,
    direction: ArrayLike | None = None,
    confidence: float = 0.999,
    neighbours: Neighbours | str | None = None,
) -> PrivacyLoss:
    """Run a mechanism on two neighbouring data sets and `audit` its outputs.

    Parameters
    ----------
    mechanism : callable
        `mechanism(data, runs, rng)` returns independent outputs, shape (runs,) or (runs, p).
    data, neighbour : object
        Two neighbouring data sets, passed on unchanged. The bound is for this pair, so choose the
        worst known pair. For instance, all records are zero, but in one data set one record has the
        longest gradient that clipping allows.
    runs : int
        Number of runs on each data set, at least 20. Sampling error lowers the bound by a share of
        about 12 / (μ √runs) at the default confidence: 4 % at μ = 1 and 10⁵ runs.
    rng, direction, confidence, neighbours
        `rng` draws all runs; the other parameters, the result and the errors are as for `audit`.

    Examples
    --------
    >>> def mean(data, runs, rng):
    ...     return np.mean(data) + 0.1 * rng.standard_normal(runs)
    >>> rng = np.random.Generator(np.random.SFC64(1))
    >>> loss = audit_mechanism(mean, np.zeros(10), np.eye(10)[0], runs=20_000, rng=rng)
    >>> 0.9 < loss.mu < 1
    True
    """
    outputs, others = (mechanism(each, runs, rng) for each in (data, neighbour))
    loss = audit(outputs, others, direction=direction, confidence=confidence, neighbours=neighbours)
    if loss.runs != runs:
        raise ValueError(f"mechanism must return {runs} outputs, got {loss.runs}")
    return loss


def _outputs(name: str, value: ArrayLike) -> FloatArray:
    array = plain_array(name, value)
    shape = array.shape
    numbers = array.dtype.kind in "biuf" and array.ndim in (1, 2)
    if not numbers or shape[0] < LEAST_RUNS or 0 in shape:
        raise ValueError(
            f"{name} must be numbers of shape (runs,) or (runs, p) with at least {LEAST_RUNS} "
            f"runs, got shape {shape} of {array.dtype}"
        )
    return array.astype(np.float64)


def _statistics(
    first: FloatArray, second: FloatArray, direction: ArrayLike | None
) -> list[Callable[[FloatArray], FloatArray]]:
    """Reductions of outputs to one number, NaN where an output is not finite."""
    if first.ndim == 1:
        if direction is not None:
            raise ValueError("direction must be omitted if an output is a number, got a direction")
        return [np.asarray]
    if direction is not None:
        along = require_array("direction", direction, shape=(first.shape[1],))
        return [lambda outputs: _apply(outputs, lambda rows: rows @ along)]
    finite = [outputs[np.all(np.isfinite(outputs), axis=1)] for outputs in (first, second)]
    p = first.shape[1]
    if min(map(len, finite)) <= 2 * p:
        return [lambda outputs: _apply(outputs, lambda rows: np.zeros(len(rows)))]
    # Coordinates of very different or no spread must not decide whether the fit is stable.
    pooled = np.concatenate(finite)
    size = np.maximum(np.max(np.abs(pooled), axis=0), np.finfo(np.float64).tiny)
    shift, scale = np.mean(pooled / size, axis=0), np.std(pooled / size, axis=0)
    scale = np.where(scale > 0, scale, 1.0)

    def standard(rows: FloatArray) -> FloatArray:
        return (rows / size - shift) / scale

    whitened = [_Gaussian(standard(rows)) for rows in finite]
    gap = whitened[1].mean - whitened[0].mean
    between = (whitened[0].covariance + whitened[1].covariance) / 2
    linear = np.linalg.lstsq(between, gap, rcond=1e-12)[0]

    def ratio(rows: FloatArray) -> FloatArray:
        return whitened[1].log_density(rows) - whitened[0].log_density(rows)

    return [
        lambda outputs: _apply(outputs, lambda rows: standard(rows) @ linear),
        lambda outputs: _apply(outputs, lambda rows: ratio(standard(rows))),
    ]


def _apply(outputs: FloatArray, statistic: Callable[[FloatArray], FloatArray]) -> FloatArray:
    values = np.full(len(outputs), np.nan)
    finite = np.all(np.isfinite(outputs), axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        values[finite] = statistic(outputs[finite])
    return values


class _Gaussian:
    """A Gaussian law fitted to rows (m, p)."""

    def __init__(self, rows: FloatArray) -> None:
        self.mean = rows.mean(axis=0)
        self.covariance = np.atleast_2d(np.cov(rows, rowvar=False))
        # Without this ridge, an output that never varies would have no density.
        ridge = 1e-9 * np.eye(len(self.mean))
        self._factor = np.linalg.cholesky(self.covariance + ridge)

    def log_density(self, rows: FloatArray) -> FloatArray:
        white = solve_triangular(self._factor, (rows - self.mean).T, lower=True, check_finite=False)
        return -0.5 * np.sum(white**2, axis=0) - np.sum(np.log(np.diag(self._factor)))


def _concentrated(alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """Largest ratio of Rényi divergence to order, between the two outcomes in either direction."""
    a = ORDERS.reshape(-1, *(1,) * alpha.ndim)
    with np.errstate(divide="ignore"):
        hit, alarm = np.log1p(-beta), np.log(alpha)
        miss, quiet = np.log(beta), np.log1p(-alpha)

    def divergence(p: FloatArray, q: FloatArray, p_rest: FloatArray, q_rest: FloatArray) -> Any:
        total = np.logaddexp(a * p + (1 - a) * q, a * p_rest + (1 - a) * q_rest)
        return np.max(total / (a * (a - 1)), axis=0)

    with np.errstate(invalid="ignore"):
        both = np.fmax(divergence(hit, alarm, miss, quiet), divergence(quiet, miss, alarm, hit))
    return np.where(alpha + beta < 1, np.maximum(both, 0.0), 0.0)


def _bound(
    choose: tuple[FloatArray, FloatArray],
    judge: tuple[FloatArray, FloatArray],
    bound: Callable[[FloatArray, FloatArray], FloatArray],
    confidence: float,
) -> float:
    _, threshold, above = _chosen(choose, bound, confidence)
    first, second = (_ranked(values) for values in judge)
    alarms = np.count_nonzero(first > threshold)
    misses = np.count_nonzero(second <= threshold)
    if not above:
        alarms, misses = len(first) - alarms, len(second) - misses
    rates = [
        _upper(np.array([count], dtype=np.float64), len(values), confidence)
        for count, values in ((alarms, first), (misses, second))
    ]
    return float(bound(*rates)[0])


def _chosen(
    choose: tuple[FloatArray, FloatArray],
    bound: Callable[[FloatArray, FloatArray], FloatArray],
    confidence: float,
) -> tuple[float, float, bool]:
    """Best bound, its threshold, and whether a statistic above it speaks for the neighbour."""
    first, second = (np.sort(_ranked(values)) for values in choose)
    pooled = np.unique(np.concatenate([first, second]))
    # Thresholds are dense where few runs lie beyond, since those decide a small δ.
    tail = np.unique(np.geomspace(1, len(pooled), 200).astype(np.int64)) - 1
    middle = np.linspace(0, len(pooled) - 1, min(len(pooled), 200)).astype(np.int64)
    thresholds = pooled[np.unique(np.concatenate([tail, len(pooled) - 1 - tail, middle]))]
    alarms = len(first) - np.searchsorted(first, thresholds, side="right")
    misses = np.searchsorted(second, thresholds, side="right")
    best = (-1.0, 0.0, True)
    for above in (True, False):
        if not above:
            alarms, misses = len(first) - alarms, len(second) - misses
        bounds = bound(
            _upper(alarms, len(first), confidence), _upper(misses, len(second), confidence)
        )
        index = int(np.argmax(bounds))
        if bounds[index] > best[0]:
            best = (float(bounds[index]), float(thresholds[index]), above)
    return best


def _ranked(values: FloatArray) -> FloatArray:
    """Values for ranking: infinities become the largest doubles, and NaN becomes infinity."""
    largest = np.finfo(np.float64).max
    return np.where(np.isnan(values), np.inf, np.clip(values, -largest, largest))


def _upper(counts: NDArray[Any], runs: int, confidence: float) -> FloatArray:
    """Clopper–Pearson upper bound of a rate, with half of the allowed error probability."""
    level = 1 - (1 - confidence) / 2
    inside = np.minimum(counts, runs - 1)
    return np.where(counts >= runs, 1.0, betaincinv(inside + 1.0, runs - inside, level))
