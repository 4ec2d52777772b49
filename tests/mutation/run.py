"""Put files through mutations and name those that no test notices: `make mutants`.

    python tests/mutation/run.py                          every file of mutants.yaml
    python tests/mutation/run.py privacy/zcdp.py          some files
    python tests/mutation/run.py --again privacy/zcdp.py  only what survived the last run

Each mutant runs in a fork of one warm process, which has imported what is slow and nothing of
privreg, against the tests that mutants.yaml names for its file, until one fails. Tests that have
killed before go first. A kernel of the mutated file is compiled anew and never cached, so that no
test sees a kernel that was compiled from another text; those of other files come from the cache.
Where mutants.yaml says `interpreted`, the interpreter runs all kernels instead, which computes the
same: compiling a kernel takes longer than all its tests.

A survivor must stand in mutants.yaml with its reason, and what stands there must survive.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.abc
import importlib.util
import json
import os
import resource
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from mutations import Mutant, mutants, stated

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "privreg"
KEPT = ROOT / ".pytest_cache" / "mutants"
SLOW_IMPORTS = (
    "numba",
    "hypothesis",
    "scipy.integrate",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.utils",
    "opendp.prelude",
    "dp_accounting.rdp.rdp_privacy_accountant",
)


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Serves one module from a changed text."""

    def __init__(self, module: str, path: Path, source: str) -> None:
        self.module, self.path, self.source = module, path, source

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname == self.module:
            return importlib.util.spec_from_loader(fullname, self, origin=str(self.path))
        return None

    def get_filename(self, fullname: str) -> str:
        return str(self.path)

    def get_data(self, path: str) -> bytes:
        return self.source.encode()


