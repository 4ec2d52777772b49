"""The commands of a user; those that rebuild the papers are the workflow's."""
