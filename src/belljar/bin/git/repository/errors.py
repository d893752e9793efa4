"""How a git command ends badly."""

from __future__ import annotations


class GitError(Exception):
    """`fatal: message`, exit 128; or another prefix and status."""

    def __init__(self, message: str, status: int = 128, prefix: str = "fatal: ") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.prefix = prefix
