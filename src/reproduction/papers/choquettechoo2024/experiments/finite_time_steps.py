"""Appendix D: unrolled iterates in numbers, and mean bounds exactly for Gaussian features."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Quantity, below, every, identity, per, stage, stated
from reproduction.papers.choquettechoo2024 import regression

PLACE = "Property D.2, Proposition D.6, Lemmas D.9, D.10 and D.12"
FAMILIES = ("identity", "damped_square_root", "damped_anti_pgd", "sum_of_two")
ROUNDING = below(1e-12)
SETTING = "eigenvalues 1/k, d = 8, eta = 1 / R^2, the largest step size of Lemma F.18"


class Parameters(regression.Covariance):
    """One covariance and step size."""

    step_share: q.Share = Field(description="Step size times R^2.")
    steps: q.Plural[q.Steps] = Field(description="Steps followed.")
    damping_factor: q.Share = Field(description="nu divided by eta mu.")

    @property
    def step_size(self) -> float:
        return self.step_share / self.moment

    def coefficients(self, family: str) -> np.ndarray:
        if family == "sum_of_two":
            return np.append([1.0, 1.0], np.zeros(self.steps - 2))
        damping = float(self.damping_factor * self.step_size * self.eigenvalues.min())
        return regression.coefficients(family, self.steps, damping)


AXES = {
    "family": Axis("coefficients", FAMILIES),
    "reading": Axis("time at which the right side stands", ("printed", "one step later")),
}


@per(
    start_error=Quantity("relative distance from equation (67)", "reading"),
    label_error=Quantity("relative distance from equation (68)", "reading"),
    noise_error=Quantity("relative distance from equation (69), first line", "reading"),
    noise_by_draw_error=stated(
        "relative distance from equation (69), second line",
        where="Section D.1.3, equation (69)",
        statement="The part of the private noise at time t is the second line of equation (69).",
        ours=["seven steps in three dimensions, drawn once"],
        check=ROUNDING,
        id="parts-unrolled-by-draws-d2",
    ),
)
def unrolled() -> dict:
    """Property D.2 with drawn numbers, its right sides read for t and for t + 1."""
    rng = np.random.Generator(np.random.SFC64(0))
    steps, d, eta = 9, 3, 0.2
    features, labels = rng.standard_normal((steps, d)), rng.standard_normal(steps)
    white = rng.standard_normal((steps, d))
    beta = regression.coefficients("damped_square_root", steps, 0.1)
    matrices = np.eye(d) - eta * features[:, :, None] * features[:, None, :]
    noises = np.array([_injected(beta, white, t) for t in range(steps)])
    start, nothing = rng.standard_normal(d), np.zeros(d)
    parts = [np.array([start, nothing, nothing])]
    for t in range(steps):
        drive = np.array([nothing, eta * features[t] * labels[t], -eta * noises[t]])
        parts.append(parts[-1] @ matrices[t] + drive)

    def after(t: int, place: int) -> np.ndarray:
        """Q_t ... Q_{place + 1}."""
        product = np.eye(d)
        for s in range(place + 1, t + 1):
            product = matrices[s] @ product
        return product

    t = steps - 2
    forms = {
        "start_error": after(t, -1) @ start,
        "label_error": eta * sum(after(t, s) @ features[s] * labels[s] for s in range(t + 1)),
        "noise_error": -eta * sum(after(t, s) @ noises[s] for s in range(t + 1)),
    }
    by_draw = -eta * sum(
        sum(beta[k] * after(t - 1, t - 1 - tau + k) for k in range(tau + 1)) @ white[t - 1 - tau]
        for tau in range(t)
    )
    found: dict[str, Any] = {
        name: [_distance(form, parts[at][place]) for at in (t, t + 1)]
        for place, (name, form) in enumerate(forms.items())
    }
    found["noise_by_draw_error"] = _distance(by_draw, parts[t][2])
    return found


@identity(
    id="expected-response-d9",
    where="Lemma D.9",
    statement="If eta <= 1/R^2, W_{t, tau} has a mean trace of at most R^2 (1 - eta mu)^(t-1-tau).",
    ours=[SETTING, "t - 1 - tau up to 3999"],
    check=below(1.0),
)
def label_response_ratio(parameters: Parameters) -> float:
    """Largest mean trace of W, divided by the bound of Lemma D.9."""
    eigenvalues, eta, moment = parameters.eigenvalues, parameters.step_size, parameters.moment
    variances, worst = eigenvalues, 0.0
    for distance in range(parameters.steps):
        bound = moment * (1 - eta * eigenvalues.min()) ** distance
        worst = max(worst, float(variances.sum() / bound))
        variances = transported(eigenvalues, eta, variances)
    return worst


@per(
    "family",
    printed_response_ratio=stated(
        "largest mean trace of V V' divided by the printed bound of D.10",
        where="Lemma D.10",
        statement="If eta <= 1/R^2, the mean trace of V V' is at most d times the sum over k of "
        "|beta_k| (1 - eta mu)^((tau - k)/2).",
        check=every(below(1.0000000001)),
        corrected={
            "holds_with": "the sum squared, as in its proof",
            "evidence": {"variable": "squared_response_ratio"},
        },
        id="expected-response-d10",
        ours=[
            SETTING,
            "the four sequences of every-direction-accumulates-d12, among them 1, 1, 0, ...",
        ],
        finding="square-in-lemma-d10",
    ),
    squared_response_ratio="largest mean trace of V V' divided by D.10 with its sum squared",
)
def response_ratios(parameters: Parameters, family: str) -> dict[str, float]:
    """Mean trace of V V' (65), divided by d times the sum in D.10 and by d times its square."""
    eigenvalues, eta = parameters.eigenvalues, parameters.step_size
    shrink = 1 - eta * eigenvalues
    mean, square = np.zeros_like(eigenvalues), np.zeros_like(eigenvalues)
    total, printed, squared = 0.0, 0.0, 0.0
    for k, coefficient in enumerate(parameters.coefficients(family)):
        if k:
            mean, square = shrink * mean, transported(eigenvalues, eta, square)
        square = square + 2 * coefficient * mean + coefficient**2
        mean = mean + coefficient
        total = total * (1 - eta * eigenvalues.min()) ** 0.5 + abs(coefficient)
        printed = max(printed, float(square.sum() / (eigenvalues.size * total)))
        squared = max(squared, float(square.sum() / (eigenvalues.size * total**2)))
    return {"printed_response_ratio": printed, "squared_response_ratio": squared}


