"""Risk of one-pass noisy SGD along its path, clipped and not, against the diffusion's law."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import Strict
from privreg.experiment.quantities import ClipNorm, PositiveDeviation, Some
from privreg.experiment.summaries import jackknife, mean_and_error
from privreg.papers.lin2025.setting import Design, noise_coordinate

if TYPE_CHECKING:
    import xarray as xr

    from privreg.experiment.trials import Trials

PLACE = "Figures 1(a), 2(a) and 3(a), Theorem 4.2, Conjecture 3.1"
CURVE_POINTS = 376


class Parameters(Strict):
    """Figures 1(a), 2(a), 3(a): noise scales and clipping norms on shared draws."""

    design: Design
    gradient_noise_stds: Some[PositiveDeviation] = Field(description="Gradient noise sigma.")
    clip_norms: Some[ClipNorm] = Field(
        description="Norms that the full gradient is clipped to; the unclipped run is added."
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Risk of each run and of its own limit law; distance of the last iterate from that law."""
    import xarray as xr

    from privreg.algorithms.noisy_sgd import simulate_noisy_sgd

    design = parameters.design
    clip_norms = [*parameters.clip_norms, np.inf]
    steps = np.arange(design.sample_size + 1)
    shown = np.unique(np.linspace(0, design.sample_size, CURVE_POINTS).astype(int))
    sizes = (len(parameters.gradient_noise_stds), len(clip_norms), len(trials))
    path = np.empty((*sizes, shown.size))
    excess = np.empty(sizes)
    law_path = np.empty((sizes[0], sizes[2], shown.size))
    gap, final_ratio, distance = np.empty((3, sizes[0], sizes[2]))
    for at, trial in enumerate(trials):
        instance = design.draw(trial.rng)
        runs = simulate_noisy_sgd(
            instance.records,
            initial=instance.initial,
            step_sizes=np.full(design.sample_size, design.step_size),
            gradient_noise_stds=parameters.gradient_noise_stds,
            clip_norms=clip_norms,
            ridge=design.ridge,
            rng=trial.rng,
        )
        risk = runs.risk.non_private
        path[:, :, at] = risk[..., shown]
        excess[:, :, at] = np.max(risk / risk[:, -1:], axis=-1) - 1.0
        for s, gradient_noise_std in enumerate(parameters.gradient_noise_stds):
            law = design.law(instance.problem, gradient_noise_std)
            expected = law.risk(steps / design.dimension)
            ratio = risk[s, -1] / expected
            law_path[s, at] = expected[shown]
            gap[s, at] = np.abs(ratio - 1.0).max()
            final_ratio[s, at] = ratio[-1]
            error = instance.basis.coordinates(runs.iterate[s, -1]) - law.mean(design.horizon)
            distance[s, at] = np.sum(error**2 / law.variance(design.horizon))
    by_trial = ("gradient_noise_std", "trial")
    return xr.Dataset(
        {
            "risk": variable(
                ("gradient_noise_std", "clip_norm", "trial", "step"),
                path,
                "population risk of the iterate",
            ),
            "law_risk": variable(
                (*by_trial, "step"), law_path, "mean population risk of the diffusion"
            ),
            "gap": variable(
                by_trial, gap, "largest relative distance of one run's risk to the theory"
            ),
            "final_ratio": variable(
                by_trial, final_ratio, "risk after the last step over the theory"
            ),
            "clipping_excess": variable(
                ("gradient_noise_std", "clip_norm", "trial"),
                excess,
                "largest relative excess of the clipped run's risk over the unclipped run's",
            ),
            "squared_distance": variable(
                by_trial, distance, "squared Mahalanobis distance of the last iterate to its law"
            ),
        },
        coords={
            "gradient_noise_std": noise_coordinate(parameters.gradient_noise_stds),
            "clip_norm": variable("clip_norm", clip_norms, "norm that gradients are clipped to"),
            "step": variable("step", shown, "iteration k"),
        },
        attrs={"dimension": design.dimension},
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """One run, means over runs, and the sorted distances of the last iterates."""
    import xarray as xr
    from scipy.stats import chi2

    count = simulation.sizes["trial"]
    ratio = simulation.final_ratio.values
    distance = np.sort(simulation.squared_distance.values, axis=-1)
    dimension = parameters.design.dimension
    ranks = (np.arange(count) + 0.5) / count
    per_coordinate = simulation.squared_distance.values / dimension
    spread_name, distance_name = "final_spread_standard_error", "distance_spread_standard_error"
    spread, spread_error = jackknife(lambda kept: ratio[:, kept].std(axis=-1, ddof=1), count)
    standardised = (simulation.squared_distance.values - dimension) / np.sqrt(2.0 * dimension)
    distance_spread, distance_error = jackknife(
        lambda kept: standardised[:, kept].std(axis=-1, ddof=1), count
    )
    final = simulation.risk.values[..., -1]
    increments = np.diff(simulation.risk.values[:, -1, :, 1:], axis=0)
    one = ("gradient_noise_std",)
    return xr.Dataset(
        {
            "risk_run": variable(
                ("gradient_noise_std", "clip_norm", "step"),
                simulation.risk.values[:, :, 0],
                "population risk of the first trial",
            ),
            "least_noise_increment": variable(
                "larger_gradient_noise_std",
                increments.mean(axis=1).min(axis=-1),
                "least rise over the iterations of the mean risk from one noise scale to the next",
            ),
            "law_run": variable(
                ("gradient_noise_std", "step"),
                simulation.law_risk.values[:, 0],
                "mean population risk of the diffusion on the first trial's problem",
            ),
            **mean_and_error(
                "gap",
                simulation.gap.values,
                one,
                "the largest relative distance of one run's risk to the theory",
            ),
            **mean_and_error(
                "final_ratio", ratio, one, "the risk after the last step over the theory"
            ),
            "final_spread": variable(
                one,
                spread,
                "standard deviation over trials of the final risk over the theory",
                standard_error=spread_name,
            ),
            spread_name: variable(one, spread_error, "standard error of the spread"),
            **mean_and_error(
                "clipping_excess",
                simulation.clipping_excess.values,
                ("gradient_noise_std", "clip_norm"),
                "the largest relative excess of the clipped run's risk",
            ),
            **mean_and_error(
                "final_clipping_excess",
                np.moveaxis(final / final[:, -1:] - 1.0, 2, -1),
                ("gradient_noise_std", "clip_norm"),
                "the relative excess of the clipped run's risk after the last step",
            ),
            **mean_and_error(
                "distance_per_coordinate",
                per_coordinate,
                one,
                "the squared Mahalanobis distance over the dimension",
            ),
            "distance_spread": variable(
                one,
                distance_spread,
                "standard deviation over trials of the squared distance over that of its law",
                standard_error=distance_name,
            ),
            distance_name: variable(
                one, distance_error, "standard error of the spread of the squared distance"
            ),
            "sorted_distance": variable(
                ("gradient_noise_std", "quantile_level"),
                distance,
                "sorted squared Mahalanobis distances",
            ),
            "chi_square_quantile": variable(
                "quantile_level", chi2.ppf(ranks, dimension), "quantile of the chi-square law"
            ),
        },
        coords={
            name: simulation[name].variable
            for name in ("gradient_noise_std", "clip_norm", "step", "trial")
        }
        | {
            "quantile_level": variable("quantile_level", ranks, "probability of the quantile"),
            "larger_gradient_noise_std": variable(
                "larger_gradient_noise_std",
                parameters.gradient_noise_stds[1:],
                "the larger of two noise scales",
            ),
        },
    )
