"""Errors of building and serving a page."""


class BuildError(Exception):
    """The page can't be built; the message says why and what to do."""
