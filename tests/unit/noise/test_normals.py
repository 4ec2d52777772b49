"""Normals of the compiled loop are those that NumPy draws from the same generator."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from privreg.noise import normals
from privreg.noise.normals import FEWEST, TESTED, standard_normal

SHAPES = [0, 1, (), (3, 4), FEWEST - 1, FEWEST, (FEWEST,), (1024, 11), (2, 41, 103), (30_000, 3)]


@pytest.fixture
def loop(monkeypatch):
    """The compiled loop, as after many draws; records its calls."""
    from privreg.noise import normals_kernel

    sizes, fill = [], normals_kernel.fill

    def recorded(rng, numbers):
        # NumPy's own draws hold it too, and the loop lets other threads run.
        with ThreadPoolExecutor(1) as other:
            assert not other.submit(rng.bit_generator.lock.acquire, blocking=False).result()
        sizes.append(numbers.size)
        fill(rng, numbers)

    monkeypatch.setattr(normals_kernel, "fill", recorded)
    monkeypatch.setattr(normals._Process, "drawn", normals.WORTH_LOADING)
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
        # Half a word that 32-bit draws keep for later stays where it is.
        assert ours.integers(9, dtype=np.int32) == numpys.integers(9, dtype=np.int32)
        assert same_state(ours, numpys)
    assert loop == [int(np.prod(shape)) for shape in SHAPES if np.prod(shape) >= FEWEST]


def test_the_tail_is_numpys(loop):
    # Beyond 3.654 the ziggurat draws with logarithms: 1 in 3,900.
    ours, numpys = twins()
    found, expected = standard_normal(ours, 2_000_000), numpys.standard_normal(2_000_000)
    assert np.count_nonzero(np.abs(found) > 3.6542) > 400
    assert found.tobytes() == expected.tobytes()
    assert loop == [2_000_000]


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


def test_only_a_process_that_draws_much_loads_the_compiler():
    script = (
        "import sys\nimport numpy as np\nfrom privreg.noise import normals\n"
        "rng = np.random.default_rng(1)\n"
        "normals.standard_normal(rng, normals.FEWEST)\n"
        "normals.WORTH_LOADING = normals._Process.drawn + 2 * normals.FEWEST\n"
        "for size in [normals.FEWEST - 1] * 9 + [normals.FEWEST] * 2:\n"
        "    print('numba' in sys.modules)\n"
        "    normals.standard_normal(rng, size)\n"
        "print('numba' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False"] * 11 + ["True"]
