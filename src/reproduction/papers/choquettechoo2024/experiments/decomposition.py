"""Appendix C's decomposition of Noisy-FTRL into linear systems: identities and exact covariances.

For Gaussian features the covariances of all orders are diagonal in H's eigenbasis. Each follows
exactly from the one before, by 𝔼[(H - xxᵀ)S(H - xxᵀ)] = HSH + tr(SH)H.
"""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, below, every, identity, per, stage, stated
from reproduction.papers.choquettechoo2024 import regression

PLACE = "Section C.2, Properties C.7, Propositions C.10 to C.20"
KURTOSIS = 3.0
SHARES = "step sizes from 0.01 / R^2 to 0.9 / R^2, label noise 0.3"
SEQUENCES = (
    "all 729 sequences of three features in two dimensions, 6 steps, nu-DP-FTRL, eta = 0.2, nu = "
    "0.1; the remainder is delta^(0)"
)


class Parameters(regression.Covariance):
    """One covariance, and step sizes at which all orders are computed."""

    step_shares: q.Some[q.Probability] = Field(description="Step size times R^2, below 1.")
    orders: q.Plural[q.Count] = Field(description="Highest order r.")
    label_noise_std: q.PositiveDeviation = Field(description="Deviation of the label noise.")
    sequence_steps: q.Plural[q.Steps] = Field(description="Steps of all sequences of features.")


AXES = {"family": regression.FAMILY, "step_share": Axis("step size times R^2", "step_shares")}


@per(
    "family",
    "step_share",
    base=stated(
        "largest variance of the base recursion divided by the bound of Proposition C.10",
        where="Proposition C.10",
        statement="The covariance of the base recursion is at most eta sigma_sgd^2 I + eta sigma^2 "
        "H^(-1/2) P_beta H^(-1/2), with sigma^2 = G^2 gamma_infinity^2 / (2 rho).",
        check=every(below(1.0)),
        id="base-covariance-c10",
        ours=[SHARES],
        note="The ratio is 1/(2 - eta lambda); impulse responses show this for the noise.",
    ),
    drive="largest variance of the next order's input divided by the bound of Lemma C.12(a)",
    orders_sum_error=stated(
        "relative distance of the orders' sum from the stationary variances",
        where="Theorem C.14",
        compares="The sum of all orders' covariances equals the stationary error's closed form.",
        check=every(below(1e-9)),
        id="orders-sum-to-the-stationary-error",
    ),
    remainder_decline="largest squared error of the remainder divided by that of the order before",
)
def covariances(parameters: Parameters, family: str, step_share: float) -> dict:
    """Exact variances of all orders, by eigendirection."""
    eigenvalues, moment = parameters.eigenvalues, parameters.moment
    eta, label = step_share / moment, parameters.label_noise_std**2
    noise = regression.family_noise(family, float(eta * eigenvalues.min()))
    variance, relative = noise.squared_sensitivity / 2, noise.relative_variance(eta * eigenvalues)
    total = float(relative.sum())
    limits = eta * label + eta * variance * relative / eigenvalues
    bounded = eta * (label * moment + KURTOSIS * variance * total)

    def driven(variances: np.ndarray) -> np.ndarray:
        """Variances of the next order's input, which the fluctuation of the features causes."""
        return eigenvalues**2 * variances + eigenvalues * (eigenvalues @ variances)

    def respond(variances: np.ndarray) -> np.ndarray:
        """Variances of the next order itself."""
        return eta * driven(variances) / (eigenvalues * (2 - eta * eigenvalues))

    def summed(order: np.ndarray) -> np.ndarray:
        """Variances summed over this order and all later ones."""
        gain = eta / (eigenvalues * (2 - eta * eigenvalues))
        transport = np.diag(gain * eigenvalues**2) + np.outer(gain * eigenvalues, eigenvalues)
        return np.linalg.solve(np.eye(len(order)) - transport, order)

    base = variance * _impulses(family, eigenvalues, eta)
    base += eta * label / (2 - eta * eigenvalues)
    orders = [base]
    for _ in range(parameters.orders):
        orders.append(respond(orders[-1]))
    # The remainder after each order: the sum of all later ones.
    rest = [summed(respond(order)) for order in orders]
    whole = summed(base)
    exact = regression.stationary(
        eigenvalues, eta, noise, label_noise_std=parameters.label_noise_std
    ).variances
    shares = np.array([each @ eigenvalues for each in rest]) / (whole @ eigenvalues)
    return {
        "base": (base / limits).max(),
        "drive": (driven(limits) / (bounded * eigenvalues)).max(),
        "orders_sum_error": np.abs(whole / exact - 1).max(),
        "remainder_decline": (shares[1:] / shares[:-1]).max(),
    }


