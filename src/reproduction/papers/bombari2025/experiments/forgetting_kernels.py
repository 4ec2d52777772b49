"""Kernels of the Volterra form on power-law data, and its solution against the mode equations."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from privreg import spectra
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Quantity, below, every, identity, per, stage
from reproduction.papers.bombari2025.setting import OneRate

PLACE = "Equations (6.1)-(6.3), Proposition E.1"
# phi and psi at which the kernels' powers are measured.
LAWS = ((-1.0, 0.5), (0.0, 0.0), (0.25, 0.5), (0.5, -1.0), (0.8, 0.1))


class Parameters(OneRate):
    """One power law; schedules along which both forms are solved."""

    spectrum_power: q.SpectrumPower = Field(description="phi of the spectrum.")
    signal_power: q.SignalPower = Field(description="psi of the signal.")
    descent_range: q.Window = Field(description="Range of x of the kernels' slopes.")
    schedule_powers: q.Some[q.Power] = Field(description="alpha of the schedules.")
    intervals: q.Count = Field(description="Intervals of the coarser grid at either end.")

    @property
    def powers(self) -> tuple[float, float]:
        return self.spectrum_power, self.signal_power

    @property
    def grid(self) -> np.ndarray:
        """Geometric at both ends: a transient at 0, a boundary layer at 1."""
        rising = np.geomspace(1e-5, 0.5, self.intervals)
        return np.concatenate([[0.0], rising, 1 - rising[-2::-1], [1.0]])


AXES = {
    "kernel": Axis("kernel F, K or J", ("signal", "sampling", "private")),
    "schedule_power": Axis("power alpha of the schedule", "schedule_powers"),
    "time": Axis("time k / n", "grid"),
}


@identity(
    "kernel",
    id="kernels-decay-as-powers",
    kind="theorem",
    where="Proposition E.1, equation (E.3)",
    statement="For large x the kernels F, K and J decay with the powers -(2 - phi - psi), -(3 - "
    "phi) and -(2 - phi).",
    ours=["five pairs of phi from -1 to 0.8 and psi", "between x = 100 and 1000"],
    check=every(below(1e-3)),
    wrong={
        "With psi in the power of all kernels.": "slope_error_with_signal",
        "With powers that are greater by one.": "slope_error_by_one",
    },
    note="Log-log slopes of the closed forms, which are incomplete gamma functions; the largest "
    "distance to the power.",
)
def slope_error(parameters: Parameters, kernel: str) -> float:
    """Largest distance of the log-log slope to the power of Proposition E.1, over laws."""
    return max(abs(_slope(parameters, kernel, *law) + _power(kernel, *law)) for law in LAWS)


@per(
    "kernel",
    slope="log-log slope of the kernel",
    slope_error_with_signal="largest distance of the slope to the power of the signal's kernel",
    slope_error_by_one="largest distance of the slope to a power that is greater by one",
)
def slope(parameters: Parameters, kernel: str) -> dict:
    found = {law: _slope(parameters, kernel, *law) for law in LAWS}
    return {
        "slope": _slope(parameters, kernel, *parameters.powers),
        "slope_error_with_signal": max(
            abs(value + _power("signal", *law)) for law, value in found.items()
        ),
        "slope_error_by_one": max(
            abs(value + _power(kernel, *law) - 1) for law, value in found.items()
        ),
    }


@identity(
    "kernel",
    id="kernels-by-quadrature",
    where="Equation (6.3)",
    compares="The quadrature of the power law reproduces the closed forms of the kernels.",
    check=every(below(1e-6)),
    note="Descents from 1e-6 to 1e4; the closed forms are incomplete gamma functions.",
)
def quadrature_error(parameters: Parameters, kernel: str) -> float:
    """Largest relative distance of the quadrature to the closed form."""
    from privreg.theory.one_pass_dpgd import volterra

    powers = parameters.powers
    spectrum, signal = spectra.power_law_with_signal(powers[0], signal_power=powers[1])
    wide = np.geomspace(1e-6, 10 * parameters.descent_range[1], 80)
    closed, summed = (
        getattr(kernels, kernel)(wide)
        for kernels in (
            volterra.power_law_kernels(*powers),
            volterra.spectrum_kernels(spectrum, signal),
        )
    )
    return np.max(np.abs(summed / closed - 1))


@per(
    "schedule_power",
    risk=Quantity("excess risk by the Volterra equation", "time"),
    risk_by_modes=Quantity("excess risk by the mode equations", "time"),
)
def risks(parameters: Parameters, schedule_power: float) -> dict:
    """Both solutions, that of the Volterra equation extrapolated from two grids."""
    from privreg.theory.one_pass_dpgd import volterra

    powers = parameters.powers
    spectrum, signal = spectra.power_law_with_signal(powers[0], signal_power=powers[1])
    kernels, grid = volterra.power_law_kernels(*powers), parameters.grid
    finer = np.sort(np.concatenate([grid, (grid[1:] + grid[:-1]) / 2]))
    setting = parameters.problem(parameters.aspect_ratio, parameters.budget.root)
    schedule = parameters.schedule(schedule_power)
    coarse = volterra.solve(kernels, schedule, grid, **setting)
    fine = volterra.solve(kernels, schedule, finer, **setting)[::2]
    modes = parameters.path(spectrum, schedule_power, grid, signal=signal)
    return {"risk": (4 * fine - coarse) / 3, "risk_by_modes": modes.risk}


@identity(
    "schedule_power",
    id="volterra-equals-modes",
    kind="theorem",
    where="Equations (6.1)-(6.3)",
    statement="The Volterra equation for the risk and the equations of the modes have the same "
    "solution.",
    check=every(below(2e-4)),
    note="Largest relative distance along time for alpha = 0, 1/2 and 2.",
)
def difference(earlier: Dataset, schedule_power: float) -> float:
    """Largest relative distance of the two solutions."""
    at = earlier.sel(schedule_power=schedule_power)
    return np.max(np.abs(at.risk.values / at.risk_by_modes.values - 1))


theory = stage(AXES, blocks_of=globals())


def _slope(parameters: Parameters, kernel: str, spectrum: float, signal: float) -> float:
    from privreg.theory.one_pass_dpgd import volterra

    low, high = parameters.descent_range
    closed = getattr(volterra.power_law_kernels(spectrum, signal), kernel)
    return float(np.log(closed(high) / closed(low)) / np.log(high / low))


def _power(kernel: str, spectrum: float, signal: float) -> float:
    return {"signal": 2 - spectrum - signal, "sampling": 3 - spectrum, "private": 2 - spectrum}[
        kernel
    ]
