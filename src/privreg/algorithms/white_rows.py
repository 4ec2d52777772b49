"""Rows Wᵀx with their lengths, which descents keep between passes at the same W."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Rows = NDArray[Any]


class WhiteRows(NamedTuple):
    """Rows z = Wᵀx (rows, p), ‖z‖² and ‖z‖ (rows,), computed from these very numbers.

    `roots` are those of the rows' weights where a clip must know a record's own residual.
    """

    rows: Rows
    squares: Rows
    norms: Rows
    roots: Rows | None = None

    def block(self, which: slice) -> WhiteRows:
        return WhiteRows(self.rows[which], self.squares[which], self.norms[which])


def white_rows(features: Rows, whitening: FloatArray, out: Rows | None = None) -> WhiteRows:
    """Rows Wᵀx in the precision of the features, in `out` where its shape and precision are theirs.

    A pass over a file whose every block asked for memory of its own would wait for the system.
    At an identity, with which every whitening starts, they are the features themselves.
    """
    if whitening[0, 0] == 1 and np.array_equal(whitening, np.eye(len(whitening))):
        squares = np.einsum("ij,ij->i", features, features)
        return WhiteRows(features, squares, np.sqrt(squares))
    if out is not None and (out.shape, out.dtype) != (features.shape, features.dtype):
        out = None
    rows = np.matmul(features, whitening.astype(features.dtype, copy=False), out=out)
    squares = np.einsum("ij,ij->i", rows, rows)
    return WhiteRows(rows, squares, np.sqrt(squares))
