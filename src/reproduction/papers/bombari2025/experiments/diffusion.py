"""The diffusion of DP-GD, as printed and corrected, against the deterministic equivalent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from privreg.models import LinearModel
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Mean, Quantity, Trial, means, per, stage
from reproduction.engine.summaries import trials_last
from reproduction.papers.bombari2025 import setting

if TYPE_CHECKING:
    from privreg.theory.one_pass_dpgd.volterra import Form

PLACE = "Remark 4.3, equations (4.14) and (C.1)"


class Parameters(setting.OneRate):
    """Paths of both forms in the setting of Figure 1."""

    spectra: setting.Spectra
    dimension: q.Dimension = Field(description="Dimension d.")
    exponent: q.Power = Field(description="Exponent alpha of the schedule.")
    times: q.Rising[Annotated[q.Positive, Field(le=1)]] = Field(
        description="Times at which the risk is compared."
    )


AXES = {
    "form": Axis("form of the drift", ("corrected", "printed")),
    "spectrum": setting.SPECTRUM,
    "time": Axis("time t", "times"),
}
GRID = ("form", "spectrum")


@per(
    "spectrum",
    risk=Quantity("excess risk of the deterministic equivalent", "time"),
    printed_distance=Quantity(
        "risk of the printed diffusion in the limit of many samples, less that of the "
        "deterministic equivalent",
        "time",
    ),
)
def limits(parameters: Parameters, spectrum: str) -> dict:
    """Limits; by Itô's formula the printed form has (4.7) with 4 lambda in its descent."""
    from scipy.integrate import solve_ivp

    from privreg.theory.one_pass_dpgd import deterministic_equivalent
    from reproduction.papers.bombari2025 import equivalent

    values = setting.eigenvalues(spectrum, parameters.dimension)
    gamma, c, noise = parameters.aspect_ratio, parameters.clip_constant, parameters.label_noise_std
    given = {"clip_constant": c, "label_noise_std": noise}
    power, start = 2 * parameters.exponent, parameters.initial_rate
    private = 2 * (c * gamma * start / parameters.budget.root) ** 2 * power

    def slope(t: float, modes: np.ndarray) -> np.ndarray:
        risk, left = np.mean(values * modes), 1 - t
        rate = min(start * left ** (power / 2), 2 / gamma)
        level = deterministic_equivalent.variance_factor(risk, **given) * (risk + noise**2 / 2)
        fall = 4 * values * rate * deterministic_equivalent.descent_factor(risk, **given) * modes
        # By Assumption 2 alpha is 0, without private noise before the end, or at least 1/2.
        return values * rate**2 * level * gamma + private * left ** max(power - 1, 0) - fall

    start_modes = np.full(len(values), 0.5)
    found = solve_ivp(
        slope, (0.0, 1.0), start_modes, t_eval=parameters.times, rtol=1e-8, atol=1e-11
    )
    finite_spectrum = setting.finite_spectrum(spectrum, parameters.dimension)
    risk = equivalent.path(parameters, finite_spectrum, parameters.exponent, parameters.times).risk
    return {"risk": risk, "printed_distance": values @ found.y / len(values) - risk}


@per(*GRID, risk=Quantity("excess risk along the diffusion", "time"))
def path(parameters: Parameters, trial: Trial, form: Form, spectrum: str) -> np.ndarray:
    """One path, in as many steps as DP-GD takes."""
    from privreg.theory.one_pass_dpgd import volterra

    eigenvalues = setting.eigenvalues(spectrum, parameters.dimension)
    return volterra.risk_path(
        LinearModel.even_target(eigenvalues, label_noise_std=parameters.label_noise_std),
        parameters.schedule(parameters.exponent),
        trial.rng,
        sample_size=parameters.sample_size(parameters.dimension),
        zcdp_root=parameters.budget.root,
        clip_constant=parameters.clip_constant,
        times=parameters.times,
        form=form,
    )


@per(*GRID, distance=Mean("the distance of the risk to the deterministic equivalent", "time"))
def distance(simulation: Dataset, theory: Dataset, form: str, spectrum: str) -> np.ndarray:
    risk = trials_last(simulation.risk.sel(form=form, spectrum=spectrum))
    return risk - theory.risk.sel(spectrum=spectrum).values[:, None]


theory = stage(AXES, limits)
simulate = stage(AXES, path)
summarise = stage(AXES, means(path), distance)
