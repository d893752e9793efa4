"""`AsyncRemoteSandbox`: the same as `RemoteSandbox`, awaited."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, Unpack

from belljar.api import operations
from belljar.api.async_link_host import AsyncLink
from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.await_host import in_thread
from belljar.api.errors import SandboxClosed, SandboxCreationError
from belljar.api.results import Info
from belljar.api.settings import Settings
from belljar.remote.client_host import Client, Server, connect
from belljar.remote.js_host import RemoteProcesses
from belljar.remote.links_host import AsyncRemoteLink, begin_async
from belljar.remote.place import (
    CHOSEN,
    KEEP_SECONDS,
    AttachOptions,
    RemoteOptions,
    RemoteRestoreOptions,
    attached_settings,
    check_branches,
    check_keep,
    check_options,
    check_placed,
    create_message,
    detached,
    info,
    placed,
    serve_mounts,
)
from belljar.remote.wire import Attach

if TYPE_CHECKING:
    from belljar.api.settings import SandboxOptions
    from belljar.api.snapshot import Snapshot
    from belljar.api.state import State
    from belljar.store.store import Store

_CLOSE_SECONDS = 5.0


class AsyncRemoteSandbox(AsyncSandbox):
    """A sandbox on a server, for asyncio programs. See `RemoteSandbox`.

    >>> async with AsyncRemoteSandbox() as sandbox:     # BELLJAR_URL and BELLJAR_KEY are set
    ...     (await sandbox.exec("echo hi")).stdout
    'hi\\n'
    """

    _server: Server
    _template: str = ""
    _keep_seconds: float = KEEP_SECONDS
    _given: frozenset[str] = CHOSEN
    _options: SandboxOptions | None = None
    """The arguments, until its image is found."""

    def __init__(self, url: str | None = None, key: str | None = None, **options: Unpack[RemoteOptions]) -> None:
        self._server = Server.find(url, key)
        self._keep_seconds = check_keep(options)
        self._given = CHOSEN.intersection(options)
        self._options = options
        plain = {name: value for name, value in options.items() if name not in ("image", "tier", "native")}
        self._assemble(Settings.check(plain), None)  # type: ignore[arg-type]

    @classmethod
    async def attach(
        cls, url: str | None = None, key: str | None = None, id: str = "", **options: Unpack[AttachOptions]
    ) -> Self:
        """Go on with a sandbox of this server by its `id`. See `RemoteSandbox.attach`."""
        if not id:
            raise TypeError("attach needs the id of a sandbox: AsyncRemoteSandbox.attach(url, key, sandbox.id)")
        sandbox = cls.__new__(cls)
        sandbox._server = server = Server.find(url, key)
        clock = Settings.check(dict(options)).clock  # type: ignore[arg-type]
        client = await in_thread(lambda: connect(server, Attach(id), clock), Client.abandon)
        settings = attached_settings(client, options)
        sandbox._assemble(settings, begin_async(client, settings.limits, clock))
        try:
            sandbox._open_ways()
            sandbox._watch_events()
            await sandbox._run(operations.set_up(settings, sandbox._link.offers))
        except BaseException:
            await sandbox.detach()
            raise
        return sandbox

    @classmethod
    async def restore(
        cls, snapshot: Snapshot | str, store: Store | None = None, **options: Unpack[RemoteRestoreOptions]
    ) -> Self:
        """A new sandbox on the server from a snapshot in a store of this program. See `Sandbox.restore`."""
        return await cls._restored(snapshot, store, options, by_name=False)

    @classmethod
    async def resume(
        cls, snapshot: Snapshot | str, store: Store | None = None, **options: Unpack[RemoteRestoreOptions]
    ) -> Self:
        """Go on, on the server, with a sandbox that was paused to a store of this program. See `Sandbox.resume`."""
        return await cls._restored(snapshot, store, options, by_name=True)

    @classmethod
    async def _restored(
        cls, snapshot: Snapshot | str, store: Store | None, options: RemoteRestoreOptions, *, by_name: bool
    ) -> Self:
        from belljar.api.durable import restored

        sandbox = cls.__new__(cls)
        sandbox._server = Server.find(options.pop("url", None), options.pop("key", None))
        sandbox._keep_seconds = check_keep(options)
        settings, state = await asyncio.to_thread(restored, snapshot, store, options, by_name=by_name)
        sandbox._assemble(settings, None, state)
        return await sandbox.start()

    @property
    def _client(self) -> Client:
        link = self._started
        if not isinstance(link, AsyncRemoteLink):
            raise SandboxClosed("the sandbox was not started: use `async with` or `await .start()`")
        return link.client

    @property
    def id(self) -> str:
        """Its name on the server, by which `attach` finds it."""
        return self._client.id

    async def _tell(self) -> Info:
        return info(self._settings, self._client, await self._layers())

    async def stats(self) -> dict[str, float]:
        """See `Sandbox.stats`; `cpu` and `memory` are the server's count."""
        client = self._client
        return {**await super().stats(), **await asyncio.to_thread(client.request, "usage")}

    async def detach(self) -> None:
        """Leave it running on the server. See `RemoteSandbox.detach`."""
        client = self._client
        await asyncio.to_thread(client.detach)
        self._link.fail(detached(client))
        await super().close()

    async def close(self) -> None:
        """End every process on the server and release everything. Idempotent."""
        await super().close()
        if isinstance(self._started, AsyncRemoteLink):
            await asyncio.to_thread(self._started.client.over.wait, _CLOSE_SECONDS)

    # How it differs from a sandbox here.

    async def fork(self, *args: Any, **options: Any) -> Any:
        check_branches(self._settings, "fork()", closed=self.closed)
        return await super().fork(*args, **options)

    async def snapshot(self, *args: Any, **options: Any) -> Snapshot:
        check_branches(self._settings, "snapshot()", closed=self.closed)
        return await super().snapshot(*args, **options)

    async def pause(self) -> str:
        check_branches(self._settings, "pause()", closed=self.closed)
        return await super().pause()

    def _assemble(self, settings: Settings, link: AsyncLink | None, state: State | None = None) -> None:
        if isinstance(link, AsyncRemoteLink):
            settings = placed(settings, link.client)
        super()._assemble(settings, link, state)
        if isinstance(link, AsyncRemoteLink):
            serve_mounts(link, settings, link.client)

    async def _start(self) -> AsyncLink:
        if self._options is not None:
            options, self._options = self._options, None
            self._settings, self._state, self._template = await asyncio.to_thread(check_options, options)
        return await super()._start()

    async def _open_link(self, settings: Settings) -> AsyncRemoteLink:
        if settings.native is not None:
            raise SandboxCreationError("a snapshot of a native sandbox is restored by Sandbox.restore, not on a server")
        hello = create_message(settings, self._template, self._keep_seconds, self._given)
        client = await in_thread(lambda: connect(self._server, hello, settings.clock), Client.discard)
        try:
            check_placed(settings, client, self._state)
        except BaseException:
            client.discard()
            raise
        self._settings = placed(self._settings, client)
        self.python.core.engine = self._settings.python()
        link = begin_async(client, settings.limits, settings.clock)
        serve_mounts(link, self._settings, client)
        return link

    def _boot(self, link: AsyncLink) -> None:
        """The server has done that."""

    def _sibling(self) -> Self:
        sibling = super()._sibling()
        sibling._server, sibling._template, sibling._keep_seconds = self._server, self._template, self._keep_seconds
        return sibling

    def _js_processes(self) -> RemoteProcesses:
        return RemoteProcesses(lambda: self._client)
