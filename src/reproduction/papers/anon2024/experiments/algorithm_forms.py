"""Algorithms 1 and 3 line by line beside the library, and the rewriting as SGD."""

from __future__ import annotations

from itertools import product

import numpy as np
from pydantic import Field

from privreg.algorithms.samples import ArraySamples
from privreg.noise import covariance as shapes
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, above, below, close, every, per, stage, stated
from reproduction.papers.anon2024.setting import (
    correlation_named,
    generator,
    power_law,
    shared_nodes,
)

PLACE = "Algorithms 1 and 3, Sections 2 and 3.1, equations (B.2) to (B.4) and (B.14)"


class Parameters(Strict):
    """A short run on drawn data."""

    sample_size: q.Plural[q.SampleSize] = Field(description="Number N of rows.")
    dimension: q.Dimension = Field(description="Dimension d.")
    step_size: q.StepSize = Field(description="eta.")
    noise_multiplier: q.Positive = Field(description="tau.")
    clip_norm: q.ClipNorm = Field(description="psi.")
    largest_size: q.Plural[q.SampleSize] = Field(description="Largest N of a counted tree.")


AXES = {
    "noise_shape": Axis("noise covariance", ("identity", "population", "public")),
    "counting": Axis("how the steps of Algorithm 3 are counted", ("from 0", "from 1")),
}


@per(
    "noise_shape",
    tree_error=stated(
        "distance of the average from Algorithms 1 and 3",
        where="Algorithm 1, Algorithm 3",
        compares="With three covariances and a fixed clip norm the average of the library's "
        "DP-FTRL equals that of Algorithms 1 and 3 as loops over a tree; step 1 is the first.",
        check=every(below(1e-11)),
        id="algorithms-line-by-line",
    ),
    sgd_error=stated(
        "distance of the iterates from equation (B.4)",
        where="Equation (B.4), Section 3.1",
        statement="From w = 0, line 9 of Algorithm 1 is a step of SGD with an increment of noise.",
        check=every(below(1e-11)),
        id="update-is-sgd-with-increments",
        ours=["N = 45, d = 12, psi = 1.5; steps from 1", "Sigma = I, H + I/(N eta), 7 public rows"],
    ),
)
def runs(parameters: Parameters, noise_shape: str) -> dict:
    from privreg.algorithms.shaped_dp_ftrl import FixedClip, ShapedMechanism, shaped_dp_ftrl

    size, d, eta = parameters.sample_size, parameters.dimension, parameters.step_size
    eigenvalues, rng = power_law(d, 2), generator(0)
    features = rng.standard_normal((size, d)) * np.sqrt(eigenvalues)
    labels = features @ power_law(d, 1) + rng.standard_normal(size)
    if noise_shape == "identity":
        covariance: shapes.NoiseCovariance = shapes.identity_covariance(d)
    elif noise_shape == "population":
        covariance = shapes.population_covariance(eigenvalues, horizon=size * eta)
    else:
        public = generator(9).standard_normal((7, d)) * np.sqrt(eigenvalues)
        covariance = shapes.PublicCovariance(public, ridge=0.5)
    mechanism = ShapedMechanism(
        covariance,
        correlation_named("tree"),
        FixedClip(parameters.clip_norm),
        parameters.noise_multiplier,
        size,
    )
    samples = ArraySamples(features, labels)
    found = shaped_dp_ftrl(samples, mechanism=mechanism, step_size=eta, rng=generator(3))
    average, distance = _printed_lines(parameters, features, labels, covariance)
    scale = np.abs(average).max()
    return {
        "tree_error": np.abs(found.average - average).max() / scale,
        "sgd_error": distance / scale,
    }


