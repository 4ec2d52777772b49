"""Appendix C's decomposition of Noisy-FTRL into linear systems: identities and exact covariances.

For Gaussian features the covariances of all orders are diagonal in H's eigenbasis and follow from
each other by 𝔼[(H - xxᵀ)S(H - xxᵀ)] = HSH + tr(SH)H, so that the printed bounds meet exact values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Quantity, below, every, identity, per, stage, stated
from reproduction.papers.choquettechoo2024 import regression

if TYPE_CHECKING:
    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

PLACE = "Section C.2, Properties C.7, Propositions C.10 to C.20, Theorem F.3"
KURTOSIS = 3.0
SHARES = "step sizes of 0.01 to 0.9 over R^2, label noise 0.3"


class Parameters(regression.Covariance):
    """One covariance and step sizes at which all orders are followed."""

    step_shares: q.Some[q.Probability] = Field(description="Step size times R^2, below 1.")
    orders: q.Plural[q.Count] = Field(description="Highest order r.")
    label_noise_std: q.PositiveDeviation = Field(
        description="Standard deviation of the label noise."
    )
    sequence_steps: q.Plural[q.Steps] = Field(description="Steps of all sequences of features.")

    @property
    def derived_steps(self) -> float:
        """Memories of the recursions, in steps up to a factor."""
        return float(np.sum(1 / (np.array(self.step_shares) * self.eigenvalues.min())))


AXES = {
    "family": regression.FAMILY,
    "step_share": Axis("step size times R^2", "step_shares"),
    "order": Axis("order m", lambda parameters: np.arange(parameters.orders + 1)),
}


@dataclass(frozen=True)
class _Orders:
    """Variances of all orders by direction, and the bounds' common factors."""

    parameters: Parameters
    family: str
    step_share: float

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        return self.parameters.eigenvalues

    @cached_property
    def moment(self) -> float:
        return self.parameters.moment

    @cached_property
    def eta(self) -> float:
        return self.step_share / self.moment

    @cached_property
    def noise(self) -> StationaryNoise:
        return regression.family_noise(self.family, float(self.eta * self.eigenvalues.min()))

    @property
    def label_variance(self) -> float:
        return self.parameters.label_noise_std**2

    @property
    def noise_variance(self) -> float:
        return self.noise.squared_sensitivity / 2

    @cached_property
    def relative(self) -> np.ndarray:
        return self.noise.relative_variance(self.eta * self.eigenvalues)

    @cached_property
    def source(self) -> float:
        total = float(self.relative.sum())
        return self.label_variance + KURTOSIS * self.noise_variance * total / self.moment

    @cached_property
    def orders(self) -> list[np.ndarray]:
        """From the base recursion to the highest order."""
        base = self.noise_variance * self._impulses()
        base += self.eta * self.label_variance / (2 - self.eta * self.eigenvalues)
        found = [base]
        for _ in range(self.parameters.orders):
            found.append(self.respond(found[-1]))
        return found

    @cached_property
    def rest(self) -> list[np.ndarray]:
        """What all orders above each one leave."""
        return [self.summed(self.respond(order)) for order in self.orders]

    def driven(self, variances: np.ndarray) -> np.ndarray:
        """Variances of the input that the fluctuation of the features makes of these."""
        eigenvalues = self.eigenvalues
        return eigenvalues**2 * variances + eigenvalues * (eigenvalues @ variances)

    def respond(self, variances: np.ndarray) -> np.ndarray:
        """Variances of the next order."""
        damping = self.eigenvalues * (2 - self.eta * self.eigenvalues)
        return self.eta * self.driven(variances) / damping

    def summed(self, order: np.ndarray) -> np.ndarray:
        """Variances of this order and all that follow from it."""
        eigenvalues = self.eigenvalues
        gain = self.eta / (eigenvalues * (2 - self.eta * eigenvalues))
        transport = np.diag(gain * eigenvalues**2) + np.outer(gain * eigenvalues, eigenvalues)
        return np.linalg.solve(np.eye(len(order)) - transport, order)

    def _impulses(self) -> np.ndarray:
        """Variances of the base recursion for white noise of deviation 1."""
        from scipy.signal import lfilter

        damping = float(self.eta * self.eigenvalues.min())
        beta = regression.coefficients(self.family, int(25 / damping), damping)
        responses = [lfilter([self.eta], [1.0, self.eta * v - 1.0], beta) for v in self.eigenvalues]
        return np.array([np.sum(response**2) for response in responses])


