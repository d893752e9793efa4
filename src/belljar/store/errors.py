"""Errors of a store."""

from __future__ import annotations

from belljar.abi.errors import SandboxError


class StoreError(SandboxError):
    """A store can't do what it was asked to: it is full, read-only, unreachable, or no store."""


class ObjectMissing(StoreError):
    """An object is not in the store: `digest`."""

    def __init__(self, digest: bytes) -> None:
        super().__init__(f"the store has no object {digest.hex()}: `belljar store check` tells what it belongs to")
        self.digest = digest


class ObjectDamaged(StoreError):
    """The bytes of an object are not those that were written: `digest`."""

    def __init__(self, digest: bytes) -> None:
        super().__init__(f"object {digest.hex()} is damaged: `belljar store check` tells what it belongs to")
        self.digest = digest


class RefConflict(StoreError):
    """A ref was changed by someone else since it was read: `name`. Nothing was changed; read it again."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the ref {name!r} was changed by someone else meanwhile: read it again, then decide")
        self.name = name
