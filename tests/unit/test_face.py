"""The face: what `import privreg` shows, where it lives, and what it does not load."""

import ast
import subprocess
import sys
from importlib import import_module

import pytest

import privreg
from privreg.pipeline.closure import PACKAGE, closure

FACE = PACKAGE / "__init__.py"
# What a plain import must not load, and what no name of the library may ever load.
HEAVY = {"numpy", "scipy", "numba", "sklearn", "dp_accounting", "pooch"}
# Numba takes yaml where it finds it, so yaml is left to the wheel's test.
REPRODUCTION = {"xarray", "snakemake", "matplotlib", "pydantic", "jinja2", "netCDF4", "tqdm"}
REPRODUCTION_ROOMS = {"experiment", "claims", "papers", "pipeline"}
# Rooms that serve the others and no user.
NOT_SHOWN = {
    "__init__",
    "__main__",
    "accuracy",
    "grid_edges",
    "immutable",
    "sums",
    "validation",
    "version",
}
NOT_SHOWN |= {"command_line"}
NOT_SHOWN |= REPRODUCTION_ROOMS


def modules_after(code):
    """Modules that a fresh interpreter has loaded."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return run.stdout.split()


def loaded_after(code):
    """Top-level modules, and those of the package, that a fresh interpreter has loaded."""
    names = modules_after(code)
    return {name.partition(".")[0] for name in names}, {n for n in names if "privreg" in n}


def test_importing_it_loads_nothing():
    outside, inside = loaded_after("import privreg")
    assert not outside & (HEAVY | REPRODUCTION)
    assert inside == {"privreg"}


def test_a_plan_waits_for_no_statistics():
    # Either takes longer to import than all that a plan needs.
    loaded = modules_after("import privreg.planning.search")
    assert "privreg.prediction.correlated_noise" in loaded
    assert not {"scipy.stats", "scipy.signal"} & set(loaded)


def test_a_budget_loads_no_compiler():
    outside, _ = loaded_after("import privreg; privreg.Budget.zcdp(0.1)")
    assert not outside & ({"numba", "sklearn", "dp_accounting"} | REPRODUCTION)


def test_every_name_resolves_and_none_needs_the_reproduction():
    outside, inside = loaded_after(
        "import privreg\nfor name in privreg.__all__:\n    getattr(privreg, name)"
    )
    assert not outside & REPRODUCTION
    assert not {name.split(".")[1] for name in inside if "." in name} & REPRODUCTION_ROOMS


def test_nothing_loads_arrow_before_a_table_is_read():
    # Hidden, since pandas takes it wherever it is installed.
    hidden = "import sys, privreg; sys.modules['pandas'] = None\n"
    outside, _ = loaded_after(
        f"{hidden}for name in privreg.__all__:\n    getattr(privreg, name)\n"
        "import privreg.estimators.tables"
    )
    assert "pyarrow" not in outside


def test_no_stage_of_the_workflow_needs_arrow():
    stages = sorted(
        f"privreg.papers.{path.parent.parent.name}.experiments.{path.stem}"
        for path in PACKAGE.glob("papers/*/experiments/*.py")
    )
    assert len(stages) > 50
    # An unknown command is one of the workflow's; what it hides cannot be imported after it.
    run = (
        "from privreg.command_line.main import main\ntry: main(['none'])\nexcept SystemExit: pass\n"
    )
    modules_after(
        f"{run}import importlib, sys\nfor name in {stages}: importlib.import_module(name)\n"
        "assert sys.modules['pyarrow'] is None"
    )


def test_names_are_those_of_their_homes():
    for name, home in privreg._HOMES.items():
        assert getattr(privreg, name) is getattr(import_module(home), name)
        # Its own home, not a module that happens to import it.
        assert getattr(getattr(privreg, name), "__module__", home) == home
    for name, module in privreg._MODULES.items():
        assert getattr(privreg, name) is import_module(module)


def test_what_type_checkers_see_is_what_there_is():
    block = next(
        node
        for node in ast.parse(FACE.read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    seen = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        seen |= {alias.name: node.module for alias in node.names}
    modules = {name: path.rpartition(".")[0] for name, path in privreg._MODULES.items()}
    assert seen == privreg._HOMES | modules
    assert privreg.__all__ == sorted(seen)
    assert set(privreg.__all__) <= set(dir(privreg))


def test_every_room_of_the_library_is_shown():
    rooms = {path.stem for path in PACKAGE.iterdir() if not path.stem.startswith("__pycache")}
    rooms = {path for path in rooms if path.isidentifier()} - {"py"}
    assert rooms - NOT_SHOWN <= set(privreg._MODULES)
    assert not REPRODUCTION_ROOMS & set(privreg.__all__)


def test_a_misspelt_name_is_told_the_nearest():
    with pytest.raises(AttributeError, match=r"no attribute 'Budgets'; did you mean 'Budget'\?"):
        _ = privreg.Budgets
    with pytest.raises(AttributeError, match=r"no attribute 'zzz'$"):
        _ = privreg.zzz
    with pytest.raises(ImportError):
        exec("from privreg import full_batch_dpgdd")


def test_an_edit_of_the_face_reruns_no_job():
    # It is in nobody's closure, and may be left out: nobody inside takes a name from it.
    for path in sorted(PACKAGE.rglob("*.py")):
        if path == FACE:
            continue
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        module = ".".join(("privreg", *(part for part in parts if part != "__init__")))
        assert FACE not in {found.resolve() for found in closure(module)}
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert "privreg" not in {alias.name for alias in node.names}, path
            elif isinstance(node, ast.ImportFrom) and node.module == "privreg":
                for alias in node.names:
                    inside = PACKAGE / alias.name
                    assert inside.is_dir() or inside.with_suffix(".py").is_file(), path
