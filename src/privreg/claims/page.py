"""The page of the ledger: one self-contained HTML file that needs neither network nor script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

import jinja2

from privreg.claims.entries import VerdictName
from privreg.claims.gate import is_unexpected, summary
from privreg.claims.verdicts import Verdict
from privreg.claims.wording import number, with_error

TEMPLATE = "ledger.html"


def render(verdicts: Sequence[Verdict], papers: Mapping[str, Mapping[str, str]]) -> str:
    """Write the verdicts as a page.

    Parameters
    ----------
    verdicts : sequence of Verdict
        In the order to show them, paper by paper.
    papers : mapping
        Citation key to `title`, `authors` and `url`; a paper without them is shown by its key.

    Returns
    -------
    str
        HTML. Links to figures are relative to the folder that holds the papers' `figures`.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    environment.filters["web_address"] = _web_address
    environment.globals.update(with_error=with_error, is_unexpected=is_unexpected)
    by_paper: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_paper.setdefault(verdict.paper, []).append(verdict)
    return environment.get_template(TEMPLATE).render(
        summary=summary(verdicts),
        names=get_args(VerdictName),
        by_paper=by_paper,
        papers={key: papers.get(key, {}) for key in by_paper},
        verdicts=verdicts,
    )


def _web_address(text: str) -> str:
    # An address with another scheme, javascript: say, must not become a link.
    return text if text.startswith(("https://", "http://")) else ""
