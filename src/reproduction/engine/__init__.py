"""Tools for writing recipes: Datasets, typed parameters, trials, summaries, figures."""
