"""`safe_fetch`: a host function that lets a run use the web under a network policy, as plain data in and out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

from belljar.net.broker.callbacks_host import calling_loop
from belljar.net.errors import NetError
from belljar.net.network import Network, Policy

if TYPE_CHECKING:
    from belljar.net.broker.gate_host import Gate

BODY_MAX: Final = 16 << 20
_TEXT: Final = ("text/", "application/json", "application/xml", "application/javascript", "application/x-www-form")


class FetchError(Exception):
    """A request that was refused or failed: `kind: text`, as `/mnt/web/N/error` has it."""


def safe_fetch(
    policy: Network | Policy | str,
    *,
    redirects: int = 5,
    timeout: float = 30.0,
    max_bytes: int = BODY_MAX,
) -> Callable[..., Awaitable[dict[str, Any]]]:
    """An async function `fetch(url, options=None)` for `globals={"fetch": safe_fetch(policy)}`.

    `policy` is a `Network`, a function of a connection, or a pattern to allow. `options` has `method`, `headers` and
    `body`. It gives a dict: `ok`, `status`, `statusText`, `headers`, `url`, `body` (str, or bytes if it is no text) and
    `json` (the parsed body of a JSON answer, else None). What the policy does not accept raises.
    """
    if isinstance(policy, Network):
        network = policy
    elif isinstance(policy, str):
        network = Network.allow(policy)
    else:
        network = Network.policy(policy)

    def gate() -> Gate:
        from belljar.net.broker.gate_host import Gate

        return Gate(network, sandbox="fetch")

    return fetch_through(gate, redirects=redirects, timeout=timeout, max_bytes=max_bytes, owned=True)


def fetch_through(
    gate: Callable[[], Gate],
    *,
    redirects: int = 5,
    timeout: float = 30.0,
    max_bytes: int = BODY_MAX,
    owned: bool = False,
) -> Callable[..., Awaitable[dict[str, Any]]]:
    """The same through a gate that is there already, or is made when the first request needs it.

    An `owned` gate is closed when the function is no longer used.
    """
    made: list[Gate] = []
    webs: list[Any] = []

    async def run(ask: Any, owner: asyncio.AbstractEventLoop) -> dict[str, Any]:
        from belljar.net.broker.http_host import Web

        if not webs:
            webs.append(Web(made[0]))
        web = webs[0]
        calling_loop.set(owner)
        async with asyncio.timeout(timeout):
            return await _fetch(web, ask, max_bytes)

    async def fetch(url: Any, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
        ask = _ask(url, options or {}, redirects)
        if not made:
            made.append(gate())
        try:
            future = made[0].thread.submit(run(ask, asyncio.get_running_loop()))
        except RuntimeError as error:
            raise FetchError(f"reset: {error}") from None
        try:
            return await asyncio.wrap_future(future)
        except NetError as error:
            raise FetchError(str(error)) from None
        except TimeoutError:
            raise FetchError(f"timeout: not done within {timeout:g} s") from None

    finalize(fetch, _close, made, webs, owned).atexit = False
    return fetch


def _close(made: list[Gate], webs: list[Any], owned: bool) -> None:
    """Close the gate that was made for an unreferenced function, or its idle connections."""
    for gate in made:
        if owned:
            gate.thread.stop()
            continue
        for web in webs:
            with suppress(RuntimeError):  # its sandbox is closed
                gate.thread.submit(web.close())


def _ask(url: Any, options: Mapping[str, Any], redirects: int) -> Any:
    from belljar.net.broker.exchange_host import Ask

    unknown = set(options) - {"method", "headers", "body"}
    if not isinstance(url, str) or unknown:
        raise FetchError(
            f"fetch(url, {{method, headers, body}}): {', '.join(sorted(map(str, unknown))) or 'url is text'}"
        )
    body = options.get("body")
    if isinstance(body, dict | list):
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode()
    if body is not None and not isinstance(body, bytes):
        raise FetchError(f"body is text, bytes or JSON data, not {type(body).__name__}")
    given = options.get("headers") or {}
    pairs = given.items() if isinstance(given, Mapping) else given
    try:
        fields = [(str(name).encode("latin-1"), str(value).encode("latin-1")) for name, value in pairs]
    except (ValueError, TypeError):
        raise FetchError("headers are names and values in Latin-1") from None
    names = {name.lower() for name, _ in fields}
    if b"accept-encoding" not in names:
        fields.append((b"accept-encoding", b"gzip, deflate"))
    if body is not None:
        fields = [field for field in fields if field[0].lower() != b"content-length"]
        fields.append((b"content-length", str(len(body)).encode()))
    method = str(options.get("method") or "GET").upper()
    return Ask(method, url, fields, None if body is None else _single(body), redirects)


async def _single(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _fetch(web: Any, ask: Any, max_bytes: int) -> dict[str, Any]:
    from belljar.net.audit import shown_target

    with web.gate.attempt("request", shown_target(ask.url)):
        return await _whole(web, ask, max_bytes)


async def _whole(web: Any, ask: Any, max_bytes: int) -> dict[str, Any]:
    """The answer with all of its body, which counts as the sandbox's memory while it is gathered."""
    from belljar.net.coding import decoded

    response = None
    size = 0
    try:
        response = await web.fetch(ask)
        if response.stream is not None:
            raise NetError("denied", "fetch can't change the protocol")
        chunks = response.chunks
        coding = response.headers.get("content-encoding", "identity")
        if coding != "identity" and ask.method != "HEAD":
            chunks = decoded(chunks, coding)
        parts: list[bytes] = []
        async for chunk in chunks:
            if size + len(chunk) > max_bytes:
                raise NetError("too-large", f"the answer is larger than {max_bytes} bytes")
            web.gate.memory.take(len(chunk))
            size += len(chunk)
            parts.append(chunk)
    finally:
        web.gate.memory.give(size)
        if response is not None:
            await response.aclose()
    return _plain(response, b"".join(parts))


def _plain(response: Any, data: bytes) -> dict[str, Any]:
    kind = (response.headers.get("content-type") or "").lower()
    body: str | bytes = data
    if kind.startswith(_TEXT) or "+json" in kind or "charset=utf-8" in kind:
        body = data.decode("utf-8", "replace")
    parsed = None
    if "json" in kind:
        try:
            parsed = json.loads(data)
        except (ValueError, RecursionError):
            parsed = None
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return {
        "ok": 200 <= response.status < 300,
        "status": response.status,
        "statusText": response.reason,
        "headers": headers,
        "url": str(response.url),
        "body": body,
        "json": parsed,
    }
