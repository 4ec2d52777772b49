"""The release, a wheel built from its sdist: what it holds, and README's Python with it alone."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent.parent
SOURCE = ("pyproject.toml", "README.md", "LICENSE", "src")
REPRODUCTION = {"xarray", "snakemake", "matplotlib", "pydantic", "jinja2", "tqdm"}
# Runs a script where the names given first cannot be imported, from the folder given second.
RUNNER = """
import sys
from importlib.abc import MetaPathFinder

refused, folder, script = set(sys.argv[1].split(",")), sys.argv[2], sys.argv[3]

# Start-up files of the environment may have loaded some.
before = set(sys.modules)

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in refused:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
sys.path.insert(0, folder)
exec(compile(open(script, encoding="utf-8").read(), script, "exec"))
import privreg
assert privreg.__file__.startswith(folder), privreg.__file__
assert not refused & (set(sys.modules) - before)
"""


def pip(*arguments):
    quiet = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")
    subprocess.run([sys.executable, "-m", "pip", *arguments, *quiet], check=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the source distribution, and the wheel that was built from it."""
    # Beside the sources a build leaves folders; it gets sources of its own.
    place = tmp_path_factory.mktemp("source")
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in SOURCE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=ignore)
        else:
            shutil.copy(ROOT / name, place / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist"]
    subprocess.run(command, cwd=place, check=True, capture_output=True)
    return place / "dist"


@pytest.fixture(scope="module")
def wheel(built):
    return next(built.glob("privreg-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    pip("install", str(wheel), "--target", str(folder))
    return folder


def refused_names(folder):
    """Import names of this environment that a plain install of the wheel does not bring."""
    distribution = next(iter(metadata.distributions(name="privreg", path=[str(folder)])))
    brought, pending = {"privreg"}, list(distribution.requires or ())
    while pending:
        requirement = Requirement(pending.pop())
        name = canonicalize_name(requirement.name)
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and name not in brought:
            brought.add(name)
            pending += metadata.distribution(name).requires or ()
    return {
        module
        for module, names in metadata.packages_distributions().items()
        if not {canonicalize_name(name) for name in names} & brought
    }


def test_the_sources_are_the_library_alone(built):
    with tarfile.open(next(built.glob("privreg-*.tar.gz"))) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "pyproject.toml", "src/privreg/__init__.py"} <= held
    assert not any(name.startswith("src/reproduction") for name in held)


def test_it_holds_every_file_of_the_package_and_no_other(wheel):
    package = ROOT / "src" / "privreg"
    files = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".nbi", ".nbc")
    }
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        licences = [name for name in archive.namelist() if name.endswith("LICENSE")]
    assert held == files
    assert len(licences) == 1
    assert "privreg/py.typed" in held
    assert {name.partition("/")[0] for name in held} == {"privreg"}


def test_readme_runs_in_an_empty_folder_without_the_reproduction(installed, tmp_path):
    snippets = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    assert snippets
    refused = refused_names(installed)
    # What is not installed here at all cannot be imported either.
    assert REPRODUCTION & set(metadata.packages_distributions()) <= refused
    assert not {"numpy", "scipy", "numba", "sklearn", "privreg"} & refused
    empty = tmp_path / "empty"
    empty.mkdir()
    for number, snippet in enumerate(snippets):
        script = tmp_path / f"snippet_{number}.py"
        script.write_text(snippet, encoding="utf-8")
        run = subprocess.run(
            [sys.executable, "-I", "-c", RUNNER, ",".join(refused), str(installed), str(script)],
            cwd=empty,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        assert "nan" not in run.stdout
        assert len(run.stdout.splitlines()) >= snippet.count("print(")
    assert [path.name for path in empty.iterdir()] == ["flats.csv"]


def test_the_runner_refuses_what_is_refused(installed, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import xarray")
    command = [sys.executable, "-I", "-c", RUNNER, "xarray,yaml", str(installed), str(script)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "No module named 'xarray'" in run.stderr
