"""The project as a whole: kernels, and versions that go together."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from reproduction.engine.code import SOURCE

ROOT = Path(__file__).parents[2]


def test_no_kernel_may_be_reordered():
    # Fast math rounds otherwise in the process that compiles than in those that load the cache.
    # Sums of whole numbers are not rounded.
    kernels, whole = 0, SOURCE / "privreg" / "noise" / "exact.py"
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                kernels += "njit" in ast.unparse(node.func)
                fast = [ast.unparse(word.value) for word in node.keywords if word.arg == "fastmath"]
                assert not fast or (path, fast) == (whole, ["{'reassoc'}"]), path
    assert kernels > 20


def locked(lock):
    text = (ROOT / lock).read_text()
    return dict(re.findall(r"^([a-z0-9-]+)==([^ \\]+)", text, re.MULTILINE))


@pytest.mark.parametrize("lock", ["requirements.lock", "cluster.lock", "docs.lock"])
def test_a_lock_pins_everything_with_hashes_and_names_no_index(lock):
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert "index" not in text
    entries = re.split(r"\n(?=[a-z])", text.strip())
    assert all("--hash=sha256:" in entry and "==" in entry for entry in entries)


def test_pyproject_lock_and_environment_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]

    def names(entries):
        return {re.match(r"[A-Za-z0-9-]+", entry)[0].lower() for entry in entries}

    versions = locked("requirements.lock")
    # What `make` needs is locked, tests included; of it the environment holds what rules run with.
    wanted = names(project["dependencies"]) | names(extras["workflow"])
    assert wanted | names(extras["dev"]) <= set(versions)
    assert names(extras["cluster"]) <= set(locked("cluster.lock"))
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    pins = [entry.partition("=") for entry in conda]
    found = {name: version for name, _, version in pins}
    assert f"python>={found.pop('python>')}" == f"python{project['requires-python']}"
    assert set(found) == wanted
    # Conda packages carry no post-release part.
    assert found == {name: re.sub(r"\.post\d+$", "", versions[name]) for name in found}
