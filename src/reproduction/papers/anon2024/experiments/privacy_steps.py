"""Definitions and steps behind Theorem 4.1: divergences, conversions, composition, histogram."""

from __future__ import annotations

from itertools import product

import numpy as np
from pydantic import Field

from privreg.algorithms.shaped_dp_ftrl import private_share
from privreg.privacy.budget import gaussian_epsilon
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, above, below, every, identity, per, stage, stated

PLACE = "Definition 2.5, Lemmas 2.6, B.1 and B.3, Theorem 4.1, Algorithm 2"
HISTOGRAM_EPSILON, HISTOGRAM_DELTA = 1.0, 1e-6


class Parameters(Strict):
    """Orders, targets and sizes."""

    orders: q.Some[q.RenyiOrder] = Field(description="alpha, above 1.")
    epsilons: q.Some[q.Epsilon] = Field(description="Promised epsilon.")
    deltas: q.Some[q.Delta] = Field(description="delta.")
    sample_sizes: q.Some[q.SampleSize] = Field(description="Calls N of the residual estimate.")
    sensitivities: q.Some[q.Positive] = Field(description="Delta, with sigma = 10 Delta.")
    groups: q.Count = Field(description="Groups of the histogram.")

    @property
    def targets(self) -> list[tuple[float, float]]:
        """All pairs of epsilon and delta."""
        return list(product(self.epsilons, self.deltas))


AXES = {
    "order": Axis("order alpha", "orders"),
    "sensitivity": Axis("sensitivity Delta", "sensitivities"),
    "reading": Axis("reading of lines 9 to 12", ("printed", "corrected", "no threshold")),
}


@per(
    "order",
    divergence_error=stated(
        "relative distance of the shaped Gaussian mechanism's divergence from Lemma 2.6",
        where="Lemma 2.6",
        statement="The Gaussian mechanism with covariance sigma^2 Sigma is (alpha, alpha Delta^2 / "
        "(2 sigma^2))-RDP, where Sigma is positive definite and Delta is in the norm of Sigma^-1.",
        check=every(below(1e-9)),
        wrong={"With sigma in place of sigma^2.": "divergence_error_of_sigma"},
        id="shaped-gaussian-mechanism-2-6",
        kind="theorem",
        ours=[
            "quadrature in two dimensions at orders 1.5 to 16, sigma = 1.5",
            "the divergence with the factor 1 / (alpha - 1) that Definition 2.5 leaves out",
        ],
    ),
    divergence_error_of_sigma="the same distance with sigma in place of sigma^2",
    printed_integrand_error=stated(
        "relative distance of the proof's first line from Lemma 2.6",
        where="Section B.5.1, Lemma 2.6",
        statement="The divergence is that of the first line of the proof, whose integrand has the "
        "exponent -(alpha z' Sigma^-1 z + (alpha - 1) (z - mu)' Sigma^-1 (z - mu)) / 2.",
        check=every(below(1e-9)),
        corrected={
            "holds_with": "1 - alpha in place of alpha - 1",
            "evidence": {"variable": "divergence_error"},
        },
        id="integrand-of-lemma-2-6",
        ours=["quadrature in two dimensions at orders 1.5 to 16, with sigma^2 Sigma for Sigma"],
        finding="signs-in-the-proof-of-lemma-2-6",
    ),
    printed_divergence_ratio=stated(
        "divergence of Definition 2.5 divided by that stated for the Gaussian mechanism",
        where="Definition 2.5, Section 2",
        statement="With the divergence of Definition 2.5 the Gaussian mechanism is "
        "(alpha, alpha Delta^2 / (2 sigma^2))-RDP.",
        check=every(below(1.0000001)),
        corrected={
            "holds_with": "the factor 1 / (alpha - 1) before the logarithm",
            "evidence": {"variable": "divergence_error"},
            "check": every(below(1e-9)),
        },
        id="gaussian-mechanism-in-definition-2-5",
        kind="prose",
        ours=["orders 1.5 to 16, the expectation under M(S')"],
        finding="renyi-factor",
        note="The ratio is alpha - 1; with the expectation under M(S) it is alpha + 1.",
    ),
)
def divergences(order: float) -> dict[str, float]:
    found, of_lemma = _divergence(order), order * _SQUARED_SHIFT / (2 * _NOISE_STD**2)
    return {
        "divergence_error": abs(found / of_lemma - 1),
        "divergence_error_of_sigma": abs(found / (_NOISE_STD * of_lemma) - 1),
        "printed_integrand_error": abs(_divergence(order, sign=-1) / of_lemma - 1),
        "printed_divergence_ratio": (order - 1) * found / of_lemma,
    }


