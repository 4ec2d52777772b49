"""Which part of the packages may import which, and which versions go together."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from reproduction.pipeline.closure import PACKAGES, SOURCE, closure, module_of, modules

ROOT = Path(__file__).parent.parent.parent
# A part may import itself and what stands in its row; the order is that of docs/architecture.md.
GROUND = {"validation", "ranges", "accuracy", "grid_edges", "immutable", "units"}
FOUNDATION = {"models", "spectra", "schedules", "privacy", "noise", "data", "sums"} | GROUND
MECHANICS = {"algorithms", "theory", "inference"} | FOUNDATION
PREDICTION = {"prediction"} | MECHANICS
METHODS = {"methods"} | PREDICTION
LIBRARY = {"planning", "estimators", "auditing", "audit_statistics"} | METHODS
REPRODUCTION = {"experiment", "claims"} | LIBRARY | {"version"}
ALLOWED = {
    "privreg": {
        "accuracy": set(),
        "grid_edges": set(),
        "immutable": set(),
        "ranges": set(),
        "units": set(),
        "validation": {"immutable", "ranges"},
        "version": set(),
        **dict.fromkeys(FOUNDATION - GROUND, FOUNDATION),
        **dict.fromkeys(MECHANICS - FOUNDATION, MECHANICS),
        "prediction": PREDICTION,
        "methods": METHODS,
        **dict.fromkeys(LIBRARY - METHODS, LIBRARY),
        "command_line": {"command_line", "version"} | LIBRARY,
        "__main__": {"command_line"},
        # Seen by type checkers alone; at run time it imports nothing (test_public_names).
        "__init__": LIBRARY | {"version"},
    },
    "reproduction": {
        "experiment": {"experiment"} | LIBRARY,
        "claims": {"claims", "experiment"} | LIBRARY,
        "papers": {"papers"} | REPRODUCTION,
        "studies": {"studies"} | REPRODUCTION,
        "pipeline": {"pipeline", "papers", "studies"} | REPRODUCTION,
        "__main__": {"pipeline", "__main__"},
        "__init__": set(),
    },
}
OUTSIDE_THE_LIBRARY = {"snakemake", "xarray", "netCDF4", "matplotlib", "jinja2", "tqdm"}
OUTSIDE_THE_LIBRARY |= {"pydantic", "reproduction"}
KNOWN = set(modules())


def files():
    for package in PACKAGES:
        for path in sorted((SOURCE / package).rglob("*.py")):
            part = path.relative_to(SOURCE / package).parts[0].removesuffix(".py")
            yield pytest.param(path, package, part, id=path.relative_to(SOURCE).as_posix())


@pytest.mark.parametrize(("path", "package", "part"), files())
def test_imports_point_one_way(path, package, part):
    for module in imported(path):
        top, _, rest = module.partition(".")
        assert top != "snakemake" or part == "pipeline", f"{part} imports {module}"
        if package == "privreg":
            # A plan or a fit may be drawn, on request.
            drawn = (part == "command_line" or path.name == "picture.py") and top == "matplotlib"
            assert drawn or top not in OUTSIDE_THE_LIBRARY, f"{part} imports {module}"
        if top in PACKAGES and rest:
            assert rest.split(".")[0] in ALLOWED[package][part] | {part}, f"{part} imports {module}"


def test_no_circle_between_files():
    graph = {name: {found for found in imports_of(name) if found != name} for name in modules()}
    done, path = set(), []

    def visit(name):
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name not in done:
            path.append(name)
            for other in sorted(graph[name]):
                visit(other)
            path.pop()
            done.add(name)

    for name in graph:
        visit(name)


def test_no_parent_package_imports_its_modules():
    # Else every file below it would be in the closure of every other.
    # No closure holds the packages' own; papers and studies say what they are.
    free = {*PACKAGES, "privreg.data", "reproduction.studies", "reproduction.studies.figures"}
    for path in SOURCE.rglob("__init__.py"):
        module = module_of(path)
        if module not in free and ".papers." not in module:
            assert not [name for name in imported(path) if name.startswith(PACKAGES)], path


def imported(path):
    """Modules that a file imports, types included, as dotted names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports_of(module):
    """Files of the package that a file imports, types included."""
    base = SOURCE.joinpath(*module.split("."))
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    for name in imported(path):
        for candidate in (name, name.rpartition(".")[0]):
            if candidate in KNOWN and candidate not in PACKAGES:
                yield candidate
                break


def test_an_edit_reaches_what_depends_on_it_and_nothing_else():
    def names(root):
        return {path.resolve().relative_to(SOURCE).as_posix() for path in closure(root)}

    recipe = "reproduction.papers.bombari2025.experiments.trajectories"
    equivalent = "privreg/theory/one_pass_dpgd/deterministic_equivalent.py"
    assert equivalent in names(f"{recipe}:theory")
    assert equivalent not in names(f"{recipe}:simulate")
    assert "privreg/algorithms/one_pass_dpgd_kernels.py" in names(f"{recipe}:simulate")
    assert "privreg/algorithms/one_pass_dpgd.py" not in names(f"{recipe}:theory")
    assert "reproduction/experiment/plotting.py" not in names(f"{recipe}:simulate")
    assert "reproduction/papers/bombari2025/figures/scaling.py" in names(
        "reproduction.papers.bombari2025.figures"
    )
    assert "privreg/__init__.py" not in names(f"{recipe}:simulate")


def test_no_kernel_may_be_reordered():
    # Fast math rounds otherwise in the process that compiles than in those that load the cache.
    kernels = 0
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                kernels += "njit" in ast.unparse(node.func)
                assert not [word for word in node.keywords if word.arg == "fastmath"], path
    assert kernels > 20


def test_long_tests_are_not_here():
    # `make test-long` passes this folder by: to collect it takes as long as a test.
    files = Path(__file__).parent.rglob("*.py")
    assert not [path.name for path in files if re.search(r"mark\.long", path.read_text())]


def locked(lock):
    text = (ROOT / lock).read_text()
    return dict(re.findall(r"^([a-z0-9-]+)==([^ \\]+)", text, re.MULTILINE))


@pytest.mark.parametrize("lock", ["requirements.lock", "cluster.lock"])
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
    assert names(extras["convex"]) <= names(extras["workflow"])
    assert names(extras["sound"]) <= names(extras["dev"])
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    pip = next(entry["pip"] for entry in conda if isinstance(entry, dict))
    pins = [entry.partition("=") for entry in conda if isinstance(entry, str)]
    found = {name: version for name, _, version in pins}
    assert found.pop("pip") == ""
    assert f"python>={found.pop('python>')}" == f"python{project['requires-python']}"
    by_pip = dict(entry.split("==") for entry in pip)
    assert set(found) | set(by_pip) == wanted
    assert not set(found) & set(by_pip)
    # Conda packages carry no post-release part; what comes by pip does.
    assert found == {name: re.sub(r"\.post\d+$", "", versions[name]) for name in found}
    assert by_pip == {name: versions[name] for name in by_pip}
