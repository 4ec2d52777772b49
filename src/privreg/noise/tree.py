"""Tree aggregation: noise of prefix sums with one node for each bit of the step count.

After step t (counted from 1) the prefix noise ν_t is the sum of one independent normal vector for
each 1 in the binary digits of t: the nodes of a binary tree that together cover the steps 1 to t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack

from privreg.noise.streams import NoiseStream
from privreg.validation import FloatArray, require_broadcast, require_count, require_counts


class TreeNoise(NoiseStream):
    r"""Stream of tree-aggregated noise in memory for one vector a level.

    The t-th item is the increment :math:`\xi_t = \nu_t - \nu_{t-1}` that a gradient step takes.
    Each coordinate of ν_s and ν_t has covariance `std`² times `tree_shared_nodes(s, t)`; a root of
    Σ times the items makes it shaped. `std` is a node's: the noise multiplier times
    `tree_sensitivity` times the bound on a step's vector. Privacy accounted by
    `tree_sensitivity(steps)` holds for that many steps and no more; by default the stream is
    endless. anon2024, Algorithm 3 (with steps counted from 1); choquettechoo2024, Table 3.
    """

    def __init__(
        self,
        dimension: int,
        *,
        rng: np.random.Generator,
        std: float = 1.0,
        steps: int | None = None,
    ) -> None:
        super().__init__(dimension, rng=rng, std=std, steps=steps)
        self._nodes: dict[int, FloatArray] = {}

    def _fill(self, block: FloatArray) -> None:
        for row, count in enumerate(range(self.count + 1, self.count + len(block) + 1)):
            level = (count & -count).bit_length() - 1
            node = self._white(1)[0]
            block[row] = node
            for below in range(level):
                block[row] -= self._nodes.pop(below)
            self._nodes[level] = node


def tree_levels(steps: int) -> int:
    r"""Levels of the whole tree, :math:`\lceil \log_2 N \rceil + 1` (anon2024, Algorithm 3)."""
    return (require_count("steps", steps) - 1).bit_length() + 1


def tree_sensitivity(steps: int) -> float:
    r"""Sensitivity of the tree where a record takes part in one step: root of the nodes it enters.

    .. math:: \gamma = \sqrt{\lfloor \log_2 N \rfloor + 1}

    Guarantee
    ---------
    With node noise of standard deviation σγ and steps of norm at most 1, all prefix sums together
    are 1/(2σ²)-zCDP where adding, removing or zeroing out a record changes one step. Only nodes
    that enter a prefix count; `tree_levels` counts all of them and is never less.
    """
    return float(np.sqrt(require_count("steps", steps).bit_length()))


def tree_shared_nodes(s: ArrayLike, t: ArrayLike) -> NDArray[np.int64]:
    r"""Covariance of the prefix noises ν_s and ν_t in units of a node's variance.

    .. math:: \operatorname{shared}(s, s) = \operatorname{popcount}(s), \qquad
        \operatorname{shared}(s, t) = \operatorname{popcount}(t \gg (h + 1))

    with h the highest binary digit in which s and t differ.

    Parameters
    ----------
    s, t : array_like of int
        Step counts, at least 0 (which has no noise), broadcast against each other; may be empty.

    Examples
    --------
    >>> tree_shared_nodes([3, 3, 7], [3, 7, 6])
    array([2, 0, 2])

    Source
    ------
    anon2024, Algorithm 3 (derived).
    """
    first, second = require_counts("s", s, least=0), require_counts("t", t, least=0)
    require_broadcast(s=first, t=second)
    common, later = np.broadcast_arrays(first, second)
    # Filling a number's digits below its highest 1 leaves exactly the digits not shared.
    differ = common ^ later
    for shift in (1, 2, 4, 8, 16, 32):
        differ |= differ >> shift
    return np.bitwise_count(later & ~differ).astype(np.int64)


def tree_matrices(steps: int) -> tuple[FloatArray, FloatArray]:
    """Encoder (nodes, steps) and decoder (steps, nodes) of the nodes that enter a prefix.

    The decoder maps node noise to the increments that `TreeNoise` yields; its product with the
    encoder is the identity.

    Source
    ------
    choquettechoo2024, Table 3 (TreeAgg).
    """
    steps = require_count("steps", steps)
    rows, prefix_rows = [], []
    index = np.arange(1, steps + 1)
    for level in range(steps.bit_length()):
        for block in range(0, steps >> level, 2):
            first, last = block << level, (block + 1) << level
            rows.append((index > first) & (index <= last))
            # The node is in use from its completion until its right sibling completes.
            prefix_rows.append((index >= last) & (index < last + (1 << level)))
    encoder = np.array(rows, dtype=np.float64)
    prefixes = np.array(prefix_rows, dtype=np.float64).T
    return encoder, np.diff(prefixes, axis=0, prepend=0.0)


def full_honaker(steps: int) -> tuple[FloatArray, FloatArray]:
    r"""Encoder (nodes, steps) and decoder (steps, nodes) of the least-variance prefixes.

    .. math:: B = C^+ = (C^\top C)^{-1} C^\top

    with one row of C for each node of the tree, right children included, that is complete. The
    decoder is not lower-triangular in time: a prefix uses nodes that later steps complete, so the
    whole noise is drawn before the first step.

    Source
    ------
    Honaker (2015); choquettechoo2024, Table 3 (Full Honaker).
    """
    steps = require_count("steps", steps)
    index = np.arange(steps)
    nodes, gram = [], np.zeros((steps, steps))
    for level in range(steps.bit_length()):
        nodes.append((index >> level == np.arange(steps >> level)[:, None]).astype(np.float64))
        for block in range(steps >> level):
            under = slice(block << level, (block + 1) << level)
            gram[under, under] += 1.0
    half, _ = lapack.dpotri(lapack.dpotrf(gram)[0])
    # Columns of a node: those of its two children, which at first are of the inverse itself.
    columns = [np.triu(half) + np.triu(half, 1).T]
    for level in range(1, steps.bit_length()):
        pairs = columns[-1][:, : steps >> level << 1]
        columns.append(pairs[:, ::2] + pairs[:, 1::2])
    return np.concatenate(nodes), np.concatenate(columns, axis=1)
