"""WebSockets of previews: one to the client, one to the server inside, and messages between them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from socket import socket
from typing import Any, Final

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage
from websockets.typing import Subprotocol

_MESSAGE_MAX: Final = 16 << 20
_OPEN_SECONDS: Final = 30.0


async def carry_socket(
    scope: Any, receive: Any, send: Any, stream: socket, path: str, headers: list[tuple[bytes, bytes]]
) -> None:
    """Until one side ends. The client's handshake is answered when the server inside has answered its own."""
    await receive()  # the client's wish to connect
    query = scope["query_string"].decode("latin-1")
    host = next(value for name, value in headers if name == b"Host").decode("latin-1")
    uri = f"ws://{host}{path or '/'}" + (f"?{query}" if query else "")
    more = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers if name != b"Host"]
    wanted = [Subprotocol(name) for name in scope.get("subprotocols", [])]
    try:
        inside = await connect(
            uri,
            sock=stream,
            additional_headers=more,
            subprotocols=wanted or None,
            user_agent_header=None,
            compression=None,
            max_size=_MESSAGE_MAX,
            ping_interval=None,
            open_timeout=_OPEN_SECONDS,
            proxy=None,
        )
    except (InvalidHandshake, InvalidMessage, OSError, TimeoutError, EOFError):
        stream.close()
        await send({"type": "websocket.close", "code": 1011, "reason": "no WebSocket there"})
        return
    async with inside:
        await send({"type": "websocket.accept", "subprotocol": inside.subprotocol})

        async def from_client() -> None:
            while (message := await receive())["type"] == "websocket.receive":
                text = message.get("text")
                await inside.send(text if text is not None else message["bytes"])

        async def from_inside() -> None:
            async for message in inside:
                kind = "text" if isinstance(message, str) else "bytes"
                await send({"type": "websocket.send", kind: message})

        tasks = [asyncio.ensure_future(from_client()), asyncio.ensure_future(from_inside())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(ConnectionClosed, RuntimeError, OSError):
            if tasks[1].done() and not tasks[1].cancelled():
                code = inside.close_code if inside.close_code not in (None, 1005, 1006) else 1000
                await send({"type": "websocket.close", "code": code, "reason": inside.close_reason or ""})
