"""Helper inequalities of Appendix F on grids and random instances; Definition D.3's decay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Count, LogAxis, Some

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Definition D.3, Remark F.7, Lemmas F.19 to F.22"
# Remark F.7's constants for Gaussian vectors.
TAIL_CONSTANT, ROOT_CONSTANT, TRACE_CONSTANT = 0.1457, 8.0, 16.0


class Parameters(Strict):
    """Grids of the inequalities."""

    degrees: Some[Count] = Field(description="Sizes of the identity in Remark F.7.")
    failures: LogAxis = Field(description="Probabilities rho of Remark F.7, below 1/3.")
    instances: Count = Field(description="Random instances of Lemmas F.19 and F.21.")
    dampings: LogAxis = Field(description="nu of Definition D.3, below 1.")

    @property
    def derived_steps(self) -> float:
        """Coefficients of all dampings, up to a factor."""
        return float(np.sum(1 / self.dampings.values()))


def theory(parameters: Parameters) -> xr.Dataset:
    """Largest ratio of each left side to its right side."""
    import xarray as xr

    rng = np.random.Generator(np.random.SFC64(0))
    tails, root, trace = _gaussian_tails(parameters)
    bounded, equal = _tail_sums()
    decays = [_half_exponential_decay(nu) for nu in parameters.dampings.values()]
    tuned = _tuned_rates(parameters.instances, rng)
    values = {
        "tail_constant": (tails, "least -log P / min(t^2 / |A|_F^2, t / |A|) over sizes and t"),
        "root_quantile_ratio": (root, "largest quantile over 8 (tr A log^(1/2) + |A| log)"),
        "trace_quantile_ratio": (trace, "largest quantile over 16 tr A log(1/rho)"),
        "trace_ratio": (
            _trace_of_products(parameters.instances, rng),
            "largest trace of a product of contractions over the dimension",
        ),
        "tail_sum_ratio": (bounded, "largest f of Lemma F.20 over (1 + log(1/rho)) / a"),
        "tail_sum_equality": (equal, "largest f of Lemma F.20 over its printed value"),
        "tuned_rate_ratio": (
            tuned,
            "largest least value of Lemma F.21's function over its bound, rates up to 1/mu",
        ),
        "single_step_ratio": (
            _tuned_rates(parameters.instances, np.random.Generator(np.random.SFC64(1)), steps=1.0),
            "the same for T = 1, rates up to 100/mu",
        ),
        "logarithm_ratio": (_logarithms(), "largest x log^2(1/x) over c of Lemma F.22"),
    }
    return xr.Dataset(
        {name: variable((), *found) for name, found in values.items()}
        | {
            "half_exponential_constant": variable(
                "damping", [d[0] for d in decays], "least constant C of equation (70)"
            ),
            "coefficient_sum": variable(
                "damping", [d[1] for d in decays], "squared sum of the absolute coefficients"
            ),
            "sensitivity_ratio": variable(
                "damping", [d[2] for d in decays], "squared limiting sensitivity over 5 log(1/nu)"
            ),
        },
        coords={"damping": variable("damping", parameters.dampings.values(), "damping nu")},
    )


def _gaussian_tails(parameters: Parameters) -> tuple[float, float, float]:
    """Quadratic forms of the identity, whose law is known."""
    from scipy.stats import chi2

    ratios = np.geomspace(1e-2, 30, 400)
    constants, root, trace = [], [], []
    failures = parameters.failures.values()
    logarithm = np.log(1 / failures)
    for d in parameters.degrees:
        excess = d * ratios
        constants.append((-chi2.logsf(d + excess, d) / np.minimum(excess**2 / d, excess)).min())
        quantile = chi2.isf(failures, d)
        root.append((quantile / (ROOT_CONSTANT * (d * np.sqrt(logarithm) + logarithm))).max())
        trace.append((quantile / (TRACE_CONSTANT * d * logarithm)).max())
    return float(min(constants)), float(max(root)), float(max(trace))


def _trace_of_products(instances: int, rng: np.random.Generator) -> float:
    """Random factors between 0 and the identity, two to five of them, some projections."""
    largest = 0.0
    for _ in range(instances):
        d = int(rng.integers(1, 6))
        product = np.eye(d)
        for _ in range(int(rng.integers(2, 6))):
            basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
            values = rng.uniform(size=d) ** rng.choice([0.01, 1.0])
            factor = basis @ np.diag(values) @ basis.T
            product = product @ factor
        largest = max(largest, abs(float(np.trace(product))) / d)
    return largest


def _tail_sums() -> tuple[float, float]:
    """Lemma F.20: its f at the printed place, over the bound and over the printed value."""
    bound_ratio, printed_ratio = 0.0, 0.0
    for last in range(1, 60):
        for rate in np.geomspace(0.01, 3, 25):
            for rho in np.geomspace(1e-6, 0.9, 25):
                best = min(last - 1, np.log(1 / rho) / rate)
                inside = best < last - 1
                value = best + (np.exp(-rate * best) / (rho * rate) if inside else 0.0)
                bound = (1 + np.log(1 / rho)) / rate
                bound_ratio = max(bound_ratio, value / bound)
                printed = min(last - 1, bound)
                if printed:
                    printed_ratio = max(printed_ratio, value / printed)
    return float(bound_ratio), float(printed_ratio)


def _tuned_rates(instances: int, rng: np.random.Generator, *, steps: float | None = None) -> float:
    """Lemma F.21: the least value on a fine grid over the bound; for one T, for all rates."""
    largest = 0.0
    for _ in range(instances):
        first, second, third = np.exp(rng.uniform(-8, 8, 3))
        mu, drawn = np.exp(rng.uniform(-6, 0)), float(np.floor(np.exp(rng.uniform(0, 12))))
        t = steps or drawn
        # Up to 1/mu the logarithm is that of a number above 1.
        highest = 1 / mu if steps is None else 100 / mu
        most = np.exp(rng.uniform(np.log(1 / (mu * t)), np.log(highest)))
        eta = most * np.geomspace(1e-9, 1, 4000)
        values = first * np.exp(-mu * eta * t) + second * eta
        values += third * eta**2 * np.log(1 / (eta * mu)) ** 2
        linear = max(1.0, np.log(first * mu * t / second))
        square = max(1.0, np.log(first * (mu * t) ** 2 / third))
        bound = first * np.exp(-mu * most * t) + 3 * second / (mu * t) * linear
        bound += 3 * third / (mu * t) ** 2 * square**2 * np.log(t) ** 2
        largest = max(largest, float(values.min() / bound))
    return largest


def _logarithms() -> float:
    constants = np.geomspace(1e-12, 0.2499, 200)
    # The function increases up to exp(-2), above every x that is allowed.
    x = constants / (9 * np.log(9 / constants) ** 2)
    return float((x * np.log(1 / x) ** 2 / constants).max())


def _half_exponential_decay(damping: float) -> tuple[float, float, float]:
    """C of equation (70), the sum of absolute values squared, the sensitivity over its bound."""
    from privreg.noise.sensitivity import damped_square_root_limit
    from privreg.noise.toeplitz import damped_square_root

    beta = np.abs(damped_square_root(int(40 / damping) + 10, damping=damping))
    decay = (1 - damping) ** (-0.5 * np.arange(beta.size))
    limit = damped_square_root_limit(damping) ** 2 / (5 * np.log(1 / damping))
    return float(beta @ decay), float(beta.sum() ** 2), float(limit)
