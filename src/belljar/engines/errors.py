"""The error for an engine that can't be had."""

from __future__ import annotations


class EngineUnavailable(RuntimeError):
    """No program of this kind can be run here; says what to install or do.

    `for_guest` is what the sandbox may know of it: nothing that has a path of the host in it.
    """

    @property
    def for_guest(self) -> str:
        said = str(self)
        return said if "/" not in said else "its engine did not start; the sandbox's owner was told why"
