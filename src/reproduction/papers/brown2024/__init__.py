"""brown2024: full-batch DP-GD for least squares, its Gaussian law, and intervals from iterates."""

from reproduction.engine.citations import Citation

CITATION = Citation(
    title="Private Gradient Descent for Linear Regression: Tighter Error Bounds and "
    "Instance-Specific Uncertainty Estimation",
    authors="Brown, G., Dvijotham, K., Evans, G., Liu, D., Smith, A. and Thakurta, A.",
    year=2024,
    about="Full-batch private gradient descent: its distance from least squares, and confidence "
    "intervals from its iterates.",
    arxiv="2402.13531v1",
)
