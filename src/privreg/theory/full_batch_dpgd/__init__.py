"""Full-batch DP-GD: the law of its iterates, and when it never clips."""
