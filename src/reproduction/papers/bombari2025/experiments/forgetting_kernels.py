"""Kernels of the Volterra form on power-law data, and its solution against the mode equations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    AspectRatio,
    ClipConstant,
    Count,
    Deviation,
    Power,
    SignedPower,
    Some,
    StatedBudget,
    StepSize,
    Window,
    sum_below,
)

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Equations (6.1)-(6.3), Proposition E.1"
KERNELS = ("signal", "sampling", "private")


class Parameters(Strict):
    """One power law; schedules along which both forms are solved."""

    spectrum_power: Annotated[SignedPower, Field(lt=1)] = Field(description="phi of the spectrum.")
    signal_power: SignedPower = Field(description="psi of the signal.")
    descent_range: Window = Field(description="Range of x of the kernels' slopes.")
    schedule_powers: Some[Power] = Field(description="alpha of the schedules.")
    initial_rate: StepSize = Field(description="Initial learning rate.")
    aspect_ratio: AspectRatio = Field(description="gamma = d / n.")
    budget: StatedBudget = Field(description="Budget of the private output.")
    clip_constant: ClipConstant = Field(description="Clipping constant c; the norm is c sqrt(d).")
    label_noise_std: Deviation = Field(description="Standard deviation zeta of the label noise.")
    intervals: Annotated[Count, Field(ge=10)] = Field(
        description="Intervals of the coarser grid at either end."
    )

    _the_target_is_finite = sum_below("signal_power", "spectrum_power", 1.0)


def theory(parameters: Parameters) -> xr.Dataset:
    """Log-log slopes of the kernels, quadrature errors, and the distance of the two solutions."""
    import xarray as xr

    from privreg import spectra
    from privreg.schedules import Polynomial
    from privreg.theory.one_pass_dpgd import deterministic_equivalent, volterra

    kernels = volterra.power_law_kernels(parameters.spectrum_power, parameters.signal_power)
    spectrum, signal = spectra.power_law_with_signal(
        parameters.spectrum_power, signal_power=parameters.signal_power
    )
    sums = volterra.spectrum_kernels(spectrum, signal)
    low, high = parameters.descent_range
    wide = np.geomspace(1e-6, 10 * high, 80)
    grid = _grid(parameters.intervals)
    finer = np.sort(np.concatenate([grid, (grid[1:] + grid[:-1]) / 2]))
    setting = {
        "aspect_ratio": parameters.aspect_ratio,
        "zcdp_root": parameters.budget.root,
        "clip_constant": parameters.clip_constant,
        "label_noise_std": parameters.label_noise_std,
    }
    by_kernels, by_modes = [], []
    for power in parameters.schedule_powers:
        schedule = Polynomial(parameters.initial_rate, power)
        coarse = volterra.solve(kernels, schedule, grid, **setting)
        fine = volterra.solve(kernels, schedule, finer, **setting)[::2]
        by_kernels.append((4 * fine - coarse) / 3)
        modes = deterministic_equivalent.solve(
            spectrum, schedule, **setting, signal=signal, times=grid
        )
        by_modes.append(modes.risk)
    slopes, errors = [], []
    for name in KERNELS:
        closed, summed = getattr(kernels, name), getattr(sums, name)
        slopes.append(np.log(closed(high) / closed(low)) / np.log(high / low))
        errors.append(np.max(np.abs(summed(wide) / closed(wide) - 1)))
    return xr.Dataset(
        {
            "slope": variable("kernel", slopes, "log-log slope of the kernel"),
            "quadrature_error": variable(
                "kernel", errors, "largest relative distance of the quadrature to the closed form"
            ),
            "risk": variable(
                ("schedule_power", "time"), by_kernels, "excess risk by the Volterra equation"
            ),
            "risk_by_modes": variable(
                ("schedule_power", "time"), by_modes, "excess risk by the mode equations"
            ),
            "difference": variable(
                "schedule_power",
                np.max(np.abs(np.array(by_kernels) / np.array(by_modes) - 1), axis=1),
                "largest relative distance of the two solutions",
            ),
        },
        coords={
            "kernel": variable("kernel", list(KERNELS), "kernel F, K or J"),
            "schedule_power": variable(
                "schedule_power", parameters.schedule_powers, "power alpha of the schedule"
            ),
            "time": variable("time", grid, "time k / n"),
        },
    )


def _grid(intervals: int) -> np.ndarray:
    """Geometric at both ends: a transient at 0, a boundary layer at 1."""
    rising = np.geomspace(1e-5, 0.5, intervals)
    return np.concatenate([[0.0], rising, 1 - rising[-2::-1], [1.0]])
