"""Algorithms 1 and 3 line by line beside the library, and the rewriting as SGD."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import (
    Axis,
    above,
    below,
    close,
    every,
    identity,
    per,
    stage,
    stated,
)
from reproduction.papers.anon2024.setting import generator, power_law

if TYPE_CHECKING:
    from privreg.noise.covariance import NoiseCovariance

PLACE = "Algorithms 1 and 3, Sections 2 and 3.1, equations (B.2) to (B.4) and (B.14)"


class Parameters(Strict):
    """A short run on drawn data."""

    sample_size: q.Plural[q.SampleSize] = Field(description="Number N of rows.")
    dimension: q.Dimension = Field(description="Dimension d.")
    step_size: q.StepSize = Field(description="eta.")
    noise_multiplier: q.Positive = Field(description="tau.")
    clip_norm: q.ClipNorm = Field(description="psi.")
    largest_size: q.Plural[q.SampleSize] = Field(
        description="Trees of all sizes up to this are counted."
    )


AXES = {
    "noise_shape": Axis("noise covariance", ("identity", "population", "public")),
    "counting": Axis("how the steps of Algorithm 3 are counted", ("from 0", "from 1")),
}


@per(
    "noise_shape",
    tree_error=stated(
        "distance of the average from Algorithms 1 and 3",
        where="Algorithm 1, Algorithm 3",
        compares="The average of the library's DP-FTRL with the lines of Algorithms 1 and 3 as "
        "loops over an explicit tree, three covariances.",
        check=every(below(1e-11)),
        id="algorithms-line-by-line",
    ),
    sgd_error=stated(
        "distance of the iterates from equation (B.4)",
        where="Equation (B.4), Section 3.1",
        statement="From w = 0 the minimisation of line 9 is a step of SGD with the increment of "
        "the tree's noise.",
        check=every(below(1e-11)),
        id="update-is-sgd-with-increments",
        ours=["N = 45", "d = 12", "three covariances", "steps counted from 1"],
    ),
    clipped="share of clipped gradients",
)
def runs(parameters: Parameters, noise_shape: str) -> dict:
    from privreg.algorithms.samples import ArraySamples
    from privreg.algorithms.shaped_dp_ftrl import shaped_dp_ftrl
    from privreg.algorithms.shaped_mechanism import FixedClip, ShapedMechanism
    from privreg.noise.correlations import TreeCorrelation

    size, d = parameters.sample_size, parameters.dimension
    eigenvalues, rng = power_law(d, 2), generator(0)
    features = rng.standard_normal((size, d)) * np.sqrt(eigenvalues)
    labels = features @ power_law(d, 1) + rng.standard_normal(size)
    covariance = _covariance(parameters, noise_shape, eigenvalues)
    mechanism = ShapedMechanism(
        covariance,
        TreeCorrelation(),
        FixedClip(parameters.clip_norm),
        parameters.noise_multiplier,
        size,
    )
    found = shaped_dp_ftrl(
        ArraySamples(features, labels),
        mechanism=mechanism,
        step_size=parameters.step_size,
        rng=generator(3),
    )
    lines = _printed_lines(parameters, features, labels, covariance)
    scale = np.abs(lines.average).max()
    return {
        "tree_error": np.abs(found.average - lines.average).max() / scale,
        "sgd_error": lines.distance_to_sgd / scale,
        "clipped": lines.clipped / (size - 1),
    }


@per(
    "counting",
    prefix_error=stated(
        "largest error of a prefix without noise over its size",
        where="Algorithm 3, Section 3.1",
        statement="Algorithm 3, with the binary digits of t for t from 0, returns an estimate of "
        "the sum of all vectors received so far.",
        select={"counting": "from 0"},
        check=below(1e-12),
        id="private-sum-of-algorithm-3",
        kind="prose",
        ours=["without noise", "45 vectors"],
        expect="contradicted",
        finding="steps-from-one",
    ),
)
def prefix_error(parameters: Parameters, counting: str) -> float:
    """Sums of ones: how far the released prefix is from the number of vectors so far."""
    size, worst = parameters.sample_size, 0.0
    tree = _Tree(size, 1, shift=int(counting.removeprefix("from ")))
    for t in range(1, size + 1):
        found = float(tree.step(np.ones(1), np.zeros(1))[0])
        worst = max(worst, abs(found - t) / t)
    return worst


@identity(
    id="nodes-of-a-record",
    where="Section 2",
    kind="prose",
    statement="Each vector affects at most ceil(log2 N) + 1 nodes, those from its leaf to the "
    "root.",
    ours=["all N up to 300"],
    check=below(1.0000001),
    wrong={"At most log2 N, rounded up.": "most_nodes_over_logarithm"},
)
def most_nodes_over_levels(parameters: Parameters) -> float:
    """Largest number of nodes on the way of a leaf over ceil(log2 N) + 1."""
    logarithm, most = _paths(parameters.largest_size)
    return float((most / (logarithm + 1)).max())


@per(most_nodes_over_logarithm="that number over log2 N, rounded up")
def most_nodes_over_logarithm(parameters: Parameters) -> float:
    logarithm, most = _paths(parameters.largest_size)
    return float((most[1:] / logarithm[1:]).max())


@identity(
    id="uncorrelated-increments-b14",
    where="Equation (B.14)",
    statement="Increments of the tree's noise at steps j < t are uncorrelated unless j is in the "
    "set of steps that t takes back.",
    ours=["N = 45", "steps counted from 1", "t less each smaller power of two that divides it"],
    check=below(0.5),
)
def unlisted_covariance(parameters: Parameters) -> float:
    """Largest covariance of increments that share no listed node."""
    covariance = np.triu(_increments(parameters.sample_size), 1)
    return np.abs(np.where(_listed(parameters.sample_size), 0, covariance)).max()


@identity(
    id="increments-take-back",
    where="Equation (B.14)",
    compares="The covariance of an increment with one whose node it takes back, -1 in units of a "
    "node's variance.",
    check=close(-1.0, absolute=0.01),
)
def listed_covariance(parameters: Parameters) -> float:
    """Largest covariance of an increment with one that it takes back."""
    size = parameters.sample_size
    return _increments(size)[_listed(size)].max()


@identity(
    id="terms-of-an-increment",
    where="Section B.4",
    statement="An increment of the noise at step t combines at most log2(t), rounded up, and one "
    "more Gaussian vectors.",
    ours=["all t up to 45", "steps counted from 1"],
    check=below(1.0),
    wrong={"At most log2(t), rounded up.": "terms_over_logarithm"},
)
def terms_over_bound(parameters: Parameters) -> float:
    """Largest number of vectors in an increment over log2(t), rounded up, plus one."""
    counted, logarithm = _terms(parameters.sample_size)
    return float((counted / (logarithm + 1)).max())


@per(terms_over_logarithm="largest number of vectors in an increment over log2(t), rounded up")
def terms_over_logarithm(parameters: Parameters) -> float:
    counted, logarithm = _terms(parameters.sample_size)
    return float((counted[1:] / logarithm[1:]).max())


@identity(
    id="cross-terms-b16",
    where="Section B.4, equation (B.16)",
    statement="A psi^2 Sigma and its transpose are together at most A Sigma A' + psi^4 Sigma, with "
    "either sign.",
    ours=["A of 200 products of random steps and their multiples, psi = 0.5, 1 and 2"],
    check=above(-1e-12),
    wrong={"At most A Sigma A' + psi^4 Sigma / 2.": "cross_terms_of_a_half"},
)
def cross_terms() -> float:
    """Least eigenvalue of the bound on the cross terms less them."""
    return _cross_terms(1.0)


@per(cross_terms_of_a_half="the same with half of psi^4 Sigma")
def cross_terms_of_a_half() -> float:
    return _cross_terms(0.5)


theory = stage(AXES, blocks_of=globals())


def _covariance(parameters: Parameters, name: str, eigenvalues: np.ndarray) -> NoiseCovariance:
    from privreg.noise.covariance import (
        PublicCovariance,
        identity_covariance,
        population_covariance,
    )

    if name == "identity":
        return identity_covariance(parameters.dimension)
    if name == "population":
        horizon = parameters.sample_size * parameters.step_size
        return population_covariance(eigenvalues, horizon=horizon)
    rows = generator(9).standard_normal((7, parameters.dimension)) * np.sqrt(eigenvalues)
    return PublicCovariance(rows, ridge=0.5)


class _Lines(NamedTuple):
    """A run of the printed lines: its average, how far (B.4) is from it, clipped gradients."""

    average: np.ndarray
    distance_to_sgd: float
    clipped: int


def _printed_lines(
    parameters: Parameters, features: np.ndarray, labels: np.ndarray, covariance: NoiseCovariance
) -> _Lines:
    from privreg.noise.streams import WhiteNoise

    size, d, eta = parameters.sample_size, parameters.dimension, parameters.step_size
    white = WhiteNoise(covariance.draws, rng=generator(3)).draw(size - 1)
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
        by_sgd = by_sgd - eta * (gradient + _increment(prefix, before))
        before = prefix
        worst = max(worst, float(np.abs(by_sgd - iterate).max()))
    return _Lines((total + iterate) / size, worst, clipped)


def _increment(prefix: np.ndarray, before: np.ndarray) -> np.ndarray:
    """xi_t of equation (B.4)."""
    return prefix - before


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


def _paths(largest: int) -> tuple[np.ndarray, np.ndarray]:
    """For all N up to the largest: log2 N, rounded up, and most nodes from a leaf to the root."""
    logarithm = np.ceil(np.log2(np.arange(1, largest + 1))).astype(int)
    return logarithm, np.array(
        [_longest_path(n, 2 ** (int(k) + 1) - 1) for n, k in enumerate(logarithm, 1)]
    )


def _longest_path(leaves: int, nodes: int) -> int:
    """In a complete binary tree of so many nodes, of which the first leaves hold vectors."""
    at, length = nodes // 2 + np.arange(leaves), 1
    while np.any(at > 0):
        at, length = (at - 1) // 2, length + 1
    return length


def _increments(size: int) -> np.ndarray:
    """Covariance of the increments of prefix noise, by the law of shared nodes."""
    from privreg.noise.tree import tree_shared_nodes

    steps = np.arange(size + 1)
    covariance = tree_shared_nodes(steps[:, None], steps[None, :])
    return np.diff(np.diff(covariance, axis=0), axis=1)


def _terms(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors in which two prefixes in a row differ; log2(t), rounded up."""
    counted, before = [], set[tuple[int, int]]()
    for t in range(1, size + 1):
        # A digit of t stands for the node of its level that ends where the digits up to it do.
        nodes = {(level, t >> level) for level in range(t.bit_length()) if t >> level & 1}
        counted.append(len(nodes ^ before))
        before = nodes
    return np.array(counted), np.ceil(np.log2(np.arange(1, size + 1)))


def _cross_terms(last: float) -> float:
    """Least eigenvalue of A Sigma A' + last psi^4 Sigma less the cross terms of either sign."""
    rng, worst = generator(5), np.inf
    for _ in range(200):
        root, rows = rng.standard_normal((3, 3)), rng.standard_normal((4, 3))
        shape, product = root @ root.T, np.eye(3)
        for x in rows:
            product = (np.eye(3) - 0.05 * np.outer(x, x)) @ product
        for psi in (0.5, 1.0, 2.0):
            moved = rng.uniform(0, 2) * psi**2 * product
            bound = moved @ shape @ moved.T + last * psi**4 * shape
            cross = psi**2 * (moved @ shape + shape @ moved.T)
            least = min(np.linalg.eigvalsh(bound + sign * cross)[0] for sign in (-1, 1))
            worst = min(worst, float(least / np.linalg.norm(bound, 2)))
    return worst


def _listed(size: int) -> np.ndarray:
    """The paper's index set K(t): at t, t less a power of two that divides it more than once."""
    found = np.zeros((size, size), dtype=bool)
    for t in range(1, size + 1):
        for level in range((t & -t).bit_length() - 1):
            found[t - (1 << level) - 1, t - 1] = True
    return found