@identity(
    id="orders-and-remainder-add-up",
    where="Section C.2.1, equation (36)",
    statement="By Property C.7 theta_t - theta* is the sum of its first orders and a remainder.",
    ours=["200 steps in four dimensions, three orders after the first, drawn once"],
    check=below(1e-11),
)
def decomposition_error() -> float:
    """Relative distance of the sum of all parts from the iterates."""
    rng = np.random.Generator(np.random.SFC64(0))
    steps, d, m, eta = 200, 4, 3, 0.1
    root = rng.standard_normal((d, d)) / 2
    mean = root @ root.T
    features = rng.standard_normal((steps, d)) @ root.T
    label = 0.5 * rng.standard_normal(steps)
    beta = regression.coefficients("damped_square_root", steps, 0.05)
    white = rng.standard_normal((steps, d))
    iterate = rng.standard_normal(d)
    orders, remainder = [iterate, *np.zeros((m, d))], np.zeros(d)
    worst = 0.0
    for t, x in enumerate(features):
        noise = beta[: t + 1] @ white[t::-1]
        outer = np.outer(x, x)
        drive = eta * label[t] * x - eta * noise
        before = orders
        orders = [before[0] - eta * _base_matrix(mean, outer) @ before[0] + drive]
        orders += [
            now - eta * mean @ now + eta * (mean - outer) @ below for below, now in pairwise(before)
        ]
        remainder = remainder - eta * outer @ remainder + eta * (mean - outer) @ before[-1]
        iterate = iterate - eta * outer @ iterate + drive
        gap = np.linalg.norm(sum(orders) + remainder - iterate)
        worst = max(worst, float(gap / np.linalg.norm(iterate)))
    return worst


@per(
    correlation_with_noise=stated(
        "largest mean of noise times remainder, divided by its root mean square",
        where="Proposition C.20",
        statement="The remainder after the base recursion is uncorrelated with the noise of every "
        "step.",
        check=below(1e-14),
        id="remainder-uncorrelated-with-noise-c20",
        ours=[SEQUENCES],
    ),
    correlation_of_parts=stated(
        "largest mean of base times remainder, divided by the product of their norms",
        where="Proposition C.19",
        statement="The base recursion is uncorrelated with the remainder after it.",
        check=below(1e-14),
        id="parts-uncorrelated-c19",
        ours=[SEQUENCES],
    ),
)
def correlations(parameters: Parameters) -> dict:
    """Correlations, summed over all sequences of three equally likely features, by impulse."""
    eta, d, steps = 0.2, 2, parameters.sequence_steps
    points = np.array([[1.2, 0.3], [-0.4, 0.9], [0.5, -0.7]])
    outers = points[:, :, None] * points[:, None, :]
    mean = outers.mean(axis=0)
    beta = regression.coefficients("damped_square_root", steps, 0.1)
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
            fluctuation = _fluctuation(mean, outers[which])
            remainder = remainder - eta * outers[which] @ remainder + eta * fluctuation @ base
            base = base - eta * _base_matrix(mean, outers[which]) @ base + drive
        remainders += remainder
        product_mean += base @ remainder.T
        sizes += [np.sum(remainder[:, : steps * d] ** 2), np.sum(base**2), np.sum(remainder**2)]
    with_noise = np.abs(remainders[:, : steps * d]).max() / np.sqrt(len(sequences) * sizes[0])
    return {
        "correlation_with_noise": with_noise,
        "correlation_of_parts": np.abs(product_mean).max() / np.sqrt(sizes[1] * sizes[2]),
    }


theory = stage(AXES, blocks_of=globals())


def _impulses(family: str, eigenvalues: np.ndarray, eta: float) -> np.ndarray:
    """Variances of the base recursion for white noise of variance 1."""
    from scipy.signal import lfilter

    damping = float(eta * eigenvalues.min())
    beta = regression.coefficients(family, int(25 / damping), damping)
    responses = [lfilter([eta], [1.0, eta * v - 1.0], beta) for v in eigenvalues]
    return np.array([np.sum(response**2) for response in responses])


def _fluctuation(mean: np.ndarray, outer: np.ndarray) -> np.ndarray:
    """Deviation of a feature's matrix from H."""
    return mean - outer


def _base_matrix(mean: np.ndarray, outer: np.ndarray) -> np.ndarray:
    """Matrix of the base recursion of (36): H, in place of the feature's own matrix."""
    return mean
