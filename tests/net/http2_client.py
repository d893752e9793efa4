"""A small HTTP/2 client for tests: requests at the same time, with exactly the headers it is told, sane or not."""

from __future__ import annotations

import socket
import ssl
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, ResponseReceived, StreamEnded, StreamReset, WindowUpdated


def speak(connection: socket.socket | ssl.SSLSocket, requests: list[dict[str, Any]]) -> list[list[Any]]:
    """Status (0: the stream or connection was ended) and body of each. A request has `headers` and maybe a `body`."""
    config = H2Configuration(
        client_side=True, header_encoding=None, validate_outbound_headers=False, normalize_outbound_headers=False
    )
    peer = H2Connection(config)
    peer.initiate_connection()
    answers: dict[int, list[Any]] = {}
    bodies: dict[int, bytes] = {}
    for request in requests:
        number = peer.get_next_available_stream_id()
        body = request.get("body", "").encode()
        peer.send_headers(number, [tuple(pair) for pair in request["headers"]], end_stream=not body)
        answers[number] = [0, b""]
        if body:
            bodies[number] = body
    waiting = set(answers)
    while waiting:
        for number in list(bodies):
            room = min(peer.local_flow_control_window(number), peer.max_outbound_frame_size)
            if room > 0:
                piece, bodies[number] = bodies[number][:room], bodies[number][room:]
                peer.send_data(number, piece, end_stream=not bodies[number])
                if not bodies[number]:
                    del bodies[number]
        connection.sendall(peer.data_to_send())
        if any(peer.local_flow_control_window(number) > 0 for number in bodies):
            continue
        data = connection.recv(65536)
        if not data:
            break
        for event in peer.receive_data(data):
            match event:
                case ResponseReceived(stream_id=int(number), headers=headers):
                    answers[number][0] = int(dict(headers or [])[b":status"])
                case DataReceived(stream_id=int(number), data=piece):
                    answers[number][1] += piece or b""
                    peer.acknowledge_received_data(event.flow_controlled_length or 0, number)
                case StreamEnded(stream_id=int(number)):
                    waiting.discard(number)
                case StreamReset(stream_id=int(number)):
                    waiting.discard(number)
                    bodies.pop(number, None)
                case ConnectionTerminated():
                    waiting.clear()
                case WindowUpdated():
                    pass
    return [[status, body.decode("latin-1")] for status, body in answers.values()]


def take_back(connection: socket.socket | ssl.SSLSocket, request: dict[str, Any], count: int) -> None:
    """Ask and think better of it, so many times. OSError when the other side has had enough."""
    peer = H2Connection(H2Configuration(client_side=True, header_encoding=None))
    peer.initiate_connection()
    for _ in range(count):
        number = peer.get_next_available_stream_id()
        peer.send_headers(number, [tuple(pair) for pair in request["headers"]])
        connection.sendall(peer.data_to_send())
        peer.reset_stream(number)
        connection.sendall(peer.data_to_send())
    connection.settimeout(20)
    while data := connection.recv(65536):
        for event in peer.receive_data(data):
            if isinstance(event, ConnectionTerminated):
                raise ConnectionAbortedError
