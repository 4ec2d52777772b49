"""The house: which room may import which, and which versions go together."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from privreg.sources import PACKAGE, closure

ROOT = Path(__file__).parent.parent.parent
LIBRARY = ("algorithms", "theory", "inference")
FOUNDATION = ("noise", "privacy", "data", "schedules", "models", "spectra")
# A room may import itself, what stands to its right, and helpers that know nothing of the field.
HELPERS = {"validation", "config", "store", "randomness", "progress", "sources", "plotting"}
ALLOWED = {
    "papers": {"papers", *LIBRARY, *FOUNDATION, *HELPERS},
    **{room: {*LIBRARY, *FOUNDATION, "progress", "validation"} for room in LIBRARY},
    **{room: {*FOUNDATION, "store", "validation"} for room in FOUNDATION},
    "claims": {"claims", "config", "store"},
    "store": {"store"},
    "validation": {"validation"},
    "config": {"config"},
    "randomness": {"randomness"},
    "progress": {"progress"},
    "sources": {"sources"},
    "plotting": {"plotting", "store"},
}


def rooms():
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room in ALLOWED:
            yield pytest.param(path, room, id=path.relative_to(PACKAGE).as_posix())


@pytest.mark.parametrize(("path", "room"), rooms())
def test_imports_point_one_way(path, room):
    for node in ast.walk(ast.parse(path.read_text())):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        for module in modules:
            assert not module.startswith("snakemake"), f"{module} in the library"
            parts = module.split(".")
            if parts[0] == "privreg" and len(parts) > 1 and parts[1] != "__version__":
                assert parts[1] in ALLOWED[room], f"{room} imports {module}"


def test_an_edit_reaches_what_depends_on_it_and_nothing_else():
    def names(root):
        return {path.resolve().relative_to(PACKAGE).as_posix() for path in closure(root)}

    recipe = "privreg.papers.bombari2025.trajectories"
    assert "theory/dpgd_ode.py" in names(f"{recipe}:theory")
    assert "theory/dpgd_ode.py" not in names(f"{recipe}:simulate")
    assert "algorithms/dpgd_kernels.py" in names(f"{recipe}:simulate")
    assert "algorithms/dpgd.py" not in names(f"{recipe}:theory")
    assert "plotting.py" not in names(f"{recipe}:simulate")
    assert "papers/bombari2025/figures.py" in names("privreg.papers.bombari2025.figures")


def test_kernels_with_reordered_sums_call_only_inlined_ones():
    # A linked callee may be reordered in another way by the process that compiles than by those
    # that load the cache, and artifacts would depend on which came first.
    seen = 0
    for path in PACKAGE.rglob("*.py"):
        kernels = {}
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                marks = " ".join(ast.unparse(mark) for mark in node.decorator_list)
                if "njit" in marks:
                    kernels[node.name] = (node, marks)
        for name, (node, marks) in kernels.items():
            called = {found.id for found in ast.walk(node) if isinstance(found, ast.Name)}
            for callee in called & set(kernels) - {name}:
                seen += 1
                reordered = "fastmath" in marks or "fastmath" in kernels[callee][1]
                assert "inline='always'" in kernels[callee][1] or not reordered, callee
    assert seen > 2


def locked():
    text = (ROOT / "requirements.lock").read_text()
    return dict(re.findall(r"^([a-z0-9-]+)==([^ \\]+)", text, re.MULTILINE))


def test_the_lock_pins_everything_with_hashes_and_names_no_index():
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    assert "index" not in text
    entries = re.split(r"\n(?=[a-z])", text.strip())
    assert all("--hash=sha256:" in entry and "==" in entry for entry in entries)


def test_pyproject_lock_and_environment_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]["dev"]
    names, tools = (
        {re.match(r"[A-Za-z0-9-]+", entry)[0].lower() for entry in entries}
        for entries in (project["dependencies"], extras)
    )
    versions = locked()
    assert names | tools <= set(versions)
    found = {}
    for entry in yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]:
        for pin in entry["pip"] if isinstance(entry, dict) else [entry]:
            name, _, version = pin.replace("==", "=").partition("=")
            found[name] = version
    assert set(found) - {"python>", "pip"} == names
    for name in names:
        # Conda packages carry no post-release part.
        assert found[name] == re.sub(r"\.post\d+$", "", versions[name])
    python = next(name for name in found if name.startswith("python"))
    assert f"{python}={found[python]}" == f"python{project['requires-python']}"
