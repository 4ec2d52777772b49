"""Input that is wrong by construction."""
