"""Every public name with one wrong argument: refused by name, or answered without NaN.

Arguments that hold data carry a marked number; no error shows it.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import privreg
from privreg import Budget, PrivateLinearRegression
from privreg.noise.covariance import population_covariance
from privreg.noise.streams import TreeCorrelation

D, N = 3, 12
DRAWS = np.random.Generator(np.random.SFC64(7))
FEATURES, LABELS = DRAWS.standard_normal((N, D)), DRAWS.standard_normal(N)
VECTOR, VALUES = np.array([0.4, -0.3, 0.2]), np.array([0.5, 1.0, 1.5])
PATH = DRAWS.standard_normal((2, 40, D))
STEPS = np.full(N, 0.05)
MARKED = 731.1259
RNG = partial(np.random.Generator, np.random.SFC64(5))
BUDGET, BOUNDS = Budget.zcdp(0.5), privreg.Bounds(2.0, 1.5)
SAMPLES = privreg.ArraySamples(FEATURES, LABELS)
PROBLEM = privreg.Problem(500, VALUES, signal=1.0, label_noise_std=1.0)
LAW = privreg.GradientDescentLaw(
    VALUES, np.eye(D), VECTOR, 0 * VECTOR, step_size=0.3, gradient_noise_std=0.2
)
RECORDS = privreg.LinearRecords.uniform(mean=0.2, half_width=1.0, target=VECTOR)
FTRL = privreg.FTRLMechanism(np.ones(N), 0.5, 1.5, N)
SHAPED = privreg.ShapedMechanism(
    population_covariance(VALUES, horizon=2.0), TreeCorrelation(), privreg.FixedClip(1.5), 1.2, N
)
RIDGE = privreg.RidgeRegression(VALUES, VECTOR, 0 * VECTOR, label_noise_std=0.3, ridge=0.1)
HALF = privreg.ConstantRate(0.5)


def regression(**settings: Any) -> PrivateLinearRegression:
    declared = {"feature_bounds": (-1, 1), "label_bounds": (-2, 2), "random_state": 1}
    return PrivateLinearRegression(BUDGET, **{**declared, **settings})


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    FITTED = regression().fit(FEATURES, LABELS)
HUBER = privreg.PrivateHuber().run(
    SAMPLES, BUDGET, declared=privreg.Declared(BOUNDS, sample_size=N)
)
SGD = {
    "records": RECORDS,
    "initial": VECTOR,
    "step_sizes": STEPS,
    "gradient_noise_stds": [0.5],
    "clip_norms": [1.5],
    "ridge": 0.1,
    "rng": RNG,
}
QUALITY = {"gradients": 60, "replicates": 3, "burn_in": 2, "level": 0.9}
# A valid call of each public name and of the methods that users call.
CALLS: dict[Callable[..., Any], dict[str, Any]] = {
    privreg.AdaSSP: {"ridge_failure": 0.05},
    privreg.ArraySamples: {"features": FEATURES, "labels": LABELS},
    Budget: {"rho": 0.5, "neighbours": "replace-one"},
    Budget.zcdp: {"rho": 0.5, "neighbours": "add-remove"},
    Budget.approximate: {"epsilon": 1.0, "delta": 1e-6, "neighbours": "zero-out"},
    BUDGET.epsilon: {"delta": 1e-6},
    BUDGET.gaussian_epsilon: {"delta": 1e-6},
    BUDGET.share: {"fraction": 0.5},
    privreg.ConstantRate: {"value": 0.5},
    privreg.CorrelatedNoise: {"batch_size": 5, "step_size": 0.3, "clip_norm": 0.3, "damping": 0.1},
    privreg.Declared: {"bounds": BOUNDS, "sample_size": 10.0, "intercept": True, "threads": 1},
    privreg.FTRLMechanism: {
        "decoder": np.ones(N),
        "gradient_noise_std": 0.5,
        "clip_norm": 1.5,
        "sample_size": N,
        "epochs": 1,
        "batch_size": 1,
    },
    privreg.FixedClip: {"clip_norm": 1.5},
    privreg.FullBatchDPGD: {"steps": 5, "step_size": 0.5, "clip_norm": 0.3},
    privreg.GaussianSamples: {
        "sample_size": N,
        "target": VECTOR,
        "label_noise_std": 0.3,
        "seed": np.random.SeedSequence(3),
        "covariance_root": np.eye(D),
        "label_noise_mean": 0.1,
    },
    privreg.GradientDescentLaw: {
        "eigenvalues": VALUES,
        "eigenvectors": np.eye(D),
        "minimiser": VECTOR,
        "start": 0 * VECTOR,
        "step_size": 0.3,
        "gradient_noise_std": 0.2,
    },
    privreg.Harmonic: {"numerator": 1.5, "offset": 0.5},
    privreg.HomogenisedSGD: {
        "problem": RIDGE,
        "schedule": HALF,
        "gradient_noise_std": 0.5,
        "horizon": 4.0,
        "minimum_panels": 4,
    },
    privreg.InverseSquareRootRate: {"value": 0.5, "scale": 1.0},
    privreg.LinearModel: {"eigenvalues": VALUES, "target": VECTOR, "label_noise_std": 0.3},
    privreg.LinearRecords: {"shape": "uniform", "mean": VECTOR, "std": VALUES, "target": VECTOR},
    privreg.Odometer: {"limit": BUDGET},
    privreg.OnePassDPGD: {"schedule": privreg.Harmonic(5.0, 0.1), "clip_constant": 0.2},
    privreg.Polynomial: {"initial": 1.0, "exponent": 0.5},
    privreg.Population: {
        "second_moment": np.diag(VALUES),
        "target": VECTOR,
        "label_noise_std": 0.3,
    },
    privreg.PrivateLeastSquares: {"clip_width": 1.0, "warm_up_steps": 4, "gram_share": 0.07},
    privreg.PrivateHuber: {"clip_width": 1.0, "final_steps": 3, "common_width": True},
    privreg.Problem: {
        "sample_size": 500,
        "eigenvalues": VALUES,
        "signal": 1.0,
        "label_noise_std": 1.0,
        "feature_law": "gaussian",
        "misfit": 0.1,
    },
    partial(privreg.Release, 1.0): {"budget": BUDGET},
    privreg.ResidualClip: {"per_residual": 1.5, "features": FEATURES, "labels": LABELS},
    privreg.RidgeRegression: {
        "eigenvalues": VALUES,
        "target": VECTOR,
        "initial": 0 * VECTOR,
        "label_noise_std": 0.3,
        "ridge": 0.1,
    },
    privreg.ShapedMechanism: {
        "covariance": SHAPED.covariance,
        "correlation": TreeCorrelation(),
        "clipping": privreg.FixedClip(1.5),
        "noise_multiplier": 1.2,
        "sample_size": N,
    },
    privreg.Spectrum: {"eigenvalues": VALUES, "weights": np.full(D, 1 / D)},
    privreg.adassp: {
        "samples": SAMPLES,
        "bounds": BOUNDS,
        "epsilon": 1.0,
        "delta": 1e-6,
        "rng": RNG,
        "neighbours": "replace-one",
        "ridge_failure": 0.05,
    },
    privreg.audit: {"outputs": PATH[0, :, :2], "neighbour_outputs": PATH[1, :, :2]},
    privreg.batch_means: {"iterates": PATH, "level": 0.9, "replicates": 5, "burn_in": 5},
    privreg.checkpoints: {"iterates": PATH, "level": 0.9, "replicates": 5, "burn_in": 5},
    privreg.clipping_bound: {
        "law": LAW,
        "features": FEATURES,
        "labels": LABELS,
        "clip_norm": 1.5,
        "steps": 8,
    },
    privreg.dp_ftrl: {
        "samples": SAMPLES,
        "mechanism": FTRL,
        "step_size": 0.05,
        "rng": RNG,
        "ridge": 0.1,
        "start": VECTOR,
        "times": np.array([2, 5]),
    },
    privreg.full_batch_dpgd: {
        "samples": SAMPLES,
        "clip_norm": 1.5,
        "step_size": 0.3,
        "gradient_noise_std": 0.5,
        "steps": 8,
        "rng": RNG,
        "runs": 2,
        "start": VECTOR,
        "times": np.array([2, 5]),
    },
    privreg.full_batch_noise_std: {
        "clip_norm": 1.5,
        "rho": 0.5,
        "sample_size": 100.0,
        "gradients": 10.0,
        "neighbours": "replace-one",
    },
    privreg.gradient_descent_law: {
        "gram": FEATURES.T @ FEATURES,
        "moment": FEATURES.T @ LABELS,
        "sample_size": N,
        "step_size": 0.3,
        "gradient_noise_std": 0.2,
        "start": VECTOR,
    },
    privreg.independent_runs: {"iterates": PATH, "level": 0.9, "burn_in": 5},
    privreg.interval_quality: {"law": LAW, "construction": "batch_means", **QUALITY},
    privreg.interval_quality_of_data: {
        "samples": SAMPLES,
        "budget": BUDGET,
        "clip_norm": 1.5,
        "step_size": 0.3,
        "start": VECTOR,
        **QUALITY,
    },
    privreg.least_budget: {
        "problems": PROBLEM,
        "target_risk": 0.01,
        "neighbours": "replace-one",
        "methods": ["adassp"],
    },
    privreg.ols: {"samples": SAMPLES},
    privreg.plan_run: {
        "problems": PROBLEM,
        "budget": BUDGET,
        "methods": ["adassp"],
        "objective": "excess_risk",
        "intervals": False,
    },
    privreg.population_intervals: {
        "fit": HUBER.value,
        "level": 0.9,
        "target": "population",
        "functionals": np.eye(D),
        "offset": 0.0,
    },
    privreg.predicted_length: {"problem": PROBLEM, "budget": BUDGET, "intercept": True},
    privreg.release_loss: {
        "features": FEATURES,
        "labels": LABELS,
        "record": 1,
        "replacement": (VECTOR, 0.5),
        "schedule": HALF,
        "gradient_noise_std": 0.5,
        "order": 2.0,
        "release": "last",
        "ridge": 0.1,
        "finest": 0.5,
        "shuffled": True,
    },
    privreg.replicate_interval: {"replicates": PATH[0, :5], "level": 0.9},
    privreg.run_noisy_sgd: {"features": FEATURES, "labels": LABELS, **SGD},
    privreg.shaped_dp_ftrl: {
        "samples": SAMPLES,
        "mechanism": SHAPED,
        "step_size": 0.05,
        "rng": RNG,
    },
    privreg.simulate_noisy_sgd: SGD,
    regression: {
        "feature_bounds": ([-1.0] * D, [1.0] * D),
        "label_bounds": (-2.0, 2.0),
        "fit_intercept": True,
        "target": "least_squares",
        "release": "last",
        "random_state": 1,
    },
    regression().fit: {"X": FEATURES, "y": LABELS, "quality_share": 0.01},
    FITTED.predict: {"X": FEATURES},
    FITTED.score: {"X": FEATURES, "y": LABELS},
    FITTED.confidence_intervals: {"level": 0.9, "target": "population"},
    FITTED.intervals_at: {"X": FEATURES, "level": 0.9},
    FITTED.prediction_intervals: {"X": FEATURES, "level": 0.9},
    FITTED.summary: {"level": 0.9},
    FITTED.report: {"format": "text", "level": 0.9},
}
# Names that only hold what they are given, are results, or take any number of releases.
NOT_CALLED = {
    "AccuracyWarning",
    "Bounds",
    "CoefficientIntervals",
    "Diagnostic",
    "FitWarning",
    "Interval",
    "Method",
    "Neighbours",
    "Plan",
    "Prediction",
    "PrivateLinearRegression",
    "audit_mechanism",
    "compose",
}
# Arguments that hold records or sums of them.
RECORDS_OF = {"X", "y", "features", "labels", "gram", "moment", "outputs", "iterates"}
# What a mechanism gave, which need not be finite.
NOT_FINITE = {"outputs", "neighbour_outputs"}
# At the ends of the domain a number that follows, such as a bound on labels, may lie beyond.
ENDS = (1e-12, 1e12)
NUMBERS = (np.nan, np.inf, -np.inf, -1.0, 0.0, *ENDS, 1e308, True)
COUNTS = (-1, 0, 2.5, np.nan, np.inf, True, 2**53 + 1, 10**400)
TYPES = ("wrong", 1j, b"1", {}, object(), [[1.0], [1.0, 2.0]], np.datetime64("2020"))


def hostile(valid: Any) -> Iterator[Any]:
    """Values in place of a valid one: wrong in type, shape or range, and the domain's ends."""
    if callable(valid):
        yield from (5, np.random.RandomState(5), np.random)
    elif isinstance(valid, (bool, str)):
        yield from ("wrong", 2.5, np.nan)
    elif isinstance(valid, (int, float)):
        yield from COUNTS if isinstance(valid, int) else NUMBERS
        yield from ([valid, np.nan], np.ma.array(valid, mask=True))
    elif isinstance(valid, (np.ndarray, list)) and np.asarray(valid).dtype.kind in "iuf":
        valid = np.asarray(valid)
        for number in (np.nan, np.inf, 1e308):
            changed = np.full(valid.shape, MARKED)
            changed.flat[-1] = number
            yield changed
        yield from (np.empty(0), valid[..., None], np.ma.masked_less(valid, 0.3))
        yield from (valid.astype(complex), valid.astype("m8[s]"), (MARKED + valid).astype(str))
        yield from ([[MARKED], [MARKED, 2.0]], {"column": MARKED * valid})
    yield from TYPES


