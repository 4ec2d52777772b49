"""Terms of the risk on power-law data: their powers of the learning rate, a missed logarithm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    AspectRatio,
    ClipConstant,
    PositiveDeviation,
    Power,
    SignedPower,
    Some,
    Window,
    sum_below,
)

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Lemma E.4, equations (E.16)-(E.17), and Theorem 4"
RATES = 9


class Regime(Strict):
    """A term of the risk, where it is made to dominate."""

    term: Literal["signal", "sampling", "private"]
    spectrum_power: Annotated[SignedPower, Field(lt=1)] = Field(description="phi of the spectrum.")
    signal_power: SignedPower = Field(description="psi of the signal.")
    schedule_power: Power = Field(description="alpha of the schedule.")

    _the_target_is_finite = sum_below("signal_power", "spectrum_power", 1.0)


class Parameters(Strict):
    """Lemma E.4: each term alone; Theorem 4 at its critical privacy power."""

    regimes: Some[Regime] = Field(description="Terms and powers.")
    aspect_ratio: Annotated[AspectRatio, Field(lt=1)] = Field(description="gamma of the terms.")
    clip_constant: ClipConstant = Field(description="Clipping constant c.")
    label_noise_std: PositiveDeviation = Field(
        description="Standard deviation zeta of the label noise."
    )
    beyond_balance: Window = Field(
        description="Rates fitted, in units of the one at which the term equals the signal's."
    )
    critical_ratios: Annotated[Some[Annotated[AspectRatio, Field(lt=1)]], Field(min_length=3)] = (
        Field(description="gamma at the critical power.")
    )


def theory(parameters: Parameters) -> xr.Dataset:
    """Slope of each term, the slope that the lemma gives, and the risk at the critical power."""
    import xarray as xr

    found = np.array([_slope(parameters, regime) for regime in parameters.regimes])
    critical = _at_critical_power(parameters)
    return xr.Dataset(
        {
            "slope": variable("regime", found[:, 0], "log-log slope of the risk in the rate"),
            "expected": variable("regime", found[:, 1], "power of the rate in Lemma E.4"),
            "difference": variable(
                "regime", found[:, 0] - found[:, 1], "slope minus the power in Lemma E.4"
            ),
            "critical_increment": variable(
                "offset",
                critical[:, -1] - critical[:, -2],
                "increment of the risk over its stated rate, between the two smallest ratios",
            ),
            "critical_ratio": variable(
                ("offset", "aspect_ratio"), critical, "risk over its stated rate gamma^h"
            ),
        },
        coords={
            "regime": variable(
                "regime",
                [
                    f"{r.term}-{r.spectrum_power:.3g}-{r.schedule_power:g}"
                    for r in parameters.regimes
                ],
                "term, phi and alpha",
            ),
            "offset": variable("offset", [0.0, -0.1], "privacy power minus its critical value"),
            "aspect_ratio": variable(
                "aspect_ratio", parameters.critical_ratios, "aspect ratio gamma = d / n"
            ),
        },
    )


def _slope(parameters: Parameters, regime: Regime) -> tuple[float, float]:
    decay = 2 - regime.spectrum_power - regime.signal_power
    width = regime.schedule_power + 1
    ratio, zcdp_root = parameters.aspect_ratio, np.inf
    window = np.array(parameters.beyond_balance)
    if regime.term == "signal":
        # With hardly any samples' noise the signal's term is alone at every rate.
        ratio, power, rates = ratio**2, -decay, 1e3 * window
    elif regime.term == "sampling":
        power = 1 / width
        rates = ratio ** (-1 / (decay + power)) * window
    else:
        zcdp_root = ratio**0.5
        power = max(2 / width, regime.spectrum_power)
        rates = (ratio / zcdp_root) ** (-2 / (decay + power)) * window
    values = np.geomspace(rates[0], rates[1], RATES)
    risk = _risk(parameters, regime, values, ratio, zcdp_root)
    if np.isclose(regime.spectrum_power * width, 2) and regime.term == "private":
        risk = risk / np.log(values)
    return float(np.polyfit(np.log(values), np.log(risk), 1)[0]), power


def _at_critical_power(parameters: Parameters) -> np.ndarray:
    """Risk over gamma^h at the stated rate, where phi (alpha + 1) = 2."""
    from privreg.theory.one_pass_dpgd.scaling_laws import critical_privacy_power, optimal_exponent

    regime = Regime(term="private", spectrum_power=0.5, signal_power=0.0, schedule_power=3.0)
    powers = (regime.spectrum_power, regime.signal_power, regime.schedule_power)
    critical = critical_privacy_power(*powers)
    ratios = np.asarray(parameters.critical_ratios)
    rows = []
    for offset in (0.0, -0.1):
        stated = optimal_exponent(*powers, critical + offset)
        risk = [
            _risk(
                parameters,
                regime,
                np.array([ratio**stated.learning_rate]),
                ratio,
                ratio ** (critical + offset),
            )[0]
            for ratio in ratios
        ]
        rows.append(np.array(risk) / ratios**stated.risk)
    return np.array(rows)


def _risk(
    parameters: Parameters, regime: Regime, values: np.ndarray, ratio: float, zcdp_root: float
) -> np.ndarray:
    from privreg import spectra
    from privreg.schedules import Polynomial
    from privreg.theory.one_pass_dpgd import deterministic_equivalent

    spectrum, signal = spectra.power_law_with_signal(
        regime.spectrum_power, signal_power=regime.signal_power
    )
    return deterministic_equivalent.solve(
        spectrum,
        Polynomial(values / parameters.clip_constant, regime.schedule_power),
        aspect_ratio=ratio,
        zcdp_root=zcdp_root,
        clip_constant=parameters.clip_constant,
        label_noise_std=parameters.label_noise_std,
        signal=signal,
        times=[1.0],
        rtol=1e-5,
    ).final_risk
