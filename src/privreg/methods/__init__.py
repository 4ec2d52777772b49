"""Private methods, one per file: settings, run, prediction, and candidates for a search."""
