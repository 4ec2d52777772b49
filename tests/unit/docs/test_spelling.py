"""British spelling in prose and in names; names of other projects stay as they are."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
AMERICAN = re.compile(
    r"colors?(?![a-z])|colored|coloring|center|neighbor|behavior|favor(?!a)|(?<![a-z])honor|(?<![a-z])gray"
    r"|label(?:ed|ing)(?![a-z])|model(?:ed|ing)(?![a-z])|cancel(?:ed|ing)|analyz|fulfill(?![a-z])"
    r"|(?:normal|standard|minim|maxim|optim|homogen|regular|summar|diagonal|discret|linear|random"
    r"|parameter|recogn|real|general|organ|vector|serial|initial|penal|quant|stabil|symmetr|util"
    r"|emphas|raster|character|categor|priorit|final|local|visual|special|equal|central|factor"
    r"|tabul|synchron)iz",
    re.IGNORECASE,
)
WORD = re.compile(r"\w+")
# Matplotlib's, NumPy's and SciPy's words, which a string or a name may have to repeat.
OTHERS = {
    "color",
    "colors",
    "center",
    "ecolor",
    "edgecolor",
    "backgroundColor",
    "currentColor",
    "unrecognized_links",
    "facecolor",
    "minimize",
    "minimize_scalar",
    "optimize",
    "rasterized",
    "model_serializer",
    # A type of schema.org.
    "Organization",
    # A variable of Python's.
    "PYTHONOPTIMIZE",
    # Titles of papers.
    "Factorization",
    "Overparameterized",
}
# What is generated, or speaks of names by definition.
LEFT_OUT = ("requirements.lock", Path(__file__).name)
TEXTS = ("*.md", "*.yaml", "*.yml", "*.smk", "*.rst", "*.toml", "*.cff", "Snakefile", "Makefile")
FOLDERS = ("config", "docs", "src", "tests", "workflow", "benchmarks", "profiles")


def files(*patterns):
    found = {path for pattern in patterns for path in ROOT.glob(pattern)}
    found |= {
        path for top in FOLDERS for pattern in patterns for path in ROOT.glob(f"{top}/**/{pattern}")
    }
    kept = (path for path in sorted(found) if not str(path).endswith(LEFT_OUT))
    return [pytest.param(path, id=path.relative_to(ROOT).as_posix()) for path in kept]


def american(text):
    if not AMERICAN.search(text):
        return []
    words = {word for word in WORD.findall(text) if AMERICAN.search(word)}
    return sorted(words - OTHERS)


def prose(source):
    """Comments, docstrings and other strings of a file, and the names that it defines."""
    tree = ast.parse(source)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield without_code(node.value)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def without_code(text):
    """Text without what stands in backticks or addresses."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return re.sub(r"\w+://\S+", "", text)


@pytest.mark.parametrize("path", files("*.py"))
def test_python_is_british(path):
    source = path.read_text()
    if AMERICAN.search(source):
        assert not [word for text in prose(source) for word in american(text)]


@pytest.mark.parametrize("path", files(*TEXTS))
def test_pages_and_configuration_are_british(path):
    assert not american(without_code(path.read_text()))


@pytest.mark.parametrize(
    "words",
    ["the optimizer", "neighboring sets", "a colored line", "Homogenized SGD", "is labeled"],
)
def test_an_american_word_would_be_seen(words):
    assert american(words)


@pytest.mark.parametrize(
    "words",
    ["the optimiser", "neighbouring sets", "a coloured line", "a horizon, resized", "centred"],
)
def test_a_british_one_passes(words):
    assert not american(words)
