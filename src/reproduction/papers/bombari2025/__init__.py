"""bombari2025: one-pass DP-GD with clipping and its deterministic equivalent."""

from reproduction.engine.citations import Citation

CITATION = Citation(
    title="High-Dimensional Private Linear Regression with Optimal Rates",
    authors="Bombari, S., Luo, J., Seroussi, I. and Mondelli, M.",
    year=2025,
    about="One-pass private gradient descent: equations that predict its error in high "
    "dimensions, and step sizes with optimal rates.",
    arxiv="2505.16329v2",
)
