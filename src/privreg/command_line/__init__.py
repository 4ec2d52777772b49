"""Commands of `privreg`; commands that rebuild the papers belong to the workflow."""
