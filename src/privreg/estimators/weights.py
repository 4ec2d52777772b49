"""Weights of records, each clipped to a public bound and entered by its own record alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from privreg.algorithms.huber_descent import HuberFit
from privreg.algorithms.least_squares_descent import LeastSquaresFit
from privreg.estimators.bounds import LARGEST, NARROWEST
from privreg.estimators.unquoted import unquoted
from privreg.methods.method import Method, require_method
from privreg.methods.runs import Fitted
from privreg.validation import require_count, require_number, require_unmasked

FloatArray = NDArray[np.float64]
WEIGHTS = (
    "the weight of a record is a function of that record and of what is public, and weights are "
    "clipped to [0, weight_bound], record by record"
)
GIVEN_WEIGHTS = "What is said of errors given the features must hold given the weights as well."
UNDECLARED = (
    "weight_bound must be declared with weights, a public largest weight, got None: without one a "
    "doubled weight, as bagging's counts, doubles what a record may change"
)


def require_weighting(bound: Any, settings: Method | None, *, weights: Any) -> float | None:
    """The bound of the weights of a fit; None for one without weights.

    Parameters
    ----------
    bound : float or None
        What was declared, at least 1e-15 and at most 1e15.
    settings : Method or None
        Must be a method that takes weights where some are given.
    weights : object
        The weights or the name of their column; None where there are none.
    """
    if bound is not None:
        bound = require_number("weight_bound", bound, least=NARROWEST, most=LARGEST)
    if weights is None:
        return None
    if bound is None:
        raise ValueError(UNDECLARED)
    if settings is not None and not require_method("settings", settings).takes_weights:
        raise ValueError(
            f"settings must be a method that takes weights, such as least_squares, huber, adassp "
            f"or full_batch, got {settings.name}, whose steps see one record each"
        )
    return float(bound)


def require_weights(sample_weight: Any, rows: int) -> FloatArray:
    """A finite weight of each row, whatever its sign; an error quotes none of them.

    Parameters
    ----------
    sample_weight : array_like, shape (n,)
    rows : int
        n.
    """
    require_count("rows", rows, least=0)
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


def weight_sentences(fit: Fitted, bound: float) -> list[str]:
    """What weights mean for a fit, before what its target is.

    Parameters
    ----------
    fit : Fitted
        What a weighted fit released.
    bound : float
        Of the weights, more than 0.
    """
    bound = require_number("bound", bound, above=0)
    noun = "robust fit" if isinstance(fit, HuberFit) else "least squares"
    centre = fit.centre if isinstance(fit, (HuberFit, LeastSquaresFit)) else None
    mean = ""
    if centre is not None and 5 * centre.noise_std < 1:
        share = min(max(float(centre.value[0]), 0.0), 1.0)
        mean = f", their mean is about {bound * share:.3g}"
    return [
        f"Weighted {noun}: of the population in which a record counts by "
        f"its weight. Weights are clipped to [0, {bound:g}]{mean}.",
        *([GIVEN_WEIGHTS] if isinstance(fit, HuberFit) else []),
        "What was predicted before the fit takes all weights to be the largest.",
    ]
