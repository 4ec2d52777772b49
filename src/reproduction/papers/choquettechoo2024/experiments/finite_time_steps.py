"""Appendix D's unrolled iterates in numbers, its mean bounds exactly for Gaussian features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Dimension, Power, Share, Steps
from reproduction.papers.choquettechoo2024.regression import power_law

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Property D.2, Lemmas D.9, D.10 and D.12"
FAMILIES = ("identity", "damped_square_root", "damped_anti_pgd", "sum_of_two")
READINGS = ("printed", "one step later")


class Parameters(Strict):
    """One covariance and step size."""

    dimension: Dimension = Field(description="d.")
    decay: Power = Field(description="a of the eigenvalues k^-a.")
    step_share: Share = Field(description="Step size times R^2.")
    steps: Annotated[Steps, Field(ge=2)] = Field(description="Steps followed.")
    damping_factor: Share = Field(description="nu over eta mu.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Errors of the unrolled forms, ratios to the bounds."""
    import xarray as xr

    from privreg.theory.correlated_noise.bounds import fourth_moment_bound

    eigenvalues = power_law(parameters.dimension, parameters.decay)
    moment = fourth_moment_bound(eigenvalues)
    eta = parameters.step_share / moment
    damping = float(parameters.damping_factor * eta * eigenvalues.min())
    betas = [_coefficients(name, parameters.steps, damping) for name in FAMILIES]
    ratios = [_response_ratios(eigenvalues, eta, beta) for beta in betas]
    growth = [_growth(eigenvalues, eta, beta) for beta in betas]
    return xr.Dataset(
        {
            "sum_error": variable(
                (), _unrolled()[0], "relative distance of the three parts' sum from the iterate"
            ),
            "start_error": variable(
                "reading", _unrolled()[1], "relative distance from equation (67)"
            ),
            "label_error": variable(
                "reading", _unrolled()[2], "relative distance from equation (68)"
            ),
            "noise_error": variable(
                "reading", _unrolled()[3], "relative distance from equation (69), first line"
            ),
            "noise_by_draw_error": variable(
                (), _unrolled()[4], "relative distance from equation (69), second line"
            ),
            "label_response_ratio": variable(
                (),
                _label_response_ratio(eigenvalues, eta, moment, parameters.steps),
                "largest mean trace of W over the bound of Lemma D.9",
            ),
            "printed_response_ratio": variable(
                "family", [r[0] for r in ratios], "largest mean trace of V V' over printed D.10"
            ),
            "squared_response_ratio": variable(
                "family", [r[1] for r in ratios], "the same over D.10 with its sum squared"
            ),
            "least_direction_growth": variable(
                "family",
                [g[0] for g in growth],
                "least step of any direction's variance from the optimum, over the last variance",
            ),
            "last_step": variable(
                "family", [g[1] for g in growth], "last step of the variances, over the variances"
            ),
        },
        coords={
            "family": variable("family", list(FAMILIES), "coefficients"),
            "reading": variable("reading", list(READINGS), "time at which the right side stands"),
        },
    )


def _coefficients(family: str, steps: int, damping: float) -> np.ndarray:
    from privreg.noise import toeplitz

    if family == "sum_of_two":
        return np.append([1.0, 1.0], np.zeros(steps - 2))
    options = {"damping": damping} if "damped" in family else {}
    return np.asarray(getattr(toeplitz, family)(steps, **options))


