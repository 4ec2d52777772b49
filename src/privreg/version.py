"""The version, in a file of its own so that artifacts depend on no list of names."""

__version__ = "1.0.0"
