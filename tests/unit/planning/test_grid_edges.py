"""The way beyond a grid: how it goes on, and where it ends."""

import numpy as np
import pytest

from privreg.planning.grid_edges import beyond, next_on


@pytest.mark.parametrize(
    ("ladder", "value", "expected"),
    [
        ((0.1, 0.2, 0.4), 0.4, 0.8),
        ((0.1, 0.2, 0.4), 0.1, 0.05),
        ((0.1, 0.2, 0.4), 0.05, 0.025),
        ((0.1, 0.2, 0.4), 0.2, None),
        ((2, 3, 5), 5, 7),
        ((2, 3, 5), 9, 11),
        ((2, 3, 5), 4, None),
    ],
)
def test_a_ladder_goes_on_as_it_ended(ladder, value, expected):
    assert next_on(ladder, value) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("worthless", [np.inf, np.nan, 1.0, 0.995])
def test_the_way_out_ends_where_nothing_is_gained(worthless):
    found = beyond(0, 1.0, further=lambda x: x + 1, value=lambda _: worthless)
    assert found == (0, 1.0)
