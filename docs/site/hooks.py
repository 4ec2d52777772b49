"""Pages of the site that are made when it is built, and formulas as MathML."""

from __future__ import annotations

import html
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
MARKUP_OR_TEXT = re.compile(
    r"(?P<markup><(code|h\d|a)\b.*?</\2>|<[^>]*>)|(?P<text>[^<]+)", re.DOTALL
)
# Pictures that were drawn in this checkout, by `<paper>/<figure>`; where there are two, the later.
DRAWN = ("results/figures/*/*.png", "build/peers/*.png", "results/peers/*.png")
PICTURES = {
    f"{path.parent.name}/{path.stem}": path for each in DRAWN for path in sorted(ROOT.glob(each))
}
# What a build of the papers leaves in this checkout, of which the page needs these.
LEDGER, SHOWN = ROOT / "results", ("index.html", "entries", "figures", "studies/index.html")
sys.path.insert(0, str(ROOT / "src"))
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add pages that follow from sources."""
    from reproduction.engine.plan import Plan
    from reproduction.engine.registry import bibliography, known_papers
    from reproduction.engine.results_docs import render
    from reproduction.engine.site import (
        coverage_page,
        data_page,
        parameters_page,
        reference_page,
        variables_page,
    )

    plan = Plan(ROOT / "config")
    titles = {key: about["title"] for key, about in bibliography(plan.ledgers).items()}
    pages = {
        "index.md": _moved(ROOT / "README.md", "docs/").replace(
            "page of results", "[page of results](results.md)", 1
        ),
        "configuration.md": _moved(ROOT / "config/README.md", "../docs/"),
        "data.md": data_page(),
        "results.md": render(
            [*plan.ledgers.values()], titles=titles, drawings=plan.described(*plan.ledgers)
        ),
        "parameters.md": parameters_page(),
        "variables.md": variables_page(),
        "reference.md": reference_page((ROOT / "docs/names.md").read_text(encoding="utf-8")),
    }
    for paper in known_papers():
        pages[f"coverage/{paper}.md"] = coverage_page(paper, ROOT / "config")
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    for name, path in PICTURES.items():
        files.append(File.generated(config, f"figures/{name}.png", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Show pictures; name the files that a page links to, which the site lacks."""
    from reproduction.engine.results_docs import with_pictures

    markdown = with_pictures(markdown, PICTURES, "figures")
    markdown = markdown.replace("](../config/README.md)", "](configuration.md)")
    return re.sub(r"\[([^\]]+)\]\((?:\.\./|results/)[^)]*\)", r"\1", markdown)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Typeset formulas in a way that browsers read without a script; lead to the ledger's page."""
    if page.file.src_uri == "results.md" or page.file.src_uri.startswith("coverage/"):
        content = MARKUP_OR_TEXT.sub(_as_the_ledger, content)
    if page.file.src_uri == "results.md" and (LEDGER / "index.html").exists():
        link = '<a href="../ledger-page/index.html">The ledger\'s page</a>'
        content = f"<p>{link} of this build has a search and each entry's evidence.</p>{content}"
    return FORMULA.sub(_mathml, content)


def _as_the_ledger(found: re.Match[str]) -> str:
    from reproduction.engine.page import typeset

    return found["markup"] or str(typeset(html.unescape(found["text"])))


def on_post_build(config: Any) -> None:
    """Copy the ledger's page with its figures and entries, if the papers were built here."""
    for name in SHOWN if (LEDGER / "index.html").exists() else ():
        found, copy = LEDGER / name, Path(config.site_dir) / "ledger-page" / name
        if found.is_dir():
            shutil.copytree(found, copy, ignore=shutil.ignore_patterns(".*"), dirs_exist_ok=True)
        elif found.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found, copy)


def _mathml(found: re.Match[str]) -> str:
    display = "block" if found[1] == "div" else "inline"
    return convert(html.unescape(found[2]).strip(), display=display)


def _moved(page: Path, folder: str) -> str:
    """A page from elsewhere, its links to `docs/` as seen from there."""
    return page.read_text(encoding="utf-8").replace(f"]({folder}", "](")
