"""Digests of code: an edit reaches what imports it, wherever it does, and nothing else."""

from __future__ import annotations

import ast

from reproduction.engine import code


def module_of(path):
    name = ".".join(path.relative_to(code.SOURCE).with_suffix("").parts)
    return name.removesuffix(".__init__")


MODULES = {module_of(path): path for path in code.SOURCE.rglob("*.py")}


def imported(path):
    """Modules of both packages that a file imports, by its syntax."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, path
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return found & MODULES.keys() - {"privreg"}


def test_what_a_module_imports_is_found():
    assert len(MODULES) > 200
    for name, path in MODULES.items():
        if name != "privreg":
            assert imported(path) <= code.reached((name,)), name


def test_no_parent_package_imports_its_modules():
    # Else every module below it would count as imported with each other one.
    for name, path in MODULES.items():
        if path.name == "__init__.py" and name.count(".") and ".papers." not in name:
            below = {each for each in imported(path) if each.startswith(f"{name}.")}
            assert not below or name in {"privreg.data", "reproduction.studies.figures"}, name


def test_a_digest_follows_what_is_reached_and_nothing_else(tmp_path, monkeypatch):
    files = {
        "__init__": "",
        "recipe": "def f():\n    from reproduction import (\n        deep as d,  # why\n    )\n",
        "deep": "import reproduction.deepest as e, numpy\n",
        "deepest": "",
        "other": "import reproduction.recipe\n",
    }
    (tmp_path / "reproduction").mkdir()
    monkeypatch.setattr(code, "SOURCE", tmp_path)

    def digest():
        for each in (code.code_of, code._read, code._file):
            each.cache_clear()
        return code.code_of("reproduction.recipe")

    def write(name, text):
        (tmp_path / f"reproduction/{name}.py").write_text(text)

    try:
        for name, text in files.items():
            write(name, text)
        before = digest()
        assert before == digest()
        for name, text in files.items():
            write(name, text + "# An edit.\n")
            assert (digest() != before) == (name != "other"), name
            write(name, text)
    finally:
        monkeypatch.undo()
        digest()
