"""Neighbours of every relation with hostile numbers in any number of rows: 0 wrong, 0 silent.

A pair must be answered for both data sets or refused for both, in the same words, and an answer
must move as declared. `python tests/neighbours/test_relations.py 20000` draws as many pairs and
prints what was found.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
from relations import ALGORITHMS, REPLACE, generator, most

from privreg.auditing import NeighbouringTables, neighbouring_tables
from privreg.privacy.budget import Neighbours

NUMBERS = [0.0, 0.0, 5e-324, 1e-160, 1e-50, 1.0, -3.0, 1e8, -1e50, 1e200, -1e308]
GROUPED = ("huber", "huber, own widths")
DRAWS = 16


def drawn(rng: np.random.Generator, relation: Neighbours, *, persons: bool) -> NeighbouringTables:
    rows, dimension = int(rng.integers(1, 9)), int(rng.integers(1, 5))

    def table(count: int) -> tuple[np.ndarray, np.ndarray]:
        scales = rng.uniform(0.1, 1, (count, dimension + 1))
        values = rng.choice(NUMBERS, (count, dimension + 1)) * scales
        blank = rng.random(count) < 0.2
        values[blank] = 0.0
        return values[:, :-1].copy(), values[:, -1].copy()

    features, labels = table(rows)
    return neighbouring_tables(
        features,
        labels,
        record=int(rng.integers(rows)),
        neighbours=relation,
        replacement=table(int(rng.integers(1, 4)) if persons else 1)
        if relation is REPLACE
        else None,
        groups=rng.integers(0, 3, rows) if persons else None,
    )


def judged(name: str, pair: NeighbouringTables) -> str:
    """What came of one pair."""
    compare, _ = ALGORITHMS[name]
    try:
        moved = compare(pair)
    except ValueError as error:
        return "refused, " + _refused_alike(compare, pair, str(error))
    except AssertionError as error:
        return f"wrong: {str(error).strip().splitlines()[0]}"
    if not np.all(np.isfinite(moved)):
        return "silent: NaN"
    return "as declared" if max(moved) <= most(name) else f"wrong: moves {max(moved):.3g}"


def _refused_alike(compare: Any, pair: NeighbouringTables, words: str) -> str:
    """Whether each data set beside itself is refused in the same words."""
    for table in (pair.first, pair.second):
        try:
            compare(pair._replace(first=table, second=table))
        except ValueError as error:
            if str(error) == words:
                continue
        return f"wrong: one data set alone: {words}"
    return "both alike"


def campaign(pairs: int, seed: int) -> Counter:
    """Outcomes of so many pairs for each algorithm and each relation that it takes."""
    rng, found = generator(seed), Counter()
    for name, (_, taken) in ALGORITHMS.items():
        for relation in taken:
            for draw in range(pairs):
                pair = drawn(rng, relation, persons=name in GROUPED and bool(draw % 2))
                found[name, relation.value, judged(name, pair)] += 1
    return found


@pytest.mark.parametrize("name", ALGORITHMS)
def test_hostile_neighbours(name):
    rng = generator(11)
    _, taken = ALGORITHMS[name]
    for relation in taken:
        for draw in range(DRAWS):
            pair = drawn(rng, relation, persons=name in GROUPED and bool(draw % 2))
            assert judged(name, pair) in ("as declared", "refused, both alike"), (relation, pair)


@pytest.mark.long
def test_the_whole_campaign():
    outcomes = {outcome for _, _, outcome in campaign(300, seed=12)}
    assert outcomes <= {"as declared", "refused, both alike"}


if __name__ == "__main__":
    counts = campaign(int(sys.argv[1]), seed=13)
    for (name, relation, outcome), count in sorted(counts.items()):
        print(f"| {name} | {relation} | {outcome} | {count:,} |")
