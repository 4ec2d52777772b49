"""Pages that are generated when the site is built, with formulas as MathML."""

from __future__ import annotations

import html
import json
import os
import posixpath
import re
import sys
import tomllib
from collections.abc import Container
from pathlib import Path
from typing import Any

import yaml
from latex2mathml.converter import convert
from mkdocs.structure.files import File
from public import public_names

ROOT = Path(__file__).parents[2]
MARKUP_OR_TEXT = re.compile(
    r"(?P<markup><(code|h\d|a|cite)\b.*?</\2>|<[^>]*>)|(?P<text>[^<]+)", re.DOTALL
)
# Figures and tables of this checkout; of two with one name, the later.
DRAWN = ("results/figures/*/*.*", "results/tables/*/*.csv", "*/peers/*.png")
PICTURES = {
    f"{path.parent.name}/{path.name}": path for each in DRAWN for path in sorted(ROOT.glob(each))
}
# Pages of a build of the papers in this checkout. The site has these pages at the same addresses,
# except for pages with a version of the site's own.
RESULTS = ROOT / "results"
BUILT = {
    path.relative_to(RESULTS).with_suffix(".md").as_posix(): path
    for each in ("*.html", "entries/*/*.html", "studies/*.html", "studies/entries/*/*.html")
    for path in sorted(RESULTS.glob(each))
}
OTHERWISE = {"index.html": "entries.html"}
for paper in re.findall(r"^entries/(\w+)/index.md$", "\n".join(BUILT), re.MULTILINE):
    OTHERWISE[f"entries/{paper}/index.html"] = f"coverage/{paper}.html"
