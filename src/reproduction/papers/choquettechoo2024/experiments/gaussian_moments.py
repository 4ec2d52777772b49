"""Moments that the proofs assume of the features, by quadrature that is exact for polynomials."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, below, identity, per, stage, stated

PLACE = "Assumptions C.2 and D.1, Property C.3, Property F.5, Lemma F.18"


class Parameters(Strict):
    """Covariances with random eigenvalues in three dimensions."""

    draws: q.Count = Field(description="Random covariances, and matrices for each.")
    exponents: q.Some[q.SignedPower] = Field(description="Arguments of moment functions.")


# A skewness of 0.2 shows from s = 1/10 on.
ARGUMENTS = np.geomspace(0.01, 3.0, 60)
COVARIANCES = "normal features, 200 random covariances in three dimensions"
AXES = {"law": Axis("law of mean 0 and variance 1", ("normal", "two points", "uniform"))}


@per(
    fourth_moment_error="relative distance of the fourth moments from 2 H^2 + tr(H) H",
    fourth_moment_ratio="largest least R^2 over 3 tr H",
    kurtosis="largest kurtosis constant",
    trace_ratio=stated(
        "largest tr H over least R^2",
        where="Section C.1.2, Assumption C.2",
        statement="Assumption C.2 implies tr H <= R^2.",
        check=below(1.0),
        id="trace-below-fourth-moment",
        ours=[COVARIANCES],
        kind="prose",
    ),
    shrinkage_ratio=stated(
        "largest trace after a step over the bound of Lemma F.18",
        where="Lemma F.18",
        statement="A step with random features shrinks the trace of a positive semi-definite "
        "matrix by 1 - eta mu in the mean, for eta up to 1/R^2.",
        check=below(1.0),
        id="trace-shrinks-f18",
        ours=[COVARIANCES, "random matrices that do not commute with H"],
    ),
)
def of_random_covariances(parameters: Parameters) -> dict[str, float]:
    rng = np.random.Generator(np.random.SFC64(0))
    rule = _normal_rule(8)
    found = [_of_a_covariance(rule, rng) for _ in range(parameters.draws)]
    return {name: max(each[name] for each in found) for name in found[0]}


@per(
    "law",
    moment_function_ratio="largest moment generating function over exp(s^2/2)",
    third_moment="third moment at variance 1",
    fourth_moment="fourth moment at variance 1",
)
def of_a_law(parameters: Parameters, law: str) -> dict[str, float]:
    if law == "two points":
        nodes, weights = np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    elif law == "uniform":
        nodes, weights = np.polynomial.legendre.leggauss(60)
        nodes, weights = np.sqrt(3) * nodes, weights / 2
    else:
        nodes, weights = np.polynomial.hermite_e.hermegauss(120)
        weights = weights / weights.sum()
    arguments = np.asarray(parameters.exponents)
    ratio = np.exp(np.outer(arguments, nodes) - 0.5 * arguments[:, None] ** 2) @ weights
    return {
        "moment_function_ratio": float(ratio.max()),
        "third_moment": float(weights @ nodes**3),
        "fourth_moment": float(weights @ nodes**4),
    }


@identity(
    id="misspecified-models-c12",
    where="Section C.1.2, Assumption C.2",
    kind="prose",
    statement="The upper bounds continue to hold where the label noise depends on the features, "
    "with E[xi^2 x x'] at most sigma^2 H.",
    ours=[
        "the exact part of the label noise against that of independent noise of variance sigma^2, "
        "which they bound",
        "label noise x^2 - 1 for one normal feature, sigma^2 = 10",
        "step sizes 0.01 to 0.3",
    ],
    check=below(1.0000000001),
    note="Mean and second moment of the recursion by quadrature, 2000 steps from a distance of 0.",
)
def misspecified_ratio() -> float:
    """Largest error from dependent label noise over that from independent noise."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    weights = weights / weights.sum()
    label, worst = nodes**2 - 1, 0.0
    level = float(weights @ (label * nodes) ** 2)
    for eta in (0.01, 0.1, 0.3):
        shrink, kick = 1 - eta * nodes**2, eta * label * nodes
        mean, square = 0.0, 0.0
        for _ in range(2000):
            square = weights @ (shrink**2 * square + 2 * shrink * kick * mean + kick**2)
            mean = weights @ (shrink * mean + kick)
        independent = eta**2 * level / (1 - float(weights @ shrink**2))
        worst = max(worst, float(square) / independent)
    return worst


