"""Table 1: printed exponents, and those of the minimised bounds, against decay and budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import LogAxis, Power, SizeAxis, Some

if TYPE_CHECKING:
    import xarray as xr

    from privreg.theory.shaped_noise.bounds import Minimum
    from privreg.theory.shaped_noise.decay import Decay

PLACE = "Table 1, Corollaries 4.3 to 4.6"
METHODS = ("non-private", "identity", "designed")
# Budgets that fall with N, on either side of N^(-1/4).
SMALL_POWERS = (-0.1, -0.4)


class Parameters(Strict):
    """Decays and the enormous sample sizes at which logarithms and floors no longer show."""

    decays: Some[Annotated[Power, Field(gt=1)]] = Field(
        description="Decay exponents r of the table."
    )
    sample_sizes: SizeAxis = Field(description="N of the fits for power laws.")
    exponential_sizes: SizeAxis = Field(description="N of the fits for exponential decay.")
    curve_decays: LogAxis = Field(description="Decay exponents r of the curves.")
    powers: Annotated[Some[Power], Field(min_length=2)] = Field(
        description="p of budgets that grow as N^p."
    )
    fitted_powers: Some[Power] = Field(description="p at which bounds are fitted.")

    @model_validator(mode="after")
    def _traces_are_finite(self) -> Self:
        if self.curve_decays.low <= 1:
            raise ValueError(f"curve_decays.low must be more than 1, got {self.curve_decays.low:g}")
        return self


def theory(parameters: Parameters) -> xr.Dataset:
    """Closed forms, fits, thresholds of the budget and points where branches change."""
    import xarray as xr

    from privreg.theory.shaped_noise import rates
    from privreg.theory.shaped_noise.decay import (
        ExponentialDecay,
        PowerLawDecay,
        effective_dimension,
    )

    decays = parameters.decays
    sizes = parameters.sample_sizes.values()
    powers, fitted_powers = np.array(parameters.powers), np.array(parameters.fitted_powers)
    printed = np.array([[_printed(m, r) for r in decays] for m in METHODS])
    fitted = np.array([[_fit(m, PowerLawDecay(float(r)), sizes) for r in decays] for m in METHODS])
    weighted = np.array([_fit("weighted", PowerLawDecay(float(r)), sizes) for r in decays])
    weighted_closed = [min(r / (2 + r), 3 * r / (4 + 4 * r)) for r in decays]
    steps = [[_step_exponent(m, PowerLawDecay(r), sizes) for r in decays] for m in METHODS[1:]]
    printed_steps = [
        [-(1 + r) / (1 + 2 * r) for r in decays],
        [-max(3 / (r + 3), (1 + r) / (1 + 3 * r)) for r in decays],
    ]
    horizons = np.geomspace(1e2, 1e12, 200)
    growth = [effective_dimension(PowerLawDecay(r), horizons) / horizons ** (1 / r) for r in decays]
    exponential_growth = effective_dimension(ExponentialDecay(), horizons) / np.log(horizons)
    exponential = np.array([float(x) for x in rates.exponential_exponents()])
    exponential_fitted = np.array(
        [_fit(m, ExponentialDecay(), parameters.exponential_sizes.values()) for m in METHODS]
    )
    threshold = np.array(
        [
            [float(rates.identity_threshold(r)) for r in decays],
            [float(rates.designed_threshold(r)) for r in decays],
        ]
    )
    at_threshold = np.array(
        [
            [
                _fit(m, PowerLawDecay(float(r)), sizes, power=threshold[i, j])
                for j, r in enumerate(decays)
            ]
            for i, m in enumerate(METHODS[1:])
        ]
    )
    at_squared_threshold = np.array(
        [
            [
                _fit(m, PowerLawDecay(float(r)), sizes, power=2 * threshold[i, j])
                for j, r in enumerate(decays)
            ]
            for i, m in enumerate(METHODS[1:])
        ]
    )
    with_budget = np.array([[[_printed(m, r, p) for p in powers] for r in decays] for m in METHODS])
    # The printed formulas have noise 1/epsilon; that of Theorem 4.1 falls as epsilon^(-1/2).
    with_noise = np.array(
        [[[_printed(m, r, p / 2) for p in powers] for r in decays] for m in METHODS]
    )
    with_noise_fitted = np.array(
        [[[_printed(m, r, p / 2) for p in fitted_powers] for r in decays] for m in METHODS]
    )
    with_budget_fitted = np.array(
        [
            [[_fit(m, PowerLawDecay(float(r)), sizes, power=p) for p in fitted_powers]
             for r in decays]
            for m in METHODS
        ]
    )  # fmt: skip
    curve = parameters.curve_decays.values()
    curves = np.array([[_printed(m, r) for r in curve] for m in METHODS])
    switches = rates.switch_points()
    table, budget = ("algorithm", "decay"), ("algorithm", "decay", "power")
    return xr.Dataset(
        {
            "printed": variable(table, printed, "exponent of N in Table 1"),
            "fitted": variable(table, fitted, "fitted exponent of the minimised bound"),
            "gap": variable(table, np.abs(fitted - printed), "distance of fit and Table 1"),
            "advantage": variable(
                "decay", fitted[2] - fitted[1], "fitted exponent, designed over identity"
            ),
            "weighted_exponent": variable(
                "decay", weighted_closed, "exponent with the best weights of the parts in (B.16)"
            ),
            "weighted_fitted": variable("decay", weighted, "its fit"),
            "weighted_advantage": variable(
                "decay", weighted - fitted[1], "that fit less the one of the identity"
            ),
            "step_exponent": variable(
                ("private_algorithm", "decay"), steps, "fitted exponent of the best step size"
            ),
            "printed_step_exponent": variable(
                ("private_algorithm", "decay"), printed_steps, "exponent of the printed step size"
            ),
            "exponential_step_exponent": variable(
                "private_algorithm",
                [
                    _step_exponent(m, ExponentialDecay(), parameters.exponential_sizes.values())
                    for m in METHODS[1:]
                ],
                "fitted exponent of the best step size, exponential decay",
            ),
            **{
                f"exponential_at_{name}": variable(
                    "private_algorithm",
                    [
                        _fit(m, ExponentialDecay(), parameters.exponential_sizes.values(), power=p)
                        for m in METHODS[1:]
                    ],
                    f"fitted exponent at epsilon = {budget}, exponential decay",
                )
                for name, p, budget in (
                    ("threshold", 0.5, "N^(1/2)"),
                    ("squared_threshold", 1.0, "N"),
                )
            },
            "exponential_small_budget": variable(
                "small_power",
                [
                    _fit(
                        "designed",
                        ExponentialDecay(),
                        parameters.exponential_sizes.values(),
                        power=p,
                    )
                    for p in SMALL_POWERS
                ],
                "fitted exponent of the designed bound at epsilon = N^p, exponential decay",
            ),
            "printed_small_budget": variable(
                "small_power",
                [1 - (1 - 2 * p) / 3 for p in SMALL_POWERS],
                "exponent of Corollary 4.6 there",
            ),
            "dimension_spread": variable(
                "decay",
                [float(g.max() / g.min()) for g in growth],
                "largest over least effective dimension over (N eta)^(1/r)",
            ),
            "dimension_constant": variable(
                "decay",
                [float(g.max()) for g in growth],
                "largest effective dimension over (N eta)^(1/r)",
            ),
            "exponential_dimension_constant": variable(
                (),
                exponential_growth.max(),
                "largest effective dimension over log(N eta), exponential decay",
            ),
            "dimension_over_horizon": variable(
                "decay",
                [
                    float((g * horizons ** (1 / r - 1)).max() / PowerLawDecay(r).trace)
                    for g, r in zip(growth, decays, strict=True)
                ],
                "largest effective dimension over N eta tr(H)",
            ),
            "budget_gap": variable(
                ("algorithm", "decay"),
                np.abs(
                    with_budget_fitted
                    - [
                        [[_printed(m, r, p) for p in fitted_powers] for r in decays]
                        for m in METHODS
                    ]
                ).max(axis=-1),
                "largest distance of the fits at epsilon = N^p from the printed form",
            ),
            "noise_gap": variable(
                ("algorithm", "decay"),
                np.abs(with_budget_fitted - with_noise_fitted).max(axis=-1),
                "largest distance of the fits at epsilon = N^p from the printed form at N^(p/2)",
            ),
            "exponential": variable("algorithm", exponential, "exponent for exponential decay"),
            "exponential_fitted": variable("algorithm", exponential_fitted, "its fit"),
            "exponential_gap": variable(
                "algorithm", np.abs(exponential_fitted - exponential), "distance of fit and Table 1"
            ),
            "threshold": variable(
                ("private_algorithm", "decay"),
                threshold,
                "p at which epsilon = N^p recovers the rate without privacy",
            ),
            "at_threshold": variable(
                ("private_algorithm", "decay"), at_threshold, "fitted exponent at that budget"
            ),
            "at_threshold_gap": variable(
                ("private_algorithm", "decay"),
                np.abs(at_threshold - printed[0]),
                "distance to the exponent without privacy",
            ),
            "at_squared_threshold_gap": variable(
                ("private_algorithm", "decay"),
                np.abs(at_squared_threshold - printed[0]),
                "distance to it at the square of that budget",
            ),
            "with_budget": variable(budget, with_budget, "printed exponent at epsilon = N^p"),
            "with_noise": variable(
                budget, with_noise, "exponent at epsilon = N^p with the noise of Theorem 4.1"
            ),
            "with_budget_fitted": variable(
                ("algorithm", "decay", "fitted_power"), with_budget_fitted, "its fit"
            ),
            "curve": variable(("algorithm", "curve_decay"), curves, "exponent of N"),
            "switch": variable(
                "change", [float(v) for v in switches.values()], "decay exponent of the change"
            ),
        },
        coords={
            "algorithm": variable("algorithm", list(METHODS), "algorithm"),
            "private_algorithm": variable(
                "private_algorithm", list(METHODS[1:]), "private algorithm"
            ),
            "decay": variable("decay", [float(r) for r in decays], "decay exponent r"),
            "curve_decay": variable("curve_decay", curve, "decay exponent r"),
            "power": variable("power", powers, "power p of the budget"),
            "small_power": variable("small_power", list(SMALL_POWERS), "power p of the budget"),
            "fitted_power": variable("fitted_power", fitted_powers, "power p of the budget"),
            "change": variable("change", list(switches), "what changes"),
        },
    )


def _printed(method: str, decay: float, power: float = 0.0) -> float:
    from privreg.theory.shaped_noise import rates

    if method == "non-private":
        return float(rates.nonprivate_exponent(decay))
    formula = rates.identity_exponent if method == "identity" else rates.designed_exponent
    return float(formula(decay, epsilon_power=power))


def _fit(method: str, decay: Decay, sizes: np.ndarray, *, power: float = 0.0) -> float:
    """Exponent of the minimised bound at ε = N^power, every constant and logarithm 1."""
    from privreg.theory.shaped_noise.bounds import fitted_exponent

    values = [best.value for best in _minima(method, decay, sizes, power=power)]
    return fitted_exponent(sizes, values)


def _noise_multiplier(epsilon: float) -> float:
    """τ of Theorem 4.1 without its constants and logarithms, 1 at a constant budget ε = 1."""
    return float(np.sqrt((1 + epsilon) / 2)) / epsilon


def _step_exponent(method: str, decay: Decay, sizes: np.ndarray) -> float:
    """Exponent of N in the step size at which the bound is least."""
    steps = [best.step_size for best in _minima(method, decay, sizes)]
    return float(np.polyfit(np.log(sizes), np.log(steps), 1)[0])


def _minima(method: str, decay: Decay, sizes: np.ndarray, *, power: float = 0.0) -> list[Minimum]:
    from privreg.theory.shaped_noise.bounds import (
        designed_bound,
        identity_bound,
        minimise_over_step_size,
    )
    from privreg.theory.shaped_noise.decay import effective_dimension

    found = []
    for size in map(float, sizes):
        noise = 0.0 if method == "non-private" else _noise_multiplier(size**power)

        def total(eta: np.ndarray, size: float = size, noise: float = noise) -> np.ndarray:
            if method == "designed":
                return designed_bound(
                    decay, sample_size=size, step_size=eta, noise_multiplier=noise
                ).total
            isotropic = method != "weighted"
            plain = identity_bound(
                decay, sample_size=size, step_size=eta, noise_multiplier=noise if isotropic else 0.0
            ).total
            if isotropic:
                return plain
            # Parts c psi^2 and psi^2 / c of a cross term, the best c > 0, psi^2 of order D.
            dimension = effective_dimension(decay, size * eta)
            private = 1 / size + 2 * eta * np.sqrt(decay.squared_trace / size)
            return plain + (noise * dimension) ** 2 * private

        found.append(minimise_over_step_size(total, sample_size=size))
    return found
