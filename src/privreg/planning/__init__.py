"""Which method and settings to use for a budget, and which budget a target needs."""
