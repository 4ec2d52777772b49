"""bombari2025: one-pass DP-GD with clipping and its deterministic equivalent."""

from reproduction.engine.citations import Citation

CITATION = Citation(
    title="High-Dimensional Private Linear Regression with Optimal Rates",
    authors="Bombari, S., Luo, J., Seroussi, I. and Mondelli, M.",
    year=2025,
    about="Private gradient descent that reads each record once: equations that predict its "
    "error in high dimensions, and step sizes that make it optimal.",
    arxiv="2505.16329",
)
