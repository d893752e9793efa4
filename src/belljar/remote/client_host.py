"""A client's end of a session: a socket here that stands for the sandbox there, over a WebSocket that may be lost.

All sessions of a process share one event loop on a thread of its own. To the fronts of `api/` the session is a worker
(`RemoteWorker`): they send frames, with descriptors, over a socket pair, whose other end is a stream here.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from belljar.abi.clock import Clock
from belljar.abi.install import install_hint
from belljar.abi.wire import WireError
from belljar.api.errors import InfrastructureError, SandboxClosed, SandboxCreationError, SandboxError, printable
from belljar.owner.handle_host import WorkerHandle
from belljar.remote.errors import rebuild
from belljar.remote.session import Session
from belljar.remote.tunnel_host import Mux, Tunnel
from belljar.remote.wire import (
    CONVERSATION_WINDOW,
    MESSAGE_MAX,
    PATH,
    Hello,
    Over,
    Refused,
    Request,
    Response,
    Resume,
    Welcome,
    decode_greeting,
    encode,
)

if TYPE_CHECKING:
    from belljar.remote.mounts_host import RemoteMounts

T = TypeVar("T")
OPEN_SECONDS: Final = 90.0
"""Seconds to be welcomed: a sandbox is started in them."""
_REQUEST_SECONDS: Final = 120.0
_PING_SECONDS: Final = 5.0
_PONG_SECONDS: Final = 10.0
"""A connection that is silent for so long after a ping is taken for lost."""
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 3.0
"""Seconds between two tries to connect again."""
_CLOSE_SECONDS: Final = 5.0
_HINT: Final = "give url= and key=, or set BELLJAR_URL and BELLJAR_KEY"


class Server(NamedTuple):
    """Where sandboxes are, and the key to it."""

    url: str
    key: str

    @classmethod
    def find(cls, url: object, key: object) -> Server:
        """The arguments, or what the environment says. TypeError, ValueError."""
        found: list[str] = []
        for name, value in (("URL", url), ("KEY", key)):
            given = os.environ.get(f"BELLJAR_{name}", "") if value is None else value
            if not isinstance(given, str):
                raise TypeError(f"{name.lower()}= takes a str, not {type(given).__name__}")
            if not given:
                raise ValueError(f"the server's {name.lower()} is missing: {_HINT}")
            if not given.isprintable() or not given.isascii():
                raise ValueError(f"the server's {name.lower()} has characters that none has: {_HINT}")
            found.append(given)
        parts = urlsplit(found[0])
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{found[0]!r} is no server's URL: it looks like http://127.0.0.1:3000")
        return cls(found[0].rstrip("/"), found[1])

    @property
    def websocket(self) -> str:
        return "ws" + self.url.removeprefix("http") + PATH


class _Loop:
    """The event loop of this process's sessions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def forget(self) -> None:
        """In a forked child, which has no threads."""
        self.__init__()  # type: ignore[misc]

    def get(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="belljar-remote", daemon=True).start()
            return self._loop

    def call(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Run a coroutine there, and wait for it here."""
        future = asyncio.run_coroutine_threadsafe(work, self.get())
        try:
            return future.result(seconds)
        except TimeoutError:
            if future.done():
                raise
            future.cancel()
            raise InfrastructureError(f"the server gave no answer within {seconds:g} s") from None


_loop: Final = _Loop()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_loop.forget)


class Client:
    """One session. Made by `connect`; its methods are for any thread, those with an underscore for the loop's own."""

    def __init__(self, server: Server, websocket: Any, welcome: Welcome, clock: Clock) -> None:
        self._clock = clock
        self.server = server
        self.welcome = welcome
        self.id = welcome.id
        self._websocket = websocket
        self._mux = Mux(Session())
        self._numbers = itertools.count(1)
        self._streams = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self.reason: Exception | None = None
        """Why it has ended."""
        self._leaving = False
        self.over = threading.Event()
        ours, self.connection = socket.socketpair()
        voice = Tunnel(self._mux, 0, ours, CONVERSATION_WINDOW, self._open_stream)
        voice.on_end = self._leave
        self._running = asyncio.ensure_future(self._run())
        _open.add(self)

    # Streams.

    def _open_stream(self, fd: int) -> int:
        number = next(self._streams)
        Tunnel(self._mux, number, socket.socket(fileno=fd))
        return number

    def stream(self, ask: Callable[[int], tuple[str, list[Any]]]) -> socket.socket:
        """Our end of a new stream, made by a request that is told its number. Raises what the server answers."""
        ours, theirs = socket.socketpair()

        async def begin() -> int:
            number = next(self._streams)
            Tunnel(self._mux, number, theirs)
            return number

        number = _loop.call(begin(), _CLOSE_SECONDS)
        try:
            name, arguments = ask(number)
            self.request(name, *arguments)
        except BaseException:
            ours.close()
            raise
        ours.setblocking(False)
        return ours

    # Requests.

    def request(self, name: str, *arguments: Any) -> Any:
        """Ask the server for something beside the conversation, and wait. InfrastructureError, SandboxError."""
        future = self._ask(name, arguments)
        try:
            return future.result(_REQUEST_SECONDS + self.welcome.keeps)
        except TimeoutError:
            raise InfrastructureError(f"the server gave no answer to {name!r}") from None

    def tell(self, name: str, *arguments: Any) -> None:
        """As `request`, without waiting. Nothing if it is over."""
        with suppress(RuntimeError):
            self._ask(name, arguments)

    def _ask(self, name: str, arguments: tuple[Any, ...]) -> Future[Any]:
        future: Future[Any] = Future()

        def send() -> None:
            if self.reason is not None:
                future.set_exception(self.reason)
                return
            number = next(self._numbers)
            self._waiting[number] = future
            self._mux.put(Request(number, name, list(arguments)))

        _loop.get().call_soon_threadsafe(send)
        return future

    # The connection.

    async def _run(self) -> None:
        try:
            while True:
                try:
                    await self._mux.pump(self._websocket.send, self._receive, self._act)
                except WireError as error:
                    raise InfrastructureError(f"the server broke the protocol: {printable(str(error))}") from None
                except (ConnectionError, OSError, EOFError, _closed_error()):
                    if self._leaving and self._mux.session.next() is None:
                        raise InfrastructureError("the connection was closed") from None
                await self._reconnect()
        except _Over as over:
            self._end(over.error)
        except asyncio.CancelledError:
            self._end(SandboxClosed("the sandbox was closed, and its server did not answer"))
        except Exception as error:  # noqa: BLE001 - whatever it is, the session's end is told to all who wait
            self._end(error if isinstance(error, InfrastructureError | SandboxError) else _unforeseen(error))
        finally:
            with suppress(Exception):
                await self._websocket.close()

    async def _receive(self) -> bytes:
        data = await self._websocket.recv()
        if not isinstance(data, bytes):
            raise WireError("text instead of bytes")
        return data

    def _act(self, message: Request | Response | Over) -> None:
        match message:
            case Response(id=number, value=value, error=error):
                future = self._waiting.pop(number, None)
                if future is None:
                    raise WireError(f"an answer to nothing ({number})")
                if error is None:
                    future.set_result(value)
                else:
                    future.set_exception(rebuild(error))
            case Over():
                raise _Over(rebuild(Refused(message.kind, message.text)))
            case Request():
                raise WireError("a server requests nothing")

    async def _reconnect(self) -> None:
        """Go on with the session on another connection. InfrastructureError if that can't be had in time."""
        until = self._clock.monotonic() + (_CLOSE_SECONDS if self._leaving else self.welcome.keeps)
        pause = _FIRST_PAUSE
        while True:
            resume = Resume(self.welcome.token, self._mux.session.received)
            try:
                self._websocket, welcome = await greet(self.server, resume, max(1.0, until - self._clock.monotonic()))
                self._mux.session.resume(welcome.received)
                return
            except _Unreachable as error:
                if self._clock.monotonic() + pause > until:
                    raise InfrastructureError(
                        f"the connection to {self.server.url} was lost, and there was none again within "
                        f"{self.welcome.keeps:g} s: {error}"
                    ) from None
            except WireError as error:
                raise InfrastructureError(f"the session could not be resumed: {error}") from None
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    # The end.

    def close(self) -> None:
        """End the sandbox. Does not wait: `over` is set when the server has said so, or can't be reached."""
        with suppress(RuntimeError):
            _loop.get().call_soon_threadsafe(self._leave)

    def discard(self) -> None:
        """As `close`, of one that no link was made of."""
        self.close()
        self.connection.close()

    def _leave(self) -> None:
        if not self._leaving and self.reason is None:
            self._leaving = True
            self._mux.put(Over("closed", ""))
            asyncio.get_running_loop().call_later(_CLOSE_SECONDS, self._running.cancel)

    def abandon(self) -> None:
        """As `detach`, without waiting, of one that no link was made of."""

        def leave() -> None:
            if not self._leaving and self.reason is None:
                self._leaving = True  # else the end of our socket would end the sandbox
                asyncio.get_running_loop().call_later(_CLOSE_SECONDS, self._running.cancel)

        with suppress(RuntimeError):
            _loop.get().call_soon_threadsafe(leave)
        self.tell("detach")
        self.connection.close()

    def detach(self) -> None:
        """Leave the sandbox running, and end the session. InfrastructureError, SandboxError."""
        self.request("detach")
        self.over.wait(_CLOSE_SECONDS)

    def _end(self, error: Exception) -> None:
        if self.reason is None:
            self.reason = error
            waiting, self._waiting = self._waiting, {}
            for future in waiting.values():
                future.set_exception(error)
            self._mux.close()
            _open.discard(self)
            self.over.set()


class _Over(Exception):
    """The server has ended the session."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _Unreachable(Exception):
    """No connection could be had now."""


_open: Final[set[Client]] = set()


def _finish_leaving() -> None:
    """At the program's end: let the server hear of what was closed."""
    until = time.monotonic() + _CLOSE_SECONDS
    for client in [each for each in list(_open) if each._leaving]:
        client.over.wait(max(0.0, until - time.monotonic()))


atexit.register(_finish_leaving)


def _unforeseen(error: Exception) -> InfrastructureError:
    return InfrastructureError(f"the session ended: {type(error).__name__}: {printable(str(error))}")


def _closed_error() -> type[Exception]:
    from websockets.exceptions import ConnectionClosed

    return ConnectionClosed


def connect(server: Server, hello: Hello, clock: Clock) -> Client:
    """A new session. Blocks; InfrastructureError, SandboxError, TypeError, ValueError."""

    async def open_() -> Client:
        try:
            return Client(server, *await greet(server, hello, OPEN_SECONDS), clock)
        except _Unreachable as error:
            raise InfrastructureError(f"the server at {server.url} can't be reached: {error}") from None
        except WireError as error:
            raise InfrastructureError(f"what answers at {server.url} is no belljar server: {error}") from None

    return _loop.call(open_(), OPEN_SECONDS + _CLOSE_SECONDS)


async def greet(server: Server, hello: Hello, seconds: float) -> tuple[Any, Welcome]:
    """A connection whose server has welcomed us. Raises what it refused us with; _Unreachable; WireError."""
    try:
        from websockets.asyncio.client import connect as open_websocket
        from websockets.exceptions import InvalidStatus, WebSocketException
    except ImportError as error:
        raise InfrastructureError(f"remote sandboxes need websockets; {install_hint('remote')}") from error
    websocket = None
    try:
        async with asyncio.timeout(seconds):
            websocket = await open_websocket(
                server.websocket,
                additional_headers={"X-API-KEY": server.key},
                user_agent_header="belljar",
                compression=None,
                max_size=MESSAGE_MAX,
                max_queue=64,
                write_limit=MESSAGE_MAX,
                open_timeout=seconds,
                ping_interval=_PING_SECONDS,
                ping_timeout=_PONG_SECONDS,
                close_timeout=1.0,
                proxy=None,
            )
            await websocket.send(encode(hello))
            data = await websocket.recv()
            if not isinstance(data, bytes):
                raise WireError("text instead of bytes")
            greeting = decode_greeting(data)
    except InvalidStatus as error:
        raise _refused(error.response.status_code, error.response.body) from None
    except TimeoutError:
        await _give_up(websocket)
        raise _Unreachable("it does not answer") from None
    except (OSError, EOFError, WebSocketException) as error:
        raise _Unreachable(printable(str(error)) or type(error).__name__) from None
    except BaseException:
        await _give_up(websocket)
        raise
    if isinstance(greeting, Refused):
        await _give_up(websocket)
        raise rebuild(greeting)
    return websocket, greeting


async def _give_up(websocket: Any) -> None:
    if websocket is not None:
        websocket.transport.abort()


def _refused(status: int, body: bytes | bytearray | None) -> Exception:
    """The error for an HTTP answer."""
    said = printable(bytes(body or b"").decode("utf-8", "replace"))[:500]
    if status in (401, 403):
        return SandboxCreationError(f"the server refused the key ({status}): {said}. {_HINT.capitalize()}.")
    if status == 404:
        return InfrastructureError(f"there is no belljar server at this URL, or an old one ({status}): {said}")
    if status in (429, 502, 503, 504):
        return _Unreachable(f"it is busy ({status}): {said}")
    return InfrastructureError(f"the server answered {status}: {said}")


class RemoteWorker(WorkerHandle):
    """A sandbox on a server, as the links of `api/` know workers."""

    __slots__ = ("client", "mounts")

    def __init__(self, client: Client) -> None:
        self.client = client
        self.mounts: RemoteMounts | None = None
        """Of a native sandbox."""
        self.pid = 0
        self.pidfd = -1
        self.connection = client.connection
        self.zygote = None
        self.cgroup = None
        self.greeting = b""
        self.env = None
        self._owner = os.getpid()

    def pids(self) -> list[int]:
        return []

    def end(self) -> None:
        """Have the server end it. Idempotent."""
        if os.getpid() == self._owner:
            if self.mounts is not None:
                self.mounts.close()
            self.client.close()
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        self.connection.close()


def why_ended(client: Client) -> InfrastructureError | SandboxError:
    """The reason of a session's end, which was noticed by its socket's."""
    reason = client.reason
    if isinstance(reason, InfrastructureError | SandboxError):
        return reason
    return SandboxClosed("the sandbox was closed")
