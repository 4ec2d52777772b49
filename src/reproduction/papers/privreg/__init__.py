"""privreg: what this library promises itself, put to the test like the papers' statements."""

from reproduction.experiment.citations import Citation

CITATION = Citation(
    title="What privreg itself promises", authors="The authors of privreg", year=2026
)
