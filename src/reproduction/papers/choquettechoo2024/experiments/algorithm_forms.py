"""Algorithm 1 and its rewritings against plain loops, and what the rows of Table 3 are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipNorm,
    Dimension,
    Finite,
    PositiveDeviation,
    Probability,
    Rho,
    Some,
    Steps,
)

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Algorithm 1, equations (2), (3) and (11) to (13), Remark 1.2, Table 3, Section A.2"
FAMILIES = ("identity", "damped_square_root", "damped_anti_pgd")
MECHANISMS = (
    "dp_sgd",
    "tree_aggregation",
    "optimal_cc",
    "nu_dp_ftrl",
    "full_honaker",
    "multi_epoch",
)


class Parameters(Strict):
    """Short runs on drawn data, and mechanisms at a number of steps and at twice that."""

    steps: Annotated[Steps, Field(ge=2)] = Field(description="Steps T, one record each.")
    dimension: Dimension = Field(description="d.")
    damping: Probability = Field(description="nu of the damped families.")
    clip_norm: ClipNorm = Field(description="G.")
    gradient_noise_std: PositiveDeviation = Field(description="Of the white noise.")
    labels: Annotated[Some[Finite], Field(min_length=2)] = Field(
        description="Label of a record not clipped."
    )
    rhos: Some[Rho] = Field(description="zCDP budgets that are converted.")
    deltas: Some[Probability] = Field(description="delta of the conversion.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Distances between forms, counts of draws, leading blocks."""
    import xarray as xr

    forms = [_forms(parameters, name) for name in FAMILIES]
    losses = [_unclipped_loss(parameters, label) for label in parameters.labels]
    change, draws = zip(*(_mechanism(name, parameters) for name in MECHANISMS), strict=True)
    stable = _stable_rank()
    return xr.Dataset(
        {
            "loop_error": variable(
                "family", [f[0] for f in forms], "distance of the library's iterates from a loop"
            ),
            "matrix_error": variable(
                "family", [f[1] for f in forms], "distance of the iterates from equation (12)"
            ),
            "squared_error_ratio": variable(
                "family", [f[2] for f in forms], "mean of equation (3) by its sums over |AB|^2"
            ),
            "printed_error_ratio": variable(
                "family", [f[3] for f in forms], "equation (3) with its printed index over |AB|^2"
            ),
            "unclipped_loss": variable(
                "label", losses, "squared distance of unclipped releases over 2 sigma^2"
            ),
            "unclipped_exponent": variable(
                (),
                np.polyfit(np.log(parameters.labels), np.log(losses), 1)[0],
                "log-log slope of the unclipped loss over the label",
            ),
            "root_error": variable(
                (), _root_error(parameters.steps), "distance of B B A from the identity at nu = 0"
            ),
            "leading_block_change": variable(
                "mechanism",
                change,
                "change of the injected noise's correlations for twice the steps",
            ),
            "draws_a_step": variable(
                "mechanism", draws, "largest number of normal vectors that one step combines"
            ),
            "conversion_ratio": variable(
                (),
                _conversion_ratio(parameters),
                "least epsilon by Section A.2 over the exact one of a Gaussian mechanism",
            ),
            "stable_rank_error": variable(
                (), stable[0], "relative distance of the effective dimension from the stable rank"
            ),
            "stable_rank_jump": variable(
                (), stable[1], "change of the effective dimension when the rank doubles"
            ),
        },
        coords={
            "family": variable("family", list(FAMILIES), "coefficients"),
            "label": variable("label", parameters.labels, "label of the record"),
            "mechanism": variable("mechanism", list(MECHANISMS), "row of Table 3"),
        },
        attrs={"steps": parameters.steps},
    )


def _coefficients(family: str, parameters: Parameters) -> np.ndarray:
    from privreg.noise import toeplitz

    options = {"damping": parameters.damping} if "damped" in family else {}
    return np.asarray(getattr(toeplitz, family)(parameters.steps, **options))


def _generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