def _unrolled() -> tuple[float, np.ndarray, np.ndarray, np.ndarray, float]:
    """Property D.2 with drawn numbers, its right sides read for t and for t + 1."""
    from privreg.noise.toeplitz import damped_square_root

    rng = np.random.Generator(np.random.SFC64(0))
    steps, d, eta = 9, 3, 0.2
    features, labels = rng.standard_normal((steps, d)), rng.standard_normal(steps)
    white, beta = rng.standard_normal((steps, d)), damped_square_root(steps, damping=0.1)
    matrices = np.eye(d) - eta * features[:, :, None] * features[:, None, :]
    noises = np.array([beta[: t + 1] @ white[t::-1] for t in range(steps)])
    start = rng.standard_normal(d)
    parts = [np.array([start, np.zeros(d), np.zeros(d)])]
    whole = [start]
    for t in range(steps):
        drive = np.array([np.zeros(d), eta * features[t] * labels[t], -eta * noises[t]])
        parts.append(parts[-1] @ matrices[t] + drive)
        whole.append(matrices[t] @ whole[-1] + drive.sum(axis=0))

    def after(t: int, place: int) -> np.ndarray:
        """Q_t ... Q_{place + 1}."""
        product = np.eye(d)
        for s in range(place + 1, t + 1):
            product = matrices[s] @ product
        return product

    t = steps - 2
    unrolled = [
        after(t, -1) @ start,
        eta * sum(after(t, s) @ features[s] * labels[s] for s in range(t + 1)),
        -eta * sum(after(t, s) @ noises[s] for s in range(t + 1)),
    ]
    by_draw = -eta * sum(
        sum(beta[k] * after(t - 1, t - 1 - tau + k) for k in range(tau + 1)) @ white[t - 1 - tau]
        for tau in range(t)
    )
    errors = [
        np.array([_distance(form, parts[at][place]) for at in (t, t + 1)])
        for place, form in enumerate(unrolled)
    ]
    total = _distance(sum(parts[t]), whole[t])
    return total, errors[0], errors[1], errors[2], _distance(by_draw, parts[t][2])


def _distance(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def _transport(eigenvalues: np.ndarray, eta: float, variances: np.ndarray) -> np.ndarray:
    """The diagonal of 𝔼[(I - ηxxᵀ)M(I - ηxxᵀ)] for Gaussian features, of a diagonal M."""
    rates = eta * eigenvalues
    return (1 - 2 * rates + 2 * rates**2) * variances + eta * rates * (eigenvalues @ variances)


def _label_response_ratio(eigenvalues: np.ndarray, eta: float, moment: float, steps: int) -> float:
    variances, worst = eigenvalues, 0.0
    for distance in range(steps):
        bound = moment * (1 - eta * eigenvalues.min()) ** distance
        worst = max(worst, float(variances.sum() / bound))
        variances = _transport(eigenvalues, eta, variances)
    return worst


def _response_ratios(eigenvalues: np.ndarray, eta: float, beta: np.ndarray) -> tuple[float, float]:
    """𝔼 tr VVᵀ of equation (65) over d times the sum in Lemma D.10, and over d times its square."""
    shrink = 1 - eta * eigenvalues
    mean, square = np.zeros_like(eigenvalues), np.zeros_like(eigenvalues)
    total, worst = 0.0, [0.0, 0.0]
    for k, coefficient in enumerate(beta):
        if k:
            mean, square = shrink * mean, _transport(eigenvalues, eta, square)
        square = square + 2 * coefficient * mean + coefficient**2
        mean = mean + coefficient
        total = total * (1 - eta * eigenvalues.min()) ** 0.5 + abs(coefficient)
        for place, bound in enumerate((total, total**2)):
            worst[place] = max(worst[place], float(square.sum() / (eigenvalues.size * bound)))
    return worst[0], worst[1]


def _growth(eigenvalues: np.ndarray, eta: float, beta: np.ndarray) -> tuple[float, float]:
    """Lemma D.12: variances by direction by equation (83), with label noise of deviation 1."""
    variances = np.zeros_like(eigenvalues)
    correlated, past = np.zeros_like(eigenvalues), np.zeros_like(eigenvalues)
    path = [variances]
    for t, coefficient in enumerate(beta):
        if t:
            past = (1 - eta * eigenvalues) * (past + beta[t - 1])
        correlated = correlated + coefficient**2 + 2 * coefficient * past
        variances = _transport(eigenvalues, eta, variances) + eta**2 * (eigenvalues + correlated)
        path.append(variances)
    steps = np.diff(path, axis=0)
    return float((steps / path[-1]).min()), float((steps[-1] / path[-1]).max())
