"""Runs the server: the listener, signals, and the way down."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import resource
import socket
from collections.abc import Callable
from typing import Any, Final

import uvicorn

from belljar.abi.clock import Clock
from belljar.abi.clock_host import HostClock
from belljar.api.errors import SandboxError
from belljar.server import logs_host
from belljar.server.app import make_app
from belljar.server.config import Config
from belljar.server.console.access import Sessions
from belljar.server.database_host import Database
from belljar.server.keys_host import create_key
from belljar.server.metrics import Metrics
from belljar.server.service import Service
from belljar.store.default_host import open_store

FIRST_TENANT: Final = "default"
_CONNECTIONS_MAX: Final = 20_000
_MESSAGE_MAX: Final = 1 << 20
"""Bytes of one message of a WebSocket."""


class CannotServe(SandboxError):
    """The server was told to do something unsafe, or impossible."""


def data_path(data: str | None, store: str | None) -> str | None:
    """The server's own file: the one that was named, or the one beside a store on this machine; None: memory."""
    if data is not None:
        return os.path.expanduser(data)
    if store is None:
        return None
    if "://" in store:
        raise CannotServe("a store at a URL needs --data FILE: where the server keeps its keys and sandboxes")
    path = os.path.expanduser(store)
    return os.path.join(path, "server.db") if os.path.isdir(path) else f"{path}.server.db"


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def check_safe(config: Config, database: Database) -> None:
    """Refuse to be reached from elsewhere without keys, or in plain text unless told. CannotServe."""
    if bool(config.tls_cert) != bool(config.tls_key):
        raise CannotServe("--tls-cert and --tls-key belong together")
    if is_loopback(config.host):
        return
    if not any(key.revoked is None for key in database.list_keys()):
        raise CannotServe(
            f"{config.host} can be reached from elsewhere, and there is no key yet: make one by "
            "`belljar serve key create --data FILE`, and start the server with the same --data"
        )
    if not config.tls_cert and not config.insecure:
        raise CannotServe(
            f"{config.host} can be reached from elsewhere: give --tls-cert and --tls-key, or --insecure if something "
            "before it speaks TLS"
        )


def serve(config: Config, announce: Callable[[str, str | None, str | None], None]) -> int:
    """Serve until a signal. `announce` is told the URL, the first key if it was made now, and a token that signs in to
    the console once. SandboxError.
    """
    database, clock = Database(config.data), HostClock()
    try:
        database.claim()
        check_safe(config, database)
        key = None
        if not database.list_keys():
            key = create_key(database, FIRST_TENANT, "first", "operator", clock=clock)
        store = None if config.store is None else open_store(config.store)
        if store is None and database.needs_store():
            raise CannotServe(f"{config.data} knows of paused sandboxes or snapshots: give the --store they are in")
        listener = _listen(config.host, config.port)
        shown = f"[{config.host}]" if ":" in config.host and "[" not in config.host else config.host
        url = f"{'https' if config.tls_cert else 'http'}://{shown}:{listener.getsockname()[1]}"
        logs_host.set_up(config.log)
        _raise_open_files()
        sessions = Sessions(database, clock)
        token = _invite(sessions, database)
        asyncio.run(_serve(config, database, store, clock, sessions, listener, lambda: announce(url, key, token)))
    finally:
        database.close()
    return 0


def _invite(sessions: Sessions, database: Database) -> str | None:
    """A token for whoever started the server, who has all keys at hand anyway: as the oldest operator's key."""
    keys = [key for key in database.list_keys() if key.revoked is None and key.scope == "operator"]
    return sessions.invite(keys[0]) if keys else None


def _raise_open_files() -> None:
    """Allow as many descriptors as the system does: each client and each sandbox needs some."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else asyncio sets no TCP_NODELAY
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
    except OSError as error:
        listener.close()
        raise CannotServe(f"can't listen on {host} port {port}: {error.strerror or error}") from None
    return listener


async def _serve(
    config: Config,
    database: Database,
    store: Any,
    clock: Clock,
    sessions: Sessions,
    listener: socket.socket,
    announce: Callable[[], None],
) -> None:
    service = Service(config, database, store, Metrics(), clock)
    await service.start()
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(service, sessions),
            http="h11",
            ws="websockets-sansio",
            ws_max_size=_MESSAGE_MAX,
            ws_per_message_deflate=False,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_CONNECTIONS_MAX,
            backlog=1024,
            h11_max_incomplete_event_size=64 << 10,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=2,
            ssl_certfile=config.tls_cert,
            ssl_keyfile=config.tls_key,
        )
    )
    loop = asyncio.get_running_loop()
    draining: list[asyncio.Task[None]] = []

    async def leave() -> None:
        await service.drain()
        server.should_exit = True

    def stop(signal: int, frame: object) -> None:
        """Drain at the first signal, and end at the second."""
        if draining:
            server.should_exit = server.force_exit = True
        else:
            loop.call_soon_threadsafe(lambda: draining.append(loop.create_task(leave())))

    server.handle_exit = stop  # type: ignore[method-assign, assignment]
    running = asyncio.ensure_future(server.serve(sockets=[listener]))
    while not server.started and not running.done():
        await asyncio.sleep(0.005)
    announce()
    try:
        with contextlib.suppress(KeyboardInterrupt):
            await running
    finally:
        await service.close()
