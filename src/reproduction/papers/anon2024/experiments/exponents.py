"""Table 1: printed exponents, and those of the minimised bounds, against decay and budget."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from privreg.theory import shaped_noise
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Quantity, per, stage
from reproduction.papers.anon2024.setting import AXES as SETTING
from reproduction.papers.anon2024.setting import METHODS, Decay, least_bound

if TYPE_CHECKING:
    from privreg.theory.shaped_noise import ExponentialDecay, PowerLawDecay

PLACE = "Table 1, Corollaries 4.3 to 4.6"


class Parameters(Strict):
    """Decays, and sample sizes so large that logarithms and floors have no effect."""

    decays: q.Some[Decay] = Field(description="Decay exponents r of the table.")
    sample_sizes: q.SizeAxis = Field(description="N of the fits for power laws.")
    exponential_sizes: q.SizeAxis = Field(description="N of the fits for exponential decay.")
    curve_decays: q.LogAxis = Field(description="Decay exponents r of the curves.")
    powers: q.Several[q.Power] = Field(description="p of budgets that grow as N^p.")
    fitted_powers: q.Some[q.Power] = Field(description="p at which bounds are fitted.")

    def fit(self, method: str, decay: float | None = None, power: float = 0.0) -> float:
        """Exponent of a minimised bound at ε = N^power; without a decay r that of e^-i."""
        return _fit(method, decay, self.sample_sizes if decay else self.exponential_sizes, power)

    def step_exponent(self, method: str, noise_power: float, decay: float | None = None) -> float:
        """Exponent of N in the step size at which the bound is least, tau = N^-noise_power."""
        sizes = (self.sample_sizes if decay else self.exponential_sizes).values()
        steps = [
            least_bound(method, _law(decay), size, size**-noise_power).step_size
            for size in map(float, sizes)
        ]
        return float(np.polyfit(np.log(sizes), np.log(steps), 1)[0])


POWER = "power p of the budget"
AXES = SETTING | {
    "private_algorithm": Axis("private algorithm", METHODS[1:]),
    "curve_decay": Axis("decay exponent r", "curve_decays"),
    "power": Axis(POWER, "powers"),
    "fitted_power": Axis(POWER, "fitted_powers"),
    # Constant noise, falling noise, and noise too small to change the rate without privacy.
    "noise_power": Axis("power q of tau = N^-q", (0.0, 0.1, 0.6)),
    # On either side of N^(-1/4).
    "small_power": Axis(POWER, (-0.1, -0.4)),
    "change": Axis("what changes", list(shaped_noise.switch_points())),
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
    advantage="fitted exponent of the designed noise less that of the identity",
    weighted_exponent="exponent with the best weights of the parts in (B.16)",
    weighted_fitted="its fit",
    weighted_advantage="the same fitted exponent less that of the identity",
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
    printed_step_exponent="exponent of the printed step size at tau = N^-q",
)
def step_sizes(
    parameters: Parameters, private_algorithm: str, decay: float, noise_power: float
) -> dict:
    spared = 2 * decay * noise_power
    printed = {
        "identity": [(spared - 1 - decay) / (1 + 2 * decay)],
        "designed": [(spared - 3) / (decay + 3), (spared - 1 - decay) / (1 + 3 * decay)],
    }
    return {
        "step_exponent": parameters.step_exponent(private_algorithm, noise_power, decay),
        "printed_step_exponent": min(-1 / (1 + decay), *printed[private_algorithm]),
    }


@per(
    "private_algorithm",
    "decay",
    at_threshold_gap="distance of the fitted exponent to the one without privacy",
    at_squared_threshold_gap="the same distance at the square of that budget",
)
def thresholds(parameters: Parameters, private_algorithm: str, decay: float) -> dict:
    threshold = float(getattr(shaped_noise, f"{private_algorithm}_threshold")(decay))
    without = _printed("non-private", decay)
    at, at_squared = (
        abs(parameters.fit(private_algorithm, decay, power) - without)
        for power in (threshold, 2 * threshold)
    )
    return {"at_threshold_gap": at, "at_squared_threshold_gap": at_squared}


@per(
    "algorithm",
    "decay",
    with_budget=Quantity("printed exponent at epsilon = N^p", "power"),
    with_noise=Quantity("exponent at epsilon = N^p with the noise of Theorem 4.1", "power"),
    with_budget_fitted=Quantity("its fit", "fitted_power"),
    budget_gap="largest distance of the fits at epsilon = N^p from the printed form",
    noise_gap="largest distance of the fits at epsilon = N^p from the printed form at N^(p/2)",
)
def budgets(parameters: Parameters, algorithm: str, decay: float) -> dict:
    # The printed formulas have noise 1/epsilon; that of Theorem 4.1 falls as epsilon^(-1/2).
    budget, noise, printed, halved = (
        np.array([_printed(algorithm, decay, share * power) for power in powers])
        for powers in (parameters.powers, parameters.fitted_powers)
        for share in (1.0, 0.5)
    )
    fitted = np.array([parameters.fit(algorithm, decay, p) for p in parameters.fitted_powers])
    return {
        "with_budget": budget,
        "with_noise": noise,
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
    printed = float(shaped_noise.EXPONENTIAL_EXPONENTS[METHODS.index(algorithm)])
    fitted, gap = parameters.fit(algorithm), abs(parameters.fit(algorithm) - printed)
    return {"exponential": printed, "exponential_fitted": fitted, "exponential_gap": gap}


@per(
    "private_algorithm",
    "noise_power",
    exponential_step_exponent="fitted exponent of best step size, tau = N^-q, exponential decay",
    printed_exponential_step_exponent="exponent of the printed step size at tau = N^-q",
)
def exponential_step_sizes(
    parameters: Parameters, private_algorithm: str, noise_power: float
) -> dict:
    spared = 2 * noise_power
    printed = {"identity": [(spared - 1) / 2], "designed": [(spared - 1) / 3, spared - 2]}
    return {
        "exponential_step_exponent": parameters.step_exponent(private_algorithm, noise_power),
        "printed_exponential_step_exponent": min(0.0, *printed[private_algorithm]),
    }


@per(
    "private_algorithm",
    exponential_at_threshold="fitted exponent at epsilon = N^(1/2), exponential decay",
    exponential_at_squared_threshold="fitted exponent at epsilon = N, exponential decay",
)
def exponential_budgets(parameters: Parameters, private_algorithm: str) -> dict:
    at, at_squared = (parameters.fit(private_algorithm, power=power) for power in (0.5, 1.0))
    return {"exponential_at_threshold": at, "exponential_at_squared_threshold": at_squared}


@per(
    "small_power",
    exponential_small_budget="fitted exponent of designed bound, epsilon = N^p, exponential decay",
    printed_small_budget="exponent of Corollary 4.6 at epsilon = N^p",
)
def small_budgets(parameters: Parameters, small_power: float) -> dict:
    return {
        "exponential_small_budget": parameters.fit("designed", power=small_power),
        "printed_small_budget": 1 - (1 - 2 * small_power) / 3,
    }


HORIZONS = np.geomspace(1e2, 1e12, 200)


@per("decay", dimension_spread="spread of (effective dimension) / (N eta)^(1/r), largest / least")
def dimensions(decay: float) -> float:
    from privreg.theory.shaped_noise import effective_dimension

    growth = effective_dimension(_law(decay), HORIZONS) / HORIZONS ** (1 / decay)
    return growth.max() / growth.min()


@per(exponential_dimension_spread="spread of (effective dimension) / log(N eta), exponential decay")
def exponential_dimension() -> float:
    from privreg.theory.shaped_noise import effective_dimension

    growth = effective_dimension(_law(), HORIZONS) / np.log(HORIZONS)
    return growth.max() / growth.min()


@per("change", switch="decay exponent of the change")
def switches(change: str) -> float:
    return float(shaped_noise.switch_points()[change])


theory = stage(AXES, blocks_of=globals())


def _law(decay: float | None = None) -> PowerLawDecay | ExponentialDecay:
    from privreg.theory.shaped_noise import ExponentialDecay, PowerLawDecay

    return PowerLawDecay(decay) if decay else ExponentialDecay()


def _printed(method: str, decay: float, power: float = 0.0) -> float:
    if method == "non-private":
        return float(shaped_noise.nonprivate_exponent(decay))
    return float(getattr(shaped_noise, f"{method}_exponent")(decay, epsilon_power=power))


@cache
def _fit(method: str, decay: float | None, sizes: q.SizeAxis, power: float) -> float:
    """Fitted exponent for the noise of Theorem 4.1, without constants and logarithms."""
    values = []
    for size in map(float, sizes.values()):
        epsilon = size**power
        multiplier = float(np.sqrt((1 + epsilon) / 2)) / epsilon
        values.append(least_bound(method, _law(decay), size, multiplier).value)
    return shaped_noise.fitted_exponent(sizes.values(), values)
