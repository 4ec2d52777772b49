"""anon2024: one-pass private linear regression with more dimensions than samples, shaped noise."""

from reproduction.engine.citations import Citation

CITATION = Citation(
    title="Private Overparameterized Linear Regression without Suffering in High Dimensions",
    authors="Anonymous authors, paper under double-blind review for ICLR",
    year=2024,
    about="Private linear regression with more features than records: error rates when noise is "
    "shaped to the data.",
)
