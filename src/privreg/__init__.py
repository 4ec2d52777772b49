"""Private linear regression: algorithms, their theory, their privacy, and intervals.

Names are resolved when they are asked for, so that importing the package costs nothing; what is
named here and where it lives is all that this file says. Rooms and modules whose functions have
short names (`deterministic_equivalent.solve`) are shown as they are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privreg import (
        algorithms,
        auditing,
        data,
        estimators,
        inference,
        models,
        noise,
        planning,
        prediction,
        privacy,
        schedules,
        spectra,
        theory,
    )
    from privreg.accuracy import AccuracyWarning
    from privreg.algorithms import one_pass_dpgd
    from privreg.algorithms.adassp import Bounds, adassp, adassp_zcdp
    from privreg.algorithms.dp_ftrl import FTRLMechanism, dp_ftrl
    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
    from privreg.algorithms.huber_descent import huber_descent
    from privreg.algorithms.huber_settings import HuberSettings, default_settings
    from privreg.algorithms.least_squares_descent import least_squares_descent
    from privreg.algorithms.least_squares_settings import LeastSquaresSettings
    from privreg.algorithms.noisy_sgd import LinearRecords, run_noisy_sgd, simulate_noisy_sgd
    from privreg.algorithms.ols import ols
    from privreg.algorithms.samples import ArraySamples, GaussianSamples
    from privreg.algorithms.shaped_dp_ftrl import (
        FixedClip,
        ResidualClip,
        ShapedMechanism,
        shaped_dp_ftrl,
    )
    from privreg.algorithms.sound_adassp import sound_adassp
    from privreg.algorithms.sound_full_batch_dpgd import sound_full_batch_dpgd
    from privreg.auditing import audit, audit_mechanism
    from privreg.estimators.linear_regression import PrivateLinearRegression
    from privreg.inference.intervals import (
        Interval,
        batch_means,
        checkpoints,
        independent_runs,
        replicate_interval,
    )
    from privreg.inference.population_intervals import CoefficientIntervals, population_intervals
    from privreg.inference.quality import interval_quality, interval_quality_of_data
    from privreg.models import LinearModel
    from privreg.planning.least_budget import least_budget
    from privreg.planning.plan import plan_run
    from privreg.planning.result import Plan
    from privreg.prediction.least_squares import predicted_length
    from privreg.prediction.methods import AdaSSP, CorrelatedNoise, FullBatch, OnePass
    from privreg.prediction.predict import predict_risk
    from privreg.prediction.problem import Problem
    from privreg.prediction.result import Prediction
    from privreg.privacy.budget import Budget
    from privreg.privacy.neighbours import Neighbours
    from privreg.privacy.release import Diagnostic, Release, compose
    from privreg.schedules import ConstantRate, Harmonic, InverseSquareRootRate, Polynomial
    from privreg.spectra import Spectrum
    from privreg.theory.full_batch_dpgd.law import (
        GradientDescentLaw,
        clipping_bound,
        gradient_descent_law,
    )
    from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression
    from privreg.theory.noisy_sgd.population import Population
    from privreg.theory.noisy_sgd.release_loss import release_loss
    from privreg.theory.one_pass_dpgd import deterministic_equivalent, rate_search
    from privreg.version import __version__

_HOMES = {
    "AccuracyWarning": "privreg.accuracy",
    "AdaSSP": "privreg.prediction.methods",
    "ArraySamples": "privreg.algorithms.samples",
    "Bounds": "privreg.algorithms.adassp",
    "Budget": "privreg.privacy.budget",
    "CoefficientIntervals": "privreg.inference.population_intervals",
    "ConstantRate": "privreg.schedules",
    "CorrelatedNoise": "privreg.prediction.methods",
    "Diagnostic": "privreg.privacy.release",
    "FTRLMechanism": "privreg.algorithms.dp_ftrl",
    "FixedClip": "privreg.algorithms.shaped_dp_ftrl",
    "FullBatch": "privreg.prediction.methods",
    "GaussianSamples": "privreg.algorithms.samples",
    "GradientDescentLaw": "privreg.theory.full_batch_dpgd.law",
    "Harmonic": "privreg.schedules",
    "HomogenisedSGD": "privreg.theory.noisy_sgd.diffusion",
    "HuberSettings": "privreg.algorithms.huber_settings",
    "Interval": "privreg.inference.intervals",
    "InverseSquareRootRate": "privreg.schedules",
    "LeastSquaresSettings": "privreg.algorithms.least_squares_settings",
    "LinearModel": "privreg.models",
    "LinearRecords": "privreg.algorithms.noisy_sgd",
    "Neighbours": "privreg.privacy.neighbours",
    "OnePass": "privreg.prediction.methods",
    "Plan": "privreg.planning.result",
    "Polynomial": "privreg.schedules",
    "Population": "privreg.theory.noisy_sgd.population",
    "Prediction": "privreg.prediction.result",
    "PrivateLinearRegression": "privreg.estimators.linear_regression",
    "Problem": "privreg.prediction.problem",
    "Release": "privreg.privacy.release",
    "ResidualClip": "privreg.algorithms.shaped_dp_ftrl",
    "RidgeRegression": "privreg.theory.noisy_sgd.diffusion",
    "ShapedMechanism": "privreg.algorithms.shaped_dp_ftrl",
    "Spectrum": "privreg.spectra",
    "__version__": "privreg.version",
    "adassp": "privreg.algorithms.adassp",
    "adassp_zcdp": "privreg.algorithms.adassp",
    "audit": "privreg.auditing",
    "audit_mechanism": "privreg.auditing",
    "batch_means": "privreg.inference.intervals",
    "checkpoints": "privreg.inference.intervals",
    "clipping_bound": "privreg.theory.full_batch_dpgd.law",
    "compose": "privreg.privacy.release",
    "default_settings": "privreg.algorithms.huber_settings",
    "dp_ftrl": "privreg.algorithms.dp_ftrl",
    "full_batch_dpgd": "privreg.algorithms.full_batch_dpgd",
    "full_batch_noise_std": "privreg.algorithms.full_batch_dpgd",
    "gradient_descent_law": "privreg.theory.full_batch_dpgd.law",
    "huber_descent": "privreg.algorithms.huber_descent",
    "independent_runs": "privreg.inference.intervals",
    "interval_quality": "privreg.inference.quality",
    "interval_quality_of_data": "privreg.inference.quality",
    "least_budget": "privreg.planning.least_budget",
    "least_squares_descent": "privreg.algorithms.least_squares_descent",
    "ols": "privreg.algorithms.ols",
    "plan_run": "privreg.planning.plan",
    "population_intervals": "privreg.inference.population_intervals",
    "predict_risk": "privreg.prediction.predict",
    "predicted_length": "privreg.prediction.least_squares",
    "release_loss": "privreg.theory.noisy_sgd.release_loss",
    "replicate_interval": "privreg.inference.intervals",
    "run_noisy_sgd": "privreg.algorithms.noisy_sgd",
    "shaped_dp_ftrl": "privreg.algorithms.shaped_dp_ftrl",
    "simulate_noisy_sgd": "privreg.algorithms.noisy_sgd",
    "sound_adassp": "privreg.algorithms.sound_adassp",
    "sound_full_batch_dpgd": "privreg.algorithms.sound_full_batch_dpgd",
}
_MODULES = {
    "algorithms": "privreg.algorithms",
    "auditing": "privreg.auditing",
    "data": "privreg.data",
    "deterministic_equivalent": "privreg.theory.one_pass_dpgd.deterministic_equivalent",
    "estimators": "privreg.estimators",
    "inference": "privreg.inference",
    "models": "privreg.models",
    "noise": "privreg.noise",
    "one_pass_dpgd": "privreg.algorithms.one_pass_dpgd",
    "planning": "privreg.planning",
    "prediction": "privreg.prediction",
    "privacy": "privreg.privacy",
    "rate_search": "privreg.theory.one_pass_dpgd.rate_search",
    "schedules": "privreg.schedules",
    "spectra": "privreg.spectra",
    "theory": "privreg.theory",
}
__all__ = [
    "AccuracyWarning",
    "AdaSSP",
    "ArraySamples",
    "Bounds",
    "Budget",
    "CoefficientIntervals",
    "ConstantRate",
    "CorrelatedNoise",
    "Diagnostic",
    "FTRLMechanism",
    "FixedClip",
    "FullBatch",
    "GaussianSamples",
    "GradientDescentLaw",
    "Harmonic",
    "HomogenisedSGD",
    "HuberSettings",
    "Interval",
    "InverseSquareRootRate",
    "LeastSquaresSettings",
    "LinearModel",
    "LinearRecords",
    "Neighbours",
    "OnePass",
    "Plan",
    "Polynomial",
    "Population",
    "Prediction",
    "PrivateLinearRegression",
    "Problem",
    "Release",
    "ResidualClip",
    "RidgeRegression",
    "ShapedMechanism",
    "Spectrum",
    "__version__",
    "adassp",
    "adassp_zcdp",
    "algorithms",
    "audit",
    "audit_mechanism",
    "auditing",
    "batch_means",
    "checkpoints",
    "clipping_bound",
    "compose",
    "data",
    "default_settings",
    "deterministic_equivalent",
    "dp_ftrl",
    "estimators",
    "full_batch_dpgd",
    "full_batch_noise_std",
    "gradient_descent_law",
    "huber_descent",
    "independent_runs",
    "inference",
    "interval_quality",
    "interval_quality_of_data",
    "least_budget",
    "least_squares_descent",
    "models",
    "noise",
    "ols",
    "one_pass_dpgd",
    "plan_run",
    "planning",
    "population_intervals",
    "predict_risk",
    "predicted_length",
    "prediction",
    "privacy",
    "rate_search",
    "release_loss",
    "replicate_interval",
    "run_noisy_sgd",
    "schedules",
    "shaped_dp_ftrl",
    "simulate_noisy_sgd",
    "sound_adassp",
    "sound_full_batch_dpgd",
    "spectra",
    "theory",
]


if not TYPE_CHECKING:
    # Hidden from type checkers, which would take any name for granted.
    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            value = import_module(_MODULES[name])
        elif name in _HOMES:
            value = getattr(import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module 'privreg' has no attribute {name!r}{_nearest(name)}")
        # Asked for once; what is loaded needs no second look.
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, __all__, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
