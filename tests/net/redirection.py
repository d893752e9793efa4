"""Executes the network steps of a plan in this process's namespace, as the agent does."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

from belljar.native.network import Step

_ACK, _ERROR = 4, 2


def talk(protocol: int, data: bytes) -> None:
    """Send messages, and wait for every acknowledgement that they ask for. OSError if the kernel refuses one."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as kernel:
        kernel.settimeout(10)
        kernel.send(data)
        waiting = sum(flags & _ACK != 0 for _, flags, _ in messages(data))
        while waiting:
            for kind, _, body in messages(kernel.recv(65536)):
                if kind == _ERROR:
                    error = struct.unpack_from("=i", body)[0]
                    if error:
                        raise OSError(-error, os.strerror(-error))
                    waiting -= 1


def messages(data: bytes) -> list[tuple[int, int, bytes]]:
    """Kind, flags and body of each."""
    found = []
    while data:
        size, kind, flags = struct.unpack_from("=IHH", data)
        found.append((kind, flags, data[16:size]))
        data = data[(size + 3) & ~3 :]
    return found


def execute(steps: Sequence[Step]) -> list[socket.socket]:
    """Give the sockets that the steps made."""
    made = []
    libc = ctypes.CDLL(None, use_errno=True)
    for step in steps:
        match step:
            case ["netlink", protocol, data]:
                talk(protocol, data)
            case ["set", path, value]:
                Path(path).write_bytes(value)
            case ["listen", family, kind, address, options]:
                made.append(socket.socket(family, kind))
                for option in options:
                    made[-1].setsockopt(*option)
                if libc.bind(made[-1].fileno(), address, len(address)):
                    raise OSError(ctypes.get_errno(), "bind")
                if kind == socket.SOCK_STREAM:
                    made[-1].listen()
            case _:
                raise ValueError(step)
    return made
