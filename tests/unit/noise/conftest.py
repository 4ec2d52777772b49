"""Hypothesis draws the same examples in every run and leaves nothing on disk."""

from hypothesis import settings

settings.register_profile("seeded", derandomize=True, database=None, deadline=None)
settings.load_profile("seeded")
