"""One file a private method: settings, run, prediction, and the candidates of a search."""