@per(
    skewed_function_ratio="least largest moment generating function over exp(s^2/2), skewed laws",
    heavy_function_ratio="the same of symmetric laws with a fourth moment above 3",
)
def of_other_laws(parameters: Parameters) -> dict[str, float]:
    """Laws on two points, and on three points around 0: none is strictly sub-Gaussian."""
    arguments = np.concatenate([-ARGUMENTS, ARGUMENTS])
    shares = np.concatenate([np.linspace(0.05, 0.45, 9), np.linspace(0.55, 0.95, 9)])
    two = [
        (np.array([-np.sqrt(p / (1 - p)), np.sqrt((1 - p) / p)]), np.array([1 - p, p]))
        for p in shares
    ]
    three = [
        (np.array([-a, 0.0, a]), np.array([0.5 / a**2, 1 - 1 / a**2, 0.5 / a**2]))
        for a in np.sqrt(np.linspace(3.2, 8.0, 9))
    ]

    def least(laws: list) -> float:
        return min(
            float((np.exp(np.outer(arguments, x) - 0.5 * arguments[:, None] ** 2) @ w).max())
            for x, w in laws
        )

    return {"skewed_function_ratio": least(two), "heavy_function_ratio": least(three)}


theory = stage(AXES, of_random_covariances, of_a_law, of_other_laws, misspecified_ratio)


class _Rule(NamedTuple):
    """Standard normal nodes in three dimensions with their weights."""

    nodes: np.ndarray
    weights: np.ndarray


def _normal_rule(count: int) -> _Rule:
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    grid = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 3)
    mass = np.einsum("i,j,k->ijk", weights, weights, weights).ravel()
    return _Rule(grid, mass / mass.sum())


def _of_a_covariance(rule: _Rule, rng: np.random.Generator) -> dict[str, float]:
    eigenvalues = np.sort(rng.exponential(size=3))[::-1] + 0.01
    features = rule.nodes * np.sqrt(eigenvalues)
    squares = np.sum(features**2, axis=1)
    fourth = np.einsum("n,ni,nj->ij", rule.weights * squares, features, features)
    exact = np.diag(2 * eigenvalues**2 + eigenvalues.sum() * eigenvalues)
    whitened = fourth / np.sqrt(np.outer(eigenvalues, eigenvalues))
    moment = float(np.linalg.eigvalsh(whitened).max())
    weights = rng.exponential(size=3) ** 4
    forms = np.einsum(
        "n,ni,nj->ij", rule.weights * (rule.nodes**2 @ weights), rule.nodes, rule.nodes
    )
    return {
        "fourth_moment_error": np.abs(fourth - exact).max() / exact.max(),
        "fourth_moment_ratio": moment / (3 * eigenvalues.sum()),
        "kurtosis": float(np.linalg.eigvalsh(forms).max()) / weights.sum(),
        "trace_ratio": eigenvalues.sum() / moment,
        "shrinkage_ratio": _shrinkage(rule, eigenvalues, features, moment, rng),
    }


def _shrinkage(
    rule: _Rule,
    eigenvalues: np.ndarray,
    features: np.ndarray,
    moment: float,
    rng: np.random.Generator,
) -> float:
    """The left side of Lemma F.18, in the mean over features, over its right side."""
    root = rng.standard_normal((3, 3))
    # Nearly of rank one in turn, so that single directions are seen as well.
    matrix = root @ np.diag([1.0, *(rng.exponential(size=2) ** 3)]) @ root.T
    eta = rng.uniform(0.05, 1.0) / moment
    steps = np.eye(3) - eta * features[:, :, None] * features[:, None, :]
    after = np.einsum("n,nij,jk,nki->", rule.weights, steps, matrix, steps)
    return float(after / ((1 - eta * eigenvalues.min()) * np.trace(matrix)))
