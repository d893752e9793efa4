"""The engines' templates, kept until the last test here."""

from tests.engines.js_engines import engines

__all__ = ["engines"]
