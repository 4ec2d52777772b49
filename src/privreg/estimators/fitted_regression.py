"""What a fitted private regression answers: predictions, intervals, a report."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from privreg.estimators.bounds import Frame
from privreg.estimators.outlook import Outlook
from privreg.estimators.report import PrivacyStatement, write_report
from privreg.estimators.table_quality import TableQuality
from privreg.estimators.target_words import target_sentences
from privreg.estimators.unquoted import unquoted
from privreg.inference.population_intervals import CoefficientIntervals, Target
from privreg.methods.method import Method
from privreg.methods.runs import Fitted
from privreg.validation import require_answer, require_array, require_unmasked

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
    settings_: Method
    _fitted: Fitted

    def predict(self, X: Any) -> FloatArray:
        """Predicted labels, shape (n,), of features (n, p)."""
        check_is_fitted(self)
        require_unmasked("X", X)
        options = {"dtype": np.float64, "reset": False}
        features = unquoted(lambda: validate_data(self, X, **options), X=X)
        with np.errstate(over="ignore", invalid="ignore"):
            return require_answer("X", np.asarray(features @ self.coef_ + self.intercept_))

    def score(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> float:
        """R² of the predictions of these rows, as in scikit-learn. Not private.

        Parameters
        ----------
        X : array_like or DataFrame, shape (n, p)
            Features.
        y : array_like, shape (n,)
            Labels.
        sample_weight : array_like, shape (n,), optional
            Weights of the rows.

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
            The coefficients in the population that the records come from, or the ones that the same
            loss has on these records without noise; `least_squares_intervals` and, of a robust fit,
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
            Rows that are public, of up to 1e80 widths of the bounds; the private mean of the
            features by default, where the fit has an intercept and releases it.
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
            require_unmasked("X", X)
            options = {"dtype": np.float64, "reset": False}
            rows = unquoted(lambda: validate_data(self, X, **options), X=X)
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

    def report(self, format: Literal["text", "html"] = "text", *, level: float = 0.95) -> str:
        """Coefficients with their intervals, and what privacy they were bought with.

        Parameters
        ----------
        format : {"text", "html"}
        level : float
            Nominal coverage of the intervals.
        """
        check_is_fitted(self)
        names, intervals = self._names(), self.confidence_intervals(level)
        return write_report(
            format,
            names=names,
            intervals=intervals,
            target=target_sentences(self.settings_, self._fitted, intervals, names),
            privacy=self.privacy_,
            outlook=self.outlook_,
            bounds=self.feature_bounds_,
            label_bounds=self.label_bounds_,
            quality=self.quality_,
        )

    def _frame(self) -> Frame:
        return Frame(self.feature_bounds_, self.label_bounds_, bool(self.fit_intercept))

    def _names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        listed = [f"x{k}" for k in range(self.n_features_in_)] if names is None else list(names)
        return [*map(str, listed), *(["(intercept)"] if self.fit_intercept else [])]
