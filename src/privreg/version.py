"""The version of this package, apart from its face so that artifacts depend on no name list."""

__version__ = "0.2.0"
