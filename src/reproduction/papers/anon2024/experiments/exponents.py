"""Table 1: printed exponents, and those of the minimised bounds, against decay and budget."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Quantity, per, stage
from reproduction.papers.anon2024 import setting
from reproduction.papers.anon2024.least_bounds import least_bound
from reproduction.papers.anon2024.setting import METHODS

if TYPE_CHECKING:
    from privreg.theory.shaped_noise.bounds import Minimum
    from privreg.theory.shaped_noise.decay import ExponentialDecay, PowerLawDecay

    Law = PowerLawDecay | ExponentialDecay

PLACE = "Table 1, Corollaries 4.3 to 4.6"


GrowthPower = Annotated[q.Power, Field(le=1)]


class Parameters(Strict):
    """Decays and the enormous sample sizes at which logarithms and floors no longer show."""

    decays: setting.Decays = Field(description="Decay exponents r of the table.")
    sample_sizes: q.SizeAxis = Field(description="N of the fits for power laws.")
    exponential_sizes: q.SizeAxis = Field(description="N of the fits for exponential decay.")
    curve_decays: q.LogAxis = Field(description="Decay exponents r of the curves.")
    powers: q.Several[GrowthPower] = Field(description="p of budgets that grow as N^p.")
    fitted_powers: q.Some[GrowthPower] = Field(description="p at which bounds are fitted.")

    _traces_are_finite = q.more_than("curve_decays.low", 1)

    def fit(self, method: str, decay: float, power: float = 0.0) -> float:
        """Exponent of the minimised bound at ε = N^power, every constant and logarithm 1."""
        from privreg.theory.shaped_noise.decay import PowerLawDecay

        return _fit(method, PowerLawDecay(decay), self.sample_sizes, power)

    def exponential_fit(self, method: str, power: float = 0.0) -> float:
        from privreg.theory.shaped_noise.decay import ExponentialDecay

        return _fit(method, ExponentialDecay(), self.exponential_sizes, power)


POWER = "power p of the budget"
AXES = setting.AXES | {
    "private_algorithm": Axis("private algorithm", METHODS[1:]),
    "curve_decay": Axis("decay exponent r", "curve_decays"),
    "power": Axis(POWER, "powers"),
    "fitted_power": Axis(POWER, "fitted_powers"),
    # None, some, and less than the rate without privacy bears.
    "noise_power": Axis("power q of tau = N^-q", (0.0, 0.1, 0.6)),
    # On either side of N^(-1/4).
    "small_power": Axis(POWER, (-0.1, -0.4)),
    "change": Axis("what changes", lambda: list(_switch_points())),
}


@per(
    "algorithm",
    "decay",
    printed="exponent of N in Table 1",
    fitted="fitted exponent of the minimised bound",
    gap="distance of fit and Table 1",
)
def table(parameters: Parameters, algorithm: str, decay: float) -> dict:
    printed, fitted = _printed(algorithm, decay), parameters.fit(algorithm, decay)
    return {"printed": printed, "fitted": fitted, "gap": abs(fitted - printed)}


@per("algorithm", "curve_decay", curve="exponent of N")
def curve(algorithm: str, curve_decay: float) -> float:
    return _printed(algorithm, curve_decay)


@per(
    "decay",
    advantage="fitted exponent, designed over identity",
    weighted_exponent="exponent with the best weights of the parts in (B.16)",
    weighted_fitted="its fit",
    weighted_advantage="that fit less the one of the identity",
)
def advantages(parameters: Parameters, decay: float) -> dict:
    identity, designed, weighted = (
        parameters.fit(method, decay) for method in ("identity", "designed", "weighted")
    )
    return {
        "advantage": designed - identity,
        "weighted_exponent": min(decay / (2 + decay), 3 * decay / (4 + 4 * decay)),
        "weighted_fitted": weighted,
        "weighted_advantage": weighted - identity,
    }


@per(
    "private_algorithm",
    "decay",
    "noise_power",
    step_exponent="fitted exponent of the best step size at tau = N^-q",
    printed_step_exponent="exponent of the printed step size there",
)
def step_sizes(
    parameters: Parameters, private_algorithm: str, decay: float, noise_power: float
) -> dict:
    from privreg.theory.shaped_noise.decay import PowerLawDecay

    spared = 2 * decay * noise_power
    printed = {
        "identity": [(spared - 1 - decay) / (1 + 2 * decay)],
        "designed": [(spared - 3) / (decay + 3), (spared - 1 - decay) / (1 + 3 * decay)],
    }
    found = _step_exponent(
        private_algorithm, PowerLawDecay(decay), parameters.sample_sizes, noise_power
    )
    return {
        "step_exponent": found,
        "printed_step_exponent": min(-1 / (1 + decay), *printed[private_algorithm]),
    }


@per(
    "private_algorithm",
    "decay",
    threshold="p at which epsilon = N^p recovers the rate without privacy",
    at_threshold_gap="distance to the exponent without privacy",
    at_squared_threshold_gap="distance to it at the square of that budget",
)
def thresholds(parameters: Parameters, private_algorithm: str, decay: float) -> dict:
    from privreg.theory.shaped_noise import rates

    found = getattr(rates, f"{private_algorithm}_threshold")
    threshold, without = float(found(decay)), _printed("non-private", decay)
    at, at_squared = (
        parameters.fit(private_algorithm, decay, power) for power in (threshold, 2 * threshold)
    )
    return {
        "threshold": threshold,
        "at_threshold_gap": abs(at - without),
        "at_squared_threshold_gap": abs(at_squared - without),
    }


# The printed formulas have noise 1/epsilon; that of Theorem 4.1 falls as epsilon^(-1/2).
@per(
    "algorithm",
    "decay",
    "power",
    with_budget="printed exponent at epsilon = N^p",
    with_noise="exponent at epsilon = N^p with the noise of Theorem 4.1",
)
def budgets(algorithm: str, decay: float, power: float) -> dict:
    return {
        "with_budget": _printed(algorithm, decay, power),
        "with_noise": _printed(algorithm, decay, power / 2),
    }


@per(
    "algorithm",
    "decay",
    with_budget_fitted=Quantity("its fit", "fitted_power"),
    budget_gap="largest distance of the fits at epsilon = N^p from the printed form",
    noise_gap="largest distance of the fits at epsilon = N^p from the printed form at N^(p/2)",
)
def fitted_budgets(parameters: Parameters, algorithm: str, decay: float) -> dict:
    powers = parameters.fitted_powers
    fitted = np.array([parameters.fit(algorithm, decay, p) for p in powers])
    printed, halved = (
        [_printed(algorithm, decay, factor * p) for p in powers] for factor in (1.0, 0.5)
    )
    return {
        "with_budget_fitted": fitted,
        "budget_gap": np.abs(fitted - printed).max(),
        "noise_gap": np.abs(fitted - halved).max(),
    }


@per(
    "algorithm",
    exponential="exponent for exponential decay",
    exponential_fitted="its fit",
    exponential_gap="distance of fit and Table 1",
)
def exponential(parameters: Parameters, algorithm: str) -> dict:
    from privreg.theory.shaped_noise import rates

    printed = float(rates.exponential_exponents()[METHODS.index(algorithm)])
    fitted = parameters.exponential_fit(algorithm)
    return {
        "exponential": printed,
        "exponential_fitted": fitted,
        "exponential_gap": abs(fitted - printed),
    }


@per(
    "private_algorithm",
    "noise_power",
    exponential_step_exponent="fitted exponent of the best step size at tau = N^-q, exponential "
    "decay",
    printed_exponential_step_exponent="exponent of the printed step size there",
)
def exponential_step_sizes(
    parameters: Parameters, private_algorithm: str, noise_power: float
) -> dict:
    from privreg.theory.shaped_noise.decay import ExponentialDecay

    spared = 2 * noise_power
    printed = {"identity": [(spared - 1) / 2], "designed": [(spared - 1) / 3, spared - 2]}
    found = _step_exponent(
        private_algorithm, ExponentialDecay(), parameters.exponential_sizes, noise_power
    )
    return {
        "exponential_step_exponent": found,
        "printed_exponential_step_exponent": min(0.0, *printed[private_algorithm]),
    }


@per(
    "private_algorithm",
    exponential_at_threshold="fitted exponent at epsilon = N^(1/2), exponential decay",
    exponential_at_squared_threshold="fitted exponent at epsilon = N, exponential decay",
)
def exponential_budgets(parameters: Parameters, private_algorithm: str) -> dict:
    return {
        "exponential_at_threshold": parameters.exponential_fit(private_algorithm, 0.5),
        "exponential_at_squared_threshold": parameters.exponential_fit(private_algorithm, 1.0),
    }


@per(
    "small_power",
    exponential_small_budget="fitted exponent of the designed bound at epsilon = N^p, "
    "exponential decay",
    printed_small_budget="exponent of Corollary 4.6 there",
)
def small_budgets(parameters: Parameters, small_power: float) -> dict:
    return {
        "exponential_small_budget": parameters.exponential_fit("designed", small_power),
        "printed_small_budget": 1 - (1 - 2 * small_power) / 3,
    }


HORIZONS = np.geomspace(1e2, 1e12, 200)
# (B.12) is about every horizon with a head, and is attained at the first.
ALL_HORIZONS = np.geomspace(1.0, 1e12, 241)


@per(
    "decay",
    dimension_spread="largest over least effective dimension over (N eta)^(1/r)",
    dimension_over_horizon="largest effective dimension over N eta tr(H)",
)
def dimensions(decay: float) -> dict:
    from privreg.theory.shaped_noise.decay import PowerLawDecay, effective_dimension

    law = PowerLawDecay(decay)
    growth = effective_dimension(law, HORIZONS) / HORIZONS ** (1 / decay)
    shares = effective_dimension(law, ALL_HORIZONS) / (ALL_HORIZONS * law.trace)
    return {
        "dimension_spread": growth.max() / growth.min(),
        "dimension_over_horizon": shares.max(),
    }


@per(
    exponential_dimension_spread="largest over least effective dimension over log(N eta), "
    "exponential decay"
)
def exponential_dimension() -> float:
    from privreg.theory.shaped_noise.decay import ExponentialDecay, effective_dimension

    growth = effective_dimension(ExponentialDecay(), HORIZONS) / np.log(HORIZONS)
    return growth.max() / growth.min()


@per("change", switch="decay exponent of the change")
def switches(change: str) -> float:
    return float(_switch_points()[change])


theory = stage(AXES, blocks_of=globals())


def _switch_points() -> dict:
    from privreg.theory.shaped_noise import rates

    return rates.switch_points()


def _printed(method: str, decay: float, power: float = 0.0) -> float:
    from privreg.theory.shaped_noise import rates

    if method == "non-private":
        return float(rates.nonprivate_exponent(decay))
    formula = rates.identity_exponent if method == "identity" else rates.designed_exponent
    return float(formula(decay, epsilon_power=power))


def _fit(method: str, law: Law, sizes: q.SizeAxis, power: float) -> float:
    from privreg.theory.shaped_noise.bounds import fitted_exponent

    values = [best.value for best in _minima(method, law, sizes, power)]
    return fitted_exponent(sizes.values(), values)


def _step_exponent(method: str, law: Law, sizes: q.SizeAxis, noise_power: float) -> float:
    """Exponent of N in the step size at which the bound is least, tau = N^-noise_power."""
    steps = [
        least_bound(method, law, size, size**-noise_power).step_size
        for size in map(float, sizes.values())
    ]
    return float(np.polyfit(np.log(sizes.values()), np.log(steps), 1)[0])


@cache
def _minima(method: str, law: Law, sizes: q.SizeAxis, power: float = 0.0) -> list[Minimum]:
    """At ε = N^power, with the noise of Theorem 4.1 without its constants and logarithms."""
    found = []
    for size in map(float, sizes.values()):
        epsilon = size**power
        multiplier = float(np.sqrt((1 + epsilon) / 2)) / epsilon
        found.append(least_bound(method, law, size, multiplier))
    return found
