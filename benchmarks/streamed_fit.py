"""Time and memory of a private fit of a Parquet file that is never held in memory.

    python benchmarks/streamed_fit.py [--rows 10000000] [--features 50] [--file FILE]

The file is written first, by a process of its own, unless it is there. The fit's wall and processor
time and its largest resident memory are printed, with the error of its coefficients; it fails
above two minutes or 1 GB for the ten million rows.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

ROWS_PER_GROUP = 100_000
LABEL_NOISE_STD = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--file", type=Path, help="kept; a temporary one by default")
    parser.add_argument("--only-write", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only_write:
        write(arguments.file, arguments.rows, arguments.features)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        file = arguments.file or Path(folder, "table.parquet")
        if not file.exists():
            shape = [f"--rows={arguments.rows}", f"--features={arguments.features}"]
            command = [sys.executable, __file__, "--only-write", f"--file={file}", *shape]
            subprocess.run(command, check=True)
        print(f"{file.stat().st_size / 1e9:.2f} GB on disk", flush=True)
        seconds, memory = fit(file, arguments.features, arguments.threads)
    return int(arguments.rows <= 10_000_000 and (seconds > 120 or memory > 1.0))


def write(file: Path, rows: int, features: int) -> None:
    """Standard normal features, clipped to their bounds, in row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.Generator(np.random.SFC64(0))
    names = [*(f"x{k}" for k in range(features)), "y"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(file, schema) as writer:
        for start in range(0, rows, ROWS_PER_GROUP):
            size = min(ROWS_PER_GROUP, rows - start)
            x = np.clip(rng.standard_normal((size, features)), -5, 5)
            y = x @ coefficients(features) + LABEL_NOISE_STD * rng.standard_normal(size)
            writer.write_table(pa.table([*x.T, y], schema=schema))


def coefficients(features: int) -> np.ndarray:
    return np.linspace(-1, 1, features)


def fit(file: Path, features: int, threads: int) -> tuple[float, float]:
    """Seconds and gigabytes that the fit took."""
    from privreg import Budget, PrivateLinearRegression

    model = PrivateLinearRegression(
        Budget.approximate(1.0, 1e-6),
        feature_bounds={f"x{k}": (-5, 5) for k in range(features)},
        label_bounds=(-40, 40),
    )
    wall, processor = perf_counter(), process_time()
    model.fit_table(file, label="y", threads=threads)
    wall, processor = perf_counter() - wall, process_time() - processor
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    worst = np.abs(model.coef_ - coefficients(features)).max()
    print(f"fit: {wall:.1f} s, {processor:.1f} s of the processor, {memory:.3f} GB at most")
    print(f"largest error of a coefficient: {worst:.2g}")
    return wall, memory


if __name__ == "__main__":
    raise SystemExit(main())
