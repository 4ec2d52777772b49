"""Theory of the algorithms: limits and laws, computed without running an algorithm."""
