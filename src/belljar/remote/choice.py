"""Sandboxes here or on a server, whichever their options say: for programs that only hand these on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.sandbox import Sandbox
from belljar.api.settings import RestoreOptions, SandboxOptions
from belljar.remote.place import RemoteOptions, RemoteRestoreOptions
from belljar.store.store import Store


class PlacedOptions(RemoteOptions, total=False):
    """The arguments of `Sandbox`, or with `url` those of `RemoteSandbox`."""

    url: str | None
    """A server (`belljar serve`) on which the sandbox is to be."""
    key: str | None
    """The key to it; BELLJAR_KEY unless told."""


def make_sandbox(options: PlacedOptions) -> Sandbox:
    """A sandbox on the server that `url` names, or here."""
    if options.get("url") is None:
        return Sandbox(**cast("SandboxOptions", _without_url(options)))
    from belljar.remote.sandbox import RemoteSandbox

    return RemoteSandbox(**options)


def make_async_sandbox(options: PlacedOptions) -> AsyncSandbox:
    """The same for asyncio programs, not started yet."""
    if options.get("url") is None:
        return AsyncSandbox(**cast("SandboxOptions", _without_url(options)))
    from belljar.remote.async_sandbox import AsyncRemoteSandbox

    return AsyncRemoteSandbox(**options)


def restore_sandbox(snapshot: str, store: Store | None, options: RemoteRestoreOptions) -> Sandbox:
    """A sandbox on the server that `url` names, or here, from a snapshot."""
    if options.get("url") is None:
        return Sandbox.restore(snapshot, store, **cast("RestoreOptions", _without_url(options)))
    from belljar.remote.sandbox import RemoteSandbox

    return RemoteSandbox.restore(snapshot, store, **options)


def _without_url(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options for a sandbox of this machine, of which a `url` of None is none."""
    return {name: value for name, value in options.items() if name != "url"}
