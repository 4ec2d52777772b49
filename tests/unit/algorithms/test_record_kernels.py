"""Compiled passes over records against NumPy's, number by number."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms import record_gradients
from privreg.algorithms.huber_sums import (
    curvature_sum,
    gradient_sum,
    gram_sum,
    length_histogram,
    residual_histogram,
    second_moment_sum,
    traces,
)
from privreg.algorithms.least_squares_sums import (
    first_sums,
    last_sums,
    product_gradient_sum,
    product_histogram,
)
from privreg.algorithms.records import Records
from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.white_rows import white_rows

SIZE, DIMENSION = 2500, 3
EDGES = 2.0 ** np.arange(-6, 5)
WHITENING = np.array([[1.0, 0.3, 0.0], [0.2, 2.0, 0.1], [0.0, 0.0, 0.7]])


def every_sum(common_width):
    rng = np.random.Generator(np.random.SFC64(5))
    features, labels = rng.standard_t(3, (SIZE, DIMENSION)), rng.standard_t(3, SIZE)
    # Absent records, and values on an edge.
    features[::40], features[1], labels[1] = 0.0, [0.25, 0.0, 0.0], 1.0
    held = Records(ArraySamples(features, labels), 4.0, 6.0, common_width=common_width)
    theta, clip, cap = np.array([0.1, -0.2, 0.3]), {"clip_norm": 1.1}, {"cap": 2.0}
    both = {**clip, **cap}
    return [
        length_histogram(held, WHITENING, EDGES),
        gram_sum(held, WHITENING, **cap),
        gram_sum(held, WHITENING, cap=1e9),
        residual_histogram(held, theta, WHITENING, EDGES),
        gradient_sum(held, theta, WHITENING, **clip),
        curvature_sum(held, theta, WHITENING, **both),
        np.array(traces(held, theta, WHITENING, **both)),
        second_moment_sum(held, theta, WHITENING, **clip),
        product_histogram(held, theta, WHITENING, EDGES, **cap),
        product_gradient_sum(held, theta, WHITENING, **both),
        *first_sums(held, theta, WHITENING, short_cap=1.5, **both),
        *map(np.asarray, last_sums(held, theta, WHITENING, short_cap=1.5, **both)),
    ]


@pytest.mark.parametrize("common_width", [False, True])
def test_compiled_passes_give_the_numbers_of_numpy(monkeypatch, common_width):
    found = every_sum(common_width)
    monkeypatch.setattr(record_gradients, "MANY", SIZE)
    for each, expected in zip(found, every_sum(common_width), strict=True):
        np.testing.assert_array_equal(each, expected)


def test_an_identity_leaves_rows_as_they_are():
    """As a product with it does, the bytes of the sums included."""
    rows = np.random.Generator(np.random.SFC64(6)).standard_normal((50, DIMENSION))
    found, product = white_rows(rows, np.eye(DIMENSION)), rows @ np.eye(DIMENSION)
    assert found.rows is rows
    np.testing.assert_array_equal(found.rows, product)
    np.testing.assert_array_equal(found.squares, np.einsum("ij,ij->i", product, product))
    assert white_rows(rows, 2 * np.eye(DIMENSION)).rows is not rows
