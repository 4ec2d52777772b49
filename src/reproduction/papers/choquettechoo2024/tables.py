"""Tables of choquettechoo2024: the printed formulas beside what our artifacts measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduction.engine.recipe import Dataset

if TYPE_CHECKING:
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
    """Asymptotic risks and the constants that the exact risks have in front of the rates."""
    import pandas as pd

    sgd = rates.constant.sel(algorithm="noisy_sgd").values
    ftrl = rates.theorem_constant.values
    least = rates.lower_constant.values
    lower = (rates.risk.sel(algorithm="noisy_ftrl") / rates.lower_bound).values
    return pd.DataFrame(
        [
            ("lower bound", "Omega(eta^2 d_eff / rho)", least.min(), least.max()),
            ("Noisy-SGD", "Theta(eta d / rho)", sgd.min(), sgd.max()),
            ("nu-Noisy-FTRL", "O(eta^2 d_eff log^2(1/(eta mu)) / rho)", ftrl.min(), ftrl.max()),
            (
                "nu-Noisy-FTRL over the lower bound",
                "O(log^2(1/(eta mu)))",
                lower.min(),
                lower.max(),
            ),
        ],
        columns=["algorithm", "printed", "smallest_constant", "largest_constant"],
    )


def table2(rates: Dataset) -> pd.DataFrame:
    """Sensitivities and risks of four families of coefficients."""
    import pandas as pd

    printed = {
        "fichtenberger": ("log T", "infinite"),
        "nu_noisy_ftrl": ("log(1/nu)", "eta^2 tr(H) log^2(1/nu) / rho"),
        "anti_pgd": ("T", "infinite"),
        "damped_anti_pgd": ("1/nu", "eta^(3/2) sqrt(d tr(H)) / rho"),
    }
    rows = []
    for name, (sensitivity, risk) in printed.items():
        at = rates.sel(family=name)
        damped = name in rates.damped_family.values
        slope = float(rates.risk_slope.sel(damped_family=name)) if damped else float("nan")
        rows.append(
            {
                "coefficients": name,
                "printed_squared_sensitivity": sensitivity,
                "squared_sensitivity_least_steps": float(at.squared_sensitivity[0]),
                "squared_sensitivity_most_steps": float(at.squared_sensitivity[-1]),
                "limiting_squared_sensitivity": float(at.limiting_sensitivity),
                "slope_over_log_steps": float(at.sensitivity_slope),
                "printed_risk": risk,
                "risk_least_step_size": float(at.risk[0]),
                "risk_exponent_in_step_size": slope,
            }
        )
    return pd.DataFrame(rows)


def table3(errors: Dataset) -> pd.DataFrame:
    """Variants of DP-FTRL: printed costs, and prefix errors measured over the steps."""
    import pandas as pd

    rows = []
    for name, (title, matrix, anytime, generation, training) in COSTS.items():
        at = errors.sel(mechanism=name)
        measured = {
            f"mean_error_{int(steps)}_steps": float(value)
            for steps, value in zip(errors.steps.values, at.mean_error.values, strict=True)
        }
        rows.append(
            {
                "variant": title,
                "matrix": matrix,
                "anytime": anytime,
                "generation": generation,
                "training_per_step": training,
                **measured,
            }
        )
    return pd.DataFrame(rows)


def table4(rates: Dataset) -> pd.DataFrame:
    """Exponents in the dimension, printed and exact, and the constants' range, by spectrum."""
    import pandas as pd

    rows = []
    for name in rates.spectrum.values:
        at = rates.sel(spectrum=name)
        row = {
            "eigenvalues": str(name),
            "effective_dimension": float(at.effective_dimension[-1]),
        }
        for algorithm in rates.algorithm.values:
            constant = at.constant.sel(algorithm=algorithm)
            row |= {
                f"{algorithm}_exponent": float(at.exponent.sel(algorithm=algorithm)),
                f"{algorithm}_printed_exponent": float(
                    at.printed_exponent.sel(algorithm=algorithm)
                ),
                f"{algorithm}_smallest_constant": float(constant.min()),
                f"{algorithm}_largest_constant": float(constant.max()),
            }
        row["printed_ratio_over_rates"] = float(at.printed_ratio_constant[-1])
        rows.append(row)
    return pd.DataFrame(rows)
