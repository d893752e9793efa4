"""The error that ends a pip command: a message as pip words it, and the status."""

from __future__ import annotations


class PipError(Exception):
    """The lines that go to stderr after "ERROR: "."""

    def __init__(self, *lines: str, status: int = 1) -> None:
        super().__init__(lines[0] if lines else "")
        self.lines = lines
        self.status = status


class Unbuildable(Exception):
    """A source archive whose package can't be made here: why."""
