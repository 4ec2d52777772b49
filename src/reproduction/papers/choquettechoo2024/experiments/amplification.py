"""Prefix errors against the budget: DP-SGD with and without Poisson sampling, and nu-DP-FTRL."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Quantity, close, every, identity, per, stage
from reproduction.papers.choquettechoo2024 import mechanisms

PLACE = "Section 4, Figure 4 and Appendix G"
ACCOUNTS = ("fixed order", "sampled, Rényi", "sampled, central limit")
ORDERS = np.arange(2, 257)


class Sampling(mechanisms.Participation):
    """A schedule; a sampled step takes each record with probability 1 / `separation`."""

    delta: q.Delta = Field(description="delta of all budgets.")


class Parameters(Strict):
    """Schedules of the paper's two data sets."""

    schedules: q.Some[Sampling] = Field(description="Schedules.")
    epsilons: q.Rising[q.Epsilon] = Field(description="Budgets epsilon.")
    dampings: q.ShareAxis = Field(description="nu that equation (3) is evaluated at.")


AXES = {
    "steps": Axis(
        "steps T", lambda parameters: [at.steps for at in parameters.schedules], along="schedule"
    ),
    "account": Axis("account of DP-SGD", ACCOUNTS),
    "epsilon": Axis("privacy budget epsilon", "epsilons"),
}


def sampled_divergences(share: float, std: float) -> np.ndarray:
    r"""Rényi divergences of one sampled step at integer orders (Mironov, Talwar and Zhang, 2019).

    .. math:: \frac1{\alpha-1} \ln \sum_{k=0}^\alpha \binom\alpha k (1-q)^{\alpha-k} q^k
        \exp\frac{k(k-1)}{2\sigma^2}
    """
    from scipy.special import gammaln, logsumexp

    order, k = ORDERS[:, None], np.arange(ORDERS[-1] + 1)
    # The binomial coefficient is 0 for k above the order.
    terms = gammaln(order + 1) - gammaln(k + 1) - gammaln(np.maximum(order - k + 1, 0))
    terms = terms + (order - k) * np.log1p(-share) + k * np.log(share) + k * (k - 1) / 2 / std**2
    return np.asarray(logsumexp(terms, axis=1) / (ORDERS - 1))


def sampled_std(epsilon: float, at: Sampling) -> float:
    """Noise multiplier of Poisson-sampled DP-SGD, with the conversion of Section A.2."""
    from scipy.optimize import brentq

    converted = np.log1p(-1 / ORDERS) - np.log(ORDERS * at.delta) / (ORDERS - 1)

    def excess(log: float) -> float:
        divergences = at.steps * sampled_divergences(1 / at.separation, float(np.exp(log)))
        return float(np.min(divergences + converted)) - epsilon

    return float(np.exp(brentq(excess, np.log(0.1), np.log(1e3))))


@per(
    "schedule",
    dp_sgd_error=Quantity("mean prefix error of DP-SGD over the clip norm", "account epsilon"),
    nu_dp_ftrl_error=Quantity("the same error of nu-DP-FTRL, by its account", "account epsilon"),
    ratio=Quantity("error of DP-SGD divided by that of nu-DP-FTRL", "account epsilon"),
)
def errors(parameters: Parameters) -> dict[str, np.ndarray]:
    """The central limit (Bu, Dong, Long and Su, 2020) uses a Gaussian's exact trade-off."""
    from privreg.privacy.budget import Budget, gaussian_rho

    dp_sgd, nu_dp_ftrl, epsilons = [], [], parameters.epsilons
    for at in parameters.schedules:
        fixed, correlated = (
            mechanisms.prefix_errors(name, at).errors.mean for name in ("dp_sgd", "nu_dp_ftrl")
        )
        budgets = [Budget.approximate(e, at.delta, neighbours="zero-out") for e in epsilons]
        rho = np.array([gaussian_rho(e, delta=at.delta) for e in epsilons])
        limit = np.log1p(2 * rho * at.separation**2 / at.steps) ** -0.5
        stds = np.array(
            [[1 / b.root for b in budgets], [sampled_std(e, at) for e in epsilons], limit]
        )
        # A sampled step has a sensitivity of 1: the noise of t steps adds up to t^(1/2).
        sampled = ((at.steps + 1) / 2) ** 0.5
        dp_sgd.append(stds * np.array([[fixed], [sampled], [sampled]]))
        nu_dp_ftrl.append(correlated * np.array([stds[0], stds[0], (2 * rho) ** -0.5]))
    own, other = np.array(dp_sgd), np.array(nu_dp_ftrl)
    return {"dp_sgd_error": own, "nu_dp_ftrl_error": other, "ratio": own / other}


@identity(
    "schedule",
    id="one-least-error-over-nu",
    where="Section 4, equation (3)",
    statement="The single parameter nu is easily tuned by minimising the squared error (3).",
    kind="prose",
    ours=[
        "easily: one local minimum among 40 values of nu from 1e-6 to 0.9",
        "the schedules of both data sets, six participations on StackOverflow",
    ],
    check=every(close(1.0, absolute=0.1)),
    wrong={"The error only grows with nu.": every(close(0.0, absolute=0.1))},
)
def least_errors(parameters: Parameters) -> list[int]:
    """Local minima, as a function of nu, of the mean error at the mechanism's sensitivity."""
    from privreg.noise.sensitivity import multi_participation_sensitivity
    from privreg.noise.toeplitz import workload_errors

    def error(at: Sampling, nu: float) -> float:
        encoder, decoder = mechanisms.toeplitz_or_tree("nu_dp_ftrl", at.steps, nu)
        sensitivity = multi_participation_sensitivity(
            encoder, participations=at.participations, separation=at.separation
        )
        return workload_errors(decoder, sensitivity=sensitivity).mean

    dampings = parameters.dampings.values()
    falls = [np.diff([error(at, nu) for nu in dampings]) < 0 for at in parameters.schedules]
    return [int(np.sum(each[:-1] & ~each[1:])) for each in falls]


theory = stage(AXES, errors, least_errors)
