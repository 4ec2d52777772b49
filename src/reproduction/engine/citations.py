"""Citation: a paper's title, authors, year, address and subject."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Citation:
    """Bibliographic data of a paper, and its subject in a plain sentence."""

    title: str
    authors: str
    year: int
    arxiv: str | None = None
    about: str = ""

    @property
    def url(self) -> str:
        return f"https://arxiv.org/abs/{self.arxiv}" if self.arxiv else ""

    @property
    def reference(self) -> str:
        """One line for a Dataset's `references` attribute."""
        where = f" arXiv:{self.arxiv}." if self.arxiv else ""
        return f"{self.authors} ({self.year}). {self.title}.{where}"
