"""The judged tables and laws of `benchmarks/least_squares`, each as a file: arrays and a size."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "least_squares"))
from populations import JUDGED

arguments = argparse.ArgumentParser()
arguments.add_argument("--output", type=Path, required=True)
folder = arguments.parse_args().output
folder.mkdir(parents=True, exist_ok=True)
for number, (name, load) in enumerate(JUDGED.items()):
    found = load()
    np.savez(
        folder / f"{number:02}.npz",
        name=name,
        features=found.features,
        labels=found.labels,
        rows=found.rows,
    )
