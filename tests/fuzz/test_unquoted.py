"""No error of any public function quotes a value of the data that it was given.

Every parameter that holds records takes them with a secret planted: a word, a number out of any
range, a complex number, a nested or unequal list; the whole text of the error is searched for it.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from made import fresh
from targets import Target, targets

from privreg.algorithms.samples import Chunk
from privreg.theory.noisy_sgd.renyi_loss import Record

WORD, NUMBER = "secret7f3a", 9.8765432198765e305
DIGITS = "98765"
# Words for data of records. `rows` of a public covariance and iterates that were released are none.
RECORDS = {
    "X",
    "y",
    "chunks",
    "counts",
    "features",
    "first",
    "gram",
    "groups",
    "labels",
    "moment",
    "replacement",
    "replacement_features",
    "replacement_labels",
    "samples",
    "second",
    "sums",
    "total",
    "vectors",
}
# Released counts and matrices, declared bounds and columns, coefficients, rows that are public, and
# groups that a run looks at.
NONE = {
    ("bounds.Frame", "features"),
    ("covariance.PublicCovariance", "features"),
    ("huber_scales.length_cap", "counts"),
    ("huber_scales.residual_scale", "counts"),
    ("low_rank.combine", "first"),
    ("low_rank.combine", "second"),
    ("no_clipping.no_clipping_demand", "features"),
    ("runs.Declared", "groups"),
    ("tables.TableSamples", "features"),
    ("toeplitz.product_coefficients", "first"),
    ("toeplitz.product_coefficients", "second"),
    ("whitening.whiten", "gram"),
}
CASES = [
    (target, name)
    for target in targets()[0]
    for name in target.arguments
    if name in RECORDS
    and (target.name, name) not in NONE
    and not target.name.startswith("command_line.")
]


def planted(valid: Any) -> Iterator[Any]:
    """The valid data with one secret in it, in every way that data come in."""
    if isinstance(valid, (Record, Chunk)):
        for place, part in enumerate(valid):
            for value in planted(np.asarray(part)):
                yield type(valid)(*(value if k == place else old for k, old in enumerate(valid)))
        return
    try:
        cells = np.asarray(valid, dtype=np.float64)
    except (TypeError, ValueError):
        cells = np.ones((3, 2))
    yield np.array(NUMBER)
    yield {WORD: NUMBER}
    yield [[NUMBER, 1.0], [NUMBER]]
    if not cells.ndim:
        return
    for value, kind in (
        (WORD, object),
        (WORD, "U12"),
        (WORD.encode(), "S12"),
        ({WORD: NUMBER}, object),
        (NUMBER + 1j, np.complex128),
        (int(NUMBER) * 10**9, object),
        (NUMBER, np.float64),
        (-NUMBER, np.float64),
    ):
        found = cells.astype(kind)
        found.flat[-1] = value
        yield found
        yield found.tolist()
        yield found[None, None]
    both = np.full(cells.shape, NUMBER)
    both.flat[0] = np.nan
    yield both
    yield np.ma.masked_invalid(both)


def quotes(text: str) -> bool:
    return any(part in text for part in (WORD, WORD.upper(), DIGITS, "9.8765", "9.88e+305"))


def shown(error: BaseException) -> str:
    """What a traceback shows, but not the lines of code in it."""
    lines = traceback.format_exception(error)
    return "".join([str(error), *(line for line in lines if not line.startswith("  File"))])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("target", "name"), CASES, ids=lambda case: case if isinstance(case, str) else case.name
)
def test_no_error_quotes_a_record(target: Target, name: str):
    refused = 0
    for value in planted(fresh(target.arguments[name])):
        try:
            target.call(**{name: value})
        except Exception as error:
            refused += 1
            text = shown(error)
            found = f"{type(value).__name__} in {target.name}({name}): {text}"
        else:
            text = found = ""
        assert not quotes(text), found
    assert refused


def test_records_are_taken_in_many_places():
    assert len(CASES) > 40
