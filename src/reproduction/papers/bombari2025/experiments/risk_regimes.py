"""Terms of the risk on power-law data: powers of the learning rate, and a missed logarithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from pydantic import Field

from privreg import spectra
from privreg.schedules import Polynomial
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, per, stage
from reproduction.papers.bombari2025 import equivalent
from reproduction.papers.bombari2025.setting import Clipped

PLACE = "Lemma E.3, equations (E.12)-(E.14), Lemma E.4, equations (E.16)-(E.17), and Theorem 4"
RATES = 9


class Regime(Strict):
    """A term of the risk, and a setting in which it dominates."""

    term: Literal["signal", "sampling", "private"]
    spectrum_power: q.SpectrumPower = Field(description="phi of the spectrum.")
    signal_power: q.SignalPower = Field(description="psi of the signal.")
    schedule_power: q.Power = Field(description="alpha of the schedule.")

    def __str__(self) -> str:
        return f"{self.term}-{self.spectrum_power:.3g}-{self.schedule_power:g}"

    @property
    def powers(self) -> tuple[float, float, float]:
        return self.spectrum_power, self.signal_power, self.schedule_power


# Here phi (alpha + 1) = 2.
CRITICAL = Regime(term="private", spectrum_power=0.5, signal_power=0.0, schedule_power=3.0)
# phi, psi, alpha and b in each case of Theorem 4.
BULLETS = {
    1: (0.0, 0.0, 1.0, 0.0),
    2: (0.0, 0.0, 1.0, 0.5),
    3: (0.8, 0.0, 5.0, 0.1),
    4: (0.8, 0.0, 5.0, 0.5),
}
# Of (E.12) to (E.14): phi and psi, gamma, rho, and c times the initial rate; alpha is 1.
LOWER = (0.25, 0.5), 1e-3, 0.003, 20.0


class Parameters(Clipped):
    """Lemma E.4: each term alone; Theorem 4 at its critical privacy power."""

    regimes: q.Some[Regime] = Field(description="Terms and powers.")
    aspect_ratio: q.AspectRatio = Field(description="gamma of the terms.")
    beyond_balance: q.Window = Field(
        description="Rates fitted, in units of the one at which the term equals the signal's."
    )
    critical_ratios: q.Some[q.AspectRatio] = Field(description="gamma at the critical power.")


AXES = {
    "regime": Axis("term, phi and alpha", lambda parameters: [*map(str, parameters.regimes)]),
    "offset": Axis("privacy power minus its critical value", (0.0, -0.1, 0.1)),
    "bullet": Axis("case of Theorem 4", tuple(BULLETS)),
}


@per(
    "regime",
    difference="log-log slope of the risk in the rate, less the power in Lemma E.4",
    simple_slope="log-log slope in the rate of the risk divided by the simpler form (E.11)",
    noiseless_slope="log-log slope in the rate of the risk divided by the first term of (E.11)",
)
def power_of_rate(parameters: Parameters, regime: str) -> dict:
    (case,) = (each for each in parameters.regimes if str(each) == regime)
    phi, psi, alpha = case.powers
    decay, width = 2 - phi - psi, alpha + 1
    ratio, zcdp_root = parameters.aspect_ratio, np.inf
    window = np.array(parameters.beyond_balance)
    if case.term == "signal":
        # With hardly any samples' noise the signal's term is alone at every rate.
        ratio, power, rates = ratio**2, -decay, 1e3 * window
    elif case.term == "sampling":
        power = 1 / width
        rates = ratio ** (-1 / (decay + power)) * window
    else:
        zcdp_root = ratio**0.5
        power = max(2 / width, phi)
        rates = (ratio / zcdp_root) ** (-2 / (decay + power)) * window
    values = np.geomspace(rates[0], rates[1], RATES)
    risk = _risk(parameters, case, values, ratio, zcdp_root)
    simple = np.array([_simple(case, value, ratio, zcdp_root) for value in values])
    logarithm = np.isclose(phi * width, 2) and case.term == "private"

    def slope(risk: np.ndarray) -> float:
        return np.polyfit(np.log(values), np.log(risk), 1)[0]

    return {
        "difference": slope(risk / np.log(values) if logarithm else risk) - power,
        "simple_slope": slope(risk / simple.sum(1)),
        "noiseless_slope": slope(risk / simple[:, 0]),
    }


@per(
    "offset",
    critical_increment="increment of risk / stated rate between the two smallest gammas",
    increment_ratio="the same increment divided by that over the decade of gamma before",
)
def critical_increment(parameters: Parameters, offset: float) -> dict:
    """Increments at the stated learning rate; a power of ln(1/gamma) would change them."""
    from privreg.theory.one_pass_dpgd.rates import critical_privacy_power, optimal_exponent

    power, quotients = critical_privacy_power(*CRITICAL.powers) + offset, []
    stated = optimal_exponent(*CRITICAL.powers, power)
    for ratio in parameters.critical_ratios[-3:]:
        rate = np.array([ratio**stated.learning_rate])
        risk = _risk(parameters, CRITICAL, rate, ratio, ratio**power)
        quotients.append(risk[0] / ratio**stated.risk)
    before, last = np.diff(quotients)
    return {"critical_increment": last, "increment_ratio": last / before}


@per(
    lower_modes_least="least ratio along time of the lower modes' risk (E.13) to the form (E.14)",
    lower_modes_printed="the same quotient with four times the least C_2",
    lower_modes_corrected="the same quotient with the form along the lower modes' own risk",
)
def lower_modes(parameters: Parameters) -> dict:
    """Lower modes with the least C_1 of (E.12) and (E.13) and the least C_2 that (B.15) allows."""
    from scipy.integrate import solve_ivp

    from privreg.theory.one_pass_dpgd import deterministic_equivalent

    (phi, psi), ratio, zcdp_root, product = LOWER
    c, noise = parameters.clip_constant, parameters.label_noise_std
    setting = {"clip_constant": c, "label_noise_std": noise}
    spectrum, signal = spectra.power_law_with_signal(phi, signal_power=psi)
    values = spectrum.eigenvalues
    shares = spectrum.weights * values
    private = 2 * (product * ratio / zcdp_root) ** 2
    left = np.geomspace(1, 1e-6, 200)

    def risks(slope: Callable[[float, np.ndarray], np.ndarray], count: int) -> np.ndarray:
        options = {"t_eval": 1 - left, "method": "LSODA", "rtol": 1e-8, "atol": 1e-11}
        found = solve_ivp(
            lambda t, modes: slope(t, modes.reshape(count, -1)).ravel(),
            (0.0, 1 - left[-1]),
            np.tile(signal, count),
            **options,
        )
        return np.einsum("m,kmt->kt", shares, found.y.reshape(count, len(values), -1))

    def source(t: float) -> np.ndarray:
        return values * (product * (1 - t)) ** 2 * ratio + private * (1 - t)

    def quotients(enlarged: float) -> tuple[float, float]:
        """Least quotient of (E.13) over both forms, at a multiple of the least C_2."""

        def simple(t: float, modes: np.ndarray) -> np.ndarray:
            return source(t) - 2 * values * product * (1 - t) * modes

        root = np.sqrt(2 * risks(simple, 1).max() + noise**2)
        third = (
            enlarged
            * root
            * c
            / noise
            / float(deterministic_equivalent.descent_factor(0.0, **setting))
        )

        def slope(t: float, modes: np.ndarray) -> np.ndarray:
            """The risk itself, (E.13), and the form along the risk and along (E.13)."""
            risk, lower = modes[:2] @ shares
            level = deterministic_equivalent.variance_factor(risk, **setting) * (
                risk + noise**2 / 2
            )
            true, own = (
                float(deterministic_equivalent.descent_factor(each, **setting))
                for each in (risk, lower)
            )
            rate = product / c * (1 - t)
            simpler = root * c / np.sqrt(2 * lower + noise**2)
            falls = np.array([true, simpler, third * true, third * own])
            sources = np.tile(source(t), (4, 1))
            sources[0] = values * rate**2 * level * ratio + 2 * private * (1 - t)
            return sources - 2 * rate * falls[:, None] * values * modes

        _, lower, printed, own = risks(slope, 4)
        return (lower / printed).min(), (lower / own).min()

    least, corrected = quotients(1.0)
    return {
        "lower_modes_least": least,
        "lower_modes_printed": quotients(4.0)[0],
        "lower_modes_corrected": corrected,
    }


@per(
    "bullet",
    larger_clip_ratio="least risk over rates at the best of c = 1, 10 and gamma^(-1/4), divided by "
    "that at c = 0.1, gamma = 1e-8",
)
def larger_clip_ratio(parameters: Parameters, bullet: int) -> float:
    """Ratios for larger clips on power-law data, in each case of Theorem 4."""
    phi, psi, alpha, b = BULLETS[bullet]
    ratio = 1e-8
    spectrum, signal = spectra.power_law_with_signal(phi, signal_power=psi)

    def least(clip_constant: float) -> float:
        at = ratio, ratio**b, clip_constant
        return equivalent.tuned(parameters, spectrum, alpha, *at, signal=signal).final_risk

    return min(map(least, (1.0, 10.0, ratio**-0.25))) / least(0.1)


theory = stage(AXES, blocks_of=globals())


def _simple(regime: Regime, rate: float, ratio: float, zcdp_root: float) -> tuple[float, ...]:
    """The three terms of (E.11) at t = 1, with the time left u as the variable."""
    from privreg.theory.one_pass_dpgd import volterra

    phi, psi, power = regime.powers
    kernels, width = volterra.power_law_kernels(phi, psi), power + 1
    points, weights = np.polynomial.legendre.leggauss(400)
    # In ln(u), which resolves the layer at the end; below e^(-40) nothing is left.
    left = np.exp(20 * (points - 1))
    weights = 20 * weights * left
    descent = rate * left**width / width
    sampling = ratio * rate**2 * left ** (2 * power) * kernels.sampling(descent)
    private = 2 * power * rate**2 * left ** (2 * power - 1) * kernels.private(descent)
    return (
        float(kernels.signal(rate / width)),
        float(weights @ sampling),
        float((ratio / zcdp_root) ** 2 * (weights @ private)) if power else 0.0,
    )


def _risk(
    parameters: Parameters, regime: Regime, values: np.ndarray, ratio: float, zcdp_root: float
) -> np.ndarray:
    """Risk at products of clipping constant and initial rate."""
    phi, psi, alpha = regime.powers
    spectrum, signal = spectra.power_law_with_signal(phi, signal_power=psi)
    schedule = Polynomial(values / parameters.clip_constant, alpha)
    options = {"signal": signal, "times": [1.0], "rtol": 1e-5}
    return equivalent.solve(parameters, spectrum, schedule, ratio, zcdp_root, **options).final_risk
