"""Algorithms 1 and 3 line by line beside the library, and the rewriting as SGD."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import ClipNorm, Dimension, Positive, SampleSize, StepSize

if TYPE_CHECKING:
    import xarray as xr

    from privreg.noise.covariance import NoiseCovariance

PLACE = "Algorithms 1 and 3, Sections 2 and 3.1, equations (B.2) to (B.4) and (B.14)"
SHAPES = ("identity", "population", "public")


class Parameters(Strict):
    """A short run on drawn data."""

    sample_size: Annotated[SampleSize, Field(ge=2)] = Field(description="Number N of rows.")
    dimension: Dimension = Field(description="Dimension d.")
    step_size: StepSize = Field(description="eta.")
    noise_multiplier: Positive = Field(description="tau.")
    clip_norm: ClipNorm = Field(description="psi.")
    largest_size: Annotated[SampleSize, Field(ge=2)] = Field(
        description="Trees of all sizes up to this are counted."
    )


def theory(parameters: Parameters) -> xr.Dataset:
    """Distances of the library's run from the printed lines, and counts of nodes."""
    import xarray as xr

    from privreg.noise.tree import tree_levels, tree_nodes_entered

    runs = [_distances(parameters, shape) for shape in SHAPES]
    sizes = range(1, parameters.largest_size + 1)
    entered = [int(tree_nodes_entered(size).max()) for size in sizes]
    levels = [tree_levels(size) for size in sizes]
    return xr.Dataset(
        {
            "tree_error": variable(
                "noise_shape",
                [r[0] for r in runs],
                "distance of the average from Algorithms 1 and 3",
            ),
            "sgd_error": variable(
                "noise_shape", [r[1] for r in runs], "distance of the iterates from equation (B.4)"
            ),
            "clipped": variable("noise_shape", [r[2] for r in runs], "share of clipped gradients"),
            "prefix_error": variable(
                "counting",
                [_prefix_error(parameters.sample_size, shift) for shift in (0, 1)],
                "largest error of a prefix without noise over its size",
            ),
            "most_nodes_over_levels": variable(
                (),
                float(np.max(np.array(entered) / np.array(levels))),
                "largest number of nodes that a record enters over ceil(log2 N) + 1",
            ),
            "least_nodes_short": variable(
                (),
                int(np.min(np.array(levels) - np.array(entered))),
                "least difference of the two",
            ),
            "unlisted_covariance": variable(
                (),
                _unlisted_covariance(parameters.sample_size),
                "largest covariance of increments that share no listed node",
            ),
            "listed_covariance": variable(
                (),
                _listed_covariance(parameters.sample_size),
                "largest covariance of an increment with one that it takes back",
            ),
        },
        coords={
            "noise_shape": variable("noise_shape", list(SHAPES), "noise covariance"),
            "counting": variable(
                "counting", ["from 0", "from 1"], "how the steps of Algorithm 3 are counted"
            ),
        },
    )


def _generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


def _covariance(parameters: Parameters, name: str, eigenvalues: np.ndarray) -> NoiseCovariance:
    from privreg.noise.covariance import (
        PublicCovariance,
        identity_covariance,
        population_covariance,
    )

    if name == "identity":
        return identity_covariance(parameters.dimension)
    if name == "population":
        return population_covariance(
            eigenvalues, horizon=parameters.sample_size * parameters.step_size
        )
    rows = _generator(9).standard_normal((7, parameters.dimension)) * np.sqrt(eigenvalues)
    return PublicCovariance(rows, ridge=0.5)


