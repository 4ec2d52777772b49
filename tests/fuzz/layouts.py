"""The same numbers in other containers, and containers that only look like numbers."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np


class Subclass(np.ndarray):
    """An array whose products lie: what is not converted on entry answers wrongly."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.asarray(each) for each in inputs]
        return getattr(ufunc, method)(*plain, **options) * 0 + 7


class Converted:
    """What converts itself to an array, as a data frame does."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.array, dtype=dtype)


def same(valid: Any) -> Iterator[tuple[str, Any]]:
    """Containers of the same numbers: each must be refused or answered alike."""
    if isinstance(valid, bool):
        yield "numpy's", np.bool_(valid)
    elif isinstance(valid, float):
        yield "0-d", np.array(valid)
        yield "numpy's", np.float64(valid)
        yield "long", np.longdouble(valid)
        yield "big-endian", np.array(valid, dtype=">f8")
    elif isinstance(valid, int):
        yield "numpy's", np.int64(valid)
        yield "short", np.uint8(valid) if 0 <= valid < 256 else np.int64(valid)
    elif isinstance(valid, np.ndarray) and valid.dtype.kind in "iuf" and valid.size:
        wide = np.zeros((2, *valid.shape), dtype=valid.dtype)
        wide[0] = valid
        strided = np.zeros((*valid.shape, 2), dtype=valid.dtype)
        strided[..., 0] = valid
        frozen = valid.copy()
        frozen.flags.writeable = False
        yield "list", valid.tolist()
        yield "view", wide[0]
        yield "strided", strided[..., 0]
        yield "reversed twice", valid[::-1].copy()[::-1]
        yield "Fortran order", np.asfortranarray(valid)
        yield "big-endian", valid.astype(valid.dtype.newbyteorder(">"))
        yield "read-only", frozen
        yield "long", valid.astype(np.longdouble if valid.dtype.kind == "f" else np.int64)
        yield "subclass", valid.view(Subclass)
        yield "converts itself", Converted(valid)
        if valid.ndim == 2:
            yield "matrix", np.asmatrix(valid)


def impostors(valid: Any) -> Iterator[tuple[str, Any]]:
    """What must be refused, though NumPy would make numbers of it."""
    if isinstance(valid, float) and not isinstance(valid, bool):
        yield "decimal", Decimal(str(valid))
        yield "masked", np.ma.array(valid, mask=True)
        yield "text", np.str_(valid)
        yield "truth value", np.bool_(True)
        yield "complex", np.complex128(valid)
    elif isinstance(valid, np.ndarray) and valid.dtype.kind in "iuf" and valid.size:
        hidden = np.ma.array(valid, mask=np.zeros(valid.shape, dtype=bool))
        hidden.mask.flat[0] = True
        fields = np.zeros(valid.shape, dtype=[("value", valid.dtype)])
        fields["value"] = valid
        yield "masked", hidden
        yield "structured", fields
        yield "records", fields.view(np.recarray)
        yield "objects", valid.astype(object)
        yield "complex", valid.astype(np.complex128)
        yield "text", valid.astype(str)
        yield "truth values", valid > 0
        yield "times", valid.astype(np.int64).astype("timedelta64[s]")
    elif isinstance(valid, np.random.Generator):
        yield "seed", 5
        yield "seed sequence", np.random.SeedSequence(5)
        yield "old generator", np.random.RandomState(5)
        yield "bits", np.random.SFC64(5)
        yield "module", np.random
        yield "silent", _silent()


def _silent() -> np.random.Generator:
    class Silent(np.random.Generator):
        def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
            return np.zeros(() if size is None else size)

    return Silent(np.random.SFC64(5))