@per(
    "sensitivity",
    gaussian_epsilon_ratio=stated(
        "exact epsilon divided by (1.25 Delta log(2/delta))^(1/2) / sigma",
        where="Section 2",
        statement="Isotropic Gaussian noise of standard deviation sigma guarantees epsilon = "
        "(1.25 Delta log(2/delta))^(1/2) / sigma.",
        check=every(below(1.0)),
        corrected={
            "holds_with": "Delta (2 log(1.25/delta))^(1/2) / sigma, for epsilon up to 1",
            "evidence": {"variable": "usual_epsilon_ratio"},
        },
        id="gaussian-mechanism-epsilon",
        kind="prose",
        ours=["delta = 1e-5, sigma = 10 Delta, Delta = 0.01 to 10: epsilon is exactly 0.34"],
        finding="gaussian-mechanism-formula",
    ),
    usual_epsilon_ratio="exact epsilon divided by Delta (2 log(1.25/delta))^(1/2) / sigma",
)
def gaussian_epsilon_ratios(sensitivity: float) -> dict[str, float]:
    delta, noise_std = 1e-5, 10 * sensitivity
    printed = np.sqrt(1.25 * sensitivity * np.log(2 / delta)) / noise_std
    usual = np.sqrt(2 * np.log(1.25 / delta)) * sensitivity / noise_std
    exact = gaussian_epsilon(0.5 / 100, delta=delta)
    return {"gaussian_epsilon_ratio": exact / printed, "usual_epsilon_ratio": exact / usual}


@per(
    conversion_ratio=stated(
        "least epsilon by Lemma B.1 divided by the exact one",
        where="Lemma B.1",
        statement="(alpha, rho)-RDP implies (rho + log(1/delta)/(alpha - 1), delta)-DP.",
        check=above(1.0),
        id="conversion-b1",
        kind="theorem",
        ours=[
            "the exact Gaussian mechanism, best alpha, epsilon = 0.1 to 8, delta = 1e-8 to 1e-3",
            "the divergence with the factor 1 / (alpha - 1) that Definition 2.5 leaves out",
        ],
    ),
    best_order_error=stated(
        "distance of the least conversion from rho + 2 (rho log)^(1/2)",
        where="Section B.1, Theorem 4.1",
        statement="By Lemma B.1 (alpha, alpha rho)-RDP for all alpha > 1 gives the least epsilon "
        "rho + 2 (rho log(1/delta))^(1/2); with the printed rho this is the promised epsilon.",
        check=below(1e-6),
        id="best-order-of-the-conversion",
        ours=["epsilon = 0.1 to 8, delta = 1e-8 to 1e-3"],
    ),
    multiplier_ratio=stated(
        "largest k / rho divided by 4 k (log(1/delta) + epsilon) / epsilon^2",
        where="Section B.1, Theorem 4.1",
        statement="For rho = ((log(1/delta) + epsilon)^(1/2) - log(1/delta)^(1/2))^2, k / rho is "
        "at most 4 k (log(1/delta) + epsilon) / epsilon^2.",
        check=below(1.0),
        id="noise-is-large-enough-for-rho",
        ours=["epsilon = 0.1 to 8, delta = 1e-8 to 1e-3"],
    ),
)
def conversions(parameters: Parameters) -> dict[str, float]:
    ratios, errors, multipliers = [], [], []
    for epsilon, delta in parameters.targets:
        log = np.log(1 / delta)
        rho = float((np.sqrt(log + epsilon) - np.sqrt(log)) ** 2)
        least = _least_conversion(rho, delta)
        closed = rho + 2 * np.sqrt(rho * log)
        ratios.append(least / gaussian_epsilon(rho, delta=delta))
        errors += [abs(least / closed - 1), abs(least / epsilon - 1)]
        multipliers.append(epsilon**2 / (4 * rho * (log + epsilon)))
    return {
        "conversion_ratio": min(ratios),
        "best_order_error": max(errors),
        "multiplier_ratio": max(multipliers),
    }


