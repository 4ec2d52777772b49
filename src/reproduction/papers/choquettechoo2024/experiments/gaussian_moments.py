"""Moments that the proofs assume of the features, by quadrature that is exact for polynomials."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Count, SignedPower, Some

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Assumptions C.2 and D.1, Property C.3, Property F.5, Lemma F.18"


class Parameters(Strict):
    """Covariances with random eigenvalues in three dimensions."""

    draws: Count = Field(description="Random covariances, and matrices for each.")
    exponents: Some[SignedPower] = Field(description="Arguments of moment functions.")


class _Rule(NamedTuple):
    """Standard normal nodes in three dimensions with their weights."""

    nodes: np.ndarray
    weights: np.ndarray


def theory(parameters: Parameters) -> xr.Dataset:
    """Largest ratio of each moment to its bound."""
    import xarray as xr

    rng = np.random.Generator(np.random.SFC64(0))
    rule = _normal_rule(8)
    sharp, printed, traces, kurtosis, shrinkage = ([] for _ in range(5))
    for _ in range(parameters.draws):
        eigenvalues = np.sort(rng.exponential(size=3))[::-1] + 0.01
        features = rule.nodes * np.sqrt(eigenvalues)
        squares = np.sum(features**2, axis=1)
        fourth = np.einsum("n,ni,nj->ij", rule.weights * squares, features, features)
        exact = np.diag(2 * eigenvalues**2 + eigenvalues.sum() * eigenvalues)
        sharp.append(np.abs(fourth - exact).max() / exact.max())
        whitened = fourth / np.sqrt(np.outer(eigenvalues, eigenvalues))
        moment = float(np.linalg.eigvalsh(whitened).max())
        printed.append(moment / (3 * eigenvalues.sum()))
        traces.append(eigenvalues.sum() / moment)
        weights = rng.exponential(size=3) ** 4
        forms = rule.nodes**2 @ weights
        found = np.einsum("n,ni,nj->ij", rule.weights * forms, rule.nodes, rule.nodes)
        kurtosis.append(float(np.linalg.eigvalsh(found).max()) / weights.sum())
        shrinkage.append(_shrinkage(rule, eigenvalues, features, moment, rng))
    arguments = np.asarray(parameters.exponents)
    moments = {name: _moments(name, arguments) for name in ("normal", "two points", "uniform")}
    return xr.Dataset(
        {
            "fourth_moment_error": variable(
                (), max(sharp), "relative distance of the fourth moments from 2 H^2 + tr(H) H"
            ),
            "fourth_moment_ratio": variable((), max(printed), "largest least R^2 over 3 tr H"),
            "trace_ratio": variable((), max(traces), "largest tr H over least R^2"),
            "kurtosis": variable((), max(kurtosis), "largest kurtosis constant"),
            "shrinkage_ratio": variable(
                (), max(shrinkage), "largest trace after a step over the bound of Lemma F.18"
            ),
            "moment_function_ratio": variable(
                "law",
                [found[0] for found in moments.values()],
                "largest moment generating function over exp(s^2/2)",
            ),
            "third_moment": variable(
                "law", [found[1] for found in moments.values()], "third moment at variance 1"
            ),
            "fourth_moment": variable(
                "law", [found[2] for found in moments.values()], "fourth moment at variance 1"
            ),
        },
        coords={"law": variable("law", list(moments), "law of mean 0 and variance 1")},
    )


def _normal_rule(count: int) -> _Rule:
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    grid = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 3)
    mass = np.einsum("i,j,k->ijk", weights, weights, weights).ravel()
    return _Rule(grid, mass / mass.sum())


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


def _moments(law: str, arguments: np.ndarray) -> tuple[float, float, float]:
    """Largest moment generating function over exp(s^2/2), third and fourth moment."""
    if law == "two points":
        nodes, weights = np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    elif law == "uniform":
        nodes, weights = np.polynomial.legendre.leggauss(60)
        nodes, weights = np.sqrt(3) * nodes, weights / 2
    else:
        nodes, weights = np.polynomial.hermite_e.hermegauss(120)
        weights = weights / weights.sum()
    ratio = np.exp(np.outer(arguments, nodes) - 0.5 * arguments[:, None] ** 2) @ weights
    return float(ratio.max()), float(weights @ nodes**3), float(weights @ nodes**4)
