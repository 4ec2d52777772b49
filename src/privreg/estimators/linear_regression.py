"""`PrivateLinearRegression`: scikit-learn's interface to a private fit with intervals."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from privreg.checks import (
    MOST,
    require_answer,
    require_choice,
    require_count,
    require_flag,
    require_instance,
    require_number,
    require_real,
    require_scale,
)
from privreg.estimators.columns import Frame, declared, number_column, table_columns, unquoted
from privreg.estimators.odometer import DELTA, Odometer, PrivacyStatement
from privreg.privacy.budget import Budget, Neighbours
from privreg.privacy.release import NOT_PRIVATE, SECRET, Ongoing, Release, Seeded

if TYPE_CHECKING:
    # Numba and the methods are imported by the first fit, so that this module loads as quickly as
    # scikit-learn.
    from privreg.algorithms.records import Persons
    from privreg.algorithms.samples import ArraySamples, Samples
    from privreg.estimators.outlook import FitTarget, Outlook
    from privreg.estimators.report import Part, PredictionIntervals, Summary
    from privreg.estimators.tables import Table, TableQuality
    from privreg.inference.population_intervals import (
        CoefficientCovariance,
        CoefficientIntervals,
        Target,
    )
    from privreg.methods.method import Fitted, Method

FloatArray = NDArray[np.float64]
# Of the budget, for the number of records under add-remove.
COUNT_SHARE = 0.01
# The least that buys shares of incomplete and clipped records.
LEAST_SHARE = 1e-10
CLIPPED = "features and labels outside the declared bounds are clipped to them, row by row"
INPUTS = (
    "each row's values depend on that row and public information alone, unlike the output of a "
    "scaler that was fitted to the table"
)
# Numbers of a table that are held in memory rather than read at each pass.
HELD_NUMBERS = 20_000_000
CLONES = (
    "clones of one estimator, or one object, are fitted repeatedly, as cross-validation, grids and "
    "folds do: each fit spends the whole budget, and budgets of fits of one table add up; "
    "`odometer=Odometer(limit=...)` counts them and keeps a limit"
)
ROWS_OF_CLONES = (
    "clones of one estimator, or one object, are fitted repeatedly without groups, and privacy is "
    "that of rows: cross-validation hands groups to its splitter alone. Declare unit='row', or "
    "unit='person' where persons have several rows"
)
# Number of clones of an estimator, and of its fits, beside it, so that neither changes an object.
_clones: WeakKeyDictionary[Any, list[int]] = WeakKeyDictionary()
_fits: WeakKeyDictionary[Any, list[int]] = WeakKeyDictionary()


class PrivateLinearRegression(RegressorMixin, BaseEstimator):
    r"""Linear regression under differential privacy, with intervals that count all noise.

    .. math:: y \approx \beta_0 + x^\top\beta

    fitted in units in which declared bounds are [-1, 1]; values outside are clipped to them. By
    default β is that of least squares in the population, the best linear prediction of the mean,
    whatever the errors are (`PrivateLeastSquares`).

    Parameters
    ----------
    budget : Budget
        What the fit may spend, with its neighbouring relation (replace-one by default):
        `Budget.approximate(1.0, 1e-6)`.
    epsilon, delta : float, optional
        In place of a budget: `Budget.approximate(epsilon, delta)`, δ = 1e-6 by default.
    unit : {"row", "person"}, optional
        Unit of privacy: "person" refuses a fit without groups, "row" one with groups. By default
        groups decide, which cross-validation does not hand over.
    feature_bounds : (low, high) or mapping
        Bounds of the features from public knowledge, at most 1e12 in size and at least 1e-12 apart:
        two numbers for all, two arrays, or {column: (low, high)} for a DataFrame or a file.
    label_bounds : (low, high)
        Bounds of the label, likewise.
    weight_bound : float, optional
        W, public: the largest weight of a record, needed with weights, which are clipped to [0, W].
    fit_intercept : bool
        Whether to fit β_0.
    target : {"least_squares", "huber"}
        Method where `settings` names none. "huber" is private Huber regression
        (`PrivateHuber`): shorter intervals, and the slopes of least squares only if errors are
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
    odometer : Odometer, optional
        Counts the fit before noise is drawn, and refuses it beyond its limit.

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
        Settings that were planned before the fit, from what is public, and their predicted error.
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

    coef_: FloatArray
    intercept_: float
    feature_bounds_: FloatArray
    label_bounds_: FloatArray
    n_features_in_: int
    outlook_: Outlook
    privacy_: PrivacyStatement
    quality_: TableQuality | None
    weight_bound_: float | None
    settings_: Method
    warnings_: list[str]
    _fitted: Fitted

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
        """
        from privreg.algorithms.records import require_groups
        from privreg.algorithms.samples import ArraySamples, WeightedSamples, weight_roots
        from privreg.estimators.tables import private_quality

        found, share = self._unfitted(quality_share, groups=groups, weights=sample_weight)
        # Under add-remove the number of rows is private: no table is refused for it.
        least = 0 if found._budget().neighbours is Neighbours.ADD_REMOVE else 1
        options: Any = {"y_numeric": True, "dtype": np.float64, "ensure_min_samples": least}
        beside = {"sample_weight": sample_weight, "groups": groups}
        features, labels = unquoted(lambda: validate_data(found, X, y, **options), beside, X=X, y=y)
        labels = np.asarray(labels, dtype=np.float64)
        persons = None if groups is None else require_groups(groups, len(labels))
        names = getattr(found, "feature_names_in_", None)
        p = features.shape[1]
        found.feature_bounds_ = declared("feature_bounds", found.feature_bounds, p, names)
        found.label_bounds_ = declared("label_bounds", found.label_bounds, 1)[0]
        frame = found._frame()
        samples: ArraySamples
        cells = np.empty_like(features, dtype=bool) if share > 0 else None
        bounded: list[Any] = [(labels, found.label_bounds_)]
        # Without a name for the mapped rows, which nobody else has.
        if found.weight_bound_ is None:
            samples = ArraySamples._of_own(frame.rows(features, cells), frame.labels(labels))
        else:
            weights = _finite_weights(sample_weight, len(labels))
            bounded.append((weights, (0.0, found.weight_bound_)))
            roots = weight_roots(weights, found.weight_bound_)
            rows = frame.rows(features, cells) * roots[:, None]
            samples = WeightedSamples(rows, frame.labels(labels) * roots, roots)
        quality = None
        if cells is not None:
            names = [*found._names()[:p], "(label)", "(weight)"][: p + len(bounded)]
            if len(set(names)) < len(names):
                raise ValueError(
                    "X must have columns of different names, none of them '(label)' or '(weight)'"
                )
            beyond = [(own < low) | (own > high) for own, (low, high) in bounded]
            outside: Any = [*cells.T, *beyond]
            if persons is not None:
                # A person is clipped where any row is.
                outside = [np.bincount(persons.codes, each) for each in outside]
            counts = np.array([[np.count_nonzero(each)] for each in outside])
            quality = partial(private_quality, counts, dict.fromkeys(names, True))
        records = len(labels) if persons is None else persons.count
        return self._take(found._run(samples, frame, records, quality, share, persons=persons))

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

        The features are the columns that `feature_bounds` names, a mapping from each to (low, high)
        or to {"categories": [...]}: one feature for each but the first. A record with a missing,
        unreadable or undeclared value in one of them or in the label counts as absent; `inf` and
        numbers outside their bounds are clipped to them. Of a feature or the label, {"bounds":
        (low, high), "missing": [-999, 9999]} declares numbers that are codes for missing.

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

        Guarantee
        ---------
        That of the class. All noise is drawn in this process, once, and none of it is sent. What
        workers send are exact sums over records, which are not private: the guarantee is for what
        this process releases, and workers, their logs and the network are trusted as it is.
        """
        from privreg.estimators.tables import (
            Table,
            TableQuality,
            TableSamples,
            open_table,
            private_quality,
        )

        found, share = self._unfitted(quality_share, weights=weight)
        require_count("threads", threads)
        source = table if isinstance(table, Table) else open_table(table)
        columns = table_columns(found.feature_bounds, label, tuple(source.schema.names), weight)
        names = [name for column in columns for name in column.names]
        found.n_features_in_, found.feature_names_in_ = len(names), np.array(names, dtype=object)
        found.feature_bounds_ = np.array([pair for column in columns for pair in column.bounds])
        aim = number_column("label_bounds", label, found.label_bounds)
        found.label_bounds_ = np.array(aim.bounds[0])
        frame = found._frame()
        clip = (0.0, found.weight_bound_)
        weighing = None if weight is None else number_column("weight_bound", weight, clip)
        samples = TableSamples(source, columns, aim, frame, executor, weighing)
        if not source.row_count and found._budget().neighbours is not Neighbours.ADD_REMOVE:
            raise ValueError("table must have rows, got none")
        here = executor is None
        rows, counts = samples.hold(most=HELD_NUMBERS) if here else (samples, None)
        quality = None
        if share > 0:
            counts = samples.counts(threads=threads) if counts is None else counts
            bounded = {column.name: column.clips for column in samples.columns}
            quality = partial(private_quality, counts, bounded)
        found._run(rows, frame, source.row_count, quality, share, threads=threads)
        if quality is None:
            found.quality_ = TableQuality({}, {}, 0.0)
        return self._take(found)

    def _take(self, found: Self) -> Self:
        """Take a fit's attributes over and warn.

        In one assignment: not even an interrupt mixes old attributes and new.
        """
        self.__dict__ = found.__dict__
        # A filter that makes errors of warnings finds the object fitted.
        with _counted(self.privacy_.with_secret_noise, seeded=self.privacy_.seeded):
            for text in self.warnings_:
                warnings.warn(text, UserWarning, stacklevel=3)
        return self

    def _run(
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
        """Draw noise, after the odometer has counted the whole budget, and set attributes."""
        from privreg.algorithms.adassp import Bounds
        from privreg.algorithms.whitened_descent import private_count
        from privreg.estimators.outlook import forecast, harmful_share, hopeless
        from privreg.estimators.tables import WEIGHTS
        from privreg.methods.method import Declared

        fits = self.__dict__.pop("_own")
        fits[0] += self.random_state is None
        if self.random_state is None and max(*fits, *vars(self).get("_siblings", [0])) > 1:
            ungrouped = self.unit is None and persons is None
            for text in [CLONES] * (self.odometer is None) + [ROWS_OF_CLONES] * ungrouped:
                warnings.warn(text, UserWarning, stacklevel=3)
        budget, seed = self._budget(), self.random_state
        source = SECRET if seed is None else Seeded(int(seed))
        gaussian = self.settings is None or self.settings.gaussian_dp
        # A method that only adds Gaussian noise may spend more.
        budget = left = budget.gaussian() if gaussian else budget
        seeded, unit = isinstance(source, Seeded), "row" if persons is None else "person"
        private_size = budget.neighbours is Neighbours.ADD_REMOVE
        if private_size:
            counting, left = left.share(COUNT_SHARE), left.share(1 - COUNT_SHARE)
        if quality is not None:
            looking, left = left.share(share), left.share(1 - share)

        def prepare(count: float) -> tuple[Outlook, list[str], Callable[..., Release[Any]]]:
            outlook, doubts = forecast(round(count), frame, left, self.target, self.settings)
            known = Declared(
                Bounds(frame.feature_norm, 1.0),
                sample_size=count,
                groups=persons,
                intercept=frame.intercept,
                threads=threads,
            )
            return outlook, doubts, outlook.settings.prepare(samples, left, known)

        # What public numbers decide may be refused before anything is spent.
        prepared = None if private_size else prepare(float(records))
        if self.odometer is not None:
            spending = (("fit", budget),)
            self.odometer.add(PrivacyStatement(budget, unit, spending, (), seeded, gaussian))
        rng, count = None if source.is_secret else source.generator(), float(records)
        spent: dict[str, Release[Any]] = {}
        self.quality_ = None
        with _counted(budget, seeded=seeded):
            if private_size:
                counted = private_count(records, budget=counting, rng=rng)
                count, spent["number of records"] = counted.value, counted
            if quality is not None:
                shares = quality(sample_size=count, budget=looking, rng=rng)
                self.quality_, spent["incomplete and clipped records"] = shares.value, shares
            self.outlook_, doubts, run = prepared or prepare(count)
            self.settings_ = self.outlook_.settings
            release = run(source if rng is None else Ongoing(rng, source))
        fit: Any = release.value
        own = (WEIGHTS,) if getattr(samples, "weighted", False) else ()
        texts = (text for each in (*spent.values(), release) for text in each.assumptions)
        self.privacy_ = PrivacyStatement(
            with_secret_noise=budget,
            unit=unit,
            spending=(*((what, each.budget) for what, each in spent.items()), *fit.spending),
            assumptions=tuple(dict.fromkeys((CLIPPED, INPUTS, *own, *texts))),
            seeded=seeded,
            gaussian_dp=self.settings_.gaussian_dp,
        )
        # A user who reads one of them needs no second warning of the same.
        doubts = hopeless(fit, count, doubts)
        if self.quality_ is not None and replace(self.quality_, harmful=0.0).warnings:
            harmful = harmful_share(fit, frame, self.settings_)
            self.quality_ = replace(self.quality_, harmful=harmful)
        self.warnings_ = [] if self.quality_ is None else self.quality_.warnings
        self.warnings_ += filter(None, ["; ".join(doubts)])
        if seeded:
            why = "because random_state is set (bagging and AdaBoost set it for their members)"
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

    def _budget(self) -> Budget:
        if self.epsilon is not None:
            return Budget.approximate(self.epsilon, self.delta)
        return self.budget  # type: ignore[return-value]

    def _unfitted(
        self,
        quality_share: float,
        *,
        groups: ArrayLike | None = None,
        weights: ArrayLike | str | None = None,
    ) -> tuple[Self, float]:
        """A copy without fitted attributes, on which a fit may fail, and the share for quality.

        All settings are looked at before a row is or noise drawn.
        """
        from privreg.estimators.outlook import FIT_TARGETS
        from privreg.methods.method import Method

        if (self.budget is None) == (self.epsilon is None):
            raise ValueError(
                "budget must be declared, such as Budget.approximate(1.0, 1e-6), or epsilon with "
                f"delta, got {'neither' if self.budget is None else 'both'}"
            )
        # Of every share of which noise can be drawn.
        require_scale("budget: rho", require_instance("budget", self._budget(), Budget).rho)
        require_flag("fit_intercept", self.fit_intercept)
        for name, value, choices in (
            ("release", self.release, ("last", "all")),
            ("target", self.target, FIT_TARGETS),
            ("unit", "row" if self.unit is None else self.unit, ("row", "person")),
        ):
            require_choice(name, value, choices)
        if self.unit == "person" and groups is None:
            raise ValueError(
                "groups must be given with unit='person', got none: files have none, and "
                "cross-validation hands them over after sklearn.set_config("
                "enable_metadata_routing=True) and then set_fit_request(groups=True)"
            )
        if self.unit == "row" and groups is not None:
            raise ValueError("groups must be None with unit='row'")
        if self.settings is not None:
            require_instance("settings", self.settings, Method)  # type: ignore[type-abstract]
            self.settings.require_relation(self._budget(), groups)
        if self.odometer is not None:
            require_instance("odometer", self.odometer, Odometer)
        if self.random_state is not None:
            require_count("random_state", self.random_state, least=0, most=inf)
        share = require_number("quality_share", quality_share, least=0, below=1)
        if 0 < share < LEAST_SHARE:
            raise ValueError(f"quality_share must be 0 or at least {LEAST_SHARE:g}, got {share:g}")
        bound = self.weight_bound
        bound = None if bound is None else require_scale("weight_bound", bound)
        if weights is not None and bound is None:
            raise ValueError(
                "weight_bound must be declared with weights, a public largest weight, got None: "
                "without one a doubled weight, as bagging's counts, doubles what a record may "
                "change"
            )
        if weights is not None and self.settings is not None and not self.settings.takes_weights:
            raise ValueError(
                "settings must be a method that takes weights, such as least_squares, huber, "
                f"adassp or full_batch, got {self.settings.name}"
            )
        found = object.__new__(type(self))
        found.__dict__ = {
            name: value
            for name, value in vars(self).items()
            if name != "_fitted" and not name.endswith("_")
        }
        found.weight_bound_ = None if weights is None else bound
        found._own = _fits.setdefault(self, [0])
        return found, share

    def __sklearn_clone__(self) -> Any:
        found = super().__sklearn_clone__()
        # Clones of a clone count with it, and a grid's processes are sent the count.
        siblings = vars(self).get("_siblings")
        found._siblings = _clones.setdefault(self, [0]) if siblings is None else siblings
        found._siblings[0] += 1
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Of a few rows nothing can be said in private.
        tags.regressor_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags

    # Answers, functions of what was released and of what is public.

    def predict(self, X: Any) -> FloatArray:
        """Predicted labels, shape (n,), of features (n, p)."""
        check_is_fitted(self)
        features = self._rows(X)
        with np.errstate(over="ignore", invalid="ignore"):
            return require_answer("X", np.asarray(features @ self.coef_ + self.intercept_))

    def score(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> float:
        """R² of the predictions of these rows, as in scikit-learn. Not private.

        An error for one row, whose R² is no number, or for labels beyond double precision.
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        predicted = self.predict(X)
        with np.errstate(over="ignore", invalid="ignore"):
            found = unquoted(lambda: r2_score(y, predicted, **weights), {"X": X}, y=y, **weights)
        return float(require_answer("y", np.asarray(found)))

    def confidence_intervals(
        self, level: float = 0.95, target: Target = "population"
    ) -> CoefficientIntervals:
        """Intervals for the coefficients, and after them for the intercept if there is one.

        At no further cost. Infinite where none are known for the method, or for a reason that
        `reasons` gives.

        Parameters
        ----------
        level : float
            Nominal coverage in (0, 1).
        target : {"population", "empirical"}
            Coefficients in the population that the records come from, or those of the same loss on
            these records without noise; `least_squares_intervals` and, for a robust fit,
            `population_intervals` say what is assumed.
        """
        check_is_fitted(self)
        return self._intervals(np.eye(self.n_features_in_ + self.fit_intercept), level, target)

    def intervals_at(
        self, X: Any = None, level: float = 0.95, target: Target = "population"
    ) -> CoefficientIntervals:
        """Intervals for β_0 + xᵀβ at given rows, which is no interval for a single label.

        Parameters
        ----------
        X : array_like or DataFrame, shape (n, p), optional
            Public rows, of up to 1e12 widths of the bounds; by default the private mean of the
            features, by weight where records had weights, if the fit has an intercept and
            releases it.
        level, target
            As for `confidence_intervals`.
        """
        check_is_fitted(self)
        if X is None:
            centre = getattr(self._fitted, "centre", None)
            if centre is None:
                raise ValueError(
                    "X must be given for a fit without intercept or private mean, got None"
                )
            rows = self._frame().features_of(centre.value[None, 1:])
        else:
            rows = self._rows(X)
            scale = np.ptp(self.feature_bounds_, axis=1) / 2 + np.ptp(self.label_bounds_)
            require_real("X", rows / scale, least=-MOST, most=MOST)
        if self.fit_intercept:
            rows = np.column_stack([rows, np.ones(len(rows))])
        return self._intervals(rows, level, target)

    def _intervals(self, rows: FloatArray, level: float, target: Target) -> CoefficientIntervals:
        """For linear functionals of the coefficients and, after them, the intercept."""
        matrix, offset = self._frame().functionals()
        return self.settings_.intervals(
            self._fitted,
            level=level,
            target=target,
            functionals=rows @ matrix,
            offset=rows @ offset,
        )

    def covariance(self, target: Target = "population") -> CoefficientCovariance:
        """Covariance of the coefficients, and after them of the intercept if there is one.

        `total`, and its parts `sampling` and `privacy`, in the units of the coefficients, at no
        further cost. The roots of its diagonal are the standard errors of `confidence_intervals`,
        whose `target` it takes. Of a linear functional ask `intervals_at`, which looks at that one
        alone.
        """
        check_is_fitted(self)
        matrix, _ = self._frame().functionals()
        return self.settings_.covariance(self._fitted, target=target, functionals=matrix)

    def summary(self, level: float = 0.95, target: Target = "population") -> Summary:
        """Coefficients with standard errors, tests and intervals, as in statsmodels.

        To print; `columns` has the numbers, `to_frame()` a pandas DataFrame. At no further cost. A
        p-value inverts the intervals: it is below α where the interval of level 1 - α leaves 0 out,
        and 1 where the interval is infinite. `level` and `target` are as for
        `confidence_intervals`.
        """
        from privreg.estimators.report import READING, Summary, target_sentences, weight_sentences

        check_is_fitted(self)
        fit, bound, privacy = self._fitted, self.weight_bound_, self.privacy_
        names, intervals = self._names(), self.confidence_intervals(level, target)
        records = getattr(fit, "sample_size", None)
        relation = privacy.budget.neighbours
        counted = "about " if relation is Neighbours.ADD_REMOVE else ""
        weighted = "" if bound is None else "weighted "
        size = [] if records is None else [(f"{privacy.unit.title()}s", f"{counted}{records:,.0f}")]
        facts = (
            ("Method", weighted + self.settings_.name.replace("_", " ")),
            ("Target", target),
            *size,
            ("Coefficients", str(len(names))),
            ("Epsilon", f"{privacy.epsilon():.4g} at delta {DELTA:g}"),
            ("Rho (zCDP)", f"{privacy.rho:.4g}"),
            ("Neighbours", relation.value),
            ("Unit", privacy.unit),
            *([("Noise", "seeded: not private")] if privacy.seeded else []),
        )
        notes = (
            *(f"Warning: {each}." for each in self.warnings_),
            *([] if bound is None else weight_sentences(fit, bound)),
            *target_sentences(self.settings_, fit, intervals, names, weighted=bound is not None),
            *READING,
        )
        return Summary(tuple(names), intervals, facts, notes)

    def prediction_intervals(self, X: Any, level: float = 0.95) -> PredictionIntervals:
        """Mean prediction and interval for a new observation, at public rows as of `intervals_at`.

        At no further cost; `to_frame()` has the columns of statsmodels' `summary_frame`. An error
        for a fit that releases no law of its residuals: of another method than least squares, of
        persons, or with weights.

        Notes
        -----
        No law of the errors is assumed: half-widths come from the private histogram of the fit
        (`inference.least_squares_intervals`). A new record of the same population, clipped to the
        bounds as in the fit, lies inside with probability `level` or more. That is an average over
        records: where the errors' size depends on the features, rows of large errors are covered
        less, others more.
        """
        from privreg.estimators.report import PredictionIntervals

        means = self.intervals_at(X, level)
        if self.privacy_.unit == "person" or self.weight_bound_ is not None:
            raise ValueError(
                "prediction_intervals is unavailable for fits with groups or sample_weight: no "
                "row-level residual distribution was released"
            )
        frame = self._frame()
        found = self.settings_.new_observations(
            self._fitted, frame.rows(self._rows(X)), level=level
        )
        ends = (found.centre - found.half_width, found.centre + found.half_width)
        # Without an intercept the frame's labels go beyond their bounds, at either end.
        lower, upper = (
            np.clip(frame.labels_of(np.clip(end, -1.0, 1.0)), *self.label_bounds_) for end in ends
        )
        return PredictionIntervals(means, lower, upper, found.reason)

    def plot(self, axes: Any = None, *, level: float = 0.95) -> Any:
        """Slopes with intervals of a level, and where the budget went, on two Matplotlib axes.

        They are those of a new figure of pyplot by default, and returned.
        """
        from privreg.estimators.report import draw, new_axes, slope_bars

        check_is_fitted(self)
        bars = slope_bars(self._names(), self.confidence_intervals(level), self.feature_bounds_)
        spending = self.privacy_.spending
        axes = new_axes(len(bars), len(spending)) if axes is None else axes
        draw(bars, spending, axes)
        return axes

    def report(self, format: Literal["text", "html"] = "text", *, level: float = 0.95) -> str:
        """Coefficients with intervals of a level, and the privacy that was spent.

        As text, or as a dated page of HTML, with the pictures of `plot` if Matplotlib is there.
        """
        from privreg.estimators import report

        check_is_fitted(self)
        require_choice("format", format, ("text", "html"))
        found, privacy, settings = self.summary(level), self.privacy_, self.settings_
        whole = privacy.with_secret_noise.rho
        spending: list[tuple[str, ...]] = [
            (what, f"{budget.rho:.4g}", f"{100 * budget.rho / whole:.1f} %")
            for what, budget in privacy.spending
        ]
        guarantee = [
            f"{privacy.sentence[0].upper()}{privacy.sentence[1:]}.",
            f"zCDP with rho = {privacy.rho:.4g}; Gaussian DP with mu = {privacy.mu:.4g}.",
        ]
        bounds = zip(
            ("label", *found.names), (self.label_bounds_, *self.feature_bounds_), strict=False
        )
        chosen = [
            f"{settings.name.replace('_', ' ')}: {settings}",
            *(f"{name} within [{low:g}, {high:g}]" for name, (low, high) in bounds),
        ]
        parts: list[Part] = [
            ("Coefficients", *found.table, list(found.notes)),
            ("Prediction before the fit", None, [], self.outlook_.sentences),
            *([] if self.quality_ is None else [report.quality_part(self.quality_)]),
            ("Privacy", None, [], guarantee),
            ("Budget by use", ("", "rho", "share"), spending, []),
            ("Assumptions", None, [], list(privacy.assumptions)),
            ("Settings, chosen without the data", None, [], chosen),
        ]
        if format == "text":
            return report.as_text(parts)
        bars = report.slope_bars(found.names, found.intervals, self.feature_bounds_)
        return report.as_html(parts, report.drawn(bars, privacy.spending), found.facts)

    def _rows(self, X: Any) -> FloatArray:
        options: Any = {"dtype": np.float64, "reset": False}
        return np.asarray(unquoted(lambda: validate_data(self, X, **options), X=X))

    def _frame(self) -> Frame:
        return Frame(self.feature_bounds_, self.label_bounds_, bool(self.fit_intercept))

    def _names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        listed = [f"x{k}" for k in range(self.n_features_in_)] if names is None else list(names)
        return [*map(str, listed), *(["(intercept)"] if self.fit_intercept else [])]


@contextmanager
def _counted(budget: Budget, *, seeded: bool) -> Iterator[None]:
    """Add to any error from here on that the budget counts as spent.

    That a fit failed depends on its data and its noise as its result does, and is paid for by the
    same budget.
    """
    try:
        yield
    except BaseException as error:
        spent = f"counts as spent, all of its rho = {budget.rho:.4g} ({budget.neighbours.value})"
        error.add_note(f"the failed fit {'was not private: seeded' if seeded else spent}")
        raise


def _finite_weights(sample_weight: Any, rows: int) -> FloatArray:
    """A finite weight of each row, whatever its sign; an error quotes none of them."""
    options: dict[str, Any] = {"ensure_2d": False, "dtype": np.float64, "ensure_min_samples": 0}
    check = partial(check_array, sample_weight, input_name="sample_weight", **options)
    found = np.asarray(unquoted(check, sample_weight=sample_weight))
    if found.shape != (rows,):
        raise ValueError(f"sample_weight must have shape ({rows},), got {found.shape}")
    return found
