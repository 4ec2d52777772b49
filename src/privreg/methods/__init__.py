"""One file a private method: its settings, what it runs, predicts and searches, and where."""
