"""Errors as they travel between a server and its clients: a kind, a text, and details."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belljar.api.errors import (
    EngineUnavailable,
    ImageError,
    InfrastructureError,
    IsolationUnavailable,
    NotOnThisTier,
    SandboxClosed,
    SandboxCreationError,
    SandboxError,
    printable,
)
from belljar.remote.wire import Refused

DETACHED: Final = "the sandbox was detached: RemoteSandbox.attach(url, key, {!r}) goes on with it"
_KINDS: Final[dict[str, type[Exception]]] = {
    "infrastructure": InfrastructureError,
    "closed": SandboxClosed,
    "creation": SandboxCreationError,
    "engine": EngineUnavailable,
    "image": ImageError,
    "sandbox": SandboxError,
    "type": TypeError,
    "value": ValueError,
}
_REBUILT: Final[dict[str, Callable[[str, list[str]], Exception]]] = {
    "isolation": lambda text, details: IsolationUnavailable(set(details), []),
}


def refusal(error: Exception) -> Refused:
    """An error of the server's, for a client. What is not for it is only named."""
    if isinstance(error, IsolationUnavailable):
        return Refused("isolation", str(error), sorted(error.missing))
    if isinstance(error, NotOnThisTier):
        return Refused("sandbox", str(error))
    for kind, known in _KINDS.items():
        if isinstance(error, known):
            return Refused(kind, str(error))
    return Refused("infrastructure", "the server failed; its log says more")


def rebuild(refused: Refused) -> Exception:
    """The error that a server told of. Its text is the server's: it is made fit to be shown."""
    text = printable(refused.text)
    if refused.kind in _REBUILT:
        return _REBUILT[refused.kind](text, [printable(each) for each in refused.details])
    return _KINDS.get(refused.kind, SandboxError)(text)
