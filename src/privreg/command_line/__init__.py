"""Commands for users; the commands that rebuild the papers belong to the workflow."""