@identity(
    id="residual-estimates-compose",
    where="Section B.1, Theorem 4.1",
    statement="For epsilon up to 8 and delta up to 1e-3, N residual estimates at the printed "
    "shares of the budget are (epsilon, delta)-DP together.",
    ours=["advanced composition with half of delta", "N = 10 to 1000000, delta = 1e-8 to 1e-3"],
    note="The section states this for every epsilon and delta. Above 16 log(2/delta) the mean "
    "privacy loss of many randomised responses with these shares exceeds epsilon.",
    check=below(1.0),
)
def composed_epsilon_ratio(parameters: Parameters) -> float:
    """Largest epsilon of N residual estimates by advanced composition, divided by the promise."""
    ratios = []
    for (epsilon, delta), calls in product(parameters.targets, parameters.sample_sizes):
        share, _ = private_share(epsilon=epsilon, delta=delta, calls=calls)
        total = share * np.sqrt(2 * calls * np.log(2 / delta)) + calls * share * np.expm1(share)
        ratios.append(total / epsilon)
    return max(ratios)


@identity(
    id="residual-estimates-at-large-budgets",
    where="Section B.1, Theorem 4.1, Corollary 4.4",
    statement="If each of N mechanisms is private at the printed share of the budget, all together "
    "are (epsilon, delta)-DP. This holds for every epsilon, such as N^(1/2).",
    ours=[
        "epsilon = N^(1/2) with N = 1e4, 1e6 and 1e8, delta = 1e-5",
        "the mean privacy loss of N randomised responses with that share each",
    ],
    check=below(1.0),
    finding="shares-compose-for-small-budgets",
    note="If the mean privacy loss of many calls is above epsilon, so is the loss itself with "
    "probability near one half or more. It is open whether estimates lose as much.",
)
def mean_loss_ratio() -> float:
    """Largest mean privacy loss / epsilon of N randomised responses at the printed shares."""
    sizes = np.array([1e4, 1e6, 1e8])
    epsilon = np.sqrt(sizes)
    share = epsilon / np.sqrt(8 * sizes * np.log(2 / 1e-5))
    return float((sizes * share * np.tanh(share / 2) / epsilon).max())


@identity(
    id="estimating-rows-of-theorem-4-2",
    where="Theorem 4.2, Lemma B.3",
    kind="theorem",
    statement="With Theorem 4.2's m, Lemma B.3 holds in all steps with probability >= 1 - 1/N.",
    ours=["Option 2, beta_2 = N^2, one constant for both m, N = 10 to 1e6, delta = 1e-8 to 1e-3"],
    check=below(1.0),
    wrong={"Half of this m is enough.": below(0.5)},
)
def rows_ratio(parameters: Parameters) -> float:
    """Largest log(N^2/delta~) log N of Lemma B.3, divided by log(N/delta~)^2 of Theorem 4.2."""
    pairs = np.log(list(product(parameters.sample_sizes, np.divide(2, parameters.deltas))))
    size, share = pairs[:, 0], pairs.sum(axis=1)
    return float(((2 * size + share) * size / (size + share) ** 2).max())


@per(
    bins_within_a_quarter=stated(
        "largest number of bins that 3/4 to 5/4 of a value meet",
        where="Section B.5.3",
        statement="Group means within a quarter of the truth lie in two consecutive bins.",
        check=below(2.0),
        wrong={"Group means within half of the truth do so, too.": "bins_within_a_half"},
        id="group-means-in-two-bins",
        ours=["10000 values of the truth from 1 to 2"],
    ),
    bins_within_a_half="largest number of bins that 1/2 to 3/2 of a value meet",
)
def bins() -> dict[str, float]:
    truths = np.geomspace(1.0, 2.0, 10001)[:-1]
    quarter, half = (
        np.floor(np.log2(truths * (1 + distance))) - np.floor(np.log2(truths * (1 - distance)))
        for distance in (0.25, 0.5)
    )
    return {"bins_within_a_quarter": quarter.max() + 1, "bins_within_a_half": half.max() + 1}


