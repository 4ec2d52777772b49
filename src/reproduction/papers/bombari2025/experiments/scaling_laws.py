"""Optimally tuned risk on power-law data against the aspect ratio, and its log-log slope."""

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
    Positive,
    Power,
    Share,
    SignedPower,
    Some,
    more_than,
    sum_below,
)

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Figures 2 and 3, Theorem 4"


class Ratios(Strict):
    """Aspect ratios, log-spaced from the largest to the smallest."""

    largest: Annotated[AspectRatio, Field(lt=1)] = Field(description="Largest gamma.")
    smallest: Annotated[AspectRatio, Field(lt=1)] = Field(description="Smallest gamma.")
    count: Annotated[Count, Field(ge=3)] = Field(description="Number of values.")
    fitted_below: AspectRatio = Field(description="The slope is fitted on gamma up to this value.")

    _has_a_length = more_than("largest", "smallest")
    _can_be_fitted = more_than("fitted_below", "smallest")

    def values(self) -> np.ndarray:
        return np.geomspace(self.largest, self.smallest, self.count)


class Parameters(Strict):
    """Figures 2 and 3: spectra and signals, schedules, privacy levels that scale with gamma."""

    spectrum_powers: Some[Annotated[SignedPower, Field(lt=1)]] = Field(
        description="phi of the spectrum."
    )
    signal_powers: Some[SignedPower] = Field(description="psi of the signal.")
    schedule_powers: Some[Power] = Field(description="alpha of the schedule.")
    privacy_powers: Some[Annotated[Power, Field(lt=1)]] = Field(description="b of rho = gamma^b.")
    aspect_ratios: Ratios = Field(description="gamma = d / n.")
    clip_constant: ClipConstant = Field(description="Clipping constant c; the norm is c sqrt(d).")
    label_noise_std: Deviation = Field(description="Standard deviation zeta of the label noise.")
    signal_scale: Positive = Field(0.5, description="D_i(0) is this times lambda_i^-psi.")
    largest_share_of_cap: Share = Field(
        0.6,
        description="A fit leaves out ratios at which the best rate exceeds this share of the cap.",
    )

    _the_target_is_finite = sum_below("signal_powers", "spectrum_powers", 1.0)


def theory(parameters: Parameters) -> xr.Dataset:
    """Best rate and risk at each aspect ratio, fitted slopes, and the exponents of Theorem 4."""
    import xarray as xr

    from privreg import spectra
    from privreg.theory.one_pass_dpgd import rate_search
    from privreg.theory.one_pass_dpgd.scaling_laws import optimal_exponent
    from reproduction.experiment.progress import track

    axes = {
        "spectrum_power": parameters.spectrum_powers,
        "signal_power": parameters.signal_powers,
        "schedule_power": parameters.schedule_powers,
        "privacy_power": parameters.privacy_powers,
    }
    ratios = parameters.aspect_ratios.values()
    grid = tuple(len(values) for values in axes.values())
    risk, rate = np.empty((*grid, len(ratios))), np.empty((*grid, len(ratios)))
    slope, exponent, rate_exponent = np.empty(grid), np.empty(grid), np.empty(grid)
    for at in track(list(np.ndindex(grid)), total=int(np.prod(grid)), label="scaling laws"):
        powers = [values[i] for values, i in zip(axes.values(), at, strict=True)]
        spectrum, signal = spectra.power_law_with_signal(
            powers[0], signal_power=powers[1], signal_scale=parameters.signal_scale
        )
        for position, ratio in enumerate(ratios):
            best = rate_search.polynomial(
                spectrum,
                exponent=powers[2],
                aspect_ratio=ratio,
                zcdp_root=ratio ** powers[3],
                clip_constant=parameters.clip_constant,
                label_noise_std=parameters.label_noise_std,
                signal=signal,
            )
            risk[at][position] = best.final_risk
            rate[at][position] = float(np.asarray(best.schedule.amplitude))
        predicted = optimal_exponent(*powers)
        exponent[at], rate_exponent[at] = predicted.risk, predicted.learning_rate
        fitted = (ratios <= parameters.aspect_ratios.fitted_below * (1 + 1e-9)) & (
            rate[at] * ratios / 2 < parameters.largest_share_of_cap
        )
        if fitted.sum() < 3:
            raise ValueError(
                f"aspect_ratios: {fitted.sum()} of them can be fitted at powers {powers}, where"
                " the cap on the rate does not bind: expected at least 3"
            )
        slope[at] = np.polyfit(np.log(ratios[fitted]), np.log(risk[at][fitted]), 1)[0]
    dims = tuple(axes)
    # 2 - phi - psi, increasing: the signal's share in fast modes.
    decay = -np.add.outer(parameters.spectrum_powers, parameters.signal_powers)
    middle = (len(parameters.schedule_powers) - 1) // 2
    by_decay = np.unravel_index(np.argsort(decay, axis=None), decay.shape)
    return xr.Dataset(
        {
            "risk": variable(
                (*dims, "aspect_ratio"), risk, "excess risk of the output at the best rate"
            ),
            "best_rate": variable((*dims, "aspect_ratio"), rate, "best initial rate"),
            "share_of_cap": variable(
                (*dims, "aspect_ratio"), rate * ratios / 2, "best initial rate over its cap"
            ),
            "slope": variable(dims, slope, "log-log slope of the risk in the aspect ratio"),
            "exponent": variable(dims, exponent, "exponent of the risk in Theorem 4"),
            "rate_exponent": variable(
                dims, rate_exponent, "exponent of the learning rate in Theorem 4"
            ),
            "difference": variable(dims, slope - exponent, "fitted slope minus exponent"),
            "largest_difference": variable(
                "schedule_power",
                np.abs(slope - exponent).max(axis=(0, 1, 3)),
                "largest distance of a fitted slope to its exponent",
            ),
            "upper_half_rise": variable(
                (),
                (slope[:, :, -1] - slope[:, :, middle]).max(),
                "largest rise of the fitted slope over the upper half of the schedule powers",
            ),
            "exponent_upper_half_rise": variable(
                (),
                (exponent[:, :, -1] - exponent[:, :, middle]).max(),
                "largest rise of the exponent over the upper half of the schedule powers",
            ),
            "least_increment_by_schedule": variable(
                "privacy_power",
                np.diff(slope, axis=2).min(axis=(0, 1, 2)),
                "least increment of the fitted slope between neighbouring schedule powers",
            ),
            "least_increment_by_decay": variable(
                "privacy_power",
                np.diff(slope[by_decay], axis=0).min(axis=(0, 1)),
                "least increment of the fitted slope as the signal decays faster",
            ),
        },
        coords={
            "spectrum_power": variable(
                "spectrum_power", axes["spectrum_power"], "power phi of the eigenvalue density"
            ),
            "signal_power": variable(
                "signal_power", axes["signal_power"], "power psi of the signal"
            ),
            "schedule_power": variable(
                "schedule_power", axes["schedule_power"], "power alpha of the schedule"
            ),
            "privacy_power": variable(
                "privacy_power", axes["privacy_power"], "power b of rho = gamma^b"
            ),
            "aspect_ratio": variable("aspect_ratio", ratios, "aspect ratio gamma = d / n"),
        },
        attrs={"fitted_below": parameters.aspect_ratios.fitted_below},
    )
