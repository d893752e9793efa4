"""`RemoteSandbox`: a sandbox on a server, with the API of `Sandbox`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, Unpack

from belljar.api import operations
from belljar.api.errors import SandboxCreationError
from belljar.api.link_host import Link
from belljar.api.results import Info
from belljar.api.sandbox import Sandbox
from belljar.api.settings import Settings
from belljar.remote.client_host import Client, Server, connect
from belljar.remote.js_host import RemoteProcesses
from belljar.remote.links_host import RemoteLink, begin
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
    from belljar.api.snapshot import Snapshot
    from belljar.api.state import State
    from belljar.store.store import Store

_CLOSE_SECONDS = 5.0


class RemoteSandbox(Sandbox):
    """A sandbox that runs on a server (`belljar serve`): the same arguments, methods and results as `Sandbox`.

    >>> with RemoteSandbox("https://sandboxes.example.com", "bj_...") as sandbox:
    ...     sandbox.exec("echo hello").stdout
    'hello\\n'

    `url` and `key` may be left out where BELLJAR_URL and BELLJAR_KEY are set. Tools, mounts, network, stores and
    listeners are this program's, as with any sandbox: the server asks for them over the connection. One that is lost is
    made again, and nothing is lost with it. InfrastructureError if the server or the way to it has failed.
    """

    _server: Server
    _client: Client
    _template: str = ""
    _keep_seconds: float = KEEP_SECONDS
    _given: frozenset[str] = CHOSEN

    def __init__(self, url: str | None = None, key: str | None = None, **options: Unpack[RemoteOptions]) -> None:
        self._server = Server.find(url, key)
        self._keep_seconds = check_keep(options)
        settings, state, self._template = check_options(options)
        self._given = CHOSEN.intersection(options)
        self._begin(settings, state)

    @classmethod
    def attach(
        cls, url: str | None = None, key: str | None = None, id: str = "", **options: Unpack[AttachOptions]
    ) -> Self:
        """Go on with a sandbox of this server by its `id`: one that was detached, or whose client is gone.

        Commands that run there go on; what they say is heard by nobody. Tools, mounts and the network are those that
        are given here. SandboxError if there is no such sandbox.
        """
        if not id:
            raise TypeError("attach needs the id of a sandbox: RemoteSandbox.attach(url, key, sandbox.id)")
        sandbox = cls.__new__(cls)
        sandbox._server = Server.find(url, key)
        clock = Settings.check(dict(options)).clock  # type: ignore[arg-type]
        client = connect(sandbox._server, Attach(id), clock)
        settings = attached_settings(client, options)
        sandbox._assemble(settings, begin(client, settings.limits, clock), None)
        try:
            sandbox._watch_events()
            sandbox._run(operations.set_up(settings, sandbox._link.offers))
            sandbox._serve_offers()
        except BaseException:
            sandbox.detach()
            raise
        return sandbox

    @classmethod
    def restore(
        cls, snapshot: Snapshot | str, store: Store | None = None, **options: Unpack[RemoteRestoreOptions]
    ) -> Self:
        """A new sandbox on the server from a snapshot in a store of this program. See `Sandbox.restore`."""
        return cls._restored(snapshot, store, options, by_name=False)

    @classmethod
    def resume(
        cls, snapshot: Snapshot | str, store: Store | None = None, **options: Unpack[RemoteRestoreOptions]
    ) -> Self:
        """Go on, on the server, with a sandbox that was paused to a store of this program. See `Sandbox.resume`."""
        return cls._restored(snapshot, store, options, by_name=True)

    @classmethod
    def _restored(
        cls, snapshot: Snapshot | str, store: Store | None, options: RemoteRestoreOptions, *, by_name: bool
    ) -> Self:
        from belljar.api.durable import restored

        sandbox = cls.__new__(cls)
        sandbox._server = Server.find(options.pop("url", None), options.pop("key", None))
        sandbox._keep_seconds = check_keep(options)
        sandbox._begin(*restored(snapshot, store, options, by_name=by_name))
        return sandbox

    @property
    def id(self) -> str:
        """Its name on the server, by which `attach` finds it."""
        return self._client.id

    @property
    def info(self) -> Info:
        """id, tier, the isolation layers that hold on the server, image, created."""
        return info(self._settings, self._client, self._layers())

    def stats(self) -> dict[str, float]:
        """See `Sandbox.stats`; `cpu` and `memory` are the server's count."""
        return {**super().stats(), **self._client.request("usage")}

    def detach(self) -> None:
        """Leave it running on the server, for `keep_seconds` unless somebody attaches to it; this object is closed.

        Commands go on. Tools, mounts and the network that this program gave it end with it: there they fail.
        """
        self._stop_keeping()
        self._client.detach()
        self._link.fail(detached(self._client))
        self._let_go()

    def close(self) -> None:
        """End every process on the server and release everything. Idempotent."""
        super().close()
        self._client.over.wait(_CLOSE_SECONDS)

    # How it differs from a sandbox here.

    def fork(self, *args: Any, **options: Any) -> Any:
        check_branches(self._settings, "fork()", closed=self.closed)
        return super().fork(*args, **options)

    def snapshot(self, *args: Any, **options: Any) -> Snapshot:
        check_branches(self._settings, "snapshot()", closed=self.closed)
        return super().snapshot(*args, **options)

    def pause(self) -> str:
        check_branches(self._settings, "pause()", closed=self.closed)
        return super().pause()

    def _open_link(self, settings: Settings) -> RemoteLink:
        if settings.native is not None:
            raise SandboxCreationError("a snapshot of a native sandbox is restored by Sandbox.restore, not on a server")
        hello = create_message(settings, self._template, self._keep_seconds, self._given)
        return begin(connect(self._server, hello, settings.clock), settings.limits, settings.clock)

    def _assemble(self, settings: Settings, link: Link, state: State | None) -> None:
        assert isinstance(link, RemoteLink)
        self._client = client = link.client
        try:
            check_placed(settings, client, state)
        except BaseException:
            client.discard()
            raise
        super()._assemble(placed(settings, client), link, state)
        serve_mounts(link, self._settings, client)

    def _boot(self) -> None:
        """The server has done that."""

    def _sibling(self) -> Self:
        sibling = super()._sibling()
        sibling._server, sibling._template, sibling._keep_seconds = self._server, self._template, self._keep_seconds
        return sibling

    def _js_processes(self) -> RemoteProcesses:
        return RemoteProcesses(lambda: self._client)