@per(
    "reading",
    histogram_failure=stated(
        "delta of one histogram at its epsilon = 1",
        where="Lemma B.3, Algorithm 2",
        statement="Option 2 of Algorithm 2, with its lines 9 to 12 as printed, is private at its "
        "share of the budget.",
        select={"reading": "printed"},
        check=below(1e-6),
        corrected={
            "holds_with": "noise on every non-empty share, and a threshold for noisy shares",
            "evidence": {"select": {"reading": "corrected"}},
            "wrong": {"Without the threshold.": {"select": {"reading": "no threshold"}}},
        },
        id="histogram-is-private-b3",
        kind="theorem",
        ours=["epsilon = 1, delta = 1e-6", "50 groups in two bins; one joins the other or a third"],
        finding="histogram-lines",
    ),
)
def histogram_failure(parameters: Parameters, reading: str) -> float:
    """Exact delta for one group more in the fuller of two bins, or one group in an empty bin."""
    groups = parameters.groups
    if reading == "no threshold":
        # All groups are alone in their bins, and the new bin is chosen as often as another.
        return 1 / groups
    threshold = 2 * np.log(1 / HISTOGRAM_DELTA) / HISTOGRAM_EPSILON + 1
    if reading == "corrected":
        passes = 0.5 * float(np.exp((1 - threshold) * HISTOGRAM_EPSILON / 2))
        return max(
            passes,
            *(
                _failure(_chance(k, groups - k), _chance(k + 1, groups - k - 1))
                for k in range(groups // 2, groups - 1)
            ),
        )
    last = int(np.ceil(threshold)) - 1
    # Above it the fuller bin is set to 0 and chosen only if the other's noisy share is negative.
    dropped = 0.5 * float(np.exp(-(groups - last - 1) * HISTOGRAM_EPSILON / 2))
    return _failure(_chance(last, groups - last), dropped)


theory = stage(AXES, blocks_of=globals())


def _least_conversion(rho: float, delta: float) -> float:
    """Lemma B.1's epsilon at the best order, searched for around the closed form."""
    log = np.log(1 / delta)
    orders = 1 + np.sqrt(log / rho) * np.geomspace(0.01, 100, 20001)
    return float((rho * orders + log / (orders - 1)).min())


_SHAPE = np.array([[2.0, 0.6], [0.6, 0.5]])
_SHIFT = np.array([0.4, -0.3])
_SQUARED_SHIFT = float(_SHIFT @ np.linalg.solve(_SHAPE, _SHIFT))
_NOISE_STD = 1.5


def _divergence(order: float, sign: int = 1) -> float:
    """Divergence of N(0, σ²Σ) from N(shift, σ²Σ), by quadrature in two dimensions.

    The proof of Lemma 2.6 prints the second power with the sign -1.
    """
    covariance = _NOISE_STD**2 * _SHAPE
    inverse = np.linalg.inv(covariance)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    reach = 15.0
    grid = np.stack(np.meshgrid(reach * nodes, reach * nodes, indexing="ij"), axis=-1)
    mass = reach**2 * np.outer(weights, weights)
    # The integrand is a normal density around (1 - alpha) times the shift, scaled.
    centred = grid + (1 - order) * _SHIFT
    square, shifted = (
        -0.5 * np.einsum("...i,ij,...j", points, inverse, points)
        for points in (centred, centred - _SHIFT)
    )
    density = np.exp(order * square + sign * (1 - order) * shifted)
    density = density / (2 * np.pi * np.sqrt(np.linalg.det(covariance)))
    return float(np.log(np.sum(mass * density)) / (order - 1))


def _chance(first: int, second: int) -> float:
    """Chance that the first count is the larger after Laplace noise of scale 2/epsilon on both."""
    gap = (first - second) * HISTOGRAM_EPSILON / 2
    tail = 0.5 * np.exp(-abs(gap)) * (1 + abs(gap) / 2)
    return float(1 - tail if gap > 0 else tail)


def _failure(one: float, other: float) -> float:
    """Least delta for an event of these chances and its complement, both ways."""
    pairs = ((one, other), (other, one), (1 - one, 1 - other), (1 - other, 1 - one))
    return float(max(0.0, *(a - np.exp(HISTOGRAM_EPSILON) * b for a, b in pairs)))
