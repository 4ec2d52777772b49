"""Everything that is tried, and a table of what happened: the numbers of `docs/reliability.md`.

`python tests/fuzz/campaign.py functions` calls all targets with hostile values; with names of
modules, theirs alone. `python tests/fuzz/campaign.py inputs` gives wrong configurations, ledgers
and commands; a number takes a seeded sample of that many of each kind. Defects are printed first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

import functions
import inputs
from runner import Tried, defects, table
from targets import targets


def of_functions(modules: list[str]) -> Iterable[Tried]:
    found, missing = targets()
    for name in missing:
        print(f"MISSING {name}")
    for target in found:
        if not modules or target.name.split(".")[0] in modules:
            yield from functions.campaign(target)


def of_inputs(sample: list[str]) -> Iterable[Tried]:
    return inputs.campaign(int(sample[0]) if sample else None)


PARTS: dict[str, Callable[[list[str]], Iterable[Tried]]] = {
    "functions": of_functions,
    "inputs": of_inputs,
}


def main(part: str = "", *which: str) -> int:
    if part not in PARTS:
        sys.exit(f"name one of {', '.join(PARTS)}")
    found = list(PARTS[part](list(which)))
    bad = defects(found)
    print(*bad, table(found), sep="\n")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
