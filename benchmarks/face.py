"""How long `import privreg` takes in a fresh process, beside the bare interpreter.

    python benchmarks/face.py [--repeats 20]

It prints the medians in seconds, and fails if the import as a whole, interpreter included, takes
0.2 s or longer.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from statistics import median
from time import perf_counter

LONGEST = 0.2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    cases = {
        "interpreter": "pass",
        "import privreg": "import privreg",
        "privreg.Budget": "import privreg; privreg.Budget",
    }
    # In turn, so that a busy machine slows them alike.
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(repeats):
        for name, code in cases.items():
            times[name].append(_seconds(code))
    for name, found in times.items():
        print(f"{name:16s} {median(found):.3f} s")
    return int(median(times["import privreg"]) >= LONGEST)


def _seconds(code: str) -> float:
    start = perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
