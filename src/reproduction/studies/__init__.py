"""Studies of the library's own guarantees, tested as the papers' statements are."""

from reproduction.engine.citations import Citation

CITATION = Citation(
    title="What privreg itself promises", authors="The authors of privreg", year=2026
)
# The key that seeds the draws, with which the numbers were first drawn.
SEEDED_AS = "privreg"
