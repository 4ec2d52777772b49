"""Pages of the site that are made when it is built, and formulas as MathML."""

from __future__ import annotations

import html
import os
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
MARKUP_OR_TEXT = re.compile(
    r"(?P<markup><(code|h\d|a|cite)\b.*?</\2>|<[^>]*>)|(?P<text>[^<]+)", re.DOTALL
)
# Pictures that were drawn in this checkout, by `<paper>/<figure>`; where there are two, the later.
DRAWN = ("results/figures/*/*.png", "build/peers/*.png", "results/peers/*.png")
PICTURES = {
    f"{path.parent.name}/{path.stem}": path for each in DRAWN for path in sorted(ROOT.glob(each))
}
# A build of the papers in this checkout, and what the site shows of it.
LEDGER = ROOT / "results"
SHOWN = ("*.html", "entries", "figures", "studies/*.html", "studies/entries")
# Guides for users come first in a search; lists made from sources come last.
BOOST: dict[str, float] = {"your-own-table.md": 2}
BOOST |= dict.fromkeys(("variables.md", "parameters.md", "reference.md", "notation.md"), 0.3)
BOOST |= {"results": 0.2, "coverage": 0.5}
RELATIVE = re.compile(r'(\]\(|(?:src|srcset)=")(?![a-z]+:|#)([^)"\s]+)')
sys.path.insert(0, str(ROOT / "src"))
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_config(config: Any) -> Any:
    """Show the repository's address, which `pyproject.toml` states."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    config.repo_url = project.get("urls", {}).get("Repository", "").rstrip("/")
    config.repo_name = config.repo_url.partition("://")[2].partition("/")[2]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add pages that follow from sources."""
    from reproduction.engine.ledger import load_coverage
    from reproduction.engine.plan import Plan
    from reproduction.engine.results_docs import coverage_page, overview, paper_page
    from reproduction.engine.site import data_page, parameters_page, reference_page, variables_page

    plan = Plan(ROOT / "config")
    pages = {
        "index.md": "---\nhide: [navigation]\n---\n" + _moved(ROOT / "README.md"),
        "configuration.md": _moved(ROOT / "config/README.md"),
        "contributing.md": _moved(ROOT / "CONTRIBUTING.md"),
        "data.md": data_page(),
        "results.md": overview([*plan.ledgers.values()]),
        "parameters.md": parameters_page(),
        "variables.md": variables_page(),
        "reference.md": reference_page((ROOT / "docs/names.md").read_text(encoding="utf-8")),
    }
    for paper, ledger in plan.ledgers.items():
        pages[f"results/{paper}.md"] = paper_page(ledger, plan.described(paper)[paper])
        if (listed := ROOT / f"config/coverage/{paper}.yaml").exists():
            pages[f"coverage/{paper}.md"] = coverage_page(ledger, load_coverage(listed, ledger))
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    for name, path in PICTURES.items():
        files.append(File.generated(config, f"figures/{name}.png", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Show pictures; link to results, and to the repository for files that the site lacks."""
    from reproduction.engine.results_docs import with_pictures

    source = page.file.src_uri
    boost = BOOST.get(source) or BOOST.get(source.partition("/")[0])
    page.meta |= {"search": {"boost": boost}} if boost else {}
    markdown = with_pictures(markdown, PICTURES, "../figures" if "/" in source else "figures")
    markdown = re.sub(r"\]\((?:\.\./)?config/claims/(\w+)\)", r"](results/\1.md)", markdown)
    markdown = markdown.replace("](../config/README.md", "](configuration.md")
    markdown = markdown.replace("](../CONTRIBUTING.md", "](contributing.md")
    if "/" in source:
        return markdown
    repository = rf"[\1]({config.repo_url}/blob/HEAD/\2)" if config.repo_url else r"\1"
    return re.sub(r"\[([^\]]+)\]\(\.\./([^)]*)\)", repository, markdown)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Typeset formulas in a way that browsers read without a script; lead to the ledger's pages."""
    folder, _, name = page.file.src_uri.rpartition("/")
    if page.file.src_uri == "results.md" or folder in ("results", "coverage"):
        content = MARKUP_OR_TEXT.sub(_as_the_ledger, content)
    if page.file.src_uri == "results.md" and (LEDGER / "index.html").exists():
        link = '<a href="../ledger-page/index.html">The pages of this build</a>'
        told = f"<p>{link} show each entry's evidence, with a filter and all figures.</p>"
        content = content.replace("</h1>", f"</h1>{told}", 1)
    if folder == "coverage":
        entries = f"entries/{Path(name).stem}"
        for path in (LEDGER / entries).glob("*.html"):
            link = f'<a href="../../ledger-page/{entries}/{path.name}">{path.stem}</a>'
            content = content.replace(f"<code>{path.stem}</code>", link)
    return FORMULA.sub(_mathml, content)


def on_post_page(output: str, **_: Any) -> str:
    """Keep the theme from asking the repository's host for numbers of stars."""
    return output.replace(' data-md-component="source"', "")


def _as_the_ledger(found: re.Match[str]) -> str:
    from reproduction.engine.page import typeset

    return found["markup"] or str(typeset(html.unescape(found["text"])))


def on_post_build(config: Any) -> None:
    """Copy the ledger's pages with their figures, if the papers were built here."""
    shown = [path for each in SHOWN for path in LEDGER.glob(each)]
    for found in shown if (LEDGER / "index.html").exists() else ():
        copy = Path(config.site_dir) / "ledger-page" / found.relative_to(LEDGER)
        if found.is_dir():
            shutil.copytree(found, copy, ignore=shutil.ignore_patterns(".*"), dirs_exist_ok=True)
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found, copy)


def _mathml(found: re.Match[str]) -> str:
    display = "block" if found[1] == "div" else "inline"
    return convert(html.unescape(found[2]).strip(), display=display)


def _moved(page: Path) -> str:
    """A page from elsewhere, its links as seen from `docs/`."""

    def there(found: re.Match[str]) -> str:
        return found[1] + os.path.relpath(page.parent / found[2], ROOT / "docs")

    return RELATIVE.sub(there, page.read_text(encoding="utf-8"))
