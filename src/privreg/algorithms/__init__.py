"""Private algorithms for least squares, one a file, and their non-private baselines."""
