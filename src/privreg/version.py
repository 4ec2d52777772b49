"""Version of the library, in its own file so that artifacts depend on no list of names."""

__version__ = "1.0.0"
