"""The names that `import privreg` shows, where they are defined, and what it does not load."""

import ast
import re
import subprocess
import sys
from types import ModuleType

import pytest

import privreg
from reproduction.engine.code import SOURCE

LIBRARY = SOURCE / "privreg"
NAMES = LIBRARY / "__init__.pyi"
# What a plain import must not load, and what no name of the library may ever load.
HEAVY = {"numpy", "scipy", "numba", "sklearn", "dp_accounting", "pooch"}
# Numba takes yaml where it finds it, so yaml is left to the wheel's test.
REPRODUCTION = {"xarray", "snakemake", "matplotlib", "pydantic", "jinja2", "netCDF4", "tqdm"}


def modules_after(code):
    """Modules that a fresh interpreter has loaded."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_it_loads_nothing_and_a_budget_no_compiler():
    loaded = modules_after("import privreg")
    assert not loaded & (HEAVY | REPRODUCTION)
    assert {name for name in loaded if "privreg" in name} == {"privreg"}
    loaded = modules_after("import privreg; privreg.Budget.zcdp(0.1)")
    assert not loaded & ({"numba", "sklearn", "dp_accounting"} | REPRODUCTION)


def test_a_plan_waits_for_no_statistics():
    # Either takes longer to import than all that a plan needs.
    loaded = modules_after("import privreg.planning")
    assert "privreg.methods.correlated_noise" in loaded
    assert not {"scipy.stats", "scipy.signal"} & loaded


def test_every_name_resolves_and_none_needs_the_reproduction_or_arrow():
    # Pandas is hidden, since it takes arrow wherever that is installed.
    loaded = modules_after(
        "import sys, privreg; sys.modules['pandas'] = None\n"
        "for name in privreg._HOMES:\n    getattr(privreg, name)\n"
        "import privreg.estimators.tables"
    )
    assert not loaded & (REPRODUCTION | {"reproduction", "pyarrow"})


def test_what_type_checkers_see_is_what_there_is():
    # Nothing stands in the file for type checkers that the package does not read from it.
    stated = ast.parse(NAMES.read_text()).body[1:]
    assert len(stated) == len(privreg._HOMES)
    shown = {name for name in dir(privreg) if name[:2] != "__"}
    assert shown == privreg._HOMES.keys() - {"__version__"}


def test_each_name_has_an_example_and_there_are_about_sixty():
    page = (SOURCE.parent / "docs" / "names.md").read_text()
    code = "\n".join(line for line in page.splitlines() if line[:4] in (">>> ", "... "))
    words = set(re.findall(r"\w+", code))
    defined = {name for name in privreg._HOMES if not _is_module(name)}
    assert defined - {"__version__"} <= words
    assert 50 < len(defined) < 70


def _is_module(name):
    return isinstance(getattr(privreg, name), ModuleType)


def test_a_package_that_is_missing_is_named_with_the_environment():
    code = "import sys; sys.modules['numpy'] = None; import privreg; privreg.Budget"
    run = [sys.executable, "-c", code]
    found = subprocess.run(run, check=False, capture_output=True, text=True)
    assert found.stderr.splitlines()[-1].startswith(
        "ModuleNotFoundError: numpy is missing in the environment /"
    )


def test_a_misspelt_name_is_told_the_nearest():
    with pytest.raises(AttributeError, match=r"no attribute 'Budgets'; did you mean 'Budget'\?"):
        _ = privreg.Budgets
    with pytest.raises(AttributeError, match=r"no attribute 'zzz'$"):
        _ = privreg.zzz
    with pytest.raises(ImportError):
        exec("from privreg import full_batch_dpgdd")