@per(
    noise_free_ratio=stated(
        "largest norm of a noise-free iterate after a step divided by that of the start",
        where="Proposition D.6",
        statement="If no feature is longer than the event E_1 allows and the learning rate is at "
        "most 1 / (C R^2 log(T/p)), the noise-free iterates never get longer than the start.",
        check=below(1.0),
        wrong={"The iterates never get longer at 2.1 times that rate.": "noise_free_ratio_beyond"},
        id="noise-free-iterates-d6",
        ours=[
            "eigenvalues 1/k, d = 8, 200 sequences of 50 features, all as long as E_1 allows",
            "C = 16 and T/p = 500",
        ],
    ),
    noise_free_ratio_beyond="the same quotient of norms at 2.1 times the learning rate",
)
def noise_free(parameters: Parameters) -> dict[str, float]:
    """Noise-free iterates for drawn features, from a distance spread evenly over eigenvectors."""
    eigenvalues, longest = parameters.eigenvalues, 16 * parameters.moment * np.log(500)
    rng = np.random.Generator(np.random.SFC64(2))
    features = rng.standard_normal((50, 200, eigenvalues.size)) * np.sqrt(eigenvalues)
    features *= np.sqrt(longest) / np.linalg.norm(features, axis=-1, keepdims=True)

    def largest(eta: float) -> float:
        iterates, worst = np.full(features.shape[1:], eigenvalues.size**-0.5), 0.0
        for x in features:
            iterates = iterates - eta * np.sum(x * iterates, axis=1, keepdims=True) * x
            worst = max(worst, float(np.linalg.norm(iterates, axis=1).max()))
        return worst

    return {
        "noise_free_ratio": largest(1 / longest),
        "noise_free_ratio_beyond": largest(2.1 / longest),
    }


@per(
    "family",
    absolute_response_ratio="largest tr V V' of drawn features divided by d times the squared sum",
)
def absolute_response_ratio(parameters: Parameters, family: str) -> float:
    """V of equation (65) by its recursion, at a step size for which all Q are semi-definite."""
    eigenvalues, d = parameters.eigenvalues, parameters.eigenvalues.size
    rng = np.random.Generator(np.random.SFC64(3))
    features = rng.standard_normal((200, d)) * np.sqrt(eigenvalues)
    eta = 1 / float(np.sum(features**2, axis=1).max())
    beta = parameters.coefficients(family)[: len(features)]
    response, worst = beta[0] * np.eye(d), 0.0
    for x, coefficient, total in zip(features, beta[1:], np.cumsum(np.abs(beta))[1:], strict=False):
        response = response - eta * np.outer(x, x @ response) + coefficient * np.eye(d)
        worst = max(worst, float(np.sum(response**2)) / (d * total**2))
    return worst


