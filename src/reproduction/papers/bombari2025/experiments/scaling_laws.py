"""Optimally tuned risk on power-law data against the aspect ratio, and its log-log slope."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from privreg import spectra
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Dataset, Quantity, per, stage
from reproduction.papers.bombari2025 import equivalent
from reproduction.papers.bombari2025.setting import ASPECT_RATIO, Clipped

PLACE = "Figures 2 and 3, Theorem 4"

FITTED = 3
BOUND = f"the cap on the rate binds at all but {FITTED - 1} fitted ratios"


class Ratios(Strict):
    """Aspect ratios, log-spaced from the largest to the smallest."""

    largest: q.AspectRatio = Field(description="Largest gamma.")
    smallest: q.AspectRatio = Field(description="Smallest gamma.")
    count: q.Count = Field(description="Number of values.")
    fitted_below: q.AspectRatio = Field(
        description="The slope is fitted on gamma up to this value."
    )

    _has_a_length = q.more_than("largest", "smallest")

    def values(self) -> np.ndarray:
        return np.geomspace(self.largest, self.smallest, self.count)


class Parameters(Clipped):
    """Figures 2 and 3: spectra and signals, schedules, privacy levels that scale with gamma."""

    spectrum_powers: q.Some[q.SpectrumPower] = Field(description="phi of the spectrum.")
    signal_powers: q.Several[q.SignalPower] = Field(description="psi of the signal.")
    schedule_powers: q.Several[q.Power] = Field(description="alpha of the schedule.")
    privacy_powers: q.Some[q.Power] = Field(description="b of rho = gamma^b.")
    aspect_ratios: Ratios = Field(description="gamma = d / n.")
    signal_scale: q.Positive = Field(0.5, description="Factor of lambda_i^-psi in D_i(0).")
    largest_share_of_cap: q.Share = Field(
        0.6,
        description="A fit leaves out ratios at which the best rate exceeds this share of the cap.",
    )


AXES = {
    "spectrum_power": Axis("power phi of the eigenvalue density", "spectrum_powers"),
    "signal_power": Axis("power psi of the signal", "signal_powers"),
    "schedule_power": Axis("power alpha of the schedule", "schedule_powers"),
    "privacy_power": Axis("power b of rho = gamma^b", "privacy_powers"),
    "aspect_ratio": Axis(
        ASPECT_RATIO.meaning, lambda parameters: parameters.aspect_ratios.values()
    ),
}
POWERS = ("spectrum_power", "signal_power", "schedule_power", "privacy_power")


@per(
    *POWERS,
    "aspect_ratio",
    risk="excess risk of the output at the best rate",
    share_of_cap="best initial rate divided by its cap",
)
def tuned(parameters: Parameters, aspect_ratio: float, **powers: float) -> dict:
    """Best rate and its risk."""
    spectrum, signal = spectra.power_law_with_signal(
        powers["spectrum_power"],
        signal_power=powers["signal_power"],
        signal_scale=parameters.signal_scale,
    )
    at = aspect_ratio, aspect_ratio ** powers["privacy_power"]
    best = equivalent.tuned(parameters, spectrum, powers["schedule_power"], *at, signal=signal)
    rate = np.asarray(best.schedule.amplitude).item()
    return {"risk": best.final_risk, "share_of_cap": rate * aspect_ratio / 2}


@per(
    *POWERS,
    slope=Quantity("log-log slope of the risk in the aspect ratio", missing=BOUND),
    exponent="exponent of the risk in Theorem 4",
    difference=Quantity("fitted slope minus exponent", missing=BOUND),
)
def law(parameters: Parameters, earlier: Dataset, **powers: float) -> dict:
    """A fitted slope, and the exponents of Theorem 4."""
    from privreg.theory.one_pass_dpgd.rates import optimal_exponent

    at, ratios = earlier.sel(powers), earlier.aspect_ratio.values
    fitted = ratios <= parameters.aspect_ratios.fitted_below * (1 + 1e-9)
    fitted &= at.share_of_cap.values < parameters.largest_share_of_cap
    slope = np.nan
    if fitted.sum() >= FITTED:
        slope = np.polyfit(np.log(ratios[fitted]), np.log(at.risk.values[fitted]), 1)[0]
    predicted = optimal_exponent(**powers)
    return {"slope": slope, "exponent": predicted.risk, "difference": slope - predicted.risk}


@per(
    largest_difference=Quantity(
        "largest distance of a fitted slope to its exponent", "schedule_power", missing=BOUND
    ),
    least_increment_by_schedule=Quantity(
        "least increment of the fitted slope between neighbouring schedule powers",
        "privacy_power",
        missing=BOUND,
    ),
    least_increment_by_decay=Quantity(
        "least increment of the fitted slope as the signal decays faster",
        "privacy_power",
        missing=BOUND,
    ),
)
def readings(parameters: Parameters, earlier: Dataset) -> dict:
    """Quantities that the text states of the slopes."""
    slope, exponent = earlier.slope.values, earlier.exponent.values
    # 2 - phi - psi, increasing: the signal's share in fast modes.
    decay = -np.add.outer(parameters.spectrum_powers, parameters.signal_powers)
    by_decay = np.unravel_index(np.argsort(decay, axis=None), decay.shape)
    return {
        "largest_difference": np.abs(slope - exponent).max(axis=(0, 1, 3)),
        "least_increment_by_schedule": np.diff(slope, axis=2).min(axis=(0, 1, 2)),
        "least_increment_by_decay": np.diff(slope[by_decay], axis=0).min(axis=(0, 1)),
    }


theory = stage(
    AXES,
    tuned,
    law,
    readings,
    attributes=lambda parameters: {"fitted_below": parameters.aspect_ratios.fitted_below},
)
