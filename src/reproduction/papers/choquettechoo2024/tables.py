"""Tables of choquettechoo2024: the printed formulas beside our measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reproduction.engine.recipe import Dataset

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

# Coefficient matrix, agnostic of T, cost of generation, cost of a training step, as printed.
COSTS = {
    "dp_sgd": ("DP-SGD", "identity", True, "O(1)", "O(1)"),
    "tree_aggregation": ("Honaker/TreeAgg", "lower-triangular", True, "O(1)", "O(log T)"),
    "optimal_cc": ("Optimal CC", "Toeplitz", True, "O(1)", "O(T)"),
    "nu_dp_ftrl": ("nu-DP-FTRL", "Toeplitz", True, "O(1)", "O(T)"),
    "fft": ("FFT", "Toeplitz", False, "O(1)", "O(T log^2 T)"),
    "full_honaker": ("Full Honaker", "arbitrary", False, "O(T^2)", "O(T^2)"),
    "multi_epoch": ("Multi-Epoch (ME)", "arbitrary", False, "O(T^3)", "O(T^2)"),
}


def table1(rates: Dataset) -> pd.DataFrame:
    """Asymptotic rates, and the exact risks divided by these rates."""
    rows = {
        "lower bound": ("Omega(eta^2 d_eff / rho)", rates.lower_constant),
        "Noisy-SGD": ("Theta(eta d / rho)", rates.constant.sel(algorithm="noisy_sgd")),
        "nu-Noisy-FTRL": ("O(eta^2 d_eff log^2(1/(eta mu)) / rho)", rates.theorem_constant),
        "nu-Noisy-FTRL divided by the lower bound": (
            "O(log^2(1/(eta mu)))",
            rates.over_lower.sel(algorithm="noisy_ftrl"),
        ),
    }
    return _frame(
        {
            "algorithm": algorithm,
            "printed": printed,
            "smallest_constant": float(constants.min()),
            "largest_constant": float(constants.max()),
        }
        for algorithm, (printed, constants) in rows.items()
    )


def table2(rates: Dataset) -> pd.DataFrame:
    """Sensitivities and risks of four families of coefficients."""
    printed = {
        "fichtenberger": ("log T", "infinite"),
        "nu_noisy_ftrl": ("log(1/nu)", "eta^2 tr(H) log^2(1/nu) / rho"),
        "anti_pgd": ("T", "infinite"),
        "damped_anti_pgd": ("1/nu", "eta^(3/2) sqrt(d tr(H)) / rho"),
    }
    # Families without damping have no slope.
    slopes = rates.risk_slope.to_series()
    return _frame(
        {
            "coefficients": name,
            "printed_squared_sensitivity": sensitivity,
            "squared_sensitivity_least_steps": float(at.squared_sensitivity[0]),
            "squared_sensitivity_most_steps": float(at.squared_sensitivity[-1]),
            "limiting_squared_sensitivity": float(at.limiting_sensitivity),
            "slope_over_log_steps": float(at.sensitivity_slope),
            "printed_risk": risk,
            "risk_least_step_size": float(at.risk[0]),
            "risk_exponent_in_step_size": slopes.get(name, float("nan")),
        }
        for name, (sensitivity, risk) in printed.items()
        for at in [rates.sel(family=name)]
    )


def table3(errors: Dataset) -> pd.DataFrame:
    """Variants of DP-FTRL: printed costs, and prefix errors for several numbers of steps."""
    columns = ("variant", "matrix", "anytime", "generation", "training_per_step")
    measured = [f"mean_error_{int(steps)}_steps" for steps in errors.steps.values]
    return _frame(
        dict(zip(columns, printed, strict=True))
        | dict(zip(measured, errors.mean_error.sel(mechanism=name).values, strict=True))
        for name, printed in COSTS.items()
    )


def table4(rates: Dataset) -> pd.DataFrame:
    """By spectrum, the printed and the exact exponent in d, and the range of the constants."""
    rows = []
    for name in rates.spectrum.values:
        at = rates.sel(spectrum=name)
        row = {"eigenvalues": name, "effective_dimension": float(at.effective_dimension[-1])}
        for algorithm in rates.algorithm.values:
            of = at.sel(algorithm=algorithm)
            row |= {
                f"{algorithm}_exponent": float(of.exponent),
                f"{algorithm}_printed_exponent": float(of.printed_exponent),
                f"{algorithm}_smallest_constant": float(of.constant.min()),
                f"{algorithm}_largest_constant": float(of.constant.max()),
            }
        rows.append(row | {"printed_ratio_over_rates": float(at.printed_ratio_constant[-1])})
    return _frame(rows)


def _frame(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame([*rows])