@per(
    "family",
    least_direction_growth="least step of a direction's variance from the optimum / last value",
    last_step="last step of the variances, divided by the variances",
    growth_from_afar="the least step of a run that starts at twice its last variances",
    last_step_beyond="the last step at a learning rate of 2.5 / R^2",
)
def growth(parameters: Parameters, family: str) -> dict[str, float]:
    """Lemma D.12: variances by eigendirection from (83), with label noise of variance 1."""
    eigenvalues, beta = parameters.eigenvalues, parameters.coefficients(family)

    def path(eta: float, start: np.ndarray) -> np.ndarray:
        correlated, past, found = 0 * eigenvalues, 0 * eigenvalues, [start]
        for t, coefficient in enumerate(beta):
            if t:
                past = (1 - eta * eigenvalues) * (past + beta[t - 1])
            correlated = correlated + coefficient**2 + 2 * coefficient * past
            drive = eta**2 * (eigenvalues + correlated)
            found.append(transported(eigenvalues, eta, found[-1]) + drive)
        return np.array(found)

    def steps(found: np.ndarray) -> np.ndarray:
        return np.diff(found, axis=0) / found[-1]

    eta, optimum = parameters.step_size, 0 * eigenvalues
    whole = path(eta, optimum)
    return {
        "least_direction_growth": float(steps(whole).min()),
        "last_step": float(steps(whole)[-1].max()),
        "growth_from_afar": float(steps(path(eta, 2 * whole[-1])).min()),
        "last_step_beyond": float(steps(path(2.5 / parameters.moment, optimum))[-1].max()),
    }


@per(
    gradient_constant=stated(
        "0.9-quantile over runs of the largest gradient, divided by the maximum in (9)",
        where="Section 2.3, equation (9)",
        statement="For small enough eta, with high probability, no gradient of nu-DP-FTRL exceeds "
        "the order of max{tr H |theta_0 - theta*|, sigma_sgd (tr H)^(1/2)}, up to polylog(T/p).",
        check=below(10.0),
        wrong={
            "The distance has the factor (tr H)^(1/2).": "gradient_constant_of_the_root",
            "The order is without the term of the label noise.": "gradient_constant_of_the_start",
        },
        id="gradients-by-scale-9",
        kind="theorem",
        ours=[
            "40 unclipped runs of 100 steps, the largest eta and the noise of Theorem D.13",
            "C = 16, c = 64, rho = 1/2, p = 0.1, eigenvalues in proportion to 1/k, d = 4 and 16",
            "tr H, distance and sigma_sgd are 0.01, 1 or 100 each",
            "normal features and features of random signs; constant of the order: 10",
        ],
        note="The start lies along the first eigenvector. Our copy of (9) lost the square root.",
    ),
    gradient_constant_of_the_root="quotient if the distance has the factor (tr H)^(1/2)",
    gradient_constant_of_the_start="quotient without the term of the label noise",
)
def gradient_scales() -> dict[str, float]:
    scales, found = (0.01, 1.0, 100.0), []
    for d, normal in product((4, 16), (True, False)):
        shape = 1 / np.arange(1, d + 1)
        for trace, distance, zeta in product(scales, repeat=3):
            values = shape * trace / shape.sum()
            largest = _largest_gradient(values, distance, zeta, normal=normal)
            start, label = trace * distance, zeta * trace**0.5
            limits = max(start, label), max(trace**0.5 * distance, label), start
            found.append([largest / limit for limit in limits])
    names = ("gradient_constant", "gradient_constant_of_the_root", "gradient_constant_of_the_start")
    return dict(zip(names, map(float, np.max(found, axis=0)), strict=True))


