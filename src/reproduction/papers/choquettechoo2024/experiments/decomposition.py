"""Appendix C's decomposition of Noisy-FTRL into linear systems: identities and exact covariances.

For Gaussian features the covariances of all orders are diagonal in H's eigenbasis and follow from
each other by 𝔼[(H - xxᵀ)S(H - xxᵀ)] = HSH + tr(SH)H, so that the printed bounds meet exact values.
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    Count,
    Dimension,
    PositiveDeviation,
    Power,
    Probability,
    Some,
    Steps,
)
from reproduction.papers.choquettechoo2024.regression import power_law

if TYPE_CHECKING:
    import xarray as xr

    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

PLACE = "Section C.2, Properties C.7, Propositions C.10 to C.20, Theorem F.3"
FAMILIES = ("independent", "damped_square_root", "damped_anti_pgd")
KURTOSIS = 3.0


class Parameters(Strict):
    """One covariance and step sizes at which all orders are followed."""

    dimension: Dimension = Field(description="d.")
    decay: Power = Field(description="a of the eigenvalues k^-a.")
    step_shares: Some[Probability] = Field(description="Step size times R^2, below 1.")
    orders: Annotated[Count, Field(ge=2)] = Field(description="Highest order r.")
    label_noise_std: PositiveDeviation = Field(description="Standard deviation of the label noise.")
    sequence_steps: Annotated[Steps, Field(ge=2)] = Field(
        description="Steps of all sequences of features."
    )

    @property
    def derived_steps(self) -> float:
        """Memories of the recursions, in steps up to a factor."""
        rates = np.array(self.step_shares) * power_law(self.dimension, self.decay).min()
        return float(np.sum(1 / rates))


def theory(parameters: Parameters) -> xr.Dataset:
    """Largest ratio of each covariance to its bound, largest error of each identity."""
    import xarray as xr

    from privreg.theory.correlated_noise.bounds import fourth_moment_bound

    eigenvalues = power_law(parameters.dimension, parameters.decay)
    moment = fourth_moment_bound(eigenvalues)
    shape = (len(FAMILIES), len(parameters.step_shares))
    columns = ("base", "orders", "drive", "response", "remainder", "orders_sum_error")
    found = {name: np.zeros(shape) for name in columns}
    left = np.zeros((*shape, parameters.orders + 1))
    for (row, column), _ in np.ndenumerate(found["base"]):
        eta = parameters.step_shares[column] / moment
        values, left[row, column] = _covariances(
            eigenvalues, eta, moment, FAMILIES[row], parameters
        )
        for name, value in values.items():
            found[name][row, column] = value
    with_noise, with_base = _correlations(parameters.sequence_steps)
    dims = ("family", "step_share")
    long_names = {
        "base": "largest variance of the base recursion over the bound of Proposition C.10",
        "orders": "largest variance of an order over the bound of Proposition C.11",
        "drive": "largest variance of the next order's input over the bound of Lemma C.12(a)",
        "response": "largest variance of the next order over the bound of Lemma C.12(b)",
        "remainder": "largest variance of the remainder over the bound in Proposition C.13's proof",
        "orders_sum_error": "relative distance of the orders' sum from the stationary variances",
    }
    return xr.Dataset(
        {name: variable(dims, found[name], long_names[name]) for name in columns}
        | {
            "remainder_share": variable(
                (*dims, "order"), left, "squared error of the remainder over that of the iterate"
            ),
            "label_noise_ratio": variable(
                "step_share",
                [_label_noise_ratio(eigenvalues, s / moment) for s in parameters.step_shares],
                "largest variance of SGD from label noise alone over the bound of Theorem F.3",
            ),
            "decomposition_error": variable(
                (), _decomposition_error(), "relative distance of the parts' sum from the iterates"
            ),
            "correlation_with_noise": variable(
                (), with_noise, "largest mean of noise times remainder over its root mean square"
            ),
            "correlation_of_parts": variable(
                (),
                with_base,
                "largest mean of base times remainder over the product of their norms",
            ),
        },
        coords={
            "family": variable("family", list(FAMILIES), "how the noise is correlated"),
            "step_share": variable("step_share", parameters.step_shares, "step size times R^2"),
            "order": variable("order", np.arange(parameters.orders + 1), "order m"),
        },
    )


def _covariances(
    eigenvalues: np.ndarray, eta: float, moment: float, family: str, parameters: Parameters
) -> tuple[dict[str, float], np.ndarray]:
    from privreg.theory.correlated_noise.linear_regression import stationary_error

    damping = float(eta * eigenvalues.min())
    noise = _noise(family, damping)
    zeta2, sigma2 = parameters.label_noise_std**2, noise.squared_sensitivity / 2
    relative = noise.relative_variance(eta * eigenvalues)
    total = float(relative.sum())

    def driven(variances: np.ndarray) -> np.ndarray:
        """Variances of the input that the fluctuation of the features makes of these."""
        return eigenvalues**2 * variances + eigenvalues * (eigenvalues @ variances)

    def respond(variances: np.ndarray) -> np.ndarray:
        return eta * driven(variances) / (eigenvalues * (2 - eta * eigenvalues))

    base = sigma2 * _private_variances(eigenvalues, eta, family, damping)
    base += eta * zeta2 / (2 - eta * eigenvalues)
    limits = eta * zeta2 + eta * sigma2 * relative / eigenvalues
    source = zeta2 + KURTOSIS * sigma2 * total / moment
    order, orders, largest = base, [base], 0.0
    for r in range(1, parameters.orders + 1):
        order = respond(order)
        orders.append(order)
        largest = max(largest, float(order.max() / (eta * (eta * moment) ** r * source)))
    gain = eta / (eigenvalues * (2 - eta * eigenvalues))
    transport = np.diag(gain * eigenvalues**2) + np.outer(gain * eigenvalues, eigenvalues)
    whole = np.linalg.solve(np.eye(len(base)) - transport, base)
    # What all higher orders leave: (1 - transport)^-1 of the next one.
    rest = [np.linalg.solve(np.eye(len(base)) - transport, respond(one)) for one in orders]
    bounds = [
        eta / (1 - eta * moment) * (eta * moment) ** (m + 1) * source for m in range(len(rest))
    ]
    exact = stationary_error(
        eigenvalues,
        step_size=eta,
        noise=noise,
        gradient_noise_std=float(sigma2**0.5),
        label_noise_std=parameters.label_noise_std,
    ).variances
    bounded = eta * (zeta2 * moment + KURTOSIS * sigma2 * total)
    return {
        "base": float((base / limits).max()),
        "orders": largest,
        "drive": float((driven(limits) / (bounded * eigenvalues)).max()),
        "response": float(respond(limits).max() / (eta * bounded)),
        "remainder": max(float(r.max() / b) for r, b in zip(rest, bounds, strict=True)),
        "orders_sum_error": float(np.abs(whole / exact - 1).max()),
    }, np.array([r @ eigenvalues for r in rest]) / (whole @ eigenvalues)


def _noise(family: str, damping: float) -> StationaryNoise:
    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

    if family == "independent":
        return StationaryNoise.independent()
    return getattr(StationaryNoise, family)(damping)


def _private_variances(
    eigenvalues: np.ndarray, eta: float, family: str, damping: float
) -> np.ndarray:
    """Variances of the base recursion for white noise of deviation 1, by its impulse response."""
    from scipy.signal import lfilter

    from privreg.noise import toeplitz

    steps = int(25 / damping)
    beta = {
        "independent": lambda: toeplitz.identity(steps),
        "damped_square_root": lambda: toeplitz.damped_square_root(steps, damping=damping),
        "damped_anti_pgd": lambda: toeplitz.damped_anti_pgd(steps, damping=damping),
    }[family]()
    squares = [np.sum(lfilter([eta], [1.0, eta * v - 1.0], beta) ** 2) for v in eigenvalues]
    return np.array(squares)


def _label_noise_ratio(eigenvalues: np.ndarray, eta: float) -> float:
    from privreg.theory.correlated_noise.bounds import fourth_moment_bound
    from privreg.theory.correlated_noise.linear_regression import stationary_error

    exact = stationary_error(
        eigenvalues,
        step_size=eta,
        noise=_noise("independent", 1.0),
        gradient_noise_std=0.0,
        label_noise_std=1.0,
    ).variances
    return float(exact.max() * (1 - eta * fourth_moment_bound(eigenvalues)) / eta)


def _decomposition_error() -> float:
    """Equation (36) run beside the iterates, three orders and a remainder."""
    from privreg.noise.toeplitz import damped_square_root

    rng = np.random.Generator(np.random.SFC64(0))
    steps, d, m, eta = 200, 4, 3, 0.1
    root = rng.standard_normal((d, d)) / 2
    mean = root @ root.T
    features = rng.standard_normal((steps, d)) @ root.T
    label = 0.5 * rng.standard_normal(steps)
    beta, white = damped_square_root(steps, damping=0.05), rng.standard_normal((steps, d))
    iterate = rng.standard_normal(d)
    orders, remainder = [iterate, *np.zeros((m, d))], np.zeros(d)
    worst = 0.0
    for t, x in enumerate(features):
        noise = beta[: t + 1] @ white[t::-1]
        outer = np.outer(x, x)
        drive = eta * label[t] * x - eta * noise
        before = orders
        orders = [before[0] - eta * mean @ before[0] + drive]
        orders += [
            now - eta * mean @ now + eta * (mean - outer) @ below for below, now in pairwise(before)
        ]
        remainder = remainder - eta * outer @ remainder + eta * (mean - outer) @ before[-1]
        iterate = iterate - eta * outer @ iterate + drive
        gap = np.linalg.norm(sum(orders) + remainder - iterate)
        worst = max(worst, float(gap / np.linalg.norm(iterate)))
    return worst


def _correlations(steps: int) -> tuple[float, float]:
    """Propositions C.20 and C.19 by summing over all sequences of three equally likely features.

    Base and remainder are linear in the noise and in the label noise, whose impulses are columns.
    """
    from privreg.noise.toeplitz import damped_square_root

    eta, d = 0.2, 2
    points = np.array([[1.2, 0.3], [-0.4, 0.9], [0.5, -0.7]])
    outers = points[:, :, None] * points[:, None, :]
    mean = outers.mean(axis=0)
    beta = damped_square_root(steps, damping=0.1)
    columns = steps * (d + 1)
    remainders, product_mean, sizes = np.zeros((d, columns)), np.zeros((d, d)), np.zeros(3)
    sequences = list(product(range(len(points)), repeat=steps))
    for sequence in sequences:
        base, remainder = np.zeros((d, columns)), np.zeros((d, columns))
        for t, which in enumerate(sequence):
            drive = np.zeros((d, columns))
            for s in range(t + 1):
                drive[:, s * d : (s + 1) * d] = -eta * beta[t - s] * np.eye(d)
            drive[:, steps * d + t] = eta * points[which]
            fluctuation = mean - outers[which]
            remainder = remainder - eta * outers[which] @ remainder + eta * fluctuation @ base
            base = base - eta * mean @ base + drive
        remainders += remainder
        product_mean += base @ remainder.T
        sizes += [np.sum(remainder[:, : steps * d] ** 2), np.sum(base**2), np.sum(remainder**2)]
    with_noise = np.abs(remainders[:, : steps * d]).max() / np.sqrt(len(sequences) * sizes[0])
    return float(with_noise), float(np.abs(product_mean).max() / np.sqrt(sizes[1] * sizes[2]))
