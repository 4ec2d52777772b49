"""Streams in pieces, of many bands, and after an interruption; `test_exactness` has their law."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from privreg import kernels
from privreg.kernels import FEWEST, TESTED, standard_normal
from privreg.noise import streams, toeplitz
from privreg.noise.streams import TreeNoise


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: streams.WhiteNoise(4, rng=rng, steps=200),
        lambda rng: streams.ToeplitzNoise(toeplitz.square_root(200), dimension=4, rng=rng),
        lambda rng: TreeNoise(4, rng=rng, steps=200),
    ],
    ids=["white", "Toeplitz", "tree"],
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
        assert_allclose(found[:, column], expected, atol=1e-13 * bands)


@pytest.mark.parametrize("kind", ["tree", "exact"])
def test_a_draw_that_was_interrupted_ends_the_stream(monkeypatch, kind):
    """Its white noise is gone: later steps would take back what was never added."""
    made = {
        "tree": lambda: TreeNoise(2, rng=generator(1)),
        "exact": lambda: streams.ToeplitzNoise([1.0] * 300, dimension=2, rng=generator(1)),
    }
    noise, whole = made[kind](), made[kind]()
    assert_array_equal(noise.draw(70), whole.draw(70))
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
    with pytest.raises(ValueError, match="stream must not be used after a failed draw"):
        noise.draw(1)
    with pytest.raises(ValueError, match="stream must not be used after a failed draw"):
        next(noise)


SHAPES = [0, 1, (), (3, 4), FEWEST - 1, FEWEST, (FEWEST,), (1024, 11), (2, 41, 103), (1_000_000,)]


@pytest.fixture
def loop(monkeypatch):
    """The compiled loop, as after many draws; records its calls."""
    sizes, fill = [], kernels._loop()

    def recorded(rng, numbers):
        # NumPy's own draws hold it too, and the loop lets other threads run.
        with ThreadPoolExecutor(1) as other:
            assert not other.submit(rng.bit_generator.lock.acquire, blocking=False).result()
        sizes.append(numbers.size)
        fill(rng, numbers)

    monkeypatch.setattr(kernels, "_loop", lambda: recorded)
    monkeypatch.setattr(kernels._Process, "drawn", kernels.WORTH_LOADING)
    return sizes


def twins(kind=np.random.SFC64):
    return np.random.Generator(kind(5)), np.random.Generator(kind(5))


def same_state(first, second):
    return repr(first.bit_generator.state) == repr(second.bit_generator.state)


@pytest.mark.parametrize("kind", sorted(TESTED, key=lambda kind: kind.__name__))
def test_bytes_and_states_are_numpys(loop, kind):
    ours, numpys = twins(kind)
    for shape in SHAPES:
        found, expected = standard_normal(ours, shape), numpys.standard_normal(shape)
        assert np.shape(found) == np.shape(expected)
        assert np.asarray(found).dtype == np.float64
        assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
        assert same_state(ours, numpys)
        if np.size(found) == 1_000_000:
            # Beyond 3.654 the ziggurat draws with logarithms: 1 in 3,900.
            assert np.count_nonzero(np.abs(found) > 3.6542) > 200
        # Half a word that 32-bit draws keep for later stays where it is.
        assert ours.integers(9, dtype=np.int32) == numpys.integers(9, dtype=np.int32)
        assert same_state(ours, numpys)
    assert loop == [int(np.prod(shape)) for shape in SHAPES if np.prod(shape) >= FEWEST]


class Foreign(np.random.Generator):
    def standard_normal(self, *args, **kwargs):
        return super().standard_normal(*args, **kwargs) + 1


class ForeignBits(np.random.SFC64):
    pass


@pytest.mark.parametrize(
    "make",
    [
        lambda: Foreign(np.random.SFC64(5)),
        lambda: np.random.Generator(ForeignBits(5)),
        lambda: np.random.RandomState(5),
    ],
)
def test_other_generators_draw_by_themselves(loop, make):
    found, expected = standard_normal(make(), (FEWEST, 2)), make().standard_normal((FEWEST, 2))
    assert found.tobytes() == expected.tobytes()
    assert not loop
