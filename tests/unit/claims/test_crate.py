"""The RO-Crate: one ClaimReview a statement, whole, deterministic, and read by the library."""

import json
from datetime import date
from pathlib import Path

from rocrate.rocrate import ROCrate

from reproduction.claims.crate import crate, problems

from .book import PAPERS, book

FILES = {"claims.json": "All verdicts", "index.html": "The page"}


def made() -> str:
    return crate(book(), papers=PAPERS, files=FILES, published=date(2026, 1, 2), version="1.0")


def test_there_is_one_review_a_statement_with_its_words() -> None:
    graph = json.loads(made())["@graph"]
    reviews = [entity for entity in graph if entity["@type"] == "ClaimReview"]
    assert len(reviews) == len(book().statements)
    by_id = {entity["@id"]: entity for entity in graph}
    review = by_id["#review/bombari2025/printed-wrong"]
    rating = by_id[review["reviewRating"]["@id"]]
    assert rating["alternateName"] == "contradicted"
    assert review["url"] == "index.html#bombari2025-printed-wrong"
    claim = by_id[review["itemReviewed"]["@id"]]
    assert by_id[claim["appearance"]["@id"]]["name"] == "Rates & regression"
    evidence = review["isBasedOn"]
    assert by_id[evidence["@id"]]["identifier"] == "sha256:" + "ab" * 32
    command = by_id[review["workExample"]["@id"]]["step"]
    assert command == "snakemake results/claims/bombari2025/printed-wrong.json"


def test_it_is_clean_and_deterministic() -> None:
    assert problems(made()) == []
    assert made() == made()
    assert "2026-01-02" in made()


def test_what_is_missing_is_said() -> None:
    broken = json.loads(made())
    graph = broken["@graph"]
    broken["@graph"] = [e for e in graph if e["@id"] != "#rating/bombari2025/holds"] + [graph[-1]]
    found = problems(json.dumps(broken))
    assert any("reviewRating leads to #rating/bombari2025/holds" in line for line in found)
    assert any("is there twice" in line for line in found)
    graph[-1]["@type"] = "Correction"
    assert any("Correction is not in the context" in line for line in problems(json.dumps(broken)))
    software = next(e for e in graph if e["@type"] == "SoftwareApplication")
    del software["version"]
    assert "#privreg: version must be given" in problems(json.dumps(broken))


def test_the_library_reads_it_back(tmp_path: Path) -> None:
    (tmp_path / "ro-crate-metadata.json").write_text(made())
    for name in FILES:
        (tmp_path / name).touch()
    read = ROCrate(tmp_path)
    assert len(read.get_by_type("ClaimReview")) == len(book().statements)
    assert {entity.id for entity in read.data_entities} == set(FILES)
