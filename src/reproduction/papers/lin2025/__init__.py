"""lin2025: noisy SGD on least squares, its diffusion limit, its risk and its privacy loss."""

from reproduction.engine.citations import Citation

CITATION = Citation(
    title="High-Dimensional Privacy-Utility Dynamics of Noisy Stochastic Gradient Descent on Least "
    "Squares",
    authors="Lin, S., Kolaczyk, E. D., Smith, A. and Paquette, E.",
    year=2025,
    arxiv="2510.16687v1",
    about="Noisy stochastic gradient descent on least squares: equations for its error, and "
    "the privacy loss of its iterates.",
)
