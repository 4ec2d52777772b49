"""`PrivateLinearRegression`: scikit-learn's interface to a private fit with intervals."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from privreg.checks import (
    MOST,
    MOST_COLUMNS,
    require_answer,
    require_choice,
    require_count,
    require_flag,
    require_instance,
    require_number,
    require_real,
    require_scale,
    short,
)
from privreg.estimators.columns import Categories, Frame, Numbers, declared, number_column, unquoted
from privreg.estimators.odometer import Odometer, PrivacyStatement
from privreg.privacy.budget import Budget, Neighbours
from privreg.privacy.release import NOT_PRIVATE, SECRET, Ongoing, Release, Seeded

if TYPE_CHECKING:
    # Numba and the methods are imported by the first fit.
    from privreg.algorithms.records import Persons
    from privreg.algorithms.samples import Samples
    from privreg.estimators.formulas import Design
    from privreg.estimators.outlook import FitTarget, Outlook
    from privreg.estimators.report import (
        NamedIntervals,
        Part,
        PredictionIntervals,
        Summary,
        WaldTest,
    )
    from privreg.estimators.tables import HeldTable, Table, TableQuality, TableSamples, TableScore
    from privreg.inference.population_intervals import (
        CoefficientCovariance,
        CoefficientIntervals,
        Target,
    )
    from privreg.methods.method import Fitted, Method

FloatArray = NDArray[np.float64]
# Share of the budget for the number of records under add-remove; least share for quality.
COUNT_SHARE, LEAST_SHARE = 0.01, 1e-10
CLIPPED = "features and labels are clipped to the declared bounds, row by row"
INPUTS = "each row's values depend on that row alone, so that no scaler was fitted to the table"
EXACT = "purely Gaussian noise meets the stated epsilon and delta at a larger rho (Gaussian DP)"
# Numbers of a table that are held in memory rather than read at each pass.
HELD_NUMBERS = 20_000_000
CLONES = (
    "an estimator or its clones are fitted repeatedly, as in cross-validation: each fit spends the "
    "whole budget, and the costs add up; `odometer=Odometer(limit=...)` sets a limit"
)
ROWS_OF_CLONES = (
    "an estimator or its clones are fitted repeatedly without groups, so privacy covers rows "
    "alone: cross-validation does not pass groups on. Declare unit='row' or 'person'"
)
# Per estimator: number of its clones with the warnings already issued, and number of its fits.
_clones: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
_fits: WeakKeyDictionary[Any, list[int]] = WeakKeyDictionary()


class FitWarning(UserWarning):
    """Warning about the privacy, the settings or the accuracy of a fit."""


class Source(NamedTuple):
    """Columns that a fit read, from a table or from arrays."""

    columns: tuple[Numbers | Categories, ...]
    aim: Numbers
    weight: Numbers | None
    design: Design | None = None
    by_name: bool = False


def _column(name: str, doc: str) -> Any:
    return property(lambda self: self.summary().to_frame()[name], doc=doc)


class PrivateLinearRegression(RegressorMixin, BaseEstimator):
    r"""Differentially private linear regression; intervals allow for sampling and privacy noise.

    .. math:: y \approx \beta_0 + x^\top\beta

    Values are clipped to their declared bounds and scaled to [-1, 1]. By default β estimates
    the population's least-squares solution, for any law of errors (`PrivateLeastSquares`).

    Parameters
    ----------
    budget : Budget
        Privacy budget with its neighbouring relation, such as `Budget.approximate(1.0, 1e-6)`.
    epsilon : float, optional
        Alternative to a budget: `Budget.approximate(epsilon, delta)`.
    delta : float, default 1e-6
        δ of this budget, and of statements about it.
    unit : "row" or "person", optional
        "person" requires groups, "row" forbids them. The default is "person" if groups are given.
    feature_bounds : (low, high) or mapping
        Bounds from public knowledge, at most 1e12 in size and at least 1e-12 apart. Give two
        numbers for all features, a tuple of two arrays, or a list of pairs. For a frame or a file,
        map each column to (low, high) or to {"categories": [...]}.
    label_bounds : (low, high)
        Bounds of the label, also from public knowledge.
    weight_bound : float, optional
        Public upper bound W on weights, required with weights. They are clipped to [0, W].
    fit_intercept : bool
        Whether β_0 is fitted; otherwise it is 0.
    target : {"least_squares", "huber"}
        "huber" is private Huber regression (`PrivateHuber`), with shorter intervals. It estimates
        the same slopes only if errors are symmetric given the features or independent of them.
    settings : Method, optional
        Method and settings chosen without the data, such as `plan_run(problem, budget).best.method`
        for a problem in the units of the bounds (`estimators.outlook.problem_in_bounds`). It
        replaces `target`. By default, settings are planned from public numbers.
    release : {"last", "all"}
        Iterates that the fitted object keeps, the last or all, at the same privacy cost.
    random_state : int, optional
        Seed of the noise, for tests. A seeded fit is not private, and a warning says so.
    odometer : Odometer, optional
        Odometer that counts the fit before noise is drawn, and refuses a fit beyond its limit.
    formula : str, optional
        Features and label as functions of the columns in `feature_bounds` (see `from_formula`).

    Attributes
    ----------
    coef_, intercept_ : ndarray, shape (p,), and float
        β and β_0; β_0 is 0 without an intercept.
    privacy_ : PrivacyStatement
        Privacy cost (ε at δ, ρ, μ) and assumptions; the cost of a seeded fit is infinite.
    settings_, outlook_ : Method and Outlook
        Settings of the fit, and their error as predicted beforehand from public numbers alone.
    feature_bounds_, label_bounds_, weight_bound_ : ndarray, shapes (p, 2) and (2,), and W or None
        Low and high end for each feature and for the label, in their units; and the weights' bound.
    quality_ : TableQuality or None
        Noisy shares of clipped records and, for a table in a file, of incomplete records.
    warnings_ : list of str
        Warnings based on released or public values alone; the fit also issues them.
    iterates_ : ndarray, shape (T, p)
        Coefficients after each released step, if `release` is "all".

    Notes
    -----
    **Guarantee.** Releasing the fitted object, with all its attributes, costs at most the budget
    under the budget's neighbouring relation. Neighbours differ in one row or, with `groups`, in all
    rows of one person. The fit is ρ-zCDP with the ρ of `privacy_`, and √(2ρ)-Gaussian DP if the μ
    of `privacy_` is finite. Gaussian DP meets a stated (ε, δ) exactly, with a larger ρ than zCDP
    alone would allow (`Budget.gaussian`). The number of records is public except under add-remove.
    Under zero-out, a blank record is a row of zeros in the units of the bounds; its intercept entry
    is 0. An exception about non-finite values depends on the data. An exception after noise was
    drawn says that the budget is spent. A seed in `random_state` voids the guarantee.

    In a record of weight w, the row and label, in the units of the bounds, are multiplied by
    √(w/W), which is at most 1. Weights are protected like other values.

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
    _source: Source

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
        formula: str | None = None,
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
        self.formula = formula

    @classmethod
    def from_formula(
        cls, formula: str, bounds: Any, budget: Budget | None = None, **options: Any
    ) -> Self:
        """Estimator from a formula as in R and patsy: `"rent ~ size * C(city) + np.log(income)"`.

        Terms are sums and products (`:`, `*`) of columns, powers, `np.log`, `np.exp`, `np.sqrt`,
        `I(...)` and categories, such as `C(column, Treatment("reference"))`. `- 1` omits the
        intercept. `bounds` maps every column, also the label's, to bounds; terms' bounds follow.
        """
        return cls(budget, feature_bounds=bounds, formula=formula, **options)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        quality_share: float = 0.01,
    ) -> Self:
        """Fit and spend the whole budget; a failed fit leaves the object unchanged.

        Under zero-out, an incomplete record in `fit_table` counts as blank. If all bounds include 0
        and there is no intercept, a row of zeros with label 0 is also blank.

        Parameters
        ----------
        X : array_like or DataFrame, shape (n, p)
            Features. A formula or categories need a frame, which is read as in `fit_table`.
        y : array_like, shape (n,)
            Labels. With a formula: the column on its left side, by default taken from the frame.
        sample_weight : array_like, shape (n,), optional
            Finite weights, clipped to [0, `weight_bound`]. A weight may depend only on its own
            record: do not rescale weights to a given sum. Records of weight 0 count as records.
        groups : array_like, shape (n,), optional
            Person of each row. Privacy then covers all rows of a person together.
        quality_share : float
            Share of the budget, in [0, 1), for counting clipped records by column. A person counts
            as clipped if one of the person's rows is.

        Returns
        -------
        PrivateLinearRegression
            This estimator, fitted.

        Raises
        ------
        ValueError
            If a value is missing, a setting or bound is wrong, or the odometer's limit is exceeded.
        """
        import pyarrow as pa

        from privreg.algorithms.records import require_groups
        from privreg.estimators.tables import HeldTable, TableSamples, private_quality

        found, share = self._unfitted(quality_share, groups=groups, weights=sample_weight)
        # Under add-remove the number of rows is private: no table is refused because of it.
        least = 0 if found._budget().neighbours is Neighbours.ADD_REMOVE else 1
        options: Any = {"y_numeric": True, "dtype": np.float64, "ensure_min_samples": least}
        beside = {"sample_weight": sample_weight, "groups": groups}
        if (names := found._frame_names(X)) is not None:
            if groups is not None:
                raise ValueError("groups must be None with a formula or categories, got groups")
            if y is None and self.formula is None:
                raise ValueError("y must be given if there is no formula, got None")
            weight = None if sample_weight is None else "(weight)"
            table = _held(X, [*names, weight], y, sample_weight)
            return self.fit_table(table, label=names[-1], weight=weight, quality_share=share)
        features, y = unquoted(lambda: validate_data(found, X, y, **options), beside, X=X, y=y)
        persons = None if groups is None else require_groups(groups, len(y))
        names, p = getattr(found, "feature_names_in_", None), features.shape[1]
        found.feature_bounds_ = declared("feature_bounds", found.feature_bounds, p, names)
        found.label_bounds_ = declared("label_bounds", found.label_bounds, 1)[0]
        names = [f"x{k}" for k in range(p)] if names is None else names
        pairs = zip(names, found.feature_bounds_.tolist(), strict=True)
        columns, clip = tuple(Numbers(name, *pair) for name, pair in pairs), found.weight_bound_
        aim = Numbers("(label)", *found.label_bounds_.tolist())
        weighing = None if clip is None else Numbers("(weight)", 0.0, clip)
        found._source = Source(columns, aim, weighing)
        names = [each.name for each in (*columns, aim, weighing) if each is not None]
        if len(set(names)) < len(names):
            raise ValueError("X must have unique column names, none of '(label)' and '(weight)'")
        # Transposed block by block, while each is in a cache.
        starts = range(0, max(len(y), 1), 1 << 14)
        blocks = [pa.table([*features[at : at + starts.step].T], names[:p]) for at in starts]
        table = HeldTable(pa.concat_tables(blocks))
        table = _held(table, [*names, None][: p + 2], y, sample_weight)
        samples = TableSamples(table, columns, aim, found._frame(), None, weighing)
        rows, counted = samples.hold(most=inf)
        counts = np.asarray(counted)[:, 1:]
        if persons is not None:
            # A person is clipped where any row is.
            pairs = zip(samples.columns, table.values(samples.columns), strict=True)
            beyond = ((values < each.low) | (values > each.high) for each, values in pairs)
            counts = np.array([[np.count_nonzero(np.bincount(persons.codes, e))] for e in beyond])
        named = dict.fromkeys(names, True)
        quality = partial(private_quality, counts, named) if share > 0 else None
        size = len(y) if persons is None else persons.count
        return self._take(found._run(rows, samples.frame, size, quality, share, persons=persons))

    def fit_table(
        self,
        table: str | Path | Table | Any,
        *,
        label: str | None = None,
        weight: str | None = None,
        quality_share: float = 0.01,
        threads: int = 2,
        executor: Executor | None = None,
    ) -> Self:
        """Fit a table in a file of any length; memory use does not grow with the length.

        `feature_bounds` maps each feature column to (low, high) or to {"categories": [...]}. Each
        category but the first makes one feature. A record is ignored if a used column has a
        missing or unreadable value or an undeclared category; `inf` is clipped. For a feature or
        the label, {"bounds": (low, high), "missing": [-999]} declares codes for missing values.

        Parameters
        ----------
        table : path, data frame or Table
            A `.parquet` or `.csv` file, a folder of either, or a frame that narwhals reads.
        label : str
            Column of the label, not needed with a formula. `feature_bounds` may include the label.
        weight : str, optional
            Column of weights (no feature or label). They are clipped to [0, `weight_bound`].
        quality_share : float
            Share of the budget, in [0, 1), for counting incomplete and clipped records by column.
        threads : int
            Number of threads that read row groups of Parquet files, or the files of a folder.
        executor : concurrent.futures.Executor, optional
            Workers that replace the threads, such as `get_executor()` of a Dask client. They read
            and sum the parts of the table (row groups or CSV files). They must find the files under
            the same paths and have this version of the library.

        Raises
        ------
        ValueError
            If a column is missing or of a wrong type; else as for `fit`, but values may be missing.

        Guarantee
        ---------
        The guarantee is that of the class. All noise is drawn in this process and stays here.
        Workers send exact sums, which are not private; workers, logs and network are trusted.
        """
        from privreg.estimators.tables import TableQuality, private_quality

        found, share = self._unfitted(quality_share, weights=weight)
        require_count("threads", threads)
        samples = found._opened(table, label, weight, executor)
        size, private = samples.sample_size, found._budget().neighbours is Neighbours.ADD_REMOVE
        if not (size or private):
            raise ValueError("table must have rows, got none")
        held: Any = (samples, None) if executor else samples.hold(most=HELD_NUMBERS)
        (rows, counts), quality = held, None
        if share > 0:
            counts = samples.counts(threads=threads) if counts is None else counts
            bounded = {column.name: column.clips for column in samples.columns}
            quality = partial(private_quality, counts, bounded)
        found._run(rows, samples.frame, size, quality, share, threads=threads)
        if quality is None:
            found.quality_ = TableQuality({}, {}, 0.0)
        return self._take(found)

    def _frame_names(self, X: Any) -> list[str] | None:
        """Columns (features, label) that a formula or a frame with categories needs; else None."""
        from privreg.estimators.columns import is_categories, require_every_column
        from privreg.estimators.tables import frame_columns

        bounds: Any = self.feature_bounds
        if (design := self._designed()) is not None:
            return [each.name for each in (*design.columns, design.aim)]
        categories = isinstance(bounds, Mapping) and any(map(is_categories, bounds.values()))
        if names := frame_columns(X) if categories else []:
            require_every_column("feature_bounds", bounds, names)
        return [*names, "(label)"] if any(is_categories(bounds[name]) for name in names) else None

    def _designed(self) -> Design | None:
        from privreg.estimators.formulas import read_formula

        return None if self.formula is None else read_formula(self.formula, self.feature_bounds)

    def _opened(
        self, table: Any, label: Any, weight: str | None, executor: Executor | None
    ) -> TableSamples:
        """Rows of a table in the declared bounds; sets the attributes about its columns."""
        from privreg.estimators.columns import table_columns
        from privreg.estimators.tables import HeldTable, TableSamples, open_rows

        design, used, aim = self._designed(), self.feature_bounds, None
        if design is not None:
            aim, used = design.aim, {each.name: used[each.name] for each in design.columns}
            label = require_choice("label", label or aim.name, [aim.name])
        elif label is None:
            raise ValueError("label must name a column of the table, got none")
        elif self.label_bounds is None and isinstance(used, Mapping) and label in used:
            aim, used = number_column("label_bounds", label, used[label]), {**used}
            del used[label]
        if isinstance(table, HeldTable):
            # Bounds may cover a whole schema: take those of the frame's columns.
            used = {name: used[name] for name in table.schema.names if name in used}
        wanted = [*(used if isinstance(used, Mapping) else ()), label]
        source = open_rows(table, wanted if weight is None else [*wanted, weight])
        columns = table_columns(used, label, tuple(source.schema.names), weight)
        aim = aim or number_column("label_bounds", label, self.label_bounds)
        clip = (0.0, self.weight_bound_)
        weighing = None if weight is None else number_column("weight_bound", weight, clip)
        parts: Any = columns if design is None else (design,)
        names = [name for each in parts for name in each.names]
        self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
        self.feature_bounds_ = np.array([pair for each in parts for pair in each.bounds])
        self.label_bounds_ = np.array(aim.bounds[0] if design is None else design.label_bounds)
        self._source = Source(columns, aim, weighing, design, by_name=True)
        return TableSamples(source, columns, aim, self._frame(), executor, weighing, design)

    def _take(self, found: Self) -> Self:
        # In one assignment: not even an interrupt mixes old attributes and new.
        self.__dict__ = found.__dict__
        # A filter that makes errors of warnings finds the object fitted.
        with _counted(self.privacy_.with_secret_noise, seeded=self.privacy_.seeded):
            self._warn(self.warnings_)
        return self

    def _warn(self, texts: list[str]) -> None:
        """Warn once for all clones of an estimator, even if the numbers in a text differ."""
        said: list[Any] = vars(self).get("_siblings", [0])
        for text in texts:
            if (key := re.sub(r"\d[\d.,e+-]*", "", text)) not in said:
                said.append(key)
                warnings.warn(text, FitWarning, stacklevel=4)

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
        if self.random_state is None and max(fits[0], vars(self).get("_siblings", [0])[0]) > 1:
            ungrouped = self.unit is None and persons is None
            self._warn([CLONES] * (self.odometer is None) + [ROWS_OF_CLONES] * ungrouped)
        budget, seed = self._budget(), self.random_state
        source = SECRET if seed is None else Seeded(int(seed))
        gaussian = self.settings is None or self.settings.gaussian_dp
        # A method that only adds Gaussian noise may spend more ρ.
        budget = left = budget.gaussian() if gaussian else budget
        seeded, unit = isinstance(source, Seeded), "row" if persons is None else "person"
        delta = budget.delta or self.delta
        private_size = budget.neighbours is Neighbours.ADD_REMOVE
        if private_size:
            counting, left = left.share(COUNT_SHARE), left.share(1 - COUNT_SHARE)
        if quality is not None:
            looking, left = left.share(share), left.share(1 - share)

        def prepare(count: float) -> tuple[Outlook, list[str], Callable[..., Release[Any]]]:
            outlook, doubts = forecast(round(count), frame, left, self.target, self.settings)
            given: Any = {"groups": persons, "intercept": frame.intercept, "threads": threads}
            known = Declared(Bounds(frame.feature_norm, 1.0), sample_size=count, **given)
            return outlook, doubts, outlook.settings.prepare(samples, left, known)

        # Before anything is spent, refuse settings that public numbers alone rule out.
        prepared = None if private_size else prepare(float(records))
        if self.odometer is not None:
            cost = PrivacyStatement(budget, unit, (("fit", budget),), (), seeded, gaussian, delta)
            self.odometer.add(cost)
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
            delta=delta,
        )
        # Doubts about the plan become one warning.
        doubts = hopeless(fit, count, doubts)
        if self.quality_ is not None and replace(self.quality_, harmful=0.0).warnings:
            harmful = harmful_share(fit, frame, self.settings_)
            self.quality_ = replace(self.quality_, harmful=harmful)
        self.warnings_ = [] if self.quality_ is None else self.quality_.warnings
        self.warnings_ += filter(None, ["; ".join(doubts)])
        if budget.delta and delta * count >= 1:
            self.warnings_.append(f"delta = {delta:g} should be far below 1/n = {1 / count:.2g}")
        if seeded:
            why = "because random_state is set (bagging and AdaBoost set it for their members)"
            self.warnings_.insert(0, f"{NOT_PRIVATE}, {why}")
        every, p = self.release == "all", len(frame.features)
        self._fitted = fit if every else replace(fit, iterates=fit.iterates[-1:])
        matrix, offset = frame.functionals()
        iterates = fit.iterates @ matrix.T + offset
        self.coef_, self.intercept_ = iterates[-1, :p], float(np.sum(iterates[-1, p:]))
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
        """A copy without fitted attributes, for a fit that may fail, and the `quality_share`."""
        from privreg.estimators.outlook import FIT_TARGETS
        from privreg.methods.method import Method

        if not isinstance(self.budget, Budget if self.epsilon is None else type(None)):
            raise ValueError(
                "either a budget, such as Budget.approximate(1.0, 1e-6), or epsilon must be given, "
                f"got budget={short(self.budget)} and epsilon={short(self.epsilon)}"
            )
        # A budget for which noise can be drawn, whatever its source.
        require_scale("budget: rho", self._budget().rho)
        require_flag("fit_intercept", self.fit_intercept)
        require_choice("release", self.release, ("last", "all"))
        require_choice("target", self.target, FIT_TARGETS)
        require_choice("unit", self.unit or "row", ("row", "person"))
        if self.unit == "person" and groups is None:
            routed = "set_config(enable_metadata_routing=True) and set_fit_request(groups=True)"
            raise ValueError(
                "groups must be given with unit='person', got none. Files cannot have groups; "
                f"cross-validation passes groups on only after {routed}"
            )
        if self.formula is not None and not (self.label_bounds is None and self.fit_intercept):
            why = "with a formula: feature_bounds has the label's, and '- 1' omits the intercept"
            raise ValueError(f"label_bounds and fit_intercept must not be set {why}")
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
            raise ValueError("weight_bound, the public largest weight, must be given with weights")
        if weights is not None and self.settings is not None and not self.settings.takes_weights:
            name = self.settings.name
            raise ValueError(f"settings must be a method that takes weights, got {name}")
        found, fitted = object.__new__(type(self)), ("_fitted", "_source")
        kept = (name for name in vars(self) if name not in fitted and not name.endswith("_"))
        found.__dict__ = {name: vars(self)[name] for name in kept}
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
        # A private fit of a few rows says nothing.
        tags.regressor_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags

    # Results: functions of released values and of public ones.

    def predict(self, X: Any) -> FloatArray:
        """Predicted labels, shape (n,), for features of shape (n, p), in the units of the label."""
        check_is_fitted(self)
        features = self._rows(X)
        with np.errstate(over="ignore", invalid="ignore"):
            return require_answer("X", np.asarray(features @ self.coef_ + self.intercept_))

    def score(self, X: Any, y: Any = None, *, sample_weight: ArrayLike | None = None) -> float:
        """R² of the predictions on these rows, as in scikit-learn; exact, so not private.

        With a formula, y is its left-hand column, by default taken from X. See `private_score`.
        """
        from privreg.estimators.tables import open_frame

        check_is_fitted(self)
        columns, aim, _, design, _ = self._source
        if design is not None:
            if y is None:
                X = open_frame(X, [each.name for each in (*columns, aim)])
                (y,) = X.values([Numbers(aim.name, -inf, inf, aim.codes)])
            y = design.labels(_finite_numbers("y", y, len(y)))
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        predicted = self.predict(X)
        with np.errstate(over="ignore", invalid="ignore"):
            found = unquoted(lambda: r2_score(y, predicted, **weights), {"X": X}, y=y, **weights)
        return float(require_answer("y", np.asarray(found)))

    def private_score(
        self, X: Any, y: Any = None, *, budget: Budget, sample_weight: Any = None, threads: int = 2
    ) -> Release[TableScore]:
        """Noisy mean squared error and R² that protect single rows; the odometer counts the cost.

        Predictions and labels are clipped to the label's bounds. Incomplete records are ignored,
        and records are weighted as in the fit.

        Parameters
        ----------
        X : array_like, DataFrame, path or Table
            Records with the columns of the fit.
        y, sample_weight : array_like, shape (n,), optional
            Labels and weights, each needed if X lacks a column for them.
        budget : Budget
            Finite budget of the score.
        threads : int
            Number of threads that read a table in a file.

        Returns
        -------
        Release of TableScore
            The error is in squared units of the label; an error or R² hidden by noise is NaN.
        """
        import pyarrow as pa

        from privreg.estimators import tables

        check_is_fitted(self)
        columns, aim, weight, design, _ = self._source
        budget = require_instance("budget", budget, Budget).gaussian()
        names = [each.name for each in (*columns, aim, weight) if each is not None]
        if not isinstance(X, str | Path | tables.Table):
            if not tables.frame_columns(X):
                X = tables.HeldTable(pa.table(list(self._rows(X).T), names[: len(columns)]))
            X = _held(X, [*names, None][: len(columns) + 2], y, sample_weight)
        frame = Frame(self.feature_bounds_, self.label_bounds_, True)
        source = tables.open_rows(X, names)
        samples = tables.TableSamples(source, columns, aim, frame, None, weight, design)

        def reserve() -> None:
            if self.odometer is not None:
                self.odometer.add(tables.score_statement(budget, delta=budget.delta or self.delta))

        given: Any = {"budget": budget, "rng": None, "threads": threads, "reserve": reserve}
        return tables.private_score(samples, [*self.coef_, self.intercept_], **given)

    def save(self, path: str | Path, *, level: float = 0.95) -> None:
        """Write the fit to a new file, as `privreg fit --output` does."""
        from privreg.estimators.odometer import as_json
        from privreg.estimators.report import fit_as_json

        check_is_fitted(self)
        text = as_json(fit_as_json(self, level=level), indent=2)
        with Path(path).open("x", encoding="utf-8") as file:
            file.write(text + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a fit from a file that `save` or `privreg fit --output` wrote."""
        from privreg.estimators.columns import declared_column
        from privreg.estimators.formulas import read_formula
        from privreg.estimators.odometer import UNREADABLE, decoded, read_statement

        model, found = cls(), None
        try:
            found = json.loads(Path(path).read_bytes())
            own, bounds = found["declared"], found["declared"]["bounds"]
            model.__dict__.update(decoded(found["state"]))
            readers: Any = (declared_column(name, each) for name, each in bounds.items())
            (*columns, aim), given = readers, own.get("weight")
            weight = given and Numbers(str(given["column"]), 0.0, float(given["bound"]))
            design = None if model.formula is None else read_formula(model.formula, bounds)
            by_name = model.__dict__.pop("by_name")
            model._source = Source(tuple(columns), aim, weight, design, by_name)
            pairs = ((each["name"], each["estimate"]) for each in found["coefficients"])
            names, values = map(list, zip(*pairs, strict=True))
            same = np.allclose(values, [*model.coef_, model.intercept_][: len(names)])
            if names != model._names() or not same or own["label"] != aim.name:
                raise ValueError
        except (OSError, *UNREADABLE):
            ended = not (isinstance(found, dict) and "unfinished" in found)
            name = f"{str(path)!r}{'' if ended else ' of a fit that did not finish'}"
            expected = "an existing file of `save` or `privreg fit --output`, of this version"
            raise ValueError(f"fit must be {expected}, got {name}") from None
        read_statement(path)
        return model

    params = _column("estimate", "Coefficients by name, as a pandas Series, intercept last.")
    bse = _column("standard_error", "Standard errors by name, covering sampling and privacy noise.")
    pvalues = _column("p_value", "P-values by name, for the hypothesis that the coefficient is 0.")

    def conf_int(self, alpha: float = 0.05) -> Any:
        """Intervals of level 1 - α by name, as a pandas DataFrame with columns 0 and 1."""
        require_number("alpha", alpha, above=0, below=1)
        return self.summary(1 - alpha).to_frame()[["lower", "upper"]].set_axis([0, 1], axis=1)

    nobs = property(
        lambda self: float(getattr(self._fitted, "sample_size", np.nan)),
        doc="Number of records, or of persons if there are groups; noisy under add-remove.",
    )

    @property
    def rsquared(self) -> float:
        """Noisy R² from released values, at no further cost; an AttributeError if unavailable."""
        from privreg.estimators.report import explained

        check_is_fitted(self)
        if (found := explained(self)[1]) >= 0:
            return found
        needed = "an unweighted least-squares fit without groups, in which noise hides no feature"
        raise AttributeError(f"rsquared needs {needed}; `private_score` releases R² at a cost")

    def confidence_intervals(
        self, level: float = 0.95, target: Target = "population"
    ) -> NamedIntervals:
        """Confidence intervals for the coefficients and, last, for the intercept if there is one.

        They cost no further privacy. With least squares, `reasons` explains infinite intervals.

        Parameters
        ----------
        level : float
            Nominal coverage in (0, 1).
        target : {"population", "empirical"}
            Coefficients to cover: the population's, or those of a fit without noise to these
            records. `least_squares_intervals` and `population_intervals` state the assumptions.

        Returns
        -------
        NamedIntervals
            Ends in units of the label per unit of each feature, shape (p + 1,) with an intercept.
        """
        from privreg.estimators.report import NamedIntervals

        check_is_fitted(self)
        names = tuple(self._names())
        found = self._intervals(np.eye(len(names)), level, target)
        return NamedIntervals(**vars(found), names=names)

    def intervals_at(
        self, X: Any = None, level: float = 0.95, target: Target = "population"
    ) -> CoefficientIntervals:
        """Intervals for the mean label β_0 + xᵀβ at given rows, not for a single label.

        Parameters
        ----------
        X : array_like or DataFrame, shape (n, p), optional
            Public rows. The default is one row: the noisy (weighted) mean that the fit released.
        level, target
            As for `confidence_intervals`.
        """
        check_is_fitted(self)
        if X is None:
            if (centre := getattr(self._fitted, "centre", None)) is None:
                raise ValueError("X must be given if the fit released no mean, got None")
            rows = self._frame().features_of(centre.value[None, 1:])
        else:
            rows = self._rows(X)
            scale = np.ptp(self.feature_bounds_, axis=1) / 2 + np.ptp(self.label_bounds_)
            require_real("X", rows / scale, least=-MOST, most=MOST)
        if self._frame().intercept:
            rows = np.column_stack([rows, np.ones(len(rows))])
        return self._intervals(rows, level, target)

    def _intervals(self, rows: FloatArray, level: float, target: Target) -> CoefficientIntervals:
        """Intervals for linear functionals of the coefficients and, last, the intercept."""
        matrix, offset = self._frame().functionals()
        given: Any = {"functionals": rows @ matrix, "offset": rows @ offset}
        return self.settings_.intervals(self._fitted, level=level, target=target, **given)

    def covariance(self, target: Target = "population") -> CoefficientCovariance:
        """Covariance of the coefficients and, last, of the intercept if there is one.

        `total` is the sum of `sampling` and `privacy`. The square roots of its diagonal are the
        standard errors of `confidence_intervals(target=target)`. There is no further privacy cost.
        """
        check_is_fitted(self)
        matrix, _ = self._frame().functionals()
        return self.settings_.covariance(self._fitted, target=target, functionals=matrix)

    def t_test(
        self, hypotheses: Any, level: float = 0.95, target: Target = "population"
    ) -> Summary:
        """Tests and intervals for linear combinations of coefficients, as in statsmodels.

        Each hypothesis, left side minus right side, is tested alone, at no further privacy cost.
        Give text ("size = 0, year - 2 * x0 = 1") or rows of a matrix R for R (β, β_0) = 0.
        """
        from privreg.estimators.formulas import read_hypotheses
        from privreg.estimators.report import READING, Summary

        check_is_fitted(self)
        rows, values = read_hypotheses(hypotheses, self._names())
        found = self._intervals(rows, level, target)
        parts = hypotheses.split(",") if isinstance(hypotheses, str) else []
        parts = parts if len(parts) == len(rows) else [f"c{k}" for k in range(len(rows))]
        names = tuple(each.strip() for each in parts)
        return Summary(names, replace(found, centre=found.centre - values), (), READING)

    def wald_test(self, hypotheses: Any, target: Target = "population") -> WaldTest:
        """Joint test of q hypotheses, allowing for privacy noise and bias.

        There is no further privacy cost. One hypothesis has the p-value of `t_test`; several have
        twice the smaller of the F and Bonferroni p-values. If an interval is infinite, p is 1.

        Parameters
        ----------
        hypotheses : str or array_like, shape (q, p + 1)
            Linearly independent hypotheses, as for `t_test`; shape (q, p) without an intercept.
        target : {"population", "empirical"}
            As for `confidence_intervals`.
        """
        from privreg.estimators.formulas import read_hypotheses
        from privreg.estimators.report import joint_test

        check_is_fitted(self)
        rows, values = read_hypotheses(hypotheses, self._names())
        own = self._intervals(rows, 0.95, target)
        # In standard errors, so that units do not matter.
        error = np.where(own.standard_error > 0, own.standard_error, 1.0)
        scaled, away = rows / error[:, None], (own.centre - values) / error
        if len(rows) == 1 or not np.all(np.isfinite(own.half_width)):
            return joint_test(away, own, float(np.max(own.p_values(values))))
        if np.linalg.matrix_rank(scaled) < len(rows):
            raise ValueError("hypotheses must be linearly independent, got dependent ones")
        squares, vectors = np.linalg.eigh(scaled @ self.covariance(target).total @ scaled.T)
        axes = (vectors / np.sqrt(np.maximum(squares, 1e-12))).T
        found = joint_test(axes @ away, self._intervals(axes @ scaled, 0.95, target))
        each = len(rows) * float(np.min(own.p_values(values)))
        return found._replace(p_value=min(1.0, 2 * min(found.p_value, each)))

    def summary(self, level: float = 0.95, target: Target = "population") -> Summary:
        """Coefficients with standard errors, tests and intervals, as in statsmodels.

        `columns` has the numbers; `to_frame()` returns a DataFrame. A p-value is below α if the
        interval of level 1 - α excludes 0; it is 1 for infinite intervals. This costs no privacy.
        "(noisy)" marks estimates without a standard error, since fourth moments are not released.
        """
        from privreg.estimators import report

        check_is_fitted(self)
        fit, bound, privacy = self._fitted, self.weight_bound_, self.privacy_
        names, intervals = self._names(), self.confidence_intervals(level, target)
        records = getattr(fit, "sample_size", None)
        relation = privacy.budget.neighbours
        counted = "about " if relation is Neighbours.ADD_REMOVE else ""
        size = [] if records is None else [(f"{privacy.unit.title()}s", f"{counted}{records:,.0f}")]
        weighs, seen = bound is not None, np.isfinite(intervals.half_width).any()
        variance, share = report.explained(self) if seen else (np.nan, np.nan)
        std = float(np.ptp(self.label_bounds_)) / 2 * variance**0.5
        known = [("Residual std", f"{std:.4g} (noisy)"), ("R-squared", f"{share:.3f} (noisy)")]
        facts = (
            ("Method", "weighted " * weighs + self.settings_.name.replace("_", " ")),
            ("Target", target),
            *size,
            ("Coefficients", str(len(names))),
            ("Epsilon", f"{privacy.epsilon():.4g} at delta {privacy.delta:g}"),
            ("Rho (zCDP)", f"{privacy.rho:.4g}"),
            ("Neighbours", relation.value),
            ("Unit", privacy.unit),
            *([] if np.isnan(variance) else known),
            *([("Noise", "seeded: not private")] if privacy.seeded else []),
        )
        notes = [f"Warning: {each}." for each in self.warnings_]
        notes += [] if bound is None else report.weight_sentences(fit, bound)
        notes += report.target_sentences(self.settings_, fit, intervals, names, weighted=weighs)
        if self.settings_.has_intervals:
            test = self.wald_test(np.eye(len(names))[: self.n_features_in_], target)
            notes.append(f"Joint test that all slopes are 0: {test}.")
        if privacy.rho > (stated := self._budget().rho):
            notes.append(f"Rho is above the budget's {stated:.4g}: {EXACT}.")
        return report.Summary(tuple(names), intervals, facts, (*notes, *report.READING))

    def prediction_intervals(self, X: Any, level: float = 0.95) -> PredictionIntervals:
        """Mean predictions and intervals for new observations, at public rows as in `intervals_at`.

        This costs no privacy. `to_frame()` has the columns of statsmodels' `summary_frame`.

        Raises
        ------
        ValueError
            If the fit has weights or groups, or its method releases no distribution of residuals.

        Notes
        -----
        No distribution of errors is assumed: half-widths come from a private histogram of residuals
        times row lengths (`inference.least_squares_intervals`). On average over new records of the
        population, an interval covers the clipped label with probability `level` or more.
        """
        from privreg.estimators.report import PredictionIntervals

        means = self.intervals_at(X, level)
        if self.privacy_.unit == "person" or self.weight_bound_ is not None:
            why = "groups or sample_weight: no row-level residual distribution was released"
            raise ValueError(f"prediction_intervals is unavailable for fits with {why}")
        frame = self._frame()
        rows = frame.rows(self._rows(X))
        found = self.settings_.new_observations(self._fitted, rows, level=level)
        ends = (found.centre - found.half_width, found.centre + found.half_width)
        # Without an intercept the frame's labels go beyond their bounds, at either end.
        lower, upper = (
            np.clip(frame.labels_of(np.clip(end, -1.0, 1.0)), *self.label_bounds_) for end in ends
        )
        return PredictionIntervals(means, lower, upper, found.reason)

    def plot(self, axes: Any = None, *, level: float = 0.95) -> Any:
        """Plot slopes with intervals, and the shares of the budget, on two Matplotlib axes."""
        from privreg.estimators.report import draw, new_axes, slope_bars

        check_is_fitted(self)
        bars = slope_bars(self._names(), self.confidence_intervals(level), self.feature_bounds_)
        axes = new_axes(len(bars), len(self.privacy_.spending)) if axes is None else axes
        draw(bars, self.privacy_.spending, axes)
        return axes

    def report(self, format: Literal["text", "html"] = "text", *, level: float = 0.95) -> str:
        """Report of the coefficients with intervals, and of the privacy budget spent.

        The format is text or a dated HTML page, which shows `plot` if Matplotlib is installed.
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
        bounds = (self.label_bounds_, *self.feature_bounds_)
        pairs = zip(("label", *found.names), bounds, strict=False)
        chosen = [f"{settings.name.replace('_', ' ')}: {settings}"]
        chosen += [f"{name} within [{low:g}, {high:g}]" for name, (low, high) in pairs]
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
        """Finite features of arrays, or of frames with the columns that were declared."""
        from privreg.estimators.tables import HeldTable, frame_columns, open_frame

        columns, _, _, design, by_name = self._source
        names = frame_columns(X) if by_name else []
        if design is not None or (names and names != self.feature_names_in_.tolist()):
            held = X if isinstance(X, HeldTable) else open_frame(X, [e.name for e in columns])
            values = held.values(columns)
            values = values if design is None else design.features(values, clip=False)
            features = require_real("X", np.column_stack(values))
        else:
            options: Any = {"dtype": np.float64, "reset": False}
            features = np.asarray(unquoted(lambda: validate_data(self, X, **options), X=X))
        low, high = self.feature_bounds_.T
        with np.errstate(over="ignore"):
            far = np.any(np.abs(features - (low + high) / 2) > 1.5 * (high - low), axis=0)
        if np.any(far):
            where = ", ".join(repr(self._names()[k]) for k in np.flatnonzero(far)[:MOST_COLUMNS])
            self._warn([f"predictions extrapolate: X has rows far outside the bounds of {where}"])
        return features

    def _frame(self) -> Frame:
        design = self._source.design
        intercept = bool(self.fit_intercept) if design is None else design.intercept
        return Frame(self.feature_bounds_, self.label_bounds_, intercept)

    def _names(self) -> list[str]:
        columns, _, _, design, _ = self._source
        own = [name for each in columns for name in each.names]
        names, intercept = (own, "(intercept)") if design is None else (design.names, "Intercept")
        return [*names, *([intercept] if self._frame().intercept else [])]


@contextmanager
def _counted(budget: Budget, *, seeded: bool) -> Iterator[None]:
    """Add a note to errors in the block: the budget is spent, since errors depend on the data."""
    try:
        yield
    except BaseException as error:
        spent = f"counts as spent, with rho = {budget.rho:.4g} ({budget.neighbours.value})"
        error.add_note(f"the failed fit {'was not private: seeded' if seeded else spent}")
        raise


def _held(X: Any, names: Sequence[Any], y: Any, sample_weight: Any) -> HeldTable:
    """Columns of a frame; a label or weights given here become the last columns."""
    from privreg.estimators.columns import require_aligned
    from privreg.estimators.tables import HeldTable, open_frame

    if y is not None or sample_weight is not None:
        require_aligned(X=X, y=y, sample_weight=sample_weight)
    beside = {names[-2]: ("y", y), names[-1]: ("sample_weight", sample_weight)}
    beside = {name: each for name, each in beside.items() if each[1] is not None}
    columns = [name for name in names if name and name not in beside]
    table = X if isinstance(X, HeldTable) else open_frame(X, columns)
    for name, each in beside.items():
        table = table.beside(name, _finite_numbers(*each, table.row_count))
    return table


def _finite_numbers(name: str, value: Any, rows: int) -> FloatArray:
    """One finite number per row, of either sign; errors quote none of the numbers."""
    options: dict[str, Any] = {"ensure_2d": False, "dtype": np.float64, "ensure_min_samples": 0}
    check = partial(check_array, value, input_name=name, **options)
    found = np.asarray(unquoted(check, **{name: value}))
    if found.shape != (rows,):
        raise ValueError(f"{name} must have shape ({rows},), got {found.shape}")
    return found
