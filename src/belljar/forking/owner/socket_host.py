"""Sockets of handles, which close with whatever drops them."""

from __future__ import annotations

import socket


class HandleSocket(socket.socket):
    """A connection to a process of ours that nobody need close.

    A sandbox that is dropped closes its handles itself. But the garbage collector finalizes what it found in any order,
    and a plain socket that comes first warns that nobody closed it.
    """

    __slots__ = ()

    def __del__(self) -> None:
        self.close()