def name_of(function: Any) -> str:
    return str(getattr(function, "func", function).__qualname__)


def call(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    made = {name: value() if value is RNG else value for name, value in arguments.items()}
    found = function(**made)
    return found.fit(FEATURES, LABELS) if isinstance(found, PrivateLinearRegression) else found


def numbers(result: Any, depth: int = 0) -> Iterator[np.ndarray]:
    if isinstance(result, (float, np.floating, np.ndarray)):
        yield np.asarray(result)
    elif dataclasses.is_dataclass(result) and depth < 4:
        for field in dataclasses.fields(result):
            yield from numbers(getattr(result, field.name, None), depth + 1)
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from numbers(part, depth + 1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", CALLS, ids=name_of)
def test_a_wrong_argument_is_refused_by_name_or_answered(function: Callable[..., Any]):
    arguments = CALLS[function]
    call(function, arguments)
    refused = 0
    for name, valid in arguments.items():
        for value in hostile(valid):
            where = f"{name}={value!r}"
            text = ""
            try:
                found = call(function, arguments | {name: value})
            except (TypeError, ValueError) as error:
                text = str(error)
            if text:
                refused += 1
                end = isinstance(value, float) and value in ENDS
                named = r"\w+" if end else "|".join(arguments)
                assert re.match(rf"({named})\b.* must ", text), where
                assert name not in RECORDS_OF or "731" not in text, where
                continue
            assert isinstance(value, (int, float, np.ndarray)), where
            assert not isinstance(value, bool), where
            if name not in NOT_FINITE:
                assert np.all(value == value), where
                assert not any(np.any(np.isnan(part)) for part in numbers(found)), where
    assert refused


def test_every_public_name_is_called():
    called = {name_of(each).split(".")[-1] for each in CALLS}
    names = {name for name in privreg._HOMES if not inspect.ismodule(getattr(privreg, name))}
    assert names - called - NOT_CALLED == {"__version__"}
