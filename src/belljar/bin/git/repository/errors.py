"""How a git command ends badly."""

from __future__ import annotations


class GitError(Exception):
    """`fatal: message`, exit 128; or another prefix and status."""

    def __init__(self, message: str, status: int = 128, prefix: str = "fatal: ") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.prefix = prefix


class MissingObject(GitError, KeyError):
    """An object that something refers to is not there; who expects that catches KeyError."""

    def __init__(self, sha: bytes) -> None:
        super().__init__(f"bad object {sha.decode('ascii', 'replace')}")
