"""The code closure: what a stage runs and nothing else, and a digest that follows contents."""

import pytest

from reproduction.pipeline import closure as walk


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of four files in which one function imports what another does not."""
    files = {
        "__init__.py": "from project.unused import nothing\n",
        "recipe.py": (
            "from typing import TYPE_CHECKING\n"
            "import project.always\n"
            "if TYPE_CHECKING:\n    import project.unused\n"
            "def first():\n    from project import one\n    return shared()\n"
            "def second():\n    from project.two import two\n"
            "def shared():\n    import project.three\n"
        ),
        **{f"{name}.py": "" for name in ("always", "one", "two", "three", "unused")},
    }
    folder = tmp_path / "project"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    monkeypatch.setattr(walk, "SOURCE", tmp_path)
    monkeypatch.setattr(walk, "PACKAGES", ("project",))
    walk._file.cache_clear()
    walk._imports.cache_clear()
    yield folder
    walk._file.cache_clear()
    walk._imports.cache_clear()


def names(root):
    return {path.stem for path in walk.closure(root)}


def test_a_function_brings_what_it_reaches(package):
    assert names("project.recipe:first") == {"recipe", "always", "one", "three"}
    assert names("project.recipe:second") == {"recipe", "always", "two"}
    assert names("project.recipe") == {"recipe", "always", "one", "two", "three"}


def test_a_stage_brings_the_functions_that_it_is_made_of(package):
    recipe = package / "recipe.py"
    made = "def stage(*parts):\n    return parts\nthird = stage(second)\n"
    recipe.write_text(recipe.read_text() + made)
    assert names("project.recipe:third") == {"recipe", "always", "two"}


def test_a_stage_of_all_that_a_module_has_declared_brings_every_function_above_it(package):
    recipe, made = package / "recipe.py", "third = stage({}, blocks_of=globals())\n"
    before, second, after = recipe.read_text().partition("def second")
    recipe.write_text(before + second + after + made)
    assert names("project.recipe:third") == names("project.recipe")
    walk._imports.cache_clear()
    recipe.write_text(before + made + second + after)
    assert names("project.recipe:third") == {"recipe", "always", "one", "three"}


@pytest.mark.parametrize(
    "around",
    [
        "try:\n{}\nexcept ValueError:\n    pass",
        "try:\n    pass\nexcept ValueError:\n{}",
        "try:\n    pass\nfinally:\n{}",
        "for _ in ():\n    pass\nelse:\n{}",
        "while True:\n{}",
        "if 0:\n    pass\nelif 1:\n{}",
        "with open('x'):\n{}",
        "match 1:\n  case 1:\n{}",
        "class A:\n  async def b():\n{}",
    ],
)
def test_an_import_is_seen_wherever_a_statement_may_stand(package, around):
    (package / "two.py").write_text(around.format("    import project.one") + "\n")
    assert names("project.two") == {"two", "one"}


def test_the_digest_follows_what_is_reached_and_nothing_else(package):
    before = walk.digest("project.recipe:second")
    (package / "one.py").write_text("# An edit.\n")
    (package / "__init__.py").write_text("# An edit.\n")
    assert walk.digest("project.recipe:second") == before
    (package / "two.py").write_text("# An edit.\n")
    assert walk.digest("project.recipe:second") != before
