"""Tree aggregation against the tree itself, built node by node."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from privreg.noise import streams
from privreg.noise.sensitivity import single_participation_sensitivity
from privreg.noise.toeplitz import step_variances

STEPS = st.integers(1, 70)


def nodes_of_prefix(count: int) -> set[tuple[int, int]]:
    """Left-open blocks of powers of two that cover the first steps, largest first."""
    nodes, first = set(), 0
    for level in reversed(range(count.bit_length())):
        if count >> level & 1:
            nodes.add((first, first + (1 << level)))
            first += 1 << level
    return nodes


@given(steps=STEPS)
def test_matrices_agree_with_the_covariance_and_the_sensitivity(steps):
    encoder, decoder = streams.tree_matrices(steps)
    assert_allclose(decoder @ encoder, np.eye(steps), atol=1e-12)
    prefixes = np.cumsum(decoder, axis=0)
    index = np.arange(1, steps + 1)
    nodes = [nodes_of_prefix(count) for count in index.tolist()]
    expected = [[len(one & other) for other in nodes] for one in nodes]
    assert np.array_equal(prefixes @ prefixes.T, expected)
    assert np.array_equal(step_variances(decoder), np.bitwise_count(index))
    sensitivity = single_participation_sensitivity(encoder)
    assert_allclose(streams.tree_sensitivity(steps), sensitivity, rtol=1e-14)
    assert streams.tree_sensitivity(steps) ** 2 <= streams.tree_levels(steps) + 1e-9


@pytest.mark.parametrize("steps", [1, 2, 8, 13, 64])
def test_stream_is_the_decoder_times_its_node_noise(steps, rng):
    noise = streams.TreeNoise(3, rng=rng, steps=steps, std=2.0)
    increments = np.array(list(noise))
    assert increments.shape == (steps, 3)
    white = np.random.Generator(np.random.SFC64(20250516)).standard_normal((steps, 3)) * 2.0
    # A prefix holds the latest node of each level that is in use, drawn at its completion.
    prefixes = np.cumsum(increments, axis=0)
    for count in range(1, steps + 1):
        ends = [end - 1 for _, end in nodes_of_prefix(count)]
        assert_allclose(prefixes[count - 1], white[ends].sum(axis=0), atol=1e-12)


def test_memory_is_one_vector_a_level(rng):
    noise = streams.TreeNoise(1, rng=rng)
    noise.draw(1023)
    assert len(noise._nodes) == 10
    noise.draw(1)
    assert len(noise._nodes) == 1


@given(steps=STEPS)
def test_honaker_uses_the_whole_tree_and_is_never_worse(steps):
    encoder, decoder = streams.full_honaker(steps)
    assert_allclose(decoder @ encoder, np.eye(steps), atol=1e-12)
    assert_allclose(decoder, np.linalg.pinv(encoder), atol=1e-12)
    _, plain = streams.tree_matrices(steps)
    assert np.all(step_variances(decoder) <= step_variances(plain) + 1e-12)
    assert len(encoder) == sum(steps >> level for level in range(steps.bit_length()))


@pytest.mark.parametrize(("steps", "levels"), [(1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (2048, 12)])
def test_levels(steps, levels):
    assert streams.tree_levels(steps) == levels
