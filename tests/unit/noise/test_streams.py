"""Streams against the dense product with the same white noise."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privreg.noise import streams, toeplitz
from privreg.noise.buffered import BufferedToeplitz, buffered_square_root
from privreg.noise.tree import TreeNoise

SEEDS = st.integers(0, 2**32 - 1)


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


@given(
    decoder=arrays(float, st.integers(1, 300), elements=st.floats(-1, 1)).filter(lambda b: b[0]),
    steps=st.integers(1, 400),
    dimension=st.integers(1, 3),
    seed=SEEDS,
)
def test_exact_stream_equals_the_dense_product(decoder, steps, dimension, seed):
    noise = streams.ToeplitzNoise(
        decoder, dimension=dimension, rng=generator(seed), std=1.5, steps=steps
    )
    white = 1.5 * generator(seed).standard_normal((steps, dimension))
    padded = np.zeros(steps)
    padded[: decoder.size] = decoder[:steps]
    found = noise.draw(steps + 10)
    assert found.shape == (steps, dimension)
    np.testing.assert_allclose(found, toeplitz.dense_matrix(padded) @ white, atol=1e-10)


@st.composite
def mechanisms(draw):
    size = draw(st.integers(1, 5))
    decays = draw(arrays(float, size, elements=st.floats(0, 1)))
    shares = draw(arrays(float, size, elements=st.floats(0, 1)))
    weights = shares / max(1.0, float(shares @ decays) * (1 + 1e-9))
    return BufferedToeplitz(decays, weights, draw(st.integers(1, 80)))


@given(mechanism=mechanisms(), seed=SEEDS)
def test_buffered_stream_equals_the_dense_product(mechanism, seed):
    noise = streams.BufferedNoise(mechanism, dimension=2, rng=generator(seed), std=0.5)
    white = 0.5 * generator(seed).standard_normal((mechanism.steps, 2))
    decoder = toeplitz.inverse_coefficients(mechanism.encoder())
    expected = toeplitz.dense_matrix(decoder) @ white
    np.testing.assert_allclose(np.array(list(noise)), expected, atol=1e-10)


def test_dense_stream_equals_the_product(rng):
    decoder = rng.standard_normal((7, 9))
    noise = streams.DenseNoise(decoder, dimension=3, rng=generator(5), std=2.0)
    expected = decoder @ (2.0 * generator(5).standard_normal((9, 3)))
    parts = [noise.draw(2), [next(noise)], noise.draw(50)]
    np.testing.assert_allclose(np.concatenate(parts), expected, atol=1e-13)


def test_a_stream_does_not_depend_on_how_it_is_taken(rng):
    makers = [
        lambda rng: streams.WhiteNoise(4, rng=rng, steps=200),
        lambda rng: streams.ToeplitzNoise(toeplitz.square_root(200), dimension=4, rng=rng),
        lambda rng: streams.BufferedNoise(buffered_square_root(200), dimension=4, rng=rng),
    ]
    for make in makers:
        whole = make(generator(1)).draw(200)
        pieces = make(generator(1))
        parts = [pieces.draw(3), [next(pieces)], pieces.draw(130), pieces.draw(500)]
        assert np.array_equal(np.concatenate(parts), whole)
        assert pieces.count == 200
        assert pieces.draw(5).shape == (0, 4)
        with pytest.raises(StopIteration):
            next(pieces)


@pytest.mark.parametrize("bands", [9, 5000, 20_000])
def test_long_products_by_blocks_are_whole(bands, rng):
    decoder, white = rng.standard_normal(bands), rng.standard_normal((20_000, 7))
    found = streams.correlate_noise(decoder, white)
    for column in (0, 6):
        expected = np.convolve(decoder, white[:, column])[:20_000]
        np.testing.assert_allclose(found[:, column], expected, atol=1e-13 * bands)


def test_white_noise_is_the_generators(rng):
    expected = 3.0 * generator(20250516).standard_normal((7, 2))
    assert np.array_equal(streams.WhiteNoise(2, rng=rng, std=3.0).draw(7), expected)


def test_items_belong_to_the_caller():
    noise = streams.BufferedNoise(buffered_square_root(50), dimension=2, rng=generator(1))
    whole = streams.BufferedNoise(buffered_square_root(50), dimension=2, rng=generator(1)).draw(50)
    for expected in whole:
        item = next(noise)
        assert np.array_equal(item, expected)
        item += 100.0


def test_buffered_memory_does_not_grow_with_the_run():
    mechanism = buffered_square_root(1_000_000, tolerance=1e-3)
    noise = streams.BufferedNoise(mechanism, dimension=8, rng=generator(1))
    next(noise)
    tracemalloc.start()
    for _ in range(1000):
        noise.draw(1000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert noise.count == 1_000_000
    # Two blocks of a thousand vectors and little else.
    assert peak < 3 * 1000 * 8 * 8


@pytest.mark.parametrize(
    "call",
    [
        lambda: streams.WhiteNoise(0, rng=generator(1)),
        lambda: streams.WhiteNoise(1, rng=generator(1), std=np.nan),
        lambda: streams.WhiteNoise(1, rng=generator(1)).draw(0),
        lambda: streams.ToeplitzNoise([], dimension=1, rng=generator(1)),
        lambda: streams.ToeplitzNoise([0.0, 1.0], dimension=1, rng=generator(1)),
        lambda: streams.ToeplitzNoise([np.nan], dimension=1, rng=generator(1)),
        lambda: streams.ToeplitzNoise([1.0], dimension=1, rng=generator(1), steps=0),
        lambda: streams.DenseNoise([1.0], dimension=1, rng=generator(1)),
        lambda: streams.correlate_noise([1.0], np.zeros(3)),
    ],
)
def test_refusals(call):
    with pytest.raises(ValueError, match="must"):
        call()


@pytest.mark.parametrize("kind", ["tree", "exact"])
def test_a_draw_that_was_interrupted_ends_the_stream(monkeypatch, kind):
    """Its white noise is gone: later steps would take back what was never added."""
    made = {
        "tree": lambda: TreeNoise(2, rng=generator(1)),
        "exact": lambda: streams.ToeplitzNoise([1.0] * 300, dimension=2, rng=generator(1)),
    }
    noise, whole = made[kind](), made[kind]()
    np.testing.assert_array_equal(noise.draw(70), whole.draw(70))
    plain, calls = noise._white, []

    def interrupted(count):
        calls.append(count)
        if len(calls) > (2 if kind == "tree" else 0):
            raise KeyboardInterrupt
        return plain(count)

    monkeypatch.setattr(noise, "_white", interrupted)
    with pytest.raises(KeyboardInterrupt):
        noise.draw(150)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="stream must be made anew"):
        noise.draw(1)
    with pytest.raises(ValueError, match="stream must be made anew"):
        next(noise)
