"""HTML pages of the ledger: results, gallery, one for each paper's places, entry and finding.

Pages of entries and findings embed their pictures, so that each can be sent alone."""

from __future__ import annotations

import base64
import csv
import html
import io
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import yaml
from markupsafe import Markup, escape
from numpy.typing import NDArray

from reproduction.engine.checks import number, series
from reproduction.engine.code import SOURCE
from reproduction.engine.verdicts import (
    KINDS,
    Book,
    CheckResult,
    FindingRecord,
    Record,
    counts,
    is_unexpected,
    summary,
    with_error,
)

FloatArray = NDArray[np.float64]

TEMPLATES = Path(__file__).parent / "templates"
PROJECT = SOURCE.parent / "pyproject.toml"
SIGNS = {
    "reproduced": "✓", "holds as corrected": "≈", "proof gap": "∴", "contradicted": "✕",
    "depends on our choice": "⇄", "inconclusive": "?", "untested": "–", "passed": "✓",
    "failed": "✕",
}  # fmt: skip
MEANINGS = {
    "reproduced": "the evidence supports it",
    "holds as corrected": "refuted as printed, reproduced with a misprint's evident correction",
    "proof gap": "a step of a proof is wrong; with another step the statement stands",
    "contradicted": "refuted, and no correction of a misprint saves it",
    "depends on our choice": "the paper leaves a choice open, and the verdict changes with it",
    "inconclusive": "the noise is too large to decide",
    "untested": "the required data are not available",
}
SEVERITY_MEANINGS = {
    "conclusion": "the conclusion does not hold as stated",
    "hypothesis": "a hypothesis must be added or replaced",
    "constant": "a number changes, but no rate",
    "typo": "the argument is unaffected",
}
CHANGE_MEANINGS = {
    "guarantee": "a promise of privacy or of coverage does not hold as printed",
    "rate or condition": "a rate changes, or a condition under which a result holds",
    "number": "a number changes, but no rate and no condition",
    "nothing": "nothing changes for a user of the paper",
}


def gravest_first(findings: Iterable[Any]) -> list[Any]:
    """Findings in order of their consequence for a user of the paper, then of severity."""
    orders = [*CHANGE_MEANINGS], [*SEVERITY_MEANINGS]
    return sorted(findings, key=lambda f: (orders[0].index(f.changes), orders[1].index(f.severity)))


def foremost(findings: Iterable[Any]) -> list[Any]:
    """The findings that head the results, in order."""
    return sorted((f for f in findings if f.foremost), key=lambda f: f.foremost.rank)


def render(
    book: Book,
    *,
    papers: Mapping[str, Mapping[str, Any]],
    drawings: Mapping[str, Mapping[str, Any]],
    images: Mapping[tuple[str, str], bytes],
    coverage: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    results: Path = Path("results"),
    made_by: str = "",
) -> Iterator[tuple[str, str]]:
    """Addresses and HTML: `index.html`, `gallery.html` and the pages in `entries/`.

    `papers` and `coverage` are by citation key, `drawings` and `images` by key and name;
    `results` is the folder of all results, for the commands that rebuild them and their costs.
    """
    is_studies = book.papers == ["studies"]
    by_key = {record.key: record for record in book.records}
    shared = {
        "book": book,
        "by_key": by_key,
        "papers": papers,
        "drawings": drawings,
        "images": {name: _embedded(image) for name, image in images.items()},
        "results": results.as_posix(),
        "made_by": made_by,
        "urls": tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["urls"],
        "is_studies": is_studies,
        "heading": "Tests of the library" if is_studies else "Results of the papers",
        "is_small": any(record.scale == "quick" for record in book.records),
        "summary": summary(book),
        "costs": {paper: _cost(results / "benchmarks", paper) for paper in book.papers},
        "indices": {p: _index(book, p, (coverage or {}).get(p, ())) for p in book.papers},
    }

    def template(name: str, home: str = "") -> jinja2.Template:
        root = f"{home}../" if is_studies else home
        return _environment(shared | {"home": home, "root": root}).get_template(name)

    yield "index.html", template("page.html").render()
    yield "gallery.html", template("gallery.html").render()
    places_of, entry = template("places.html", "../../"), template("entry.html", "../../")
    for paper in book.papers if book.statements else ():
        yield f"entries/{paper}/index.html", places_of.render(paper=paper)
    entries: list[Record | FindingRecord] = [*book.records, *book.findings]
    for each in entries:
        finding = each if isinstance(each, FindingRecord) else None
        shown = [by_key[f"{each.paper}-{name}"] for name in finding.shown_by] if finding else [each]
        text = entry.render(entry=each, finding=finding, records=shown)
        yield f"entries/{each.paper}/{each.id}.html", text


