"""Theory of the algorithms in a limit or in law, computed without running them."""
