"""Theory of private one-pass SGD whose noise has a shape: rates, bounds, and what they bound."""
