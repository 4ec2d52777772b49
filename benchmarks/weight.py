"""Weight of the project: lines, files to read for a task, calls of a fit.

`python benchmarks/weight.py` takes ten seconds.
A reading list is what a module's imports reach, those inside functions and for types included.
Calls are those of functions of the library in a default fit whose plan was made before.
"""

import ast
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from privreg import Budget, PrivateLinearRegression

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PARTS = ("src/privreg", "src/reproduction", "tests", "config", "benchmarks", "docs", "workflow")
TASKS = {
    "Budget": "privreg.privacy.budget",
    "AdaSSP": "privreg.algorithms.adassp",
    "a deterministic equivalent": "privreg.theory.one_pass_dpgd.deterministic_equivalent",
    "DP-FTRL": "privreg.algorithms.dp_ftrl",
    "private least squares": "privreg.algorithms.least_squares_descent",
    "the estimator": "privreg.estimators.linear_regression",
}


def reading_list(module: str) -> dict[str, int]:
    """Modules that are reached by imports, with their lines."""
    found: dict[str, int] = {}
    left = [module]
    while left:
        name = left.pop()
        # Packages, which hold a docstring alone, and names of functions have no such file.
        path = SOURCE.joinpath(*name.split(".")).with_suffix(".py")
        if name not in found and path.is_file():
            text = path.read_text()
            found[name] = text.count("\n")
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("privreg"):
                    left += [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
    return found


def calls_of_a_fit() -> Counter[str]:
    """Calls by file and, under "checks", of what refuses a wrong value."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(1)
    features = rng.uniform(-1, 1, (5000, 3))
    labels = features @ [1.0, -1.0, 0.5] + 0.3 * rng.standard_normal(5000)
    model = PrivateLinearRegression(
        Budget.approximate(1.0, 1e-6), feature_bounds=(-1, 1), label_bounds=(-3, 3), random_state=1
    )
    counted: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and "/src/privreg/" in code.co_filename:
            counted[code.co_filename] += 1
            counted["checks"] += code.co_name.startswith("require_")

    model.fit(features, labels)
    sys.setprofile(count)
    model.fit(features, labels)
    sys.setprofile(None)
    return counted


def main() -> None:
    print("| part | files | lines |\n|---|---:|---:|")
    for part in PARTS:
        listed = subprocess.check_output(["git", "ls-files", part], cwd=ROOT, text=True)
        paths = map(ROOT.joinpath, listed.splitlines())
        files = [path for path in paths if path.is_file() and path.suffix != ".png"]
        lines = sum(path.read_bytes().count(b"\n") for path in files)
        print(f"| {part} | {len(files)} | {lines:,} |")
    print("\n| to read for | files | lines |\n|---|---:|---:|")
    for task, module in TASKS.items():
        found = reading_list(module)
        print(f"| {task} | {len(found)} | {sum(found.values()):,} |")
    checks = sum(
        isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", "")).startswith("require_")
        for path in SOURCE.joinpath("privreg").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
    )
    counted = calls_of_a_fit()
    refused = counted.pop("checks")
    print(f"\nCalls of `require_*` written: {checks}. Calls of a fit with its plan at hand: ")
    print(f"{counted.total():,} in {len(counted)} files, {refused} of them checks.")


if __name__ == "__main__":
    main()