@per(
    "counting",
    prefix_error=stated(
        "largest error of a prefix without noise, divided by its number of vectors",
        where="Algorithm 3, Section 3.1",
        statement="With the binary digits of t, counted from 0, Algorithm 3 returns an estimate of "
        "the sum of all vectors received so far.",
        select={"counting": "from 0"},
        check=below(1e-12),
        corrected={
            "holds_with": "the binary digits of t + 1",
            "evidence": {"select": {"counting": "from 1"}},
        },
        id="private-sum-of-algorithm-3",
        kind="prose",
        ours=["without noise", "45 vectors"],
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


@per(
    most_nodes_over_levels=stated(
        "largest number of nodes from a leaf to the root, divided by ceil(log2 N) + 1",
        where="Section 2",
        statement="A vector affects at most ceil(log2 N) + 1 nodes, from its leaf to the root.",
        check=below(1.0000001),
        wrong={"At most ceil(log2 N) nodes.": "most_nodes_over_logarithm"},
        id="nodes-of-a-record",
        kind="prose",
        ours=["all N up to 300"],
    ),
    most_nodes_over_logarithm="the same number divided by ceil(log2 N)",
)
def most_nodes(parameters: Parameters) -> dict[str, float]:
    """Most nodes in complete binary trees with vectors in the first N leaves."""
    sizes = np.arange(1, parameters.largest_size + 1)
    logarithm = np.ceil(np.log2(sizes)).astype(int)
    most = np.ones(len(sizes))
    for tree, (leaves, height) in enumerate(zip(sizes, logarithm, strict=True)):
        at = 2**height - 1 + np.arange(leaves)
        while np.any(at > 0):
            at, most[tree] = (at - 1) // 2, most[tree] + 1
    return {
        "most_nodes_over_levels": (most / (logarithm + 1)).max(),
        "most_nodes_over_logarithm": (most[1:] / logarithm[1:]).max(),
    }


@per(
    unlisted_covariance=stated(
        "largest covariance of increments that share no listed node",
        where="Equation (B.14)",
        statement="Increments of the tree's noise at steps j < t are uncorrelated unless j is in "
        "the index set K(t).",
        check=below(0.5),
        id="uncorrelated-increments-b14",
        ours=[
            "N = 45, steps counted from 1, a constant clip norm",
            "K(t): t - 2^i, 2^i below the largest 2^Q that divides t; for t = 2^Q as printed",
        ],
    ),
    listed_covariance=stated(
        "largest covariance of an increment with an earlier one that it takes back",
        where="Equation (B.15), Section B.4",
        statement="If an increment of the tree's noise shares a vector with an earlier one, their "
        "covariance is psi^2 tau^2 Sigma for each such vector.",
        check=close(1.0, absolute=0.01),
        corrected={
            "holds_with": "the sign -; by cross-terms-b16 the bound still holds",
            "check": close(-1.0, absolute=0.01),
        },
        id="shared-increments-b15",
        ours=["in units of a node's variance, N = 45, steps counted from 1, a constant clip norm"],
        finding="increments-of-the-tree",
    ),
)
def increments(parameters: Parameters) -> dict[str, float]:
    """Increments by the law of shared nodes of prefixes."""
    listed = _listed(parameters.sample_size)
    covariance = np.diff(np.diff(shared_nodes(parameters.sample_size), axis=0), axis=1)
    return {
        "unlisted_covariance": np.abs(np.where(listed, 0, np.triu(covariance, 1))).max(),
        "listed_covariance": covariance[listed].max(),
    }


@per(
    terms_over_bound=stated(
        "largest number of vectors in an increment, divided by ceil(log2(t)) + 1",
        where="Section B.4",
        statement="A noise increment at step t combines at most ceil(log2 t) + 1 Gaussian vectors.",
        check=below(1.0),
        wrong={"At most ceil(log2 t) vectors.": "terms_over_logarithm"},
        id="terms-of-an-increment",
        ours=["all t up to 45", "steps counted from 1"],
    ),
    terms_over_logarithm="largest number of vectors in an increment, divided by ceil(log2(t))",
)
def terms(parameters: Parameters) -> dict[str, float]:
    """Vectors in which two prefixes in a row differ."""
    counted, before = [], set[tuple[int, int]]()
    for t in range(1, parameters.sample_size + 1):
        # A digit of t stands for the node of its level that ends where the digits up to it do.
        nodes = {(level, t >> level) for level in range(t.bit_length()) if t >> level & 1}
        counted.append(len(nodes ^ before))
        before = nodes
    logarithm = np.ceil(np.log2(np.arange(1, parameters.sample_size + 1)))
    return {
        "terms_over_bound": (counted / (logarithm + 1)).max(),
        "terms_over_logarithm": (counted[1:] / logarithm[1:]).max(),
    }


@per(
    cross_terms=stated(
        "least eigenvalue of the bound minus the cross terms",
        where="Section B.4, equation (B.16)",
        statement="The sum of A psi^2 Sigma and its transpose is at most A Sigma A' + psi^4 Sigma, "
        "with either sign, for positive semi-definite Sigma.",
        check=above(-1e-12),
        wrong={"At most A Sigma A' + psi^4 Sigma / 2.": "cross_terms_of_a_half"},
        id="cross-terms-b16",
        ours=["A: multiples of 200 products of random steps; psi = 0.5, 1 and 2"],
    ),
    cross_terms_of_a_half="the same least eigenvalue with half of psi^4 Sigma",
)
def bound_on_cross_terms() -> dict[str, float]:
    rng = generator(5)
    least = {"cross_terms": np.inf, "cross_terms_of_a_half": np.inf}
    for _ in range(200):
        root, rows = rng.standard_normal((3, 3)), rng.standard_normal((4, 3))
        shape, product = root @ root.T, np.eye(3)
        for x in rows:
            product = (np.eye(3) - 0.05 * np.outer(x, x)) @ product
        for psi in (0.5, 1.0, 2.0):
            moved = rng.uniform(0, 2) * psi**2 * product
            cross = psi**2 * (moved @ shape + shape @ moved.T)
            for name, last in zip(least, (1.0, 0.5), strict=True):
                bound = moved @ shape @ moved.T + last * psi**4 * shape
                found = min(np.linalg.eigvalsh(bound + sign * cross)[0] for sign in (-1, 1))
                least[name] = min(least[name], float(found / np.linalg.norm(bound, 2)))
    return least


@per(
    scale_on_noise=stated(
        "largest correlation of a clip norm with an earlier noise vector",
        where="Section B.4",
        statement="The noise vectors z are independent of the clip norms psi.",
        check=below(1e-9),
        corrected={
            "slip": "proof",
            "holds_with": "z_k independent of psi(k) and all earlier draws; cross terms vanish",
            "evidence": {"variable": "cross_moment"},
            "wrong": {"With the clip norms of the next step.": "cross_moment_of_the_next"},
        },
        id="noise-independent-of-clip-norms",
        ours=["one dimension, 8 steps of noise +-1, all combinations, C = 2, tau = 1, eta = 0.1"],
        finding="clip-norms-depend-on-noise",
    ),
    cross_moment="largest mean of psi(j) psi(k) z_j z_k, j < k, divided by that of psi(k)^2",
    cross_moment_of_the_next="the same quotient with psi(j + 1) and psi(k + 1)",
)
def adaptive_scales() -> dict[str, float]:
    """C = 2, tau = 1, eta = 0.1 and l_t^2 twice the mean square, on fixed rows."""
    signs = np.array(list(product((-1.0, 1.0), repeat=8))).T
    tree, iterate, scales = _Tree(8, 256), np.zeros(256), np.zeros((9, 256))
    for t, (x, z) in enumerate(generator(7).standard_normal((8, 2))):
        scales[t] = np.maximum(scales[t - 1], 2 * np.sqrt(2 * (iterate - 1) ** 2 + 2))
        iterate = -0.1 * tree.step(x * (x * iterate - x - z), scales[t] * signs[t])
    correlation = np.corrcoef(scales[1:8], signs[:7])[:7, 7:]
    noise, later = scales[:8] * signs, scales[1:8] * signs[:7]
    return {"scale_on_noise": np.abs(np.tril(correlation)).max()} | {
        name: float(np.abs(np.triu(each @ each.T, 1)).max() / np.sum(each[-1] ** 2))
        for name, each in (("cross_moment", noise), ("cross_moment_of_the_next", later))
    }


theory = stage(AXES, blocks_of=globals())


def _printed_lines(
    parameters: Parameters,
    features: np.ndarray,
    labels: np.ndarray,
    covariance: shapes.NoiseCovariance,
) -> tuple[np.ndarray, float]:
    """The average of the printed lines, and the largest distance of (B.4) from their iterates."""
    from privreg.noise.streams import WhiteNoise

    size, d, eta = parameters.sample_size, parameters.dimension, parameters.step_size
    white = WhiteNoise(covariance.draws, rng=generator(3)).draw(size - 1)
    root = covariance.root_multiply(np.eye(covariance.draws))
    inverse = np.linalg.inv(root.T @ root)
    nodes = parameters.noise_multiplier * parameters.clip_norm * white @ root
    tree, noise_tree = _Tree(size, d), _Tree(size, d)
    total, iterate, before, by_sgd = np.zeros((4, d))
    worst = 0.0
    for t in range(size - 1):
        total = total + iterate
        gradient = features[t] * (features[t] @ iterate - labels[t])
        norm = float(np.sqrt(gradient @ inverse @ gradient))
        gradient = gradient * min(1.0, parameters.clip_norm / norm)
        # Line 9: the minimiser of the linear loss plus |w|^2 / (2 eta).
        iterate = -eta * tree.step(gradient, nodes[t])
        prefix = noise_tree.step(np.zeros(d), nodes[t])
        by_sgd = by_sgd - eta * (gradient + _increment(prefix, before))
        before = prefix
        worst = max(worst, float(np.abs(by_sgd - iterate).max()))
    return (total + iterate) / size, worst


def _increment(prefix: np.ndarray, before: np.ndarray) -> np.ndarray:
    """xi_t of equation (B.4)."""
    return prefix - before


class _Tree:
    """Algorithm 3 with its tree of values; `shift` 1 counts steps from 1."""

    def __init__(self, leaves: int, dimension: int, shift: int = 1) -> None:
        self.height = (leaves - 1).bit_length()
        self.values = [np.zeros((1 << up, dimension)) for up in range(self.height, -1, -1)]
        self.count, self.shift = 0, shift

    def step(self, vector: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Lines 4 to 17; of the nodes that take noise only the highest enters a prefix."""
        leaf = self.count
        for level, values in enumerate(self.values):
            values[leaf >> level] += vector
        lefts = [level for level in range(self.height) if (leaf >> level) % 2 == 0]
        # The last left child on the way down; without one the path ends at the root.
        level = min(lefts) if lefts else self.height
        assert (leaf + 1) % (1 << level) == 0
        self.values[level][leaf >> level] += noise
        self.count += 1
        prefix, digits = np.zeros_like(vector), leaf + self.shift
        for at in range(self.height + 1):
            if digits >> at & 1:
                block = leaf >> at
                left = at == self.height or block % 2 == 0
                prefix = prefix + self.values[at][block if left else block - 1]
        return prefix


def _listed(size: int) -> np.ndarray:
    """The paper's index set K(t): at t, t less a power of two that divides it more than once."""
    found = np.zeros((size, size), dtype=bool)
    for t in range(1, size + 1):
        for level in range((t & -t).bit_length() - 1):
            found[t - (1 << level) - 1, t - 1] = True
    return found
