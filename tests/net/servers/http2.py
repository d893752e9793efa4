"""An HTTP/2 server, over TLS or with prior knowledge, with the same routes as the HTTP/1.1 one."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, RequestReceived, StreamEnded, StreamReset, WindowUpdated

from tests.net.servers.http1 import HttpServer, Request, Response, Route


class Http2Server(HttpServer):
    """`context` must offer `h2` by ALPN: `authority.context("localhost", protocols=("h2",))`; None is plain text."""

    def __init__(
        self,
        routes: Mapping[str, Route | Response | bytes | str] | None = None,
        *,
        address: str = "127.0.0.1",
        port: int = 0,
        context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(routes, address=address, port=port, context=context)

    def serve(self, connection: socket.socket) -> None:
        _Conversation(self, connection).run()


class _Conversation:
    """One connection: streams in the order their requests are complete."""

    def __init__(self, server: Http2Server, connection: socket.socket) -> None:
        self._server = server
        self._socket = connection
        self._machine = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self._heads: dict[int, list[tuple[str, str]]] = {}
        self._bodies: dict[int, bytearray] = {}
        self._pending: dict[int, bytes] = {}
        """What a stream has still to send, when the peer's window opens."""

    def run(self) -> None:
        self._machine.initiate_connection()
        self._flush()
        while data := self._socket.recv(1 << 16):
            for event in self._machine.receive_data(data):
                match event:
                    case RequestReceived():
                        stream = event.stream_id or 0
                        pairs = [
                            (bytes(k).decode("latin-1"), bytes(v).decode("latin-1")) for k, v in event.headers or []
                        ]
                        self._heads[stream], self._bodies[stream] = pairs, bytearray()
                    case DataReceived():
                        stream = event.stream_id or 0
                        self._bodies[stream] += event.data or b""
                        self._machine.acknowledge_received_data(event.flow_controlled_length or 0, stream)
                    case StreamEnded():
                        self._answer(event.stream_id or 0)
                    case StreamReset():
                        self._pending.pop(event.stream_id or 0, None)
                    case WindowUpdated():
                        for stream in list(self._pending):
                            self._send(stream)
                    case ConnectionTerminated():
                        return
            self._flush()

    def _flush(self) -> None:
        if data := self._machine.data_to_send():
            self._socket.sendall(data)

    def _answer(self, stream: int) -> None:
        pairs = self._heads.pop(stream)
        special = {name: value for name, value in pairs if name.startswith(":")}
        headers = [(name, value) for name, value in pairs if not name.startswith(":")]
        headers.append(("host", special.get(":authority", "")))
        request = Request(special[":method"], special[":path"], headers, bytes(self._bodies.pop(stream)))
        self._server.requests.append(request)
        response = self._server.answer(request)
        items = response.headers.items() if isinstance(response.headers, Mapping) else response.headers
        body = response.body if isinstance(response.body, bytes) else b"".join(response.body)
        self._machine.send_headers(
            stream,
            [
                (":status", str(response.status)),
                *((k.lower(), v) for k, v in items),
                ("content-length", str(len(body))),
            ],
            end_stream=request.method == "HEAD" or not body,
        )
        if body and request.method != "HEAD":
            self._pending[stream] = body
            self._send(stream)

    def _send(self, stream: int) -> None:
        """As much as the peer's windows allow."""
        body = self._pending[stream]
        while body and (
            room := min(self._machine.local_flow_control_window(stream), self._machine.max_outbound_frame_size)
        ):
            self._machine.send_data(stream, body[:room], end_stream=len(body) <= room)
            body = body[room:]
            self._flush()
        if body:
            self._pending[stream] = body
        else:
            del self._pending[stream]
