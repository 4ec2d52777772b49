"""`PrivateLinearRegression`: scikit-learn's interface to a private fit with intervals."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, validate_data

from privreg.algorithms.adassp import Bounds
from privreg.algorithms.records import Persons, require_groups
from privreg.algorithms.samples import ArraySamples, Samples, WeightedSamples, weight_roots
from privreg.algorithms.split_budget import private_count, require_budget
from privreg.estimators.bounds import LARGEST, NARROWEST, Frame, declared
from privreg.estimators.columns import Numbers, table_columns
from privreg.estimators.fitted_regression import FittedRegression
from privreg.estimators.odometer import Odometer, PrivacyStatement
from privreg.estimators.outlook import FIT_TARGETS, FitTarget, foreseen, hopeless
from privreg.estimators.refits import (
    CLONES,
    ROWS_OF_CLONES,
    clones_of,
    counted,
    is_clone_of,
    related,
    whole,
)
from privreg.estimators.table_quality import (
    WEIGHTS,
    TableQuality,
    private_quality,
    require_share,
)
from privreg.estimators.tables import Table, TableSamples, open_table
from privreg.estimators.unquoted import unquoted
from privreg.methods.method import Declared, Method, require_method
from privreg.noise.source import NOT_PRIVATE, SECRET, Ongoing, Secret, Seeded
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.privacy.release import Release
from privreg.validation import (
    require_choice,
    require_count,
    require_flag,
    require_instance,
    require_number,
    require_unmasked,
)

FloatArray = NDArray[np.float64]
COUNT_SHARE = 0.01
CLIPPED = "features and labels outside the declared bounds are clipped to them, row by row"
INPUTS = (
    "inputs are functions of one record and of public values, which what a scaler learns from the "
    "table is not"
)
# Numbers of a table that are held in memory rather than read at each pass.
HELD_NUMBERS = 20_000_000


class PrivateLinearRegression(FittedRegression):
    r"""Linear regression under differential privacy, with intervals that count all noise.

    .. math:: y \approx \beta_0 + x^\top\beta

    fitted in the units of declared bounds, to which values outside are clipped. By default β is
    that of least squares in the population, the best linear prediction of the mean, whatever the
    errors are (`PrivateLeastSquares`).

    Parameters
    ----------
    budget : Budget
        What the fit may spend, with its neighbouring relation: `Budget.approximate(1.0, 1e-6)`.
    epsilon, delta : float, optional
        In place of a budget: `Budget.approximate(epsilon, delta)`, δ = 1e-6 by default.
    unit : {"row", "person"}, optional
        Unit of privacy: "person" refuses a fit without groups, "row" one with groups. By default
        groups decide, which cross-validation does not hand over.
    feature_bounds : (low, high) or mapping
        Bounds of the features from public knowledge: two numbers for all, two arrays, or
        {column: (low, high)} for a DataFrame or a table in a file.
    label_bounds : (low, high)
        Bounds of the label, likewise.
    weight_bound : float, optional
        W, public: the largest weight of a record, in [1e-15, 1e15]; needed with weights, which are
        clipped to [0, W].
    fit_intercept : bool
        Whether to fit β_0.
    target : {"least_squares", "robust"}
        Method where `settings` names none. "robust" is private Huber regression
        (`PrivateRegression`): shorter intervals, and the slopes of least squares only if errors are
        symmetric given the features, or independent of them.
    settings : Method, optional
        The method with its settings, chosen without looking at the data, in place of `target`: such
        as `plan_run(problem, budget).best.method` for a problem in the units of the bounds
        (`estimators.outlook.problem_in_bounds`). By default planned from the budget and the numbers
        of records and features.
    release : {"last", "all"}
        Whether the fitted object keeps the last iterate or all of them; both cost the same.
    random_state : int, optional
        Seed of the noise, at least 0, for tests: such a fit is not private, and says so, since one
        who knows the seed can subtract the noise. By default the operating system's noise.

    Attributes
    ----------
    coef_ : ndarray, shape (p,)
        β.
    intercept_ : float
        β_0; 0 without intercept.
    privacy_ : PrivacyStatement
        Spending, ε at δ, ρ, μ, and what the guarantee assumes; infinite with a seed.
    settings_ : Method
    outlook_ : Outlook
        Error that was predicted before the fit, from what is public.
    feature_bounds_, label_bounds_ : ndarray, shapes (p, 2) and (2,)
    weight_bound_ : float or None
        W, where weights were given.
    quality_ : TableQuality or None
        Shares of clipped records and, of a table in a file, incomplete ones, with noise.
    warnings_ : list of str
        Doubts that show in what is released or public; also raised.
    iterates_ : ndarray, shape (T, p)
        Coefficients after each step that the method releases, if all are kept.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    **Guarantee.** The fitted object, all of its attributes together, keeps the budget under its
    relation, of rows, or of persons with all their rows where `groups` are given: ρ-zCDP with the ρ
    of `privacy_`, and √(2ρ)-Gaussian DP where its μ is finite. All noise is Gaussian then, its
    shares fixed beforehand: a stated (ε, δ) is met exactly, by more ρ than zCDP alone would allow
    (`Budget.gaussian`). Under replace-one and zero-out neighbours the number of records is public;
    the blank record of zero-out is a row of zeros in the units of the bounds, its entry for the
    intercept included, and no row of zeros of the table. Under add-remove the number of rows is
    private, from none on. An exception depends on the data where they hold what is no finite
    number; one that comes after noise was drawn says that its budget is spent. None with a seed in
    `random_state`.

    A record of weight w enters as its row in the units of the bounds times √(w/W), which is no
    longer than the row itself: no bound on what a record adds grows. The weight is one of the
    record's values and as private as they are, and must depend on no other record.

    Examples
    --------
    >>> import numpy as np
    >>> from privreg import Budget, PrivateLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> features = rng.uniform(0, 10, (5_000, 2))
    >>> labels = 3 + features @ [2.0, -1.0] + rng.normal(0, 2, 5_000)
    >>> model = PrivateLinearRegression(
    ...     Budget.approximate(1.0, 1e-6), feature_bounds=(0, 10), label_bounds=(-20, 40)
    ... ).fit(features, labels)
    >>> model.confidence_intervals(0.999999).covers([2.0, -1.0, 3.0]).tolist()
    [True, True, True]
    >>> round(model.privacy_.epsilon(1e-6), 6), model.privacy_.unit
    (1.0, 'row')
    """

    quality_: TableQuality | None

    def __init__(
        self,
        budget: Budget | None = None,
        *,
        epsilon: float | None = None,
        delta: float = 1e-6,
        unit: Literal["row", "person"] | None = None,
        feature_bounds: Any = None,
        label_bounds: Any = None,
        weight_bound: float | None = None,
        fit_intercept: bool = True,
        target: FitTarget = "least_squares",
        settings: Method | None = None,
        release: Literal["last", "all"] = "last",
        random_state: int | None = None,
        odometer: Odometer | None = None,
    ) -> None:
        self.budget = budget
        self.epsilon = epsilon
        self.delta = delta
        self.unit = unit
        self.feature_bounds = feature_bounds
        self.label_bounds = label_bounds
        self.weight_bound = weight_bound
        self.fit_intercept = fit_intercept
        self.target = target
        self.settings = settings
        self.release = release
        self.random_state = random_state
        self.odometer = odometer

    @whole
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        quality_share: float = 0.01,
    ) -> Self:
        """Fit, spending the whole budget; a fit that fails leaves the object as it was.

        A row with a missing value is refused. With an intercept no row counts as absent, and
        zero-out's blank cannot be given here; `fit_table` takes an incomplete record for it.
        Without an intercept a row of zeros is one if all bounds hold 0.

        Parameters
        ----------
        X : array_like or DataFrame, shape (n, p)
        y : array_like, shape (n,)
        sample_weight : array_like, shape (n,), optional
            Finite weights, clipped to [0, `weight_bound`]. Each may depend on its own record and on
            what is public, not on other records, as weights that are scaled to a sum do. The number
            of records counts those of weight 0, too.
        groups : array_like, shape (n,), optional
            The person whose row it is. Privacy then covers all rows of a person together.
        quality_share : float
            As for `fit_table`, of clipped records alone; a person is one where any row is clipped.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from privreg import Budget, PrivateLinearRegression
        >>> rng = np.random.default_rng(0)
        >>> features, weights = rng.uniform(0, 10, (5_000, 1)), rng.integers(1, 4, 5_000)
        >>> labels = 3 + 2 * features[:, 0] + rng.normal(0, 2, 5_000)
        >>> model = PrivateLinearRegression(
        ...     Budget.approximate(4.0, 1e-6),
        ...     feature_bounds=(0, 10), label_bounds=(-20, 40), weight_bound=3,
        ... ).fit(features, labels, sample_weight=weights)
        >>> model.confidence_intervals(0.999999).covers([2.0, 3.0]).tolist()
        [True, True]
        """
        self.weight_bound_ = self._require_settings(groups, sample_weight)
        share = require_share(quality_share)
        require_unmasked("X", X)
        require_unmasked("y", y)
        features, labels = unquoted(lambda: self._numbers(X, y), X=X, y=y)
        persons = None if groups is None else require_groups(groups, len(labels))
        names = getattr(self, "feature_names_in_", None)
        self.feature_bounds_ = declared(
            "feature_bounds", self.feature_bounds, columns=features.shape[1], names=names
        )
        self.label_bounds_ = declared("label_bounds", self.label_bounds, columns=1)[0]
        frame = self._frame()
        rows, values = frame.rows(features), frame.labels(labels)
        samples: ArraySamples
        columns, bounds = [*features.T, labels], [*self.feature_bounds_, self.label_bounds_]
        if self.weight_bound_ is None:
            samples = ArraySamples(rows, values)
        else:
            weights = _require_weights(sample_weight, len(values))
            columns, bounds = [*columns, weights], [*bounds, (0.0, self.weight_bound_)]
            roots = weight_roots(weights, self.weight_bound_)
            samples = WeightedSamples(rows * roots[:, None], values * roots, roots)
        records = len(labels) if persons is None else persons.count
        quality = None
        if share > 0:
            own = self._names()[: features.shape[1]]
            names = [*own, "(label)", "(weight)"][: len(columns)]
            if len(set(names)) < len(names):
                raise ValueError(
                    "X must have columns of different names, none of them '(label)' or '(weight)'"
                )
            counts = _clipped_counts(columns, bounds, persons)
            quality = partial(private_quality, counts, dict.fromkeys(names, True))
        return self._fit(samples, frame, records, quality, share, persons=persons)

    @whole
    def fit_table(
        self,
        table: str | Path | Table,
        *,
        label: str,
        weight: str | None = None,
        quality_share: float = 0.01,
        threads: int = 2,
        executor: Executor | None = None,
    ) -> Self:
        """Fit a file of any length in memory that does not grow with it.

        Parameters
        ----------
        table : path or Table
            A `.parquet` or `.csv` file, or a folder of either.
        label : str
            Column of the label.
        weight : str, optional
            Column of the weights, none of the others, clipped to [0, `weight_bound`], `inf` as
            well. A record whose weight is missing or unreadable counts as absent.
        quality_share : float
            Share of the budget, at least 0 and less than 1, that buys the shares of incomplete and
            clipped records of each column; 0 buys none.
        threads : int
            Threads that read row groups of Parquet files, or the files of a folder.
        executor : concurrent.futures.Executor, optional
            Its workers read and sum the parts of the table in place of threads, such as the
            `get_executor()` of a Dask client; a part is a row group or a CSV file. They must find
            the files under the same paths and have this version of the library. Sums are added in
            the order of the parts.

        Returns
        -------
        self
            The features are the columns that `feature_bounds` names, a mapping from each to
            (low, high) or to {"categories": [...]}: one feature for each but the first.
            A record with a missing, unreadable or undeclared value in one of them or in the label
            counts as absent; `inf` and numbers outside their bounds are clipped to them.

        Guarantee
        ---------
        That of the class. All noise is drawn in this process, once, and none of it is sent. What
        workers send are exact sums over records, which are not private: the guarantee is for what
        this process releases, and workers, their logs and the network are trusted as it is.
        """
        if weight is not None:
            require_instance("weight", weight, str)
        self.weight_bound_ = self._require_settings(weights=weight)
        require_count("threads", threads)
        share = require_share(quality_share)
        source = table if isinstance(table, Table) else open_table(table)
        columns = table_columns(self.feature_bounds, label, tuple(source.schema.names))
        names = [name for column in columns for name in column.names]
        self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
        self.feature_bounds_ = np.array([pair for column in columns for pair in column.bounds])
        self.label_bounds_ = declared("label_bounds", self.label_bounds, columns=1)[0]
        frame = self._frame()
        bound = self.weight_bound_
        weighing = None if bound is None else Numbers(weight or "", 0.0, bound)
        samples = TableSamples(source, columns, label, frame, executor, weighing)
        if not source.row_count and self._require_budget().neighbours is not Neighbours.ADD_REMOVE:
            raise ValueError("table must have rows, got none")
        here = executor is None
        rows, counts = samples.hold(most=HELD_NUMBERS) if here else (samples, None)
        quality = None
        if share > 0:
            counts = samples.counts(threads=threads) if counts is None else counts
            bounded = {column.name: column.clips for column in samples.columns}
            quality = partial(private_quality, counts, bounded)
        self._fit(rows, frame, source.row_count, quality, share, threads=threads)
        if quality is None:
            self.quality_ = TableQuality({}, {}, 0.0)
        return self

    def _numbers(self, X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
        # Under add-remove the number of rows is private: no table is refused for it.
        least = 0 if self._require_budget().neighbours is Neighbours.ADD_REMOVE else 1
        features, labels = validate_data(
            self, X, y, y_numeric=True, dtype=np.float64, ensure_min_samples=least
        )
        return features, np.asarray(labels, dtype=np.float64)

    def _fit(
        self,
        samples: Samples,
        frame: Frame,
        records: int,
        quality: Callable[..., Release[TableQuality]] | None,
        share: float,
        *,
        persons: Persons | None = None,
        threads: int = 1,
    ) -> Self:
        """Draw noise, of which the odometer counts the whole budget before, and set attributes."""
        if self.random_state is None and clones_of(self) > 1:
            ungrouped = self.unit is None and persons is None
            for text in [CLONES] * (self.odometer is None) + [ROWS_OF_CLONES] * ungrouped:
                warnings.warn(text, UserWarning, stacklevel=4)
        budget, source = self._require_budget(), self._source()
        gaussian = self.settings is None or self.settings.gaussian_dp
        # A method that only adds Gaussian noise may spend more.
        budget = left = budget.gaussian() if gaussian else budget
        seeded, unit = isinstance(source, Seeded), "row" if persons is None else "person"
        if self.odometer is not None:
            spending = (("fit", budget),)
            self.odometer.add(
                PrivacyStatement(budget, unit, spending, source.assumptions, seeded, gaussian)
            )
        rng, count = source.generator(), float(records)
        spent: dict[str, Release[Any]] = {}
        self.quality_ = None
        with counted(budget, seeded=seeded):
            if budget.neighbours is Neighbours.ADD_REMOVE:
                counting = private_count(records, budget=left.share(COUNT_SHARE), rng=rng)
                count, left = counting.value, left.share(1 - COUNT_SHARE)
                spent["number of records"] = counting
            if quality is not None:
                shares = quality(sample_size=count, budget=left.share(share), rng=rng)
                self.quality_, left = shares.value, left.share(1 - share)
                spent["incomplete and clipped records"] = shares
            size = max(1, round(count))
            self.outlook_, doubts = foreseen(size, frame, left, self.target, self.settings)
            self.settings_ = self.outlook_.settings
            known = Declared(
                Bounds(frame.feature_norm, 1.0),
                sample_size=count,
                groups=persons,
                intercept=frame.intercept,
                threads=threads,
            )
            noise = Ongoing(rng, source)
            release = self.settings_.run(samples, left, declared=known, noise=noise)
        fit: Any = release.value
        own = (WEIGHTS,) if getattr(samples, "weighted", False) else ()
        texts = (text for each in (*spent.values(), release) for text in each.assumptions)
        self.privacy_ = PrivacyStatement(
            with_secret_noise=budget,
            unit=unit,
            spending=(*((what, each.budget) for what, each in spent.items()), *fit.spending),
            assumptions=tuple(dict.fromkeys((CLIPPED, INPUTS, *own, *texts, *source.assumptions))),
            seeded=seeded,
            gaussian_dp=self.settings_.gaussian_dp,
        )
        # A user who reads one of them needs no second warning of the same.
        doubts += hopeless(fit, count)
        self.warnings_ = [] if self.quality_ is None else self.quality_.warnings
        self.warnings_ += filter(None, ["; ".join(doubts)])
        if seeded:
            why = "since random_state is given, as bagging and AdaBoost do to all of their members"
            self.warnings_.insert(0, f"{NOT_PRIVATE}, {why}")
        every = self.release == "all"
        self._fitted = fit if every else replace(fit, iterates=fit.iterates[-1:])
        matrix, offset = frame.functionals()
        iterates = fit.iterates @ matrix.T + offset
        p = len(frame.features)
        self.coef_ = iterates[-1, :p]
        self.intercept_ = float(iterates[-1, p]) if self.fit_intercept else 0.0
        if every:
            self.iterates_ = iterates
        return self

    def _require_budget(self) -> Budget:
        if (self.budget is None) == (self.epsilon is None):
            raise ValueError(
                "budget must be declared, such as Budget.approximate(1.0, 1e-6), or epsilon with "
                f"delta, got {'neither' if self.budget is None else 'both'}"
            )
        if self.epsilon is not None:
            return require_budget(Budget.approximate(self.epsilon, self.delta))
        return require_budget(self.budget)  # type: ignore[arg-type]

    def _require_settings(
        self, groups: ArrayLike | None = None, weights: ArrayLike | str | None = None
    ) -> float | None:
        """The bound of the weights; all settings are looked at before a row is or noise drawn."""
        self._require_budget()
        require_flag("fit_intercept", self.fit_intercept)
        require_choice("release", self.release, ("last", "all"))
        require_choice("target", self.target, FIT_TARGETS)
        if self.unit is not None:
            person = require_choice("unit", self.unit, ("row", "person")) == "person"
            if person and groups is None:
                raise ValueError(
                    "groups must be given with unit='person', got none: files have none, and "
                    "cross-validation hands them over after sklearn.set_config("
                    "enable_metadata_routing=True) and then set_fit_request(groups=True)"
                )
            if groups is not None and not person:
                raise ValueError("groups must be None with unit='row'")
        if self.settings is not None:
            require_method("settings", self.settings)
            self.settings.require_relation(self._require_budget())
            self.settings.require_groups(groups)
        if self.odometer is not None:
            require_instance("odometer", self.odometer, Odometer)
        self._source()
        bound = self.weight_bound
        if bound is not None:
            bound = require_number("weight_bound", bound, least=NARROWEST, most=LARGEST)
        if weights is None:
            return None
        if bound is None:
            raise ValueError(
                "weight_bound must be declared with weights, a public largest weight, got None: "
                "without one a doubled weight, as bagging's counts, doubles what a record may "
                "change"
            )
        if self.settings is not None and not self.settings.takes_weights:
            raise ValueError(
                "settings must be a method that takes weights, such as least_squares, huber, "
                f"adassp or full_batch, got {self.settings.name}, whose steps see one record each"
            )
        return bound

    def _source(self) -> Secret | Seeded:
        if self.random_state is None:
            return SECRET
        return Seeded(require_count("random_state", self.random_state, least=0, most=inf))

    def __sklearn_clone__(self) -> Any:
        return related(self, super().__sklearn_clone__())

    def __getstate__(self) -> Any:
        # A grid's processes are sent clones.
        count = clones_of(self)
        return {**super().__getstate__(), **({"_clones": count} if count else {})}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__({name: value for name, value in state.items() if name != "_clones"})
        is_clone_of(self, state.get("_clones", 0))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Of a few rows nothing can be said in private.
        tags.regressor_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags


def _clipped_counts(
    columns: list[FloatArray], bounds: ArrayLike, persons: Persons | None
) -> NDArray[np.int64]:
    """Records that each column's bounds clip, persons in any of their rows. Not private."""
    counts = []
    for values, (low, high) in zip(columns, np.asarray(bounds), strict=True):
        outside = (values < low) | (values > high)
        counts.append(outside if persons is None else np.bincount(persons.codes, outside))
    return np.array([[np.count_nonzero(each)] for each in counts], dtype=np.int64)


def _require_weights(sample_weight: Any, rows: int) -> FloatArray:
    """A finite weight of each row, whatever its sign; an error quotes none of them."""
    require_unmasked("sample_weight", sample_weight)
    options: dict[str, Any] = {"ensure_2d": False, "dtype": np.float64, "ensure_min_samples": 0}
    found = np.asarray(
        unquoted(
            lambda: check_array(sample_weight, input_name="sample_weight", **options),
            sample_weight=sample_weight,
        )
    )
    if found.shape != (rows,):
        raise ValueError(f"sample_weight must have shape ({rows},), got {found.shape}")
    return found
