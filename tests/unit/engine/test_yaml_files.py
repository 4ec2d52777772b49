"""YAML that people write: what is wrong with a file is one line that names it."""

import pytest

from reproduction.engine.parameters import ConfigError
from reproduction.engine.yaml_files import read_mapping

WRONG = {
    "a tab": (b"a: 1\n\tb: 2\n", "line 2: found"),
    "nothing": (b"", "must hold keys and their values, got nothing"),
    "a list": (b"- 1\n", "got a list"),
    "Latin 1": (b"a: \xe9\n", "must be YAML, got 'utf-8' codec"),
    "a bracket": (b"a: [1\n", "line 2: did not find"),
    "a key twice": (b"a: 1\nb: 2\na: 3\n", "line 1: the key 'a' is there twice"),
    "a tag": (b"a: !!python/name:os.system\n", "line 1: could not determine a constructor"),
}


@pytest.mark.parametrize(("content", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_line(tmp_path, content, words):
    file = tmp_path / "file.yaml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_mapping(file)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_and_a_folder(tmp_path):
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read"):
            read_mapping(path)


def test_merges_and_anchors_are_read(tmp_path):
    file = tmp_path / "file.yaml"
    file.write_text("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\n")
    assert read_mapping(file)["b"] == {"x": 1, "y": 3}
