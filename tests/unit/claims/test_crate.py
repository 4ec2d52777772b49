"""The RO-Crate: one ClaimReview a statement, whole, deterministic."""

import json
from datetime import date

from reproduction.claims.crate import crate, problems

from .book import PAPERS, book


def made() -> str:
    files = {"claims.json": "All verdicts"}
    return crate(book(), papers=PAPERS, files=files, published=date(2026, 1, 2), version="1.0")


def test_there_is_one_review_a_statement_with_its_verdict() -> None:
    graph = json.loads(made())["@graph"]
    reviews = [entity for entity in graph if entity["@type"] == "ClaimReview"]
    assert len(reviews) == len(book().statements)
    by_id = {entity["@id"]: entity for entity in graph}
    review = by_id["#review/bombari2025/printed-wrong"]
    assert by_id[review["reviewRating"]["@id"]]["alternateName"] == "contradicted"
    assert problems(made()) == []
    assert made() == made()
