"""What the noise alone costs the average iterate: simulated, exactly, and with mean gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.quantities import StepSizeAxis
from reproduction.experiment.summaries import mean_and_error
from reproduction.papers.anon2024.setting import CORRELATIONS, Problem, correlation_named, decoder

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Algorithms 1 and 3, Lemma B.8; nothing of it is simulated in the paper"
SHAPES = ("identity", "population")
DIMS = ("correlation", "noise_shape", "step_size")


class Parameters(Problem):
    """Unclipped runs of a zero target without label noise, with white noise of deviation 1."""

    step_sizes: StepSizeAxis = Field(description="Step sizes.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Exact second moments, and the linear part that mean gradients leave."""
    import xarray as xr

    from privreg.theory.shaped_noise.privacy_error import (
        independent_factor,
        privacy_error,
        toeplitz_factor,
        tree_factor,
    )
    from privreg.theory.shaped_noise.second_moments import private_risk

    eigenvalues, size = parameters.eigenvalues, parameters.sample_size
    steps = parameters.step_sizes.values()
    exact = np.zeros((len(CORRELATIONS), len(SHAPES), len(steps)))
    linear = np.zeros_like(exact)
    for i, correlation in enumerate(CORRELATIONS):
        beta = decoder(correlation, size)
        for k, eta in enumerate(steps):
            shrinkage = eta * eigenvalues
            if beta is None:
                factor = tree_factor(shrinkage, sample_size=size)
            elif correlation == "independent":
                factor = independent_factor(shrinkage, sample_size=size)
            else:
                factor = toeplitz_factor(shrinkage, decoder=beta, sample_size=size)
            for j, shape in enumerate(SHAPES):
                diagonal = parameters.shape(shape, eta)
                exact[i, j, k] = private_risk(
                    eigenvalues, covariance=diagonal, noise_std=1.0, step_size=eta,
                    sample_size=size, decoder=beta,
                )  # fmt: skip
                linear[i, j, k] = privacy_error(
                    factor, eigenvalues=eigenvalues, covariance=diagonal, step_size=eta,
                    sample_size=size, noise_std=1.0,
                )  # fmt: skip
    sensitivity = [correlation_named(name).sensitivity(size - 1) for name in CORRELATIONS]
    return xr.Dataset(
        {
            "exact": variable(DIMS, exact, "mean excess risk due to the noise, exact"),
            "linear": variable(DIMS, linear, "the same with gradients replaced by their means"),
            "sensitivity": variable("correlation", sensitivity, "sensitivity of the correlation"),
        },
        coords=_coordinates(parameters),
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Excess risks of averages; all settings share a trial's rows and white noise."""
    import xarray as xr

    from privreg.algorithms.shaped_settings import run_settings
    from reproduction.experiment.progress import track

    eigenvalues, size = parameters.eigenvalues, parameters.sample_size
    steps = parameters.step_sizes.values()
    scale = np.concatenate(
        [[np.sqrt(parameters.shape(shape, eta)) for eta in steps] for shape in SHAPES]
    )
    settings = len(scale)
    risk = np.empty((len(CORRELATIONS), len(SHAPES), len(steps), len(trials)))
    for at, trial in enumerate(track(trials, total=len(trials), label="noise alone")):
        normals = trial.rng.standard_normal((size, parameters.dimension))
        seed = int(trial.rng.integers(2**63))
        for i, correlation in enumerate(map(correlation_named, CORRELATIONS)):
            stream = correlation.stream(
                parameters.dimension, steps=size - 1, rng=np.random.Generator(np.random.SFC64(seed))
            )
            averages, _ = run_settings(
                normals * np.sqrt(eigenvalues),
                np.zeros(size),
                inverse_norms=np.ones((settings, size)),
                noise=stream.draw(size - 1),
                noise_scale=scale,
                step_size=np.tile(steps, len(SHAPES)),
                clip_norm=np.full(settings, np.inf),
            )
            risk[i, :, :, at] = (0.5 * averages**2 @ eigenvalues).reshape(len(SHAPES), -1)
    return xr.Dataset(
        {"risk": variable((*DIMS, "trial"), risk, "excess risk due to the noise")},
        coords=_coordinates(parameters),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Means, and how far they are from both formulas."""
    import xarray as xr

    values = simulation.risk.values
    variables = mean_and_error("risk", values, DIMS, "the excess risk due to the noise")
    mean, error = variables["risk"][1], variables["risk_standard_error"][1]
    for name in ("exact", "linear"):
        formula = theory[name].values
        ratio, spread = f"ratio_to_{name}", f"ratio_to_{name}_standard_error"
        variables[ratio] = variable(
            DIMS, mean / formula, f"simulated over {name} error", standard_error=spread
        )
        variables[spread] = variable(DIMS, error / formula, "its standard error")
    gap = np.abs(mean / theory.exact.values - 1)
    variables["tree_identity_gap"] = variable(
        (), gap[0, 0].max(), "largest relative distance to the exact error, tree and identity"
    )
    return xr.Dataset(
        variables, coords=_coordinates(parameters) | {"trial": simulation.trial.variable}
    )


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {
        "correlation": variable("correlation", list(CORRELATIONS), "correlation over steps"),
        "noise_shape": variable("noise_shape", list(SHAPES), "noise covariance"),
        "step_size": variable("step_size", parameters.step_sizes.values(), "step size"),
    }