class Judge:
    """Runs likely killers first and remembers what failed, how often, and how long tests take."""

    def __init__(self, kills: Counter[str], seconds: dict[str, float]) -> None:
        self.kills, self.seconds = kills, seconds
        self.failed = ""
        self.took: Counter[str] = Counter()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: (-self.kills[item.nodeid], self.seconds.get(item.nodeid, 0.0)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.took[report.nodeid] += report.duration
        if report.failed and not self.failed:
            self.failed = report.nodeid


def in_fork(task: Any, *, limit: int) -> dict[str, Any] | None:
    """What a function returns in a process of its own, None where it works too long or dies."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            # Seconds of work, not of the clock: other processes may want the machine as well.
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            os.write(writer, json.dumps(task()).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        # A fork of another thread may hold the other end open for longer.
        text = answer.readline()
    os.waitpid(child, 0)
    try:
        return dict(json.loads(text))
    except ValueError:
        return None


def run_tests(
    file: str,
    tests: list[str],
    mutant: Mutant | None = None,
    kills: Counter[str] | None = None,
    seconds: dict[str, float] | None = None,
    interpreted: bool = False,
) -> dict[str, Any]:
    """Run the tests in this process, with the mutant in place of the file."""
    if interpreted:
        interpret_kernels()
    if mutant is not None:
        from numba.core.dispatcher import Dispatcher

        module = "privreg." + file.removesuffix(".py").replace("/", ".")
        sys.meta_path.insert(0, Mutated(module, PACKAGE / file, mutant.source))
        cached = Dispatcher.enable_caching

        def enable_caching(self: Any) -> None:
            if self.py_func.__module__ != module:
                cached(self)

        Dispatcher.enable_caching = enable_caching
    judge = Judge(kills or Counter(), seconds or {})
    begun = time.process_time()
    options = ["-x", "--tb=no", f"--rootdir={ROOT}"]
    # The second one collects garbage again and again, which takes longer than most tests.
    for plugin in ("cacheprovider", "unraisableexception"):
        options += ["-p", f"no:{plugin}"]
    if interpreted:
        # A kernel that divides by zero says nothing, NumPy's numbers do.
        options += ["-W", "ignore::RuntimeWarning"]
    code = pytest.main([*options, *tests], plugins=[judge])
    work = time.process_time() - begun
    return {"code": int(code), "failed": judge.failed, "took": judge.took, "work": work}


def interpret_kernels() -> None:
    """Turn Numba off in this process, and what only Numba can run into NumPy."""
    import numba

    # What no mutant changes, and takes long: it stays compiled.
    importlib.import_module("privreg.noise.inverse")
    numba.config.DISABLE_JIT = True
    sums = importlib.import_module("privreg.sums")
    sums.inner_product = lambda left, right: left @ right


def judge_file(file: str, about: dict[str, Any], *, again: bool, jobs: int) -> list[str]:
    """Judge all mutants of a file; returns what is wrong with it, a line each."""
    record = KEPT / f"{file.replace('/', '-')}.json"
    source = (PACKAGE / file).read_text(encoding="utf-8")
    listed = stated(source, about["only"]) if "only" in about else mutants(source)
    known = json.loads(record.read_text()) if record.is_file() else {}
    tests = [str(ROOT / "tests" / name) for name in about["tests"]]
    # The file itself in place of a mutant: its kernels are compiled as those of a mutant are.
    same = Mutant(source, "", "")
    interpreted = bool(about.get("interpreted"))
    baseline = in_fork(lambda: run_tests(file, tests, same, interpreted=interpreted), limit=900)
    if baseline is None or baseline["code"]:
        return [f"{file}: tests fail without a mutation: {baseline and baseline['failed']}"]
    seconds = baseline["took"]
    limit = 5 + int(3 * baseline["work"])
    kills: Counter[str] = Counter(known.get("kills", {}))
    before = known.get("survived", {})
    # Of another text nothing is known.
    again = again and known.get("source") == source
    chosen = [mutant for mutant in listed if not again or mutant.key in before]
    started = time.monotonic()

    def judged(mutant: Mutant) -> bool:
        found = in_fork(
            lambda: run_tests(file, tests, mutant, kills, seconds, interpreted), limit=limit
        )
        if found is not None and found["failed"]:
            kills[found["failed"]] += 1
        return found is not None and found["code"] == 0

    with ThreadPoolExecutor(jobs) as pool:
        survived = [
            mutant for mutant, alive in zip(chosen, pool.map(judged, chosen), strict=True) if alive
        ]
    KEPT.mkdir(parents=True, exist_ok=True)
    found = {mutant.key: [mutant.was, mutant.now] for mutant in survived}
    record.write_text(json.dumps({"kills": kills, "survived": found, "source": source}))
    reasons = {(left["was"], left["now"]) for left in about.get("left", [])}
    left = {(mutant.was, mutant.now) for mutant in survived}
    print(
        f"{file}: {len(listed)} mutants, {len(listed) - len(survived)} killed,"
        f" {len(survived)} left, {len(left - reasons)} without a reason;"
        f" tests {baseline['work']:.1f} s, all {time.monotonic() - started:.0f} s",
        flush=True,
    )
    all_of_them = {(mutant.was, mutant.now) for mutant in listed}
    return [
        f"{file}: {what}\n  {was}\n  {now}"
        for what, pairs in (
            ("survives without a reason", left - reasons),
            ("has a reason and is no mutant", reasons - all_of_them),
            ("has a reason and is killed", (reasons & all_of_them) - left),
        )
        for was, now in sorted(pairs)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="below src/privreg; all by default")
    parser.add_argument("--again", action="store_true", help="only what survived the last run")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    options = parser.parse_args()
    book = yaml.safe_load((Path(__file__).parent / "mutants.yaml").read_text(encoding="utf-8"))
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".pytest_cache" / "numba")
    for name in SLOW_IMPORTS:
        importlib.import_module(name)
    import numba

    numba.njit(lambda x: x + 1.0)(1.0)
    gc.freeze()
    wrong = []
    for file in options.files or book:
        wrong += judge_file(file, book[file], again=options.again, jobs=options.jobs)
    print(*wrong, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
