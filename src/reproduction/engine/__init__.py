"""What a recipe is written with: Datasets, typed parameters, trials, summaries, figures."""
