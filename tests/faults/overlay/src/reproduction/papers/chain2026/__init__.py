"""chain2026: no paper, but a chain of jobs that has every stage and takes seconds."""

from reproduction.engine.citations import Citation

CITATION = Citation(title="A Chain of Every Stage", authors="Author, A.", year=2026)
