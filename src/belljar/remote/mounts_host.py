"""Trees of this program in a native sandbox on a server: messages of their FUSE devices go over the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.fuse.serve_host import StreamDevice
from belljar.fuse.session import Account
from belljar.native.mounts_host import OwnersMounts

if TYPE_CHECKING:
    from belljar.remote.client_host import Client


class _Device(StreamDevice):
    def close(self) -> None:
        super().close()
        self._stream.close()


class RemoteMounts(OwnersMounts):
    """What a client has mounted in one sandbox."""

    def __init__(self, client: Client) -> None:
        uid, gid, only = client.welcome.account
        super().__init__(client.connection, Account(uid, gid, bool(only)))
        self._client = client

    def _take(self, number: int, seconds: float = 0.0) -> StreamDevice:
        return _Device(self._client.stream(lambda stream: ("fuse", [stream, number])))

    def new_epoch(self) -> None:
        """The server does that, when it hands a frame on: a notice from here could come too late."""
