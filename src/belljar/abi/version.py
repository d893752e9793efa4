"""The version of belljar."""

__version__ = "0.1.0"
