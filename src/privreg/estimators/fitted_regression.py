"""Answers of a fitted private regression: predictions, intervals, a report."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from privreg.estimators.bounds import Frame
from privreg.estimators.odometer import PrivacyStatement
from privreg.estimators.outlook import Outlook
from privreg.estimators.report import (
    draw_budget,
    draw_slopes,
    html_budget,
    html_slopes,
    new_axes,
    quality_part,
    slope_bars,
    target_sentences,
    weight_sentences,
)
from privreg.estimators.summary import (
    READING,
    Part,
    PredictionIntervals,
    Summary,
    as_html,
    as_text,
    coefficient_rows,
)
from privreg.estimators.table_quality import TableQuality
from privreg.estimators.unquoted import unquoted
from privreg.inference.population_intervals import (
    CoefficientCovariance,
    CoefficientIntervals,
    Target,
)
from privreg.methods.method import Fitted, Method
from privreg.privacy.neighbours import Neighbours
from privreg.validation import require_answer, require_array, require_choice, require_unmasked

FloatArray = NDArray[np.float64]


class FittedRegression(RegressorMixin, BaseEstimator):
    """Answers of `PrivateLinearRegression`, all of them functions of what was released."""

    fit_intercept: bool
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

    def predict(self, X: Any) -> FloatArray:
        """Predicted labels, shape (n,), of features (n, p)."""
        check_is_fitted(self)
        features = self._rows(X)
        with np.errstate(over="ignore", invalid="ignore"):
            return require_answer("X", np.asarray(features @ self.coef_ + self.intercept_))

    def score(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> float:
        """R² of the predictions of these rows, as in scikit-learn. Not private.

        Parameters
        ----------
        X : array_like or DataFrame, shape (n, p)
        y, sample_weight : array_like, shape (n,)

        Raises
        ------
        ValueError
            If R² is no number: of one row, or of labels beyond double precision.
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        for name, value in {"y": y, **weights}.items():
            require_unmasked(name, value)
        predicted = self.predict(X)
        with np.errstate(over="ignore", invalid="ignore"):
            found = unquoted(lambda: r2_score(y, predicted, **weights), y=y, **weights)
        return float(require_answer("y", np.asarray(found)))

    def confidence_intervals(
        self, level: float = 0.95, target: Target = "population"
    ) -> CoefficientIntervals:
        """Intervals for the coefficients, and after them for the intercept if there is one.

        Parameters
        ----------
        level : float
            Nominal coverage in (0, 1).
        target : {"population", "empirical"}
            Coefficients in the population that the records come from, or those of the same loss on
            these records without noise; `least_squares_intervals` and, for a robust fit,
            `population_intervals` say what is assumed.

        Returns
        -------
        CoefficientIntervals
            At no further cost. Infinite where none are known for the method, or for a reason that
            `reasons` gives.
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
            Public rows, of up to 1e80 widths of the bounds; by default the private mean of the
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
            require_array("X", rows / scale, shape=rows.shape, least=-1e80, most=1e80)
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

        Parameters
        ----------
        target : {"population", "empirical"}
            As for `confidence_intervals`.

        Returns
        -------
        CoefficientCovariance
            `total`, and its parts `sampling` and `privacy`, in the units of the coefficients. The
            roots of its diagonal are the standard errors of `confidence_intervals`. Of a linear
            functional ask `intervals_at`, which looks at that one alone.

        Guarantee
        ---------
        A function of what the fit released: no further cost.
        """
        check_is_fitted(self)
        matrix, _ = self._frame().functionals()
        return self.settings_.covariance(self._fitted, target=target, functionals=matrix)

    def summary(self, level: float = 0.95, target: Target = "population") -> Summary:
        """Coefficients with standard errors, tests and intervals, as in statsmodels.

        Parameters
        ----------
        level, target
            As for `confidence_intervals`.

        Returns
        -------
        Summary
            To print; `columns` has the numbers, `to_frame()` a pandas DataFrame. A p-value inverts
            the intervals: it is below α where the interval of level 1 - α leaves 0 out, and 1 where
            the interval is infinite.

        Guarantee
        ---------
        A function of what the fit released and of what is public: no further cost.

        Examples
        --------
        >>> import numpy as np
        >>> from privreg import Budget, PrivateLinearRegression
        >>> rng = np.random.default_rng(0)
        >>> features = rng.uniform(0, 10, (5_000, 2))
        >>> labels = 3 + features @ [2.0, -1.0] + rng.normal(0, 2, 5_000)
        >>> model = PrivateLinearRegression(
        ...     Budget.approximate(4.0, 1e-6), feature_bounds=(0, 10), label_bounds=(-20, 40)
        ... ).fit(features, labels)
        >>> columns = model.summary().columns
        >>> columns["name"], [p < 0.001 for p in columns["p_value"][:2]]
        (['x0', 'x1', '(intercept)'], [True, True])
        """
        check_is_fitted(self)
        names, intervals = self._names(), self.confidence_intervals(level, target)
        notes = self._target_sentences(intervals, names)
        records = getattr(self._fitted, "sample_size", None)
        counted = "about " if self.privacy_.budget.neighbours is Neighbours.ADD_REMOVE else ""
        unit = f"{self.privacy_.unit.title()}s"
        weighted = "" if self.weight_bound_ is None else "weighted "
        facts = (
            ("Method", weighted + self.settings_.name.replace("_", " ")),
            ("Target", target),
            *([] if records is None else [(unit, counted + f"{records:,.0f}")]),
            ("Coefficients", str(len(names))),
            *self.privacy_.facts,
        )
        return Summary(tuple(names), intervals, facts, (*notes, *READING))

    def prediction_intervals(self, X: Any, level: float = 0.95) -> PredictionIntervals:
        """Mean prediction and interval for a new observation, at public rows.

        Parameters
        ----------
        X : array_like or DataFrame, shape (n, p)
            Public rows, as for `intervals_at`.
        level : float
            Nominal coverage in (0, 1).

        Returns
        -------
        PredictionIntervals
            `to_frame()` has the columns of statsmodels' `summary_frame`.

        Raises
        ------
        ValueError
            For a fit that releases no law of its residuals: of another method than least squares,
            of persons, or with weights.

        Guarantee
        ---------
        A function of what the fit released: no further cost.

        Notes
        -----
        No law of the errors is assumed: half-widths come from the private histogram of the fit
        (`inference.least_squares_intervals`). A new record of the same population, clipped to the
        bounds as in the fit, lies inside with probability `level` or more. That is an average over
        records: where the errors' size depends on the features, rows of large errors are covered
        less, others more.
        """
        means = self.intervals_at(X, level)
        if self.privacy_.unit == "person":
            raise ValueError(
                "groups must not have been given: of persons no law of a row's residual is released"
            )
        if self.weight_bound_ is not None:
            raise ValueError(
                "sample_weight must not have been given: with weights no law of a residual itself "
                "is released"
            )
        frame = self._frame()
        rows = frame.rows(np.asarray(self._rows(X)))
        found = self.settings_.new_observations(self._fitted, rows, level=level)
        ends = (found.centre - found.half_width, found.centre + found.half_width)
        # Without an intercept the frame's labels go beyond their bounds, at either end.
        lower, upper = (
            np.clip(frame.labels_of(np.clip(end, -1.0, 1.0)), *self.label_bounds_) for end in ends
        )
        return PredictionIntervals(means, lower, upper, found.reason)

    def plot(self, axes: Any = None, *, level: float = 0.95) -> Any:
        """Slopes with their intervals, and where the budget went.

        Parameters
        ----------
        axes : sequence of two matplotlib.axes.Axes, optional
            For the slopes and the budget; those of a new figure of pyplot by default.
        level : float
            Nominal coverage of the intervals.

        Returns
        -------
        sequence of two matplotlib.axes.Axes
            The figure is `axes[0].figure`.

        Raises
        ------
        ImportError
            If Matplotlib is not installed and no axes are given.
        """
        check_is_fitted(self)
        bars = slope_bars(self._names(), self.confidence_intervals(level), self.feature_bounds_)
        spending = self.privacy_.spending
        first, second = axes = new_axes(len(bars), len(spending)) if axes is None else axes
        draw_slopes(bars, first)
        draw_budget(spending, second)
        return axes

    def report(self, format: Literal["text", "html"] = "text", *, level: float = 0.95) -> str:
        """Coefficients with their intervals, and the privacy that was spent.

        Parameters
        ----------
        format : {"text", "html"}
        level : float
            Nominal coverage of the intervals.
        """
        check_is_fitted(self)
        require_choice("format", format, ("text", "html"))
        names, intervals = self._names(), self.confidence_intervals(level)
        privacy, settings, bounds = self.privacy_, self.settings_, self.feature_bounds_
        notes = [*self._target_sentences(intervals, names), *READING]
        whole = privacy.with_secret_noise.rho
        spending: list[tuple[str, ...]] = [
            (what, f"{budget.rho:.4g}", f"{100 * budget.rho / whole:.1f} %")
            for what, budget in privacy.spending
        ]
        guarantee = [
            f"{privacy.sentence[0].upper()}{privacy.sentence[1:]}.",
            f"zCDP with rho = {privacy.rho:.4g}; Gaussian DP with mu = {privacy.mu:.4g}.",
        ]
        pairs = zip(["label", *names], [self.label_bounds_, *bounds], strict=False)
        chosen = [
            f"{settings.name.replace('_', ' ')}: {settings}",
            *(f"{name} within [{low:g}, {high:g}]" for name, (low, high) in pairs),
        ]
        parts: list[Part] = [
            ("Coefficients", *coefficient_rows(names, intervals), notes),
            ("Predicted before the fit", None, [], self.outlook_.sentences),
            *([] if self.quality_ is None else [quality_part(self.quality_)]),
            ("Privacy", None, [], guarantee),
            ("Spent on", ("", "rho", "share"), spending, []),
            ("Assumed", None, [], list(privacy.assumptions)),
            ("Chosen without the data", None, [], chosen),
        ]
        if format == "text":
            return as_text(parts)
        pictures = {
            "Coefficients": html_slopes(slope_bars(names, intervals, bounds)),
            "Spent on": html_budget(privacy.spending),
        }
        return as_html(parts, pictures)

    def _target_sentences(self, intervals: CoefficientIntervals, names: list[str]) -> list[str]:
        fit, bound = self._fitted, self.weight_bound_
        return [
            *(f"Warning: {each}." for each in self.warnings_),
            *([] if bound is None else weight_sentences(fit, bound)),
            *target_sentences(self.settings_, fit, intervals, names, weighted=bound is not None),
        ]

    def _rows(self, X: Any) -> FloatArray:
        require_unmasked("X", X)
        options = {"dtype": np.float64, "reset": False}
        return np.asarray(unquoted(lambda: validate_data(self, X, **options), X=X))

    def _frame(self) -> Frame:
        return Frame(self.feature_bounds_, self.label_bounds_, bool(self.fit_intercept))

    def _names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        listed = [f"x{k}" for k in range(self.n_features_in_)] if names is None else list(names)
        return [*map(str, listed), *(["(intercept)"] if self.fit_intercept else [])]
