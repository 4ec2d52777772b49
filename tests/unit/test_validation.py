"""Validation: what is accepted, and what the quick tests of a range must not overlook."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.checks import (
    FEW,
    LEAST,
    MOST,
    require_answer,
    require_array,
    require_broadcast,
    require_real,
    require_scale,
)

BAD = (np.nan, -np.nan, np.inf, -np.inf)


@pytest.mark.parametrize("size", [1, 2, 9, 65, FEW, FEW + 1])
def test_no_place_hides_a_number_that_is_not_finite(size: int) -> None:
    places = range(size) if size < 100 else (0, 1, size // 2, size - 2, size - 1)
    for bad in BAD:
        for place in places:
            array = np.linspace(-1.0, 1.0, size)
            array[place] = bad
            for accept in (require_real, lambda *given: require_array(*given, shape=(None,))):
                with pytest.raises(ValueError, match="x must be finite, got other values in 1 of"):
                    accept("x", array)
            with pytest.raises(ValueError, match=r"precision, got -?(nan|inf)"):
                require_answer("x", array)


@pytest.mark.parametrize("size", [1, FEW + 1])
@pytest.mark.parametrize(
    ("end", "inside", "outside"),
    [
        ("above", np.nextafter(1.0, 2.0), 1.0),
        ("least", 1.0, np.nextafter(1.0, 0.0)),
        ("below", np.nextafter(1.0, 0.0), 1.0),
        ("most", 1.0, np.nextafter(1.0, 2.0)),
    ],
)
def test_ends_of_a_range_are_exact(size: int, end: str, inside: float, outside: float) -> None:
    array = np.full(size, inside)
    assert require_real("x", array, **{end: 1.0}) is array
    array[-1] = outside
    with pytest.raises(ValueError, match=r"x must be finite and .* 1, got "):
        require_real("x", array, **{end: 1.0})


def test_the_domain_has_its_ends_and_what_is_allowed_besides() -> None:
    beyond = (0.0, -1, np.nextafter(LEAST, 0.0), np.nextafter(MOST, np.inf), np.inf, np.nan, [1.0])
    for scale in (LEAST, 1, np.float32(0.5), MOST):
        assert require_scale("x", scale) == scale
    for scale in beyond:
        with pytest.raises(ValueError, match="x must be"):
            require_scale("x", scale)
    assert require_scale("x", 0, zero=True) == 0.0
    assert require_scale("x", np.inf, infinite=True) == np.inf
    with pytest.raises(
        ValueError, match=r"x must be 0, or at least 1e-12 .* 1e\+12, or inf, got -0.5"
    ):
        require_scale("x", -0.5, zero=True, infinite=True)


@pytest.mark.parametrize("view", ["strided", "reversed", "fortran", "byteswapped"])
def test_views_are_seen_whole(view: str) -> None:
    size = FEW
    plain = np.linspace(0.0, 1.0, 4 * size).reshape(2, 2 * size)
    plain[1, -2 if view == "strided" else -1] = np.nan
    seen = {
        "strided": plain[:, ::2],
        "reversed": plain[::-1, ::-1],
        "fortran": np.asfortranarray(plain),
        "byteswapped": plain.astype(plain.dtype.newbyteorder()),
    }[view]
    with pytest.raises(ValueError, match="x must be finite, got other values in"):
        require_array("x", seen, shape=(None, None))
    seen[np.isnan(seen)] = 0.5
    taken = require_array("x", seen, shape=(2, None))
    np.testing.assert_array_equal(taken, seen)
    assert taken.flags.c_contiguous


@pytest.mark.parametrize(
    ("shape", "wanted", "fits"),
    [
        ((), (), True),
        ((3,), (), False),
        ((3,), (3,), True),
        ((0,), (None,), False),
        ((2, 3), (None, 3), True),
        ((2, 3), (..., 3), True),
        ((3,), (..., 3), True),
        ((4, 2, 3), (..., None, 3), True),
        ((0, 3), (..., 3), False),
        ((2, 3), (3,), False),
    ],
)
def test_shapes(shape: tuple[int, ...], wanted: tuple, fits: bool) -> None:
    if fits:
        assert require_array("x", np.ones(shape), shape=wanted).shape == shape
    else:
        with pytest.raises(ValueError, match=r"x must have shape \("):
            require_array("x", np.ones(shape), shape=wanted)


def test_shapes_that_broadcast() -> None:
    assert require_broadcast(a=np.ones(3), b=np.ones(3)) == (3,)
    assert require_broadcast(a=np.ones((2, 1)), b=np.ones(3), c=1.0) == (2, 3)
    with pytest.raises(ValueError, match="a and b must have shapes that broadcast"):
        require_broadcast(a=np.ones(2), b=np.ones(3))