# Guides for users come first in a search; lists made from sources come last.
BOOST: dict[str, float] = {"glossary.md": 4, "your-own-table.md": 3, "wrong.md": 3}
BOOST |= dict.fromkeys(("private-intervals.md", "comparison.md", "gallery.md"), 2)
BOOST |= dict.fromkeys(("coverage", "reference.md", "reference", "contributing.md"), 0.3)
USED = ("fit-a-table", "plan-and-predict", "budgets-and-releases")
BOOST |= {f"reference/{topic}.md": 1 for topic in USED}
BOOST |= dict.fromkeys(("entries", "variables.md", "parameters.md", "changelog.md", "studies"), 0.1)
# Cells of tables without words, and printed results.
NUMBERS = re.compile(r'<(td(?=[^>]*>(</?strong>|[^<a-df-z])*</td>)|div(?= class="jp-RenderedText))')
RELATIVE = re.compile(r'(\]\(|(?:src|srcset)=")(?![a-z]+:|#)([^)"\s]+)')
sys.path.insert(0, str(ROOT / "src"))
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_config(config: Any) -> Any:
    """Read the addresses of site and repository from `pyproject.toml`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    config.site_url = project["urls"]["Documentation"]
    config.repo_url = project["urls"]["Repository"]
    config.repo_name = config.repo_url.partition("://")[2].partition("/")[2]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add pages generated from sources."""
    from reproduction.engine.ledger import load_coverage
    from reproduction.engine.page import TEMPLATES
    from reproduction.engine.plan import Plan
    from reproduction.engine.results_docs import coverage_page, drawn_pages, overview, paper_page
    from reproduction.engine.site import data_page, parameters_page, reference_pages, variables_page

    plan = Plan(ROOT / "config")
    pages = {
        "index.md": "---\nhide: [navigation]\n---\n" + _moved(ROOT / "README.md"),
        "configuration.md": _moved(ROOT / "config/README.md"),
        "contributing.md": _moved(ROOT / "CONTRIBUTING.md"),
        "data.md": data_page((ROOT / "docs/workflow.md").read_text(encoding="utf-8")),
        "changelog.md": _moved(ROOT / "CHANGELOG.md"),
        "citation.md": _citation(ROOT / "CITATION.cff", ROOT / "paper/paper.bib", plan.ledgers),
        "entries.md": "---\nhide: [toc]\nsearch: {exclude: true}\n---\n"
        "# All entries\n\n`make` builds this page.\n",
        "results.md": overview([*plan.ledgers.values()]),
        "parameters.md": parameters_page(),
        "variables.md": variables_page(),
    }
    pages |= reference_pages(public_names())
    pages |= drawn_pages([*plan.ledgers.values()], plan.described(*plan.ledgers))
    for paper, ledger in plan.ledgers.items():
        pages[f"results/{paper}.md"] = paper_page(ledger, plan.described(paper)[paper])
        if (listed := ROOT / f"config/coverage/{paper}.yaml").exists():
            pages[f"coverage/{paper}.md"] = coverage_page(ledger, load_coverage(listed, ledger))
    for name, path in BUILT.items():
        title = re.search(r"<title>(.*?)</title>", path.read_text(encoding="utf-8"))
        if name.replace(".md", ".html") not in OTHERWISE:
            shown = f"title: {json.dumps(html.unescape(title[1]))}\nhide: [toc]"
            pages[name] = f"---\n{shown}\n---\n{pages.get(name, '')}"
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    for name, path in PICTURES.items():
        folder = "tables" if path.suffix == ".csv" else "figures"
        files.append(File.generated(config, f"{folder}/{name}", abs_src_path=str(path)))
    # The style of built pages, nested in their own element, in the theme's colours.
    style = re.sub(r"\bmain\b", ".page", (TEMPLATES / "page.css").read_text(encoding="utf-8"))
    style = re.sub(r"([\d.]+)rem", lambda found: f"{0.8 * float(found[1]):.3g}rem", style)
    dark = '[data-md-color-scheme="slate"] & {\n  & {'
    style = style.replace("@media (prefers-color-scheme: dark) {\n  :root {", dark)
    style = f".built {{\n{style.replace(':root', '&')}}}\n"
    files.append(File.generated(config, "stylesheets/built.css", content=style))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any, **_: Any) -> str:
    """Show pictures; link to results, or to the repository for files that the site lacks."""
    from reproduction.engine.results_docs import with_pictures

    source = page.file.src_uri
    boost = BOOST.get(source) or BOOST.get(source.partition("/")[0])
    page.meta |= {"search": {"boost": boost}} if boost else {}
    # Beside an entry stands the list that leads to its paper.
    found = re.search(r"entries/(\w+)/", source)
    # A build may hold a paper that is no longer configured.
    if found and (results := files.get_file_from_path(f"results/{found[1]}.md")):
        page.parent = results.page.parent
    drawn = {name.removesuffix(".png") for name in PICTURES}
    markdown = with_pictures(markdown, drawn, "../figures" if "/" in source else "figures")
    markdown = re.sub(r"\]\((?:\.\./)?config/claims/(\w+)\)", r"](results/\1.md)", markdown)
    markdown = markdown.replace("](../config/README.md", "](configuration.md")
    markdown = markdown.replace("](../CONTRIBUTING.md", "](contributing.md")
    if "/" in source:
        return markdown
    # The README is also read elsewhere; its links must be absolute.
    markdown = re.sub(rf"\]\({re.escape(config.site_url)}([\w/-]+)\.html", r"](\1.md", markdown)
    markdown = re.sub(r"https://raw\.\S+/docs/", "", markdown)
    picture = r'<picture>.*?<img src="(.*?)"(.*?)>.*?</picture>'
    # On a dark page the style inverts the light picture, as it does all others.
    markdown = re.sub(picture, r'<img src="\1"\2>', markdown, flags=re.DOTALL)
    repository = rf"[\1]({config.repo_url}/blob/HEAD/\2)"
    return re.sub(r"\[([^\]]+)\]\(\.\./([^)]*)\)", repository, markdown)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Typeset formulas without a script; link to the ledger's pages."""
    source = page.file.src_uri
    if built := BUILT.get({"entries.md": "index.md", "index.md": ""}.get(source, source)):
        page.toc.items.clear()
        return _built(built.read_text(encoding="utf-8"), source)
    folder, _, name = source.rpartition("/")
    if source in ("results.md", "wrong.md", "gallery.md") or folder in ("results", "coverage"):
        content = MARKUP_OR_TEXT.sub(_as_the_ledger, content)

    # Links to an entry's table row lead to its page of evidence, if there is one.
    def to_entry(found: re.Match[str]) -> str:
        entry = f"entries/{found[2] or Path(name).stem}/{found[3]}"
        prefix = found[1] if found[2] else "../"
        return f"{prefix}{entry}.html" if f"{entry}.md" in BUILT else found[0]

    coverage = r'(?<=href=")([./]*)(?:coverage/(\w+)\.html)?#([\w-]+)(?=")'
    content = re.sub(coverage, to_entry, content)
    # A term or an error with an anchor links to itself.
    content = re.sub(
        r'(<a id="([\w-]+)")></a>(<strong>.*?</strong>)', r'\1 href="#\2">\3</a>', content
    )
    # The tutorial's template has no alternative texts; its cells state them.
    for alt in re.findall(r'^# %% alt="(.*)"$', page.file.content_string, re.M):
        content = content.replace("No description has been provided for this image", alt, 1)
    # A search finds a page by its words, not by its numbers.
    content = NUMBERS.sub(r"<\1 data-search-exclude", content)
    if folder == "coverage":
        for path in (RESULTS / f"entries/{Path(name).stem}").glob("*.html"):
            link = f'<a href="../entries/{path.parent.name}/{path.name}">{path.stem}</a>'
            content = content.replace(f"<code>{path.stem}</code>", link)
    return FORMULA.sub(_mathml, content)


