"""One-pass DP-GD with clipping: its deterministic equivalent, best schedules, lower bounds."""
