"""Messages on the control socket (SOCK_SEQPACKET) between an owner and a fork server.

From the owner:

- a request: msgpack of [memory in bytes, CPU seconds, options]. Answered by `+PID` with the connection, the pidfd and,
  if the process can be asked for copies of itself, its control socket; or by `-REASON`.
- TAKEN: a spare was used or discarded; another may be made.
- PERMIT and two pids of four bytes, a family's and a member's: that process may fork once, soon.
- COPY, perhaps with a word on what the copy is to be, and two sockets, to a process that can be copied: fork, and go on
  with these as connection and control.

From the server, beside the answers: AHEAD, a PID, a space and a request, for a spare made before anybody asked, with
descriptors as above.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from belljar.abi.dataclass import dataclass

REQUEST_MAX: Final = 64 << 10
"""The longest request, options included."""
AHEAD: Final = b"*"
TAKEN: Final = b"-"
PERMIT: Final = b"f"
COPY: Final = b"copy"
HANDS_OVER: Final = "hands-over"
"""Argument of a zygote whose workers are handed to other processes, and do not end with its owner."""
REPLAYS: Final = "replays"
"""Argument of a zygote whose workers see the same time and randomness in every run."""
SPARE_REQUEST_MAX: Final = 2048
"""The longest request for which spares are made."""


@dataclass(frozen=True, slots=True)
class Request:
    """A new process's limits and options."""

    memory_bytes: int
    cpu_seconds: float
    options: dict[str, Any]


def encode_request(memory_bytes: int, cpu_seconds: float, options: Mapping[str, Any]) -> bytes:
    """Encode a request. Raises ValueError if it is too long."""
    request = msgspec.msgpack.encode([memory_bytes, cpu_seconds, options])
    if len(request) > REQUEST_MAX:
        raise ValueError(f"options of {len(request)} bytes are over the limit of {REQUEST_MAX}")
    return request


def decode_request(data: bytes) -> Request:
    return Request(*msgspec.msgpack.decode(data, type=tuple[int, float, dict[str, Any]]))


def encode_permit(family: int, pid: int) -> bytes:
    return PERMIT + family.to_bytes(4, "little") + pid.to_bytes(4, "little")


def decode_permit(message: bytes) -> tuple[int, int]:
    return int.from_bytes(message[1:5], "little"), int.from_bytes(message[5:9], "little")