def _distances(parameters: Parameters, name: str) -> tuple[float, float, float]:
    from privreg.algorithms.samples import ArraySamples
    from privreg.algorithms.shaped_dp_ftrl import FixedClip, ShapedMechanism, shaped_dp_ftrl
    from privreg.noise.correlations import TreeCorrelation
    from privreg.noise.streams import WhiteNoise

    size, d, eta = parameters.sample_size, parameters.dimension, parameters.step_size
    eigenvalues = np.arange(1.0, d + 1) ** -2
    rng = _generator(0)
    features = rng.standard_normal((size, d)) * np.sqrt(eigenvalues)
    labels = features @ np.arange(1.0, d + 1) ** -1 + rng.standard_normal(size)
    covariance = _covariance(parameters, name, eigenvalues)
    mechanism = ShapedMechanism(
        covariance,
        TreeCorrelation(),
        FixedClip(parameters.clip_norm),
        parameters.noise_multiplier,
        size,
    )
    run = shaped_dp_ftrl(
        ArraySamples(features, labels), mechanism=mechanism, step_size=eta, rng=_generator(3)
    )
    white = WhiteNoise(covariance.draws, rng=_generator(3)).draw(size - 1)
    root = covariance.root_multiply(np.eye(covariance.draws))
    inverse = np.linalg.inv(root.T @ root)
    nodes = parameters.noise_multiplier * parameters.clip_norm * white @ root
    tree, noise_tree = _Tree(size, d), _Tree(size, d)
    by_sgd, worst = np.zeros(d), 0.0
    total, iterate, before, clipped = np.zeros(d), np.zeros(d), np.zeros(d), 0
    for t in range(size - 1):
        total += iterate
        gradient = features[t] * (features[t] @ iterate - labels[t])
        norm = float(np.sqrt(gradient @ inverse @ gradient))
        gradient = gradient * min(1.0, parameters.clip_norm / norm)
        clipped += norm > parameters.clip_norm
        # Line 9: the minimiser of the linear loss plus |w|^2 / (2 eta).
        iterate = -eta * tree.step(gradient, nodes[t])
        prefix = noise_tree.step(np.zeros(d), nodes[t])
        by_sgd = by_sgd - eta * (gradient + prefix - before)
        before = prefix
        worst = max(worst, float(np.abs(by_sgd - iterate).max()))
    average = (total + iterate) / size
    scale = np.abs(average).max()
    return (
        float(np.abs(run.average - average).max() / scale),
        worst / float(scale),
        clipped / (size - 1),
    )


class _Tree:
    """Algorithm 3 with its tree of values; `shift` 1 counts steps from 1."""

    def __init__(self, leaves: int, dimension: int, shift: int = 1) -> None:
        self.height = (leaves - 1).bit_length()
        self.values = [
            np.zeros((1 << (self.height - level), dimension)) for level in range(self.height + 1)
        ]
        self.count, self.shift = 0, shift

    def step(self, vector: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Lines 4 to 17; of the nodes that take noise only the highest enters a prefix."""
        leaf = self.count
        for level, values in enumerate(self.values):
            values[leaf >> level] += vector
        lefts = [level for level in range(self.height) if (leaf >> level) % 2 == 0]
        # The last left child on the way down; without one the path ends at the root.
        level = min(lefts) if lefts else self.height
        completed = (leaf + 1) % (1 << level) == 0
        assert completed
        self.values[level][leaf >> level] += noise
        self.count += 1
        prefix, digits = np.zeros_like(vector), leaf + self.shift
        for at in range(self.height + 1):
            if digits >> at & 1:
                block = leaf >> at
                left = at == self.height or block % 2 == 0
                prefix = prefix + self.values[at][block if left else block - 1]
        return prefix


def _prefix_error(size: int, shift: int) -> float:
    """Sums of ones: how far the released prefix is from the number of vectors so far."""
    tree, worst = _Tree(size, 1, shift), 0.0
    for t in range(size):
        found = float(tree.step(np.ones(1), np.zeros(1))[0])
        worst = max(worst, abs(found - (t + 1)) / (t + 1))
    return worst


def _increments(size: int) -> np.ndarray:
    """Covariance of the increments of prefix noise, by the law of shared nodes."""
    from privreg.noise.tree import tree_shared_nodes

    steps = np.arange(size + 1)
    covariance = tree_shared_nodes(steps[:, None], steps[None, :])
    return np.diff(np.diff(covariance, axis=0), axis=1)


def _listed(size: int) -> np.ndarray:
    """The paper's index set K(t): at t, t less a power of two that divides it more than once."""
    found = np.zeros((size, size), dtype=bool)
    for t in range(1, size + 1):
        for level in range((t & -t).bit_length() - 1):
            found[t - (1 << level) - 1, t - 1] = True
    return found


def _unlisted_covariance(size: int) -> float:
    covariance = np.triu(_increments(size), 1)
    return float(np.abs(np.where(_listed(size), 0, covariance)).max())


def _listed_covariance(size: int) -> float:
    return float(_increments(size)[_listed(size)].max())
