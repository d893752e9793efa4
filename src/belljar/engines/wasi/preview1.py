"""Every function of wasi_snapshot_preview1, as calls on the sandbox's kernel. Errors are WASI's numbers."""

from __future__ import annotations

from collections.abc import Callable

from belljar.engines.wasi import numbers as n
from belljar.engines.wasi.descriptor_calls import DescriptorCalls
from belljar.engines.wasi.memory import Fault
from belljar.engines.wasi.path_calls import PathCalls
from belljar.engines.wasi.program import Refused
from belljar.engines.wasi.surroundings import Surroundings
from belljar.engines.wasi.waiting import Waiting


class Preview1(Surroundings, DescriptorCalls, PathCalls, Waiting):
    """One program's WASI. `memory` is set once the program's memory exists."""

    # Sockets: there are none.

    def sock_accept(self, _fd: int, _flags: int, _result: int) -> int:
        return n.ENOTSUP

    def sock_recv(self, *_arguments: int) -> int:
        return n.ENOTSUP

    def sock_send(self, *_arguments: int) -> int:
        return n.ENOTSUP

    def sock_shutdown(self, _fd: int, _how: int) -> int:
        return n.ENOTSUP


def functions(wasi: Preview1) -> dict[str, Callable[..., int]]:
    """Each function by name, such that it gives an errno and raises nothing but what ends the program."""
    return {name: guarded(getattr(wasi, name)) for name in n.SIGNATURES}


def guarded(function: Callable[..., int]) -> Callable[..., int]:
    def run(*arguments: int) -> int:
        try:
            return function(*arguments)
        except Fault:
            return n.EFAULT
        except Refused as refused:
            return refused.errno

    return run