def templates(*, autoescape: bool) -> jinja2.Environment:
    """Templates in which an unknown name is an error and tags leave no blank lines."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=autoescape,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["titled"] = lambda name: name.replace("fig", "Figure ").replace("_", " ")
    return environment


def _environment(shared: dict[str, Any]) -> jinja2.Environment:
    environment = templates(autoescape=True)
    environment.filters |= {
        "number": number,
        "series": series,
        "typeset": typeset,
        "first_sentence": lambda text: re.split(r"(?<=[^A-Z]\.)\s+(?=[A-Z])", text)[0],
        # What a selection holds fixed: the labels of the rest are listed with their values.
        "held": lambda text: ", ".join(part for part in text.split(", ") if "|" not in part),
        "words": in_words,
        "yaml": lambda values: yaml.safe_dump(values, sort_keys=False, default_flow_style=None),
        # A name for a class, and an address that is none of javascript.
        "slug": lambda text: text.replace(" ", "-"),
        "web_address": lambda text: text if re.match("https?://", text) else "",
    }
    environment.globals |= shared | {
        "with_error": with_error,
        "is_unexpected": is_unexpected,
        "picture": picture,
        "signs": SIGNS,
        "meanings": MEANINGS,
        "severity_meanings": SEVERITY_MEANINGS,
        "change_meanings": CHANGE_MEANINGS,
        "gravest_first": gravest_first,
        "foremost": foremost,
        "counts": counts,
        "kinds": KINDS,
    }
    return environment


def _embedded(image: bytes) -> dict[str, Any]:
    """A PNG of a limited width, with a palette, as an address that holds it."""
    from PIL import Image

    picture = Image.open(io.BytesIO(image)).convert("RGB")
    picture.thumbnail((640, 2000), Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    # Cells of equal numbers of pixels would mix the colours of lines, which cover few.
    drawn = picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    drawn.save(stream, "PNG", optimize=True)
    address = "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()
    return {"address": address, "width": picture.width, "height": picture.height}


def _cost(benchmarks: Path, paper: str) -> str:
    """Time and memory of a paper's jobs."""
    jobs = [
        job
        for path in benchmarks.glob(f"*/{paper}/**/*.tsv")
        for job in csv.DictReader(path.read_text(encoding="utf-8").splitlines(), delimiter="\t")
    ]
    if not jobs:
        return ""
    minutes = sum(float(job["s"]) for job in jobs) / 60
    # The memory of a job that was too short to be seen is NA.
    memory = max(float(job["max_rss"].replace("NA", "0")) for job in jobs)
    return f"{len(jobs)} jobs, {minutes:.2g} min in sequence, at most {memory:.0f} MB of memory"


# Index by place, from `Theorem 4, equations (6.4)-(6.6)`

ORDER = (
    "Theorem", "Corollary", "Proposition", "Lemma", "Claim", "Fact", "Property", "Conjecture",
    "Remark", "Definition", "Condition", "Assumption", "Algorithm", "Figure", "Table", "Equation",
    "Section", "Appendix",
)  # fmt: skip
COUNT = r"(?:[A-Z]\.)?\d+(?:\.\d+)*(?:\([a-z]\))?|[A-Z]\b(?:\.\d+)*"
RANGE = re.compile(rf"({COUNT})(?:-({COUNT}))?")
NAMED = re.compile(
    rf"\b({'|'.join(name[:-1] for name in ORDER)})(?:[a-z]s?|ies|ces)\s"
    rf"((?:{COUNT})(?:(?:, | and |, and |-)(?:{COUNT}))*)",
    re.IGNORECASE,
)
EQUATIONS = re.compile(r"\(((?:[A-Z]\.)?\d[.\d]*)\)(?:(?:-| to )\(([A-Z\d.]+)\))?")


