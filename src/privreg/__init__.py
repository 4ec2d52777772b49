"""Private linear regression: algorithms, their theory, their privacy, and intervals.

Names are resolved when they are asked for, so that importing the package costs nothing. Packages,
and modules whose functions have short names (`deterministic_equivalent.solve`), are shown as they
are.
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
        methods,
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
    from privreg.algorithms.adassp import Bounds, adassp
    from privreg.algorithms.dp_ftrl import FTRLMechanism, dp_ftrl
    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
    from privreg.algorithms.noisy_sgd import LinearRecords, run_noisy_sgd, simulate_noisy_sgd
    from privreg.algorithms.ols import ols
    from privreg.algorithms.samples import ArraySamples, GaussianSamples
    from privreg.algorithms.shaped_dp_ftrl import shaped_dp_ftrl
    from privreg.algorithms.shaped_mechanism import FixedClip, ResidualClip, ShapedMechanism
    from privreg.algorithms.sound_adassp import sound_adassp
    from privreg.algorithms.sound_full_batch_dpgd import sound_full_batch_dpgd
    from privreg.auditing import audit, audit_mechanism
    from privreg.estimators.linear_regression import PrivateLinearRegression
    from privreg.estimators.odometer import Odometer
    from privreg.inference.intervals import (
        Interval,
        batch_means,
        checkpoints,
        independent_runs,
        replicate_interval,
    )
    from privreg.inference.population_intervals import CoefficientIntervals, population_intervals
    from privreg.inference.quality import interval_quality, interval_quality_of_data
    from privreg.methods.adassp import AdaSSP
    from privreg.methods.correlated_noise import CorrelatedNoise
    from privreg.methods.full_batch_dpgd import FullBatchDPGD
    from privreg.methods.method import Method
    from privreg.methods.one_pass_dpgd import OnePassDPGD
    from privreg.methods.private_least_squares import PrivateLeastSquares
    from privreg.methods.private_regression import PrivateRegression
    from privreg.methods.runs import Declared
    from privreg.models import LinearModel
    from privreg.planning.least_budget import least_budget
    from privreg.planning.plan import plan_run
    from privreg.planning.result import Plan
    from privreg.prediction.least_squares import predicted_length
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

# The public names, each with the module that defines it.
_HOMES = {
    "AccuracyWarning": "privreg.accuracy",
    "AdaSSP": "privreg.methods.adassp",
    "ArraySamples": "privreg.algorithms.samples",
    "Bounds": "privreg.algorithms.adassp",
    "Budget": "privreg.privacy.budget",
    "CoefficientIntervals": "privreg.inference.population_intervals",
    "ConstantRate": "privreg.schedules",
    "CorrelatedNoise": "privreg.methods.correlated_noise",
    "Declared": "privreg.methods.runs",
    "Diagnostic": "privreg.privacy.release",
    "FTRLMechanism": "privreg.algorithms.dp_ftrl",
    "FixedClip": "privreg.algorithms.shaped_mechanism",
    "FullBatchDPGD": "privreg.methods.full_batch_dpgd",
    "GaussianSamples": "privreg.algorithms.samples",
    "GradientDescentLaw": "privreg.theory.full_batch_dpgd.law",
    "Harmonic": "privreg.schedules",
    "HomogenisedSGD": "privreg.theory.noisy_sgd.diffusion",
    "Interval": "privreg.inference.intervals",
    "InverseSquareRootRate": "privreg.schedules",
    "LinearModel": "privreg.models",
    "LinearRecords": "privreg.algorithms.noisy_sgd",
    "Method": "privreg.methods.method",
    "Neighbours": "privreg.privacy.neighbours",
    "Odometer": "privreg.estimators.odometer",
    "OnePassDPGD": "privreg.methods.one_pass_dpgd",
    "Plan": "privreg.planning.result",
    "Polynomial": "privreg.schedules",
    "Population": "privreg.theory.noisy_sgd.population",
    "Prediction": "privreg.prediction.result",
    "PrivateLinearRegression": "privreg.estimators.linear_regression",
    "PrivateLeastSquares": "privreg.methods.private_least_squares",
    "PrivateRegression": "privreg.methods.private_regression",
    "Problem": "privreg.prediction.problem",
    "Release": "privreg.privacy.release",
    "ResidualClip": "privreg.algorithms.shaped_mechanism",
    "RidgeRegression": "privreg.theory.noisy_sgd.diffusion",
    "ShapedMechanism": "privreg.algorithms.shaped_mechanism",
    "Spectrum": "privreg.spectra",
    "__version__": "privreg.version",
    "adassp": "privreg.algorithms.adassp",
    "audit": "privreg.auditing",
    "audit_mechanism": "privreg.auditing",
    "batch_means": "privreg.inference.intervals",
    "checkpoints": "privreg.inference.intervals",
    "clipping_bound": "privreg.theory.full_batch_dpgd.law",
    "compose": "privreg.privacy.release",
    "dp_ftrl": "privreg.algorithms.dp_ftrl",
    "full_batch_dpgd": "privreg.algorithms.full_batch_dpgd",
    "full_batch_noise_std": "privreg.algorithms.full_batch_dpgd",
    "gradient_descent_law": "privreg.theory.full_batch_dpgd.law",
    "independent_runs": "privreg.inference.intervals",
    "interval_quality": "privreg.inference.quality",
    "interval_quality_of_data": "privreg.inference.quality",
    "least_budget": "privreg.planning.least_budget",
    "ols": "privreg.algorithms.ols",
    "plan_run": "privreg.planning.plan",
    "population_intervals": "privreg.inference.population_intervals",
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
    "methods": "privreg.methods",
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
    "Declared",
    "Diagnostic",
    "FTRLMechanism",
    "FixedClip",
    "FullBatchDPGD",
    "GaussianSamples",
    "GradientDescentLaw",
    "Harmonic",
    "HomogenisedSGD",
    "Interval",
    "InverseSquareRootRate",
    "LinearModel",
    "LinearRecords",
    "Method",
    "Neighbours",
    "Odometer",
    "OnePassDPGD",
    "Plan",
    "Polynomial",
    "Population",
    "Prediction",
    "PrivateLeastSquares",
    "PrivateLinearRegression",
    "PrivateRegression",
    "Problem",
    "Release",
    "ResidualClip",
    "RidgeRegression",
    "ShapedMechanism",
    "Spectrum",
    "__version__",
    "adassp",
    "algorithms",
    "audit",
    "audit_mechanism",
    "auditing",
    "batch_means",
    "checkpoints",
    "clipping_bound",
    "compose",
    "data",
    "deterministic_equivalent",
    "dp_ftrl",
    "estimators",
    "full_batch_dpgd",
    "full_batch_noise_std",
    "gradient_descent_law",
    "independent_runs",
    "inference",
    "interval_quality",
    "interval_quality_of_data",
    "least_budget",
    "methods",
    "models",
    "noise",
    "ols",
    "one_pass_dpgd",
    "plan_run",
    "planning",
    "population_intervals",
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
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, __all__, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
