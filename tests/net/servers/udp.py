"""A server that sends every datagram back, in capitals."""

from __future__ import annotations

import socket
import threading


class UdpEcho:
    """`received` is what came, in order."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self._socket = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, port))
        self._ended = False
        self.address = address
        self.port: int = self._socket.getsockname()[1]
        self.received: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        while True:
            data, peer = self._socket.recvfrom(65536)
            if self._ended:
                return
            self.received.append(data)
            self._socket.sendto(data.upper(), peer)

    def __enter__(self) -> UdpEcho:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        with socket.socket(self._socket.family, socket.SOCK_DGRAM) as last:
            last.sendto(b"", (self.address, self.port))
        self._thread.join(10)
        self._socket.close()
