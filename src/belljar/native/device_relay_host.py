"""A FUSE device of a sandbox here that somebody elsewhere serves: messages go both ways as they are, by a socket.

Whoever serves it is not trusted. The kernel checks its answers, as those of any user who serves a file system; of the
notices that it could send, one could wait for an answer that comes behind it, so none is taken.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import threading
from contextlib import suppress
from typing import Final

from belljar.fuse.protocol import MESSAGE_MAX, OUT_HEADER, pack_inc_epoch

_INTERRUPTED: Final = (errno.EINTR, errno.ENOENT, errno.EAGAIN)
_END: Final = bytes(4)
"""The end of a device, which both sides say."""


class DeviceRelay:
    """Two threads, until either side ends it or `close`. `device` is an open /dev/fuse, and closed in the end."""

    def __init__(self, device: int) -> None:
        os.set_blocking(device, False)
        self._device = device
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()
        """Held while the device is written to or closed."""
        self.ended = False
        self._ours, self.connection = socket.socketpair()
        self._threads = [
            threading.Thread(target=work, name="belljar-device", daemon=True)
            for work in (self._requests, self._replies)
        ]
        for thread in self._threads:
            thread.start()

    def new_epoch(self) -> None:
        """Have the kernel look up all names anew; an old one does not know how."""
        self._write(pack_inc_epoch())

    def close(self) -> None:
        """End the device at once: what programs wait for fails. Idempotent."""
        with self._lock:
            if self.ended:
                return
            self.ended = True
            os.close(self._device)
            os.eventfd_write(self._wake, 1)
        with suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)

    def _requests(self) -> None:
        """From the kernel to whoever serves."""
        poll = select.poll()
        poll.register(self._device, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        buffer = bytearray(MESSAGE_MAX)
        view = memoryview(buffer)
        with suppress(OSError):
            while (count := self._read(buffer)) is not None:
                if count:
                    self._ours.sendall(view[:count])
                else:
                    poll.poll()
            self._ours.sendall(_END)
        self.close()
        self._threads[1].join()
        self._ours.close()
        os.close(self._wake)

    def _read(self, buffer: bytearray) -> int | None:
        """Bytes of a request; 0: there is none yet; None: there will be none."""
        with self._lock:
            if self.ended:
                return None
            try:
                return os.readv(self._device, (buffer,))
            except OSError as error:
                return 0 if error.errno in _INTERRUPTED else None

    def _replies(self) -> None:
        """From whoever serves to the kernel."""
        with suppress(OSError, EOFError):
            while (size := int.from_bytes(head := self._receive(4), "little")) != 0:
                if not OUT_HEADER.size <= size <= MESSAGE_MAX:
                    break
                message = head + self._receive(size - 4)
                if OUT_HEADER.unpack_from(message)[2]:  # else a notice
                    self._write(message)
        self.close()

    def _receive(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = self._ours.recv(min(count - len(data), 1 << 18))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    def _write(self, message: bytes) -> None:
        with self._lock, suppress(OSError):  # nobody waits for it any more, or it makes no sense
            if not self.ended:
                os.write(self._device, message)
