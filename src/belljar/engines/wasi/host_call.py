"""`belljar.call`: what a program asks of the sandbox's kernel that WASI has no function for (see `support/c`).

The request is a call's number and its arguments as `engines/wire/calls.py` writes them. The kernel checks what is
asked, as it does for every engine; here only what this process remembers of its descriptors is kept right.
"""

from __future__ import annotations

from typing import Final

from belljar.engines.wasi import numbers as n
from belljar.engines.wasi.memory import Fault
from belljar.engines.wasi.preview1 import Preview1
from belljar.engines.wasi.program import Refused
from belljar.engines.wire.calls import CALLS, REQUEST_MAX, BadFrame, decode, encode

_ALLOWED: Final = {
    CALLS[name].number: name
    for name in "chmod chown dup dup2 fchmod fchown hostname ids kill mkfifo pipe spawn umask wait".split()
}


class HostCall:
    """The host function of one program."""

    def __init__(self, wasi: Preview1) -> None:
        self._wasi = wasi

    def __call__(self, address: int, length: int, answer: int, room: int) -> int:
        """The length of the answer, or an errno as a negative number."""
        try:
            results = self._call(address, length)
            if len(results) > room:
                return _negative(n.EINVAL) if room else 0
            self._wasi.memory.write(answer, results)
        except Fault:
            return _negative(n.EFAULT)
        except BadFrame:
            return _negative(n.EINVAL)
        except Refused as refused:
            return _negative(refused.errno)
        return len(results)

    def _call(self, address: int, length: int) -> bytes:
        if not 2 <= length <= REQUEST_MAX:
            raise BadFrame("not a request")
        request = self._wasi.memory.read(address, length)
        name = _ALLOWED.get(int.from_bytes(request[:2], "little"))
        if name is None:
            raise Refused(n.ENOSYS)
        arguments = decode(CALLS[name].takes, request[2:])
        wasi = self._wasi
        if name == "spawn":
            for fd in {0, 1, 2, *arguments[5]}:
                wasi.share(fd)
        elif name in ("dup", "dup2"):
            wasi.share(arguments[0])
            if name == "dup2":
                wasi.forget(arguments[1])
        return encode(CALLS[name].gives, wasi.call(name, *arguments))


def _negative(errno: int) -> int:
    return -errno & 0xFFFFFFFF
