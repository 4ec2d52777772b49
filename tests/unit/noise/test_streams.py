"""Streams in pieces, of many bands, and after an interruption; `test_exactness` has their law."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.noise import streams, toeplitz
from privreg.noise.buffered import buffered_square_root
from privreg.noise.tree import TreeNoise


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: streams.WhiteNoise(4, rng=rng, steps=200),
        lambda rng: streams.ToeplitzNoise(toeplitz.square_root(200), dimension=4, rng=rng),
        lambda rng: streams.BufferedNoise(buffered_square_root(200), dimension=4, rng=rng),
        lambda rng: TreeNoise(4, rng=rng, steps=200),
    ],
    ids=["white", "Toeplitz", "buffered", "tree"],
)
def test_a_stream_does_not_depend_on_how_it_is_taken(make):
    whole = make(generator(1)).draw(300)
    pieces = make(generator(1))
    parts = [pieces.draw(3), next(pieces)[None], pieces.draw(130), pieces.draw(500)]
    assert np.array_equal(np.concatenate(parts), whole)
    assert pieces.count == 200
    assert pieces.draw(5).shape == (0, 4)
    with pytest.raises(StopIteration):
        next(pieces)
    again = make(generator(1))
    for expected in whole[:9]:
        item = next(again)
        assert np.array_equal(item, expected)
        # It belongs to the caller.
        item += 100.0


@pytest.mark.parametrize("bands", [9, 5000, 20_000])
def test_long_products_by_blocks_are_whole(bands, rng):
    decoder, white = rng.standard_normal(bands), rng.standard_normal((20_000, 7))
    found = streams.correlate_noise(decoder, white)
    for column in (0, 6):
        expected = np.convolve(decoder, white[:, column])[:20_000]
        np.testing.assert_allclose(found[:, column], expected, atol=1e-13 * bands)


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
