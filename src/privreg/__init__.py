"""Private linear regression in high dimensions: theories, algorithms, intervals, claims."""

__version__ = "0.1.0"
