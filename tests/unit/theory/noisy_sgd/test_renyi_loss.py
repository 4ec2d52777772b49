"""The privacy loss of homogenised SGD against dense laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privreg.privacy.renyi import renyi_divergence
from privreg.theory.noisy_sgd.renyi_loss import (
    Record,
    average_divergence,
    iterates_divergence,
    last_iterate_divergence,
)

from .laws import DIMENSION, dense_joint, first_pair, small_law


def test_nothing_is_lost_before_the_differing_step() -> None:
    law = small_law()
    pair = first_pair(law)
    options: dict[str, Any] = {"position": 3.0, "order": 2.0}
    assert last_iterate_divergence(law, *pair, time=2.0, **options) == 0.0
    assert iterates_divergence(law, *pair, times=[1.0, 2.0], **options) == 0.0
    assert average_divergence(law, *pair, times=[1.0, 2.0], **options) == 0.0


def test_iterates_after_the_step_are_worth_the_first_of_them() -> None:
    law = small_law()
    pair = first_pair(law)
    first = last_iterate_divergence(law, *pair, time=3.0, position=2.5, order=2.0)
    joint = iterates_divergence(law, *pair, times=[3.0, 4.0, 6.0], position=2.5, order=2.0)
    assert joint == first


def test_suffix_claim_understates_the_joint_loss() -> None:
    """An iterate released before the differing step pins the state that the step starts from."""
    law = small_law()
    pair = first_pair(law)
    options: dict[str, Any] = {"times": [2.4, 3.0], "position": 2.5, "order": 2.0}
    joint = iterates_divergence(law, *pair, **options)
    paper = iterates_divergence(law, pair[1], pair[0], variant="paper", **options)
    suffix = last_iterate_divergence(law, *pair, time=3.0, position=2.5, order=2.0)
    assert paper == pytest.approx(suffix, rel=1e-12)
    assert joint > 1.01 * suffix


def test_printed_average_takes_the_printed_cross_covariance() -> None:
    law = small_law()
    pair = first_pair(law)
    times, position, order = np.array([2.4, 3.0]), 2.5, 2.0
    laws, variances = [], {t: law.variance(t) for t in (0.0, *times, position)}
    for record in pair:
        mean, joint = dense_joint(law, variances, record, times, position)
        block = np.diag(law.transition(3.0, 2.4) * law.variance(2.4))
        joint[DIMENSION:, :DIMENSION] = joint[:DIMENSION, DIMENSION:] = block
        fold = np.kron([[0.5, 0.5]], np.eye(DIMENSION))
        laws.append((fold @ mean, fold @ joint @ fold.T))
    expected = renyi_divergence(laws[0][0] - laws[1][0], laws[1][1], laws[0][1], order=order)
    options: dict[str, Any] = {"times": times, "position": position, "order": order}
    value = average_divergence(law, *pair, variant="paper", **options)
    assert value == pytest.approx(expected, rel=1e-10)
    exact = average_divergence(law, pair[1], pair[0], **options)
    assert abs(exact / value - 1) > 0.05


def test_printed_direction_is_the_reverse() -> None:
    law = small_law()
    first, second = first_pair(law)
    options: dict[str, Any] = {"time": 3.0, "position": 2.5, "order": 2.0}
    printed = last_iterate_divergence(law, first, second, variant="paper", **options)
    assert printed == last_iterate_divergence(law, second, first, **options)
    assert printed != pytest.approx(
        last_iterate_divergence(law, first, second, **options), rel=1e-3
    )


def test_infinite_beyond_the_largest_order() -> None:
    """Where the first law is the wider one, the loss is infinite from a finite order on."""
    law = small_law()
    none, large = Record(np.zeros(DIMENSION), 0.0), Record(3 * np.eye(DIMENSION)[0], 0.0)
    options: dict[str, Any] = {"time": 6.0, "position": 6.0}
    finite = [last_iterate_divergence(law, none, large, order=a, **options) for a in (1.1, 1.3)]
    assert 0 < finite[0] < finite[1] < np.inf
    assert last_iterate_divergence(law, none, large, order=4.0, **options) == np.inf
    assert last_iterate_divergence(law, large, none, order=4.0, **options) < np.inf
    assert (
        iterates_divergence(law, none, large, times=[5.9, 6.0], position=5.95, order=4.0) == np.inf
    )
