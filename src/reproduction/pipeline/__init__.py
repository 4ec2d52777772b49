"""What runs recipes: the configuration, the plan of a run, its stages and the command line."""
