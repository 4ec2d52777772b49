"""The ledger for machines: an RO-Crate with a ClaimReview for each statement."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any

from reproduction.claims.records import Book, FindingRecord, Record

LICENSE = "https://spdx.org/licenses/MIT"
FORMATS = {"json": "application/json", "csv": "text/csv", "html": "text/html"}
# schema.org asks for a rating; it is no measure of a paper, so the words come with it.
RATINGS = {
    "reproduced": 5,
    "inconclusive": 3,
    "untested": 3,
    "depends on our choice": 2,
    "contradicted": 1,
}


def crate(
    book: Book,
    *,
    papers: Mapping[str, Mapping[str, str]],
    files: Mapping[str, str],
    published: date,
    version: str,
) -> str:
    """Metadata of an RO-Crate in the results' folder.

    Parameters
    ----------
    book : Book
        All papers' entries with their verdicts.
    papers : mapping
        Citation key to `title`, `authors` and `url`.
    files : mapping
        Files of the crate, relative to the folder, with what each is.
    published : date
        Of the package's release: no artifact holds the day of its making.
    version : str
        Of the package.

    Returns
    -------
    str
        JSON-LD, the text of `ro-crate-metadata.json`.
    """
    from rocrate.model.contextentity import ContextEntity
    from rocrate.rocrate import ROCrate

    made = ROCrate()
    made.name = "The ledger of privreg"
    made.description = "Statements of papers on private linear regression, each with its verdict."
    made.datePublished = published.isoformat()

    def add(name_of: str, kind: str, **properties: Any) -> Any:
        return made.add(ContextEntity(made, name_of, properties={"@type": kind, **properties}))

    made.license = add(
        LICENSE, "CreativeWork", name="MIT", description="Any use, with the notice kept."
    )
    made.publisher = add("#authors", "Organization", name="The privreg authors")
    software = add(
        "#privreg",
        "SoftwareApplication",
        name="privreg",
        url="index.html",
        version=version,
        softwareVersion=version,
        license=made.license,
    )
    for path, what in files.items():
        kind = FORMATS.get(path.rpartition(".")[2], "application/octet-stream")
        about = {"name": what, "description": what, "encodingFormat": kind}
        made.add_file(dest_path=path, properties=about)
    articles = {
        paper: add(
            papers.get(paper, {}).get("url") or f"#{paper}",
            "ScholarlyArticle",
            name=papers.get(paper, {}).get("title", paper),
            author=papers.get(paper, {}).get("authors", ""),
            identifier=paper,
        )
        for paper in book.papers
    }
    artifacts = {
        (record.paper, name): digest
        for record in book.records
        for check in record.checks
        for name, digest in check.digests.items()
    }
    evidence = {
        (paper, name): add(
            f"#evidence/{paper}/{name}",
            "Dataset",
            name=f"{name} of {paper}",
            identifier=f"sha256:{digest}",
        )
        for (paper, name), digest in artifacts.items()
    }
    made.root_dataset["mentions"] = [
        *(_review(add, item, articles[item.paper], evidence, software) for item in book.statements),
        *(_note(add, finding, articles[finding.paper]) for finding in book.findings),
    ]
    return json.dumps(made.metadata.generate(), indent=1, sort_keys=True, ensure_ascii=False)


def problems(text: str) -> list[str]:
    """What an RO-Crate's metadata lacks.

    Dangling references, duplicates, required properties, and words that its context does not
    define, so that a reader of linked data would drop them.
    """
    graph = json.loads(text)["@graph"]
    defined = _context()
    by_id: dict[str, dict[str, Any]] = {}
    found = []
    for entity in graph:
        if entity["@id"] in by_id:
            found.append(f"{entity['@id']}: is there twice")
        by_id[entity["@id"]] = entity
    descriptor = by_id.get("ro-crate-metadata.json", {})
    if descriptor.get("about") != {"@id": "./"} or "conformsTo" not in descriptor:
        found.append("ro-crate-metadata.json: must describe ./ and name what it conforms to")
    root = by_id.get("./", {})
    found += [
        f"./: {name} must be given"
        for name in ("name", "description", "datePublished", "license", "publisher")
        if not root.get(name)
    ]
    for entity in graph:
        kinds = entity["@type"] if isinstance(entity["@type"], list) else [entity["@type"]]
        words = [*kinds, *(name for name in entity if not name.startswith("@"))]
        found += [
            f"{entity['@id']}: {word} is not in the context"
            for word in words
            if word not in defined
        ]
        required = REQUIRED.get(str(entity.get("@type")), ())
        found += [
            f"{entity['@id']}: {name} must be given" for name in required if name not in entity
        ]
        for name, value in entity.items():
            for part in value if isinstance(value, list) else [value]:
                if not isinstance(part, dict) or "@id" not in part:
                    continue
                target = part["@id"]
                if target not in by_id and not target.startswith("https://"):
                    found.append(f"{entity['@id']}: {name} leads to {target}, which is not there")
    return found


REQUIRED = {
    "ClaimReview": ("name", "claimReviewed", "itemReviewed", "reviewRating", "author", "url"),
    "Claim": ("name", "text", "appearance"),
    "Rating": ("name", "ratingValue", "bestRating", "worstRating", "alternateName"),
    "ScholarlyArticle": ("name",),
    "HowTo": ("step",),
    "SoftwareApplication": ("name", "url", "version"),
}


def _context() -> set[str]:
    """Words of the RO-Crate context, of which the library has a copy."""
    from importlib.resources import files

    stored = files("rocrate").joinpath("data/ro-crate.jsonld").read_text(encoding="utf-8")
    return set(json.loads(stored)["@context"])


def _review(
    add: Any,
    record: Record,
    article: Any,
    evidence: Mapping[tuple[str, str], Any],
    software: Any,
) -> Any:
    anchor = f"{record.paper}/{record.id}"
    claim = add(
        f"#claim/{anchor}",
        "Claim",
        name=f"{record.paper}: {record.id}",
        text=record.statement,
        appearance=article,
        position=record.where or "",
        additionalType=record.kind or "",
    )
    rating = add(
        f"#rating/{anchor}",
        "Rating",
        name=record.verdict,
        ratingValue=RATINGS[record.verdict],
        bestRating=5,
        worstRating=1,
        alternateName=record.verdict,
        ratingExplanation=record.reason or record.note or "",
    )
    command = add(f"#command/{anchor}", "HowTo", name="Rebuild", step=record.command)
    names = dict.fromkeys(name for check in record.checks for name in check.digests)
    read = [evidence[record.paper, name] for name in names]
    return add(
        f"#review/{anchor}",
        "ClaimReview",
        name=f"{record.verdict}: {record.id}",
        claimReviewed=record.statement,
        itemReviewed=claim,
        reviewRating=rating,
        author=software,
        url=f"index.html#{record.key}",
        isBasedOn=read[0] if len(read) == 1 else read,
        workExample=command,
    )


def _note(add: Any, finding: FindingRecord, article: Any) -> Any:
    return add(
        f"#finding/{finding.paper}/{finding.id}",
        "CorrectionComment",
        name=f"{finding.severity}: {finding.id}",
        text=f"{finding.printed} Instead: {finding.holds}",
        description=finding.how_we_know,
        about=article,
        url=f"index.html#{finding.key}",
    )