def _forms(parameters: Parameters, family: str) -> tuple[float, float, float, float]:
    """Algorithm 1 line by line, equation (12) from its gradients, equation (3) twice."""
    from privreg.algorithms.dp_ftrl import FTRLMechanism, dp_ftrl
    from privreg.algorithms.samples import ArraySamples
    from privreg.noise.errors import step_variances
    from privreg.noise.streams import WhiteNoise
    from privreg.noise.toeplitz import dense_matrix

    count, d, eta, ridge = parameters.steps, parameters.dimension, 0.05, 0.3
    beta = _coefficients(family, parameters)
    matrix = dense_matrix(beta)
    rng = _generator(0)
    features, labels = rng.standard_normal((count, d)), rng.standard_normal(count)
    run = dp_ftrl(
        ArraySamples(features, labels),
        mechanism=FTRLMechanism(beta, parameters.gradient_noise_std, parameters.clip_norm, count),
        step_size=eta,
        rng=_generator(1),
        ridge=ridge,
        times=np.arange(1, count + 1),
    )
    white = WhiteNoise(d, rng=_generator(1), std=parameters.gradient_noise_std).draw(count)
    theta, path, gradients = np.zeros(d), [], []
    for t in range(count):
        gradient = features[t] * (features[t] @ theta - labels[t])
        norm = float(np.linalg.norm(gradient))
        gradient = gradient * min(1.0, parameters.clip_norm / norm) + ridge * theta
        noise = sum(matrix[t, tau] * white[tau] for tau in range(t + 1))
        theta = theta - eta * (gradient + noise)
        path.append(theta)
        gradients.append(gradient)
    sums = np.tril(np.ones((count, count)))
    moved = np.linalg.solve(matrix, np.array(gradients)) + white
    whole = -eta * sums @ matrix @ moved
    size = np.abs(path).max()
    frobenius = float(np.sum((sums @ matrix) ** 2))
    # With the index t the inner sum is t + 1 times the noise of the last step.
    printed = float(np.arange(1, count + 1) ** 2 @ np.sum(matrix**2, axis=1))
    return (
        float(np.abs(run.iterates - path).max() / size),
        float(np.abs(whole - path).max() / size),
        float(step_variances(beta).sum() / frobenius),
        printed / frobenius,
    )


def _unclipped_loss(parameters: Parameters, label: float) -> float:
    """What a first record of a large label moves, in units of the white noise."""
    from privreg.noise.toeplitz import dense_matrix

    beta = _coefficients("damped_square_root", parameters)
    eta, paths = 0.1, []
    for present in (True, False):
        theta, path = 0.0, []
        for t in range(parameters.steps):
            theta -= eta * (theta - label) if present and t == 0 else 0.0
            path.append(theta)
        paths.append(np.array(path))
    change = np.diff(paths[0] - paths[1], prepend=0.0) / eta
    white = np.linalg.solve(dense_matrix(beta), change)
    return float(0.5 * (white @ white) / parameters.gradient_noise_std**2)


def _root_error(steps: int) -> float:
    from privreg.noise.toeplitz import damped_square_root, dense_matrix

    root = dense_matrix(damped_square_root(steps, damping=0.0))
    product = root @ root @ np.tril(np.ones((steps, steps)))
    return float(np.abs(product - np.eye(steps)).max())


def _decoder(name: str, steps: int, damping: float) -> np.ndarray:
    """Normal vectors to injected noise."""
    from privreg.noise import toeplitz
    from privreg.noise.dense import dense_optimum
    from privreg.noise.tree import full_honaker, tree_matrices

    if name == "tree_aggregation":
        return tree_matrices(steps)[1]
    if name == "full_honaker":
        return full_honaker(steps)[1]
    if name == "multi_epoch":
        return dense_optimum(steps).decoder
    if name == "dp_sgd":
        return np.eye(steps)
    nu = 0.0 if name == "optimal_cc" else damping
    return toeplitz.dense_matrix(toeplitz.damped_square_root(steps, damping=nu))


def _mechanism(name: str, parameters: Parameters) -> tuple[float, int]:
    """How the first T steps change if twice as many are planned; draws combined in a step."""
    correlations = []
    for steps in (parameters.steps, 2 * parameters.steps):
        decoder = _decoder(name, steps, parameters.damping)[: parameters.steps]
        covariance = decoder @ decoder.T
        scale = np.sqrt(np.diag(covariance))
        correlations.append(covariance / np.outer(scale, scale))
    draws = np.abs(_decoder(name, parameters.steps, parameters.damping)) > 1e-12
    change = float(np.abs(correlations[0] - correlations[1]).max())
    return change, int(draws.sum(axis=1).max())


def _conversion_ratio(parameters: Parameters) -> float:
    from privreg.algorithms.shaped_accounting import gaussian_epsilon

    orders = 1 + np.geomspace(1e-4, 1e6, 4000)
    least = np.inf
    for rho in parameters.rhos:
        for delta in parameters.deltas:
            terms = rho * orders - np.log(orders * delta) / (orders - 1) + np.log1p(-1 / orders)
            least = min(least, float(terms.min() / gaussian_epsilon(rho, delta=delta)))
    return least


def _stable_rank() -> tuple[float, float]:
    """Section C.6: of a drawn covariance, and when eigenvalues of 1e-9 join it."""
    from scipy.linalg import sqrtm

    from privreg.theory.correlated_noise.bounds import effective_dimension

    root = _generator(2).standard_normal((5, 5))
    covariance = root @ root.T
    half = np.real(sqrtm(covariance))
    rank = np.linalg.norm(half) ** 2 / np.linalg.norm(half, 2) ** 2
    values = np.linalg.eigvalsh(covariance)
    effective = effective_dimension(values)
    joined = effective_dimension(np.append(values, np.full(5, 1e-9)))
    return float(abs(effective / rank - 1)), float(joined - effective)
