"""Kernels of the Volterra form on power-law data, and its solution against the mode equations."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from privreg import spectra
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, below, every, identity, per, stage, stated
from reproduction.papers.bombari2025 import equivalent
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
}


@per(
    "kernel",
    slope_error=stated(
        "largest distance among laws of the log-log slope to the power of Proposition E.1",
        id="kernels-decay-as-powers",
        kind="theorem",
        where="Proposition E.1, equation (E.3)",
        statement="In the limit of large d, the kernels F, K and J decay at large x with the "
        "powers -(2 - phi - psi), -(3 - phi) and -(2 - phi).",
        ours=[
            "phi = -1, 0, 1/4, 1/2 and 0.8 with psi = 1/2, 0, 1/2, -1 and 0.1",
            "between x = 100 and 1000; D_i(0) is proportional to lambda_i^-psi",
        ],
        check=every(below(1e-3)),
        wrong={
            "All three kernels decay with the power of F.": "slope_error_with_signal",
            "All three powers are greater by one than stated.": "slope_error_by_one",
        },
        note="The check is on the largest distance between a log-log slope and its power. The "
        "closed forms are incomplete gamma functions.",
    ),
    slope_error_with_signal="largest distance of the slope to the power of the signal's kernel",
    slope_error_by_one="largest distance of the slope to a power that is greater by one",
)
def slope_errors(parameters: Parameters, kernel: str) -> dict:
    from privreg.theory.one_pass_dpgd import volterra

    low, high = parameters.descent_range
    errors = []
    for phi, psi in LAWS:
        closed = getattr(volterra.power_law_kernels(phi, psi), kernel)
        slope = float(np.log(closed(high) / closed(low)) / np.log(high / low))
        powers = {"signal": 2 - phi - psi, "sampling": 3 - phi, "private": 2 - phi}
        power = powers[kernel]
        errors.append([slope + power, slope + powers["signal"], slope + power - 1])
    names = ("slope_error", "slope_error_with_signal", "slope_error_by_one")
    return dict(zip(names, np.abs(errors).max(axis=0), strict=True))


@identity(
    "kernel",
    id="kernels-by-quadrature",
    where="Equation (6.3)",
    compares="The quadrature of the power law reproduces the closed forms of the kernels.",
    check=every(below(1e-6)),
    note="The kernels' arguments are 1e-6 to 1e4. The closed forms are incomplete gamma functions.",
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


@identity(
    "schedule_power",
    id="volterra-equals-modes",
    kind="theorem",
    where="Equations (6.1)-(6.3)",
    statement="The Volterra equation and the equations of the modes have the same solution.",
    ours=["phi = 1/4, psi = 1/2, gamma = 0.001, rho = c = 0.1, zeta = 0.3", "alpha = 0, 1/2 and 2"],
    check=every(below(2e-4)),
    note="The check is on the largest relative distance along time of two numerical solutions.",
)
def difference(parameters: Parameters, schedule_power: float) -> float:
    """Largest relative distance of the two solutions."""
    from privreg.theory.one_pass_dpgd import volterra

    powers = parameters.powers
    spectrum, signal = spectra.power_law_with_signal(powers[0], signal_power=powers[1])
    kernels, grid = volterra.power_law_kernels(*powers), parameters.grid
    finer = np.sort(np.concatenate([grid, (grid[1:] + grid[:-1]) / 2]))
    setting = parameters.problem(parameters.aspect_ratio, parameters.budget.root)
    schedule = parameters.schedule(schedule_power)
    coarse = volterra.solve(kernels, schedule, grid, **setting)
    fine = volterra.solve(kernels, schedule, finer, **setting)[::2]
    modes = equivalent.path(parameters, spectrum, schedule_power, grid, signal=signal)
    # The Volterra equation's solution is extrapolated from both grids.
    return np.max(np.abs((4 * fine - coarse) / 3 / modes.risk - 1))


theory = stage(AXES, blocks_of=globals())