def places(where: str) -> list[str]:
    """Numbered places that a text names, with ranges expanded; the text if it names none."""
    found = []
    for word, listed in NAMED.findall(where):
        name = next(each for each in ORDER if each.startswith(word.capitalize()))
        found += [f"{name} {one}" for ends in RANGE.findall(listed) for one in _between(*ends)]
    for ends in EQUATIONS.findall(where):
        found += [f"Equation ({one})" for one in _between(*ends)]
    return [*dict.fromkeys(found)] or [where]


def _between(first: str, last: str) -> list[str]:
    head, dot, at = first.rpartition(".")
    final = last.rpartition(".")[2]
    return [f"{head}{dot}{i}" for i in range(int(at), int(final) + 1)] if last else [first]


def by_place(named: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    """Items grouped by the places that their texts name, in the order of the places' numbers."""
    found: dict[str, list[Any]] = {}
    for where, each in named:
        for place in places(where):
            found.setdefault(place, []).append(each)

    def order(place: str) -> tuple[Any, ...]:
        name, _, numbers = place.partition(" ")
        parts = re.findall(r"\d+|[A-Za-z]", numbers)
        rank = ORDER.index(name) if name in ORDER else len(ORDER)
        return rank, [(not part.isdigit(), part.zfill(9)) for part in parts]

    return {place: found[place] for place in sorted(found, key=order)}


def _index(book: Book, paper: str, items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Entries, findings and coverage of each place."""
    named = [
        *((each.where or "", ("records", each)) for each in book.statements if each.paper == paper),
        *(("; ".join(f.places), ("findings", f)) for f in book.findings if f.paper == paper),
        *((item["item"], ("notes", item)) for item in items),
    ]
    kinds = ("records", "findings", "notes")
    return {
        place: {kind: [each for own, each in found if own == kind] for kind in kinds}
        for place, found in by_place(named).items()
    }


# A check as a picture

WIDTH = 340
NAMED_DOTS = 12
LOGARITHMIC = 1e3  # values further apart than this are drawn on a logarithmic scale


def picture(check: CheckResult) -> Markup:
    """Inline SVG of a check: observed values with noise, allowed range, refused values.

    One number lies along a line, several stand side by side. The colours are the style sheet's.
    """
    values = np.ravel(np.array(check.observed, float))
    if not np.isfinite(values).any():
        return Markup("")
    count = values.size
    errors, lows, highs = (
        np.broadcast_to(np.array(each, float), count)
        for each in (check.standard_error, check.low, check.high)
    )
    errors = np.where(np.isfinite(errors), errors, 0.0)
    refused = [
        np.broadcast_to(each, count)
        for each in check.rejected
        if np.size(each) in (1, count) and not np.isnan(each).any()
    ]
    share, ticks = _axis(values, errors, np.append(lows, highs), refused)
    height = 54 if count == 1 else 140

    def at(place: float, value: float) -> str:
        if count == 1:
            return f"{14 + 312 * share(value):.1f} {20 + 28 * place:.0f}"
        return f"{52 + (place + 0.5) * 274 / count:.1f} {120 - 108 * share(value):.1f}"

    def lines(name: str, *courses: Sequence[tuple[float, float]]) -> str:
        path = "".join("M" + "L".join(at(*point) for point in course) for course in courses)
        return f'<path class="{name}" d="{path}"/>'

    seen = [point for point in enumerate(values) if not np.isnan(point[1])]
    body = []
    if check.low is not None:
        corners = [
            (*at(i - 0.5, low).split(), *at(i + 0.5, high).split())
            for i, (low, high) in enumerate(zip(lows, highs, strict=True))
            if low <= high
        ]
        boxes = "".join(f"M{x} {y}H{right}V{top}H{x}Z" for x, y, right, top in corners)
        body.append(f'<path class="allowed" d="{boxes}"/>')
    elif count > 1:
        body.append(lines("course", seen))
    edge = 0.5 if count == 1 else -0.5
    body.append(lines("axis", [(edge, -np.inf), (edge, np.inf)]))
    for name, width in (("wide-error", 2), ("error", 1)):
        bars = [
            [(i, v - width * errors[i]), (i, v + width * errors[i])] for i, v in seen if errors[i]
        ]
        body += [lines(name, *bars)] if bars else []
    for wrong in refused:
        cross = f'<path class="refused" d="M{at(0, wrong[0])}m-4 -4l8 8m0 -8l-8 8"/>'
        body.append(cross if count == 1 else lines("refused course", list(enumerate(wrong))))
    names = [re.sub(r"(^|, )\w+=", r"\1", label).replace("_", " ") for label in check.labels]
    if count > NAMED_DOTS or max(map(len, names), default=99) * count > WIDTH // 8:
        names = [f"{i + 1}" if count <= NAMED_DOTS else "" for i in range(count)]
    for i, value in seen:
        x, y = at(i, value).split()
        label = f"{check.labels[i]}: " if i < len(check.labels) else ""
        title = escape(in_words(label) + with_error(value, errors[i] or None))
        radius = 4 if count <= NAMED_DOTS else 2.5
        if count > 1 and names[i]:
            body.append(f'<text x="{x}" y="134" text-anchor="middle">{escape(names[i])}</text>')
        body.append(f'<circle cx="{x}" cy="{y}" r="{radius}"><title>{title}</title></circle>')
    for tick in ticks:
        x, y = at(edge, tick).split()
        moved = 'dy="14" text-anchor="middle"' if count == 1 else 'dx="-5" dy="4" text-anchor="end"'
        body.append(f'<text x="{x}" y="{y}" {moved}>{number(tick, 4)}</text>')
    said = escape(
        f"observed {with_error(check.observed, check.standard_error)}, required {check.expected}"
    )
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"'
        f' aria-label="{said}">{"".join(body)}</svg>'
    )


def _axis(
    values: FloatArray, errors: FloatArray, bounds: FloatArray, refused: list[FloatArray]
) -> tuple[Callable[[float], float], list[float]]:
    """Place of a value along an axis, within 0 to 1 or just outside, and the axis's ticks."""
    seen, bounds = values[np.isfinite(values)], np.unique(bounds[np.isfinite(bounds)])
    near = np.concatenate([values - 2 * errors, values + 2 * errors, bounds])
    near = near[np.isfinite(near)]
    # A wrong value that is far away must not squeeze what matters: it is left to the words.
    reach = 2 * np.ptp(near) or np.inf
    wrong = np.concatenate([near, *refused])
    near = wrong[(wrong >= near.min() - reach) & (wrong <= near.max() + reach) & np.isfinite(wrong)]
    logarithmic = near.min() > 0 and near.max() > LOGARITHMIC * near.min()

    def scaled(value: float) -> float:
        return float(np.log(max(value, 1e-300)) if logarithmic else value)

    low, high = scaled(near.min()), scaled(near.max())
    pad = 0.08 * (high - low) or abs(high) or 1.0

    def share(value: float) -> float:
        return float(np.clip((scaled(value) - low + pad) / (high - low + 2 * pad), -0.1, 1.1))

    ticks: list[float] = []
    for value in map(float, [*bounds, seen.min(), seen.max()]):
        if len(ticks) < 4 and all(abs(share(value) - share(other)) > 0.16 for other in ticks):
            ticks.append(value)
    return share, ticks


# Formulas as entries write them, `gamma^2` or `d^(-1/2)`

GREEK = (
    "alpha|beta|gamma|delta|epsilon|eps|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi"
    "|chi|psi|omega|Gamma|Delta|Theta|Lambda|Sigma|Phi|Psi|Omega"
)
OPERATORS = {"<=": "≤", ">=": "≥", "+-": "±", "-": "−", "x": "×"}
# A single letter is a variable, unless it is an article, the pronoun, the name of a place in a
# paper, an abbreviation's or what follows an apostrophe.
PLACES = (
    "Appendix ", "Appendices ", "Appendices C and ", "Section ", "Option ", "Lemma ", "Theorem ",
    "Table ", "Figure ", "Panel ", "part (", "parts (",
)  # fmt: skip
VARIABLE = (
    "".join(f"(?<!{re.escape(place)})" for place in PLACES)
    + r"(?<![\sA-Za-z]\d\()(?:[b-z]|[B-HJ-Z](?!-[a-z]))(?![.]\w)|[aAI](?=\^|_[A-Za-z\d*{]\b)"
)
GROUP = r"[({][^(){}]*[)}]"
for _ in range(3):
    GROUP = rf"[({{](?:[^(){{}}]|{GROUP})*[)}}]"
# What is raised or lowered: in brackets, or a sign and one word, number or star.
SCRIPT = (
    rf"(?:\^(?={GROUP}|[-+]?[\w*])|_(?=(?:[A-Za-z]{{1,4}}|\d+)(?![A-Za-z\d_])|\*|[{{(]))"
    rf"(?:{GROUP}|[-+]?(?:(?:max|min){GROUP}|(?:{GREEK})(?![A-Za-z])|[A-Za-z]+|\d+(?:\.\d+)?|\*))"
)
PIECE = re.compile(
    rf"(?P<digits>(?<![\w.])\d+(?:\.\d+)?)e(?P<power>[+-]?\d+)(?![\w.]\w)"
    rf"|(?P<sign><=|>=|\+-|(?<= )-(?= )|(?<![\w)\]}}-])-(?=\d)|(?<=\d )x(?= \d))"
    rf"|(?:\bsqrt(?P<root>{GROUP})"
    rf"|(?P<base>(?<![\w'’.])(?:{GREEK}|{VARIABLE}))(?P<prime>'(?=[\s^_,;.)]))?(?![^\W_]|['’])"
    rf"|(?=\^)|(?<=[|)])(?=_))(?P<scripts>(?:{SCRIPT})*)"
)


def in_words(text: str) -> str:
    """Text with labels such as `step_size=0.5` in words."""
    return re.sub(r"\b[a-z]\w*=\w*", lambda label: re.sub("[_=]", " ", label[0]), text)


def typeset(text: str) -> Markup:
    """Text with its formulas as HTML; `data-as` keeps each formula as written, for the search.

    Examples
    --------
    >>> typeset("at rate d^(-1/2)")
    Markup('at rate <span class="f" data-as="d^(-1/2)"><var>d</var><sup>−1/2</sup></span>')
    """
    noted = Markup('<span class="f" data-as="{}">{}</span>')
    return _each(text, lambda found: noted.format(found[0], _formula(found)))


def _each(text: str, draw: Callable[[re.Match[str]], Markup]) -> Markup:
    drawn, at = Markup(""), 0
    for found in PIECE.finditer(text):
        if found[0]:
            drawn += escape(text[at : found.start()]) + draw(found)
            at = found.end()
    return drawn + escape(text[at:])


def _formula(found: re.Match[str]) -> Markup:
    if found["sign"]:
        return escape(OPERATORS[found["sign"]])
    if found["digits"]:
        factor = "" if found["digits"] == "1" else f"{found['digits']} × "
        return Markup("{}10<sup>{}</sup>").format(
            factor, f"{int(found['power'])}".replace("-", "−")
        )
    drawn = Markup("")
    if found["root"]:
        drawn = Markup('√<span class="root">{}</span>').format(_inside(found["root"]))
    elif found["base"]:
        base = "epsilon" if found["base"] == "eps" else found["base"]
        if len(base) > 1:  # HTML names all Greek letters
            base = html.unescape(f"&{base};")
        drawn = Markup("<var>{}</var>{}").format(base, "′" if found["prime"] else "")
    for script in re.findall(SCRIPT, found["scripts"]):
        tag = Markup("sup" if script[0] == "^" else "sub")
        drawn += Markup("<{0}>{1}</{0}>").format(tag, _inside(script[1:]))
    return drawn


def _inside(text: str) -> Markup:
    """A part of a formula without its brackets, with minus signs."""
    drawn = _each(re.sub(r"^[({](.*)[)}]$", r"\1", text), _formula)
    return Markup(
        re.sub(
            r"(?<![\w>])-(?=[\d\w<])|(?<=[\w>)]) ?- ?(?=[\w<(])",
            lambda found: found[0].replace("-", "−"),
            drawn,
        )
    )
