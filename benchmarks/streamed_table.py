"""Time and memory of a private fit of a large Parquet file.

    python benchmarks/streamed_table.py [--rows 10000000] [--columns 50] [--threads 2] [--file FILE]

It writes the file, unless it is there, in row groups of 100,000 (about 2 GB in single precision at
the default size), fits it in a process of its own, and prints the wall time, the processor time and
the largest resident memory of that process. It fails above two minutes or 1 GB. Needs pyarrow.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

ROW_GROUP = 100_000
BOUND, LABEL_BOUND = 5.0, 40.0
MOST_SECONDS, MOST_GIGABYTES = 120.0, 1.0


def write(path: Path, *, rows: int, columns: int) -> None:
    """Normal features in [-5, 5], and labels with slopes from -1 to 1 and unit noise."""
    import pyarrow
    from pyarrow import parquet

    rng = np.random.Generator(np.random.SFC64(1))
    names = [*(f"x{k}" for k in range(columns)), "y"]
    schema = pyarrow.schema([(name, pyarrow.float32()) for name in names])
    slopes = np.linspace(-1, 1, columns)
    partial = path.with_suffix(".partial")
    with parquet.ParquetWriter(partial, schema, compression="none") as writer:
        for start in range(0, rows, ROW_GROUP):
            count = min(ROW_GROUP, rows - start)
            features = np.clip(rng.standard_normal((count, columns)), -BOUND, BOUND)
            labels = features @ slopes + rng.standard_normal(count)
            values = [*features.T.astype(np.float32), labels.astype(np.float32)]
            writer.write_table(pyarrow.table(dict(zip(names, values, strict=True)), schema))
    partial.replace(path)


def fit(path: Path, *, columns: int, threads: int) -> dict[str, float]:
    """Seconds, gigabytes, and the largest error of a slope."""
    from privreg import Budget, PrivateLinearRegression

    model = PrivateLinearRegression(
        Budget.approximate(1.0, 1e-6),
        feature_bounds={f"x{k}": (-BOUND, BOUND) for k in range(columns)},
        label_bounds=(-LABEL_BOUND, LABEL_BOUND),
        random_state=0,
    )
    wall, processor = perf_counter(), process_time()
    model.fit_table(path, label="y", threads=threads)
    return {
        "wall_seconds": perf_counter() - wall,
        "processor_seconds": process_time() - processor,
        "peak_gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "largest_error": float(np.max(np.abs(model.coef_ - np.linspace(-1, 1, columns)))),
    }


def main() -> int:
    """Write, fit apart, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--fit-only", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    path = given.file or Path(f"build/streamed_{given.rows}_{given.columns}.parquet")
    if given.fit_only:
        print(json.dumps(fit(path, columns=given.columns, threads=given.threads)))
        return 0
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, rows=given.rows, columns=given.columns)
    # Apart, so that the memory of writing is not counted.
    command = [sys.executable, __file__, "--fit-only", "--file", str(path)]
    command += ["--columns", str(given.columns), "--threads", str(given.threads)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(f"{given.rows:,} rows of {given.columns} columns, {given.threads} threads")
    for name, value in found.items():
        print(f"{name.replace('_', ' '):20} {value:.4g}")
    slow = found["wall_seconds"] > MOST_SECONDS
    return int(slow or found["peak_gigabytes"] > MOST_GIGABYTES)


if __name__ == "__main__":
    sys.exit(main())
