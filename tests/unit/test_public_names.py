"""The names that `import privreg` shows, where they are defined, and what it does not load."""

import ast
import pydoc
import re
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

import privreg
from reproduction.pipeline.closure import SOURCE, closure, modules
from reproduction.pipeline.registry import known_keys, package, recipes

LIBRARY = SOURCE / "privreg"
NAMES = LIBRARY / "__init__.pyi"
# What a plain import must not load, and what no name of the library may ever load.
HEAVY = {"numpy", "scipy", "numba", "sklearn", "dp_accounting", "pooch"}
# Numba takes yaml where it finds it, so yaml is left to the wheel's test.
REPRODUCTION = {"xarray", "snakemake", "matplotlib", "pydantic", "jinja2", "netCDF4", "tqdm"}
# Modules that serve the others and no user.
NOT_SHOWN = {
    "__init__",
    "__main__",
    "accuracy",
    "audit_statistics",
    "grid_edges",
    "immutable",
    "ranges",
    "sums",
    "validation",
    "version",
    "units",
}
NOT_SHOWN |= {"command_line"}


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
    assert "privreg.methods.correlated_noise" in loaded
    assert not {"scipy.stats", "scipy.signal"} & set(loaded)


def test_a_budget_loads_no_compiler():
    outside, _ = loaded_after("import privreg; privreg.Budget.zcdp(0.1)")
    assert not outside & ({"numba", "sklearn", "dp_accounting"} | REPRODUCTION)


def test_every_name_resolves_and_none_needs_the_reproduction():
    outside, _ = loaded_after(
        "import privreg\nfor name in privreg._HOMES:\n    getattr(privreg, name)"
    )
    assert not outside & (REPRODUCTION | {"reproduction"})


def test_nothing_loads_arrow_before_a_table_is_read():
    # Hidden, since pandas takes it wherever it is installed.
    hidden = "import sys, privreg; sys.modules['pandas'] = None\n"
    outside, _ = loaded_after(
        f"{hidden}for name in privreg._HOMES:\n    getattr(privreg, name)\n"
        "import privreg.estimators.tables"
    )
    assert "pyarrow" not in outside


def test_no_stage_of_the_workflow_needs_arrow():
    stages = sorted(
        f"{package(key)}.experiments.{name}" for key in known_keys() for name in recipes(key)
    )
    assert len(stages) > 50
    # What the workflow's command hides cannot be imported after it.
    modules_after(
        "import reproduction.__main__\nimport importlib, sys\n"
        f"for name in {stages}: importlib.import_module(name)\n"
        "assert sys.modules['pyarrow'] is None"
    )


def test_names_are_those_of_their_homes():
    for name, home in privreg._HOMES.items():
        found = getattr(privreg, name)
        if isinstance(found, ModuleType):
            assert found.__name__ == f"{home}.{name}"
        else:
            # Its own home, not a module that happens to import it.
            assert found is getattr(import_module(home), name)
            assert getattr(found, "__module__", home) == home


def test_what_type_checkers_see_is_what_there_is():
    # Nothing stands in the file for type checkers that the package does not read from it.
    stated = ast.parse(NAMES.read_text()).body[1:]
    assert len(stated) == len(privreg._HOMES)
    shown = {name for name in dir(privreg) if name[:2] != "__"}
    assert shown == privreg._HOMES.keys() - {"__version__"}


def test_help_names_what_there_is_to_start_with():
    started_with = set(re.findall(r"`(\w+)`", privreg.__doc__))
    assert len(started_with) > 20
    assert started_with <= {*privreg._HOMES, "names"}


def test_help_is_a_page():
    assert len(pydoc.render_doc(privreg).splitlines()) < 80


def test_each_name_has_an_example_and_there_are_about_sixty():
    page = (SOURCE.parent / "docs" / "names.md").read_text()
    code = "\n".join(line for line in page.splitlines() if line[:4] in (">>> ", "... "))
    words = set(re.findall(r"\w+", code))
    defined = {name for name in privreg._HOMES if not _is_module(name)}
    assert defined - {"__version__"} <= words
    assert 50 < len(defined) < 70


def _is_module(name):
    return isinstance(getattr(privreg, name), ModuleType)


def test_every_part_of_the_library_is_shown():
    parts = {path.stem for path in LIBRARY.iterdir() if not path.stem.startswith("__pycache")}
    parts = {path for path in parts if path.isidentifier()} - {"py"}
    assert parts - NOT_SHOWN <= {name for name in privreg._HOMES if _is_module(name)}


def test_a_misspelt_name_is_told_the_nearest():
    with pytest.raises(AttributeError, match=r"no attribute 'Budgets'; did you mean 'Budget'\?"):
        _ = privreg.Budgets
    with pytest.raises(AttributeError, match=r"no attribute 'zzz'$"):
        _ = privreg.zzz
    with pytest.raises(ImportError):
        exec("from privreg import full_batch_dpgdd")


def test_an_edit_of_the_public_names_reruns_no_job():
    # They are in no closure, and may be left out: no module inside takes a name from there.
    for module in modules():
        if module == "privreg":
            continue
        base = SOURCE.joinpath(*module.split("."))
        path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        assert NAMES not in {found.resolve() for found in closure(module)}
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert "privreg" not in {alias.name for alias in node.names}, path
            elif isinstance(node, ast.ImportFrom) and node.module == "privreg":
                for alias in node.names:
                    inside = LIBRARY / alias.name
                    assert inside.is_dir() or inside.with_suffix(".py").is_file(), path
