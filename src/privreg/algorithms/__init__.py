"""Private algorithms for least squares, one in each module, and non-private baselines."""
