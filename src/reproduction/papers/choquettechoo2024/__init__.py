"""choquettechoo2024: correlated private noise, for a mean, for regression and for convex losses."""

from reproduction.engine.citations import Citation

CITATION = Citation(
    title="Correlated Noise Provably Beats Independent Noise for Differentially Private Learning",
    authors="Choquette-Choo, C. A., Dvijotham, K., Pillutla, K., Ganesh, A., Steinke, T. and "
    "Thakurta, A.",
    year=2024,
    about="Private learning with noise that is correlated across steps: when it beats "
    "independent noise, and by how much.",
    arxiv="2310.06771",
)