@per(
    gradient_growth=stated(
        "growth of the largest gradient from T = 10, p = 0.1 on, divided by that of log(T/p)^2",
        where="Section 2.3, equation (9)",
        statement="For small enough eta, with probability 1 - p, the largest gradient of "
        "nu-DP-FTRL grows at most as a power of log(T/p).",
        check=below(1.0),
        wrong={"The largest gradient does not grow with T or 1/p.": "plain_gradient_growth"},
        id="gradients-by-logarithms-9",
        kind="theorem",
        ours=[
            "the square of log(T/p); Theorem D.13 has the power 5/2",
            "T = 10, 100 and 1000, p = 0.1 and 0.02: the (1 - p)-quantile over 400 runs each",
            "eta and noise as in gradients-by-scale-9, no clipping",
            "eigenvalues in proportion to 1/k, d = 4, tr H = 1",
            "(distance, sigma_sgd) = (1, 0), (0, 1) and (1, 1)",
            "normal features and features of random signs",
        ],
        note="At these T the gradient grows up to 1.15 times as much as log(T/p).",
    ),
    linear_gradient_growth="growth of the largest gradient divided by that of log(T/p)",
    plain_gradient_growth="growth of the largest gradient",
)
def gradient_logarithms() -> dict[str, float]:
    values, found = np.array([0.48, 0.24, 0.16, 0.12]), []
    for scales, normal in product(((1.0, 0.0), (0.0, 1.0), (1.0, 1.0)), (True, False)):
        first, *others = [
            (
                np.log(steps / failure),
                _largest_gradient(
                    values, *scales, normal=normal, steps=steps, failure=failure, runs=400
                ),
            )
            for steps, failure in product((10, 100, 1000), (0.1, 0.02))
        ]
        for logarithm, largest in others:
            found.append([largest / first[1] * (first[0] / logarithm) ** k for k in (2, 1, 0)])
    names = ("gradient_growth", "linear_gradient_growth", "plain_gradient_growth")
    return dict(zip(names, map(float, np.max(found, axis=0)), strict=True))


theory = stage(AXES, blocks_of=globals())


def _largest_gradient(
    eigenvalues: np.ndarray,
    distance: float,
    zeta: float,
    *,
    normal: bool,
    steps: int = 100,
    failure: float = 0.1,
    runs: int = 40,
) -> float:
    """Quantile of a run's largest gradient norm: unclipped nu-DP-FTRL with the values of D.13."""
    from privreg.noise.sensitivity import damped_square_root_limit

    rho, d = 0.5, eigenvalues.size
    log, moment = np.log(steps / failure), float(2 * eigenvalues.max() + eigenvalues.sum())
    least, eta = float(eigenvalues.min()), 1 / (16 * moment * log)
    # The second limit on eta depends on the coefficients, whose damping is eta mu itself.
    for _ in range(20):
        matrix = regression.matrix("damped_square_root", steps, eta * least)
        variance = damped_square_root_limit(eta * least) ** 2
        limit = 8 * 16**2 * moment**2 * d * variance * np.abs(matrix[:, 0]).sum() ** 2 * log**5
        eta = min(eta, least * rho / limit)
    clip = 64 * moment * log**2.5
    clip *= max(distance, (eta * moment / least) ** 0.5 * zeta, zeta / moment**0.5)
    rng = np.random.Generator(np.random.SFC64(5))
    white = rng.standard_normal((steps, runs * d)) * (variance / (2 * rho)) ** 0.5 * clip
    noise = (matrix @ white).reshape(steps, runs, d)
    error, largest = np.zeros((runs, d)), np.zeros(runs)
    error[:, 0] = distance
    for injected in noise:
        x = rng.standard_normal((runs, d))
        x = (x if normal else np.sign(x)) * np.sqrt(eigenvalues)
        residual = np.sum(x * error, axis=1) - zeta * rng.standard_normal(runs)
        gradient = residual[:, None] * x
        largest = np.maximum(largest, np.linalg.norm(gradient, axis=1))
        error = error - eta * (gradient + injected)
    return float(np.quantile(largest, 1 - failure))


def transported(eigenvalues: np.ndarray, eta: float, variances: np.ndarray) -> np.ndarray:
    """The diagonal of 𝔼[(I - ηxxᵀ)M(I - ηxxᵀ)] for Gaussian features x and a diagonal matrix M."""
    rates = eta * eigenvalues
    return (1 - 2 * rates + 2 * rates**2) * variances + eta * rates * (eigenvalues @ variances)


def _injected(beta: np.ndarray, white: np.ndarray, t: int) -> np.ndarray:
    """Correlated noise of step t, equation (57)."""
    return beta[: t + 1] @ white[t::-1]


def _distance(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
