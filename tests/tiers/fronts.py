"""The two fronts behind one face: a case is written once, for `Sandbox`, and runs on `AsyncSandbox` as well.

`Blocking` calls an asynchronous object's methods on an event loop of its own thread and waits for them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol, cast

from belljar import AsyncSandbox, Sandbox

WAIT = 300.0
"""Seconds after which a call that does not come back fails its case."""


class Loop:
    """An event loop on a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, do: Callable[[], Any]) -> Any:
        """Call a function on the loop's thread, and await its result if that is to be awaited."""

        async def call() -> Any:
            result = do()
            return await result if isinstance(result, Awaitable) else result

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(WAIT)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Blocking:
    """An asynchronous object of the API, used as its synchronous twin is."""

    def __init__(self, loop: Loop, target: Any) -> None:
        self._loop = loop
        self._target = target

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if callable(value) and not hasattr(value, "__await__"):
            return lambda *args, **kwargs: self._wrap(self._loop.run(lambda: value(*args, **kwargs)))
        return self._wrap(self._loop.run(lambda: value))

    def _wrap(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._wrap(item) for item in value]
        kind = type(value)
        wrapped = kind.__name__.startswith("Async") and kind.__module__.startswith("belljar.")
        return Blocking(self._loop, value) if wrapped or hasattr(value, "__anext__") else value

    def __iter__(self) -> Iterator[Any]:
        return Blocking(self._loop, self._loop.run(lambda: self._target.__aiter__()))

    def __next__(self) -> Any:
        try:
            return self._loop.run(lambda: self._target.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def __enter__(self) -> Any:
        return self._wrap(self._loop.run(lambda: self._target.__aenter__()))

    def __exit__(self, *error: object) -> None:
        self._loop.run(lambda: self._target.__aexit__(*error))

    def __repr__(self) -> str:
        return repr(self._target)


class Front(Protocol):
    """`Sandbox` or `AsyncSandbox`."""

    name: str

    def make(self, options: dict[str, Any]) -> Sandbox: ...
    def call(self, method: str, *args: Any, **options: Any) -> Any:
        """Call a class method: `restore` or `resume`."""

    def connect(self, sandbox: Sandbox, port: int, said: bytes) -> bytes:
        """Send bytes to a port and end; gives all that comes back."""


class SyncFront:
    name = "sync"

    def __init__(self, kind: type[Sandbox] = Sandbox) -> None:
        self._kind = kind

    def make(self, options: dict[str, Any]) -> Sandbox:
        return self._kind(**options)

    def call(self, method: str, *args: Any, **options: Any) -> Any:
        return getattr(self._kind, method)(*args, **options)

    def connect(self, sandbox: Sandbox, port: int, said: bytes) -> bytes:
        heard = b""
        with sandbox.port(port).connect() as stream:
            stream.settimeout(WAIT)
            stream.sendall(said)
            while data := stream.recv(65536):
                heard += data
        return heard


class AsyncFront:
    name = "async"

    def __init__(self, loop: Loop, kind: type[AsyncSandbox] = AsyncSandbox) -> None:
        self.loop = loop
        self._kind = kind

    def make(self, options: dict[str, Any]) -> Sandbox:
        return cast("Sandbox", Blocking(self.loop, self.loop.run(lambda: self._kind(**options).start())))

    def call(self, method: str, *args: Any, **options: Any) -> Any:
        return Blocking(self.loop, self.loop.run(lambda: getattr(self._kind, method)(*args, **options)))

    def connect(self, sandbox: Sandbox, port: int, said: bytes) -> bytes:
        async def talk() -> bytes:
            reader, writer = await cast("Any", sandbox)._target.port(port).connect()
            writer.write(said)
            heard: bytes = await reader.read()
            writer.close()
            return heard

        return cast("bytes", self.loop.run(talk))