def on_post_page(output: str, **_: Any) -> str:
    """Stop the theme from requesting the repository's number of stars."""
    return output.replace(' data-md-component="source"', "")


def _as_the_ledger(found: re.Match[str]) -> str:
    from reproduction.engine.page import typeset

    return found["markup"] or str(typeset(html.unescape(found["text"])))


def _built(text: str, source: str) -> str:
    """Body of a built page, with links adapted to the site."""
    shown = text.partition("<body>")[2].partition("<footer>")[0].partition("</body>")[0]
    shown = re.sub(r"<nav.*?</nav>|<a class=.skip.*?</a>", "", shown, flags=re.DOTALL)
    shown = shown.replace('<main class="', '<div class="page ')
    shown = shown.replace("<main", '<div class="page"').replace("</main>", "</div>")
    if source == "entries.md":
        shown = "<h1>All entries</h1>" + shown[shown.index('<div class="filter"') :]
    shown = re.sub(r'<(div class="check"|details)', r"<\1 data-search-exclude", shown)
    here = posixpath.dirname(source)
    if found := re.search(r"entries/(\w+)/", source):
        link = f'<a href="{posixpath.relpath(f"results/{found[1]}.html", here)}">{found[1]}</a>'
        shown = shown.replace(f"<code>{found[1]}</code>", link, 1)

    def there(found: re.Match[str]) -> str:
        asked, _, part = found[1].partition("#")
        path = posixpath.normpath(posixpath.join(here, asked))
        path = posixpath.relpath(OTHERWISE.get(path, path), here or ".")
        return f'href="{path}{"#" if part else ""}{part}"'

    shown = re.sub(r'href="(?![a-z]+:|#)([^"]*)"', there, shown)
    shown = re.sub(r'(href="([^"]*)\.pdf"[^>]*><img src=")data:[^"]*', r"\1\2.png", shown)
    return f'<div class="built">{shown}</div>'


def _mathml(found: re.Match[str]) -> str:
    display = "block" if found[1] == "div" else "inline"
    return convert(html.unescape(found[2]).strip(), display=display)


def _citation(software: Path, bibliography: Path, papers: Container[str]) -> str:
    about = yaml.safe_load(software.read_text(encoding="utf-8"))
    found = re.findall(r"^(@\w+\{(\w+),\n.*?^\})\n", bibliography.read_text("utf-8"), re.M | re.S)
    entries = "\n".join(entry for entry, key in found if key in papers)
    names = ("given-names", "family-names", "name")
    people = [" ".join(each[key] for key in names if key in each) for each in about["authors"]]
    authors, year, title = " and ".join(people), about["date-released"][:4], about["title"]
    return f"""# Citation: how to cite (BibTeX)

{authors} ({year}). *{title}*. Version {about["version"]}. <{about["repository-code"]}>

```bibtex
@software{{privreg,
  title = {{{title}}},
  author = {{{{{authors}}}}}, year = {{{year}}}, version = {{{about["version"]}}},
  url = {{{about["repository-code"]}}}}}
```

Licence: {about["license"]}. Also cite [each paper](results.md#papers) that you use:

```bibtex
{entries}
```
"""


def _moved(page: Path) -> str:
    """A page from another folder, with links relative to `docs/`."""

    def there(found: re.Match[str]) -> str:
        return found[1] + os.path.relpath(page.parent / found[2], ROOT / "docs")

    return RELATIVE.sub(there, page.read_text(encoding="utf-8"))