@per(
    "family",
    "step_share",
    base=stated(
        "largest variance of the base recursion over the bound of Proposition C.10",
        where="Proposition C.10",
        statement="The covariance of the base recursion is at most the printed one.",
        check=every(below(1.0)),
        id="base-covariance-c10",
        ours=[SHARES],
        note="The ratio is 1/(2 - eta lambda); measured from impulse responses.",
    ),
    orders=stated(
        "largest variance of an order over the bound of Proposition C.11",
        where="Proposition C.11",
        statement="The covariance of order r is at most the printed one, which falls as (eta "
        "R^2)^r.",
        check=every(below(1.0)),
        id="higher-orders-c11",
        ours=[SHARES, "orders up to 12"],
        note="At most 18 % of the bound are reached; its powers of eta R^2 are what is tested.",
    ),
    drive="largest variance of the next order's input over the bound of Lemma C.12(a)",
    response="largest variance of the next order over the bound of Lemma C.12(b)",
    remainder="largest variance of the remainder over the bound in Proposition C.13's proof",
    orders_sum_error=stated(
        "relative distance of the orders' sum from the stationary variances",
        where="Theorem C.14",
        compares="The sum of all orders' covariances with the closed form of the stationary error.",
        check=every(below(1e-9)),
        id="orders-sum-to-the-stationary-error",
    ),
    remainder_share=Quantity("squared error of the remainder over that of the iterate", "order"),
    remainder_decline="largest squared error of the remainder over that of the order before",
)
def covariances(parameters: Parameters, family: str, step_share: float) -> dict:
    at = _Orders(parameters, family, step_share)
    eigenvalues, eta, power = at.eigenvalues, at.eta, at.eta * at.moment
    limits = eta * at.label_variance + eta * at.noise_variance * at.relative / eigenvalues
    total = float(at.relative.sum())
    bounded = eta * (at.label_variance * at.moment + KURTOSIS * at.noise_variance * total)
    base, *higher = at.orders
    order_bounds = [eta * power**r * at.source for r in range(1, len(at.orders))]
    rest_bounds = [eta / (1 - power) * power ** (m + 1) * at.source for m in range(len(at.rest))]
    whole = at.summed(base)
    exact = regression.stationary(
        eigenvalues, eta, at.noise, label_noise_std=parameters.label_noise_std
    ).variances
    shares = np.array([rest @ eigenvalues for rest in at.rest]) / (whole @ eigenvalues)
    return {
        "base": (base / limits).max(),
        "orders": max(order.max() / b for order, b in zip(higher, order_bounds, strict=True)),
        "drive": (at.driven(limits) / (bounded * eigenvalues)).max(),
        "response": at.respond(limits).max() / (eta * bounded),
        "remainder": max(rest.max() / b for rest, b in zip(at.rest, rest_bounds, strict=True)),
        "orders_sum_error": np.abs(whole / exact - 1).max(),
        "remainder_share": shares,
        "remainder_decline": (shares[1:] / shares[:-1]).max(),
    }


@identity(
    "step_share",
    id="sgd-covariance-f3",
    where="Theorem F.3",
    statement="The covariance of SGD with label noise alone is at most eta sigma^2 / (1 - eta R^2) "
    "times the identity.",
    ours=["step sizes of 0.01 to 0.9 over R^2"],
    note="At most half of the bound is reached: eta sigma^2 / (2 - eta R^2) is a bound as well, "
    "for 2 eta H - eta^2 E |x|^2 x x' is at least eta (2 - eta R^2) H.",
    check=every(below(1.0)),
)
def label_noise_ratio(parameters: Parameters, step_share: float) -> float:
    """Largest variance of SGD from label noise alone over the bound of Theorem F.3."""
    from privreg.theory.correlated_noise.linear_regression import stationary_error

    eta = step_share / parameters.moment
    exact = stationary_error(
        parameters.eigenvalues,
        step_size=eta,
        noise=regression.family_noise("independent", 1.0),
        gradient_noise_std=0.0,
        label_noise_std=1.0,
    ).variances
    return float(exact.max() * (1 - eta * parameters.moment) / eta)


@identity(
    id="orders-and-remainder-add-up",
    where="Section C.2.1, equation (36)",
    statement="Property C.7, every iterate is the sum of its first orders and a remainder.",
    ours=["200 steps in four dimensions, three orders after the first, drawn once"],
    check=below(1e-11),
)
def decomposition_error() -> float:
    """Relative distance of the parts' sum from the iterates.

    Equation (36) run beside the iterates, three orders and a remainder.
    """
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
        "largest mean of noise times remainder over its root mean square",
        where="Proposition C.20",
        statement="The remainder is uncorrelated with the noise of every step.",
        check=below(1e-14),
        id="remainder-uncorrelated-with-noise-c20",
        ours=["all 729 sequences of three features in two dimensions, 6 steps"],
    ),
    correlation_of_parts=stated(
        "largest mean of base times remainder over the product of their norms",
        where="Proposition C.19",
        statement="The base recursion is uncorrelated with the remainder.",
        check=below(1e-14),
        id="parts-uncorrelated-c19",
        ours=["all 729 sequences of three features in two dimensions, 6 steps"],
    ),
)
def correlations(parameters: Parameters) -> dict:
    """By summing over all sequences of three equally likely features.

    Base and remainder are linear in the noise and in the label noise, whose impulses are columns.
    """
    from privreg.noise.toeplitz import damped_square_root

    eta, d, steps = 0.2, 2, parameters.sequence_steps
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


def _fluctuation(mean: np.ndarray, outer: np.ndarray) -> np.ndarray:
    """Of a feature's matrix around H."""
    return mean - outer


def _base_matrix(mean: np.ndarray, outer: np.ndarray) -> np.ndarray:
    """What the base recursion of (36) contracts with: H, in place of the feature's own matrix."""
    return mean
