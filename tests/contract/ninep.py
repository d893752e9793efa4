"""File servers at the far end of 9P: in memory, through the kernel's pipes, and served by a program on a host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belljar.abi.errors import SysError
from belljar.kernel.fs import ninep_wire as wire
from belljar.kernel.fs.ninep import NinePServer
from belljar.kernel.fs.ninep_link import MESSAGE, NinePLink
from belljar.kernel.kernel import Kernel
from belljar.kernel.vfs.openfile import OpenFile
from belljar.kernel.vfs.server import FileServer, Handle, Node
from belljar.ninep.session import Session
from tests.kernel.rig import new_kernel

Exchange = Callable[[bytes], bytes]


def direct(exchange: Exchange) -> NinePServer:
    """A client whose every request is answered before it does anything else."""

    def call(name: str, *values: Any) -> tuple[Any, ...]:
        tag = wire.NOTAG if name == "Tversion" else 7
        answer = wire.decode(exchange(wire.encode(name, tag, *values)))
        assert answer.tag == tag
        if answer.name == "Rlerror":
            raise SysError(answer.values[0])
        assert answer.name == "R" + name[1:]
        return answer.values

    return NinePServer(call, MESSAGE)


def serve(kernel: Kernel, session: Session, requests: OpenFile, answers: OpenFile) -> None:
    """A fiber that serves as a program of the sandbox would."""

    def run() -> None:
        while data := requests.read(1 << 16):
            answer = b"".join(session.receive(data))
            while answer:
                answer = answer[answers.write(answer) :]

    kernel.hub.spawn(run)


def piped(server: FileServer) -> FileServer:
    """The same through two pipes of a kernel, with tags, time limits and a fiber that reads."""
    kernel = new_kernel()
    requests, ask = kernel.open_pipe(kernel.init)
    answers, answer = kernel.open_pipe(kernel.init)
    serve(kernel, Session(server), requests.retain(), answer.retain())
    driver = Driver(kernel)
    link = NinePLink(kernel.hub, answers, ask)
    return Driven(driver, driver.do(lambda: NinePServer(link.call, MESSAGE)))


class Driver:
    """Does each thing in a fiber, and runs the kernel until it is done."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def do(self, work: Callable[[], Any]) -> Any:
        done: list[tuple[Any, SysError | None]] = []

        def run() -> None:
            try:
                done.append((work(), None))
            except SysError as error:
                done.append((None, error))

        self.kernel.hub.spawn(run)
        assert self.kernel.hub.run(lambda: bool(done)), "it waits for ever"
        value, error = done[0]
        if error is not None:
            raise error
        return value


class DrivenHandle(Handle):
    __slots__ = ("_driver", "_handle")
    may_be_terminal = False

    def __init__(self, driver: Driver, handle: Handle) -> None:
        super().__init__()
        self._driver = driver
        self._handle = handle

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self._driver.do(lambda: self._handle.read(offset, size)))

    def write(self, offset: int | None, data: bytes) -> int:
        return int(self._driver.do(lambda: self._handle.write(offset, data)))

    def truncate(self, size: int) -> None:
        self._driver.do(lambda: self._handle.truncate(size))

    def size(self) -> int:
        return int(self._driver.do(self._handle.size))

    def sync(self) -> None:
        self._driver.do(self._handle.sync)

    def close(self) -> None:
        self._handle.close()


def _driven(name: str) -> Any:
    def method(self: Driven, *args: Any) -> Any:
        found = self.driver.do(lambda: getattr(self.inner, name)(*args))
        return DrivenHandle(self.driver, found) if isinstance(found, Handle) else found

    return method


class Driven(FileServer):
    """A server whose calls may park, for callers that can't."""

    kind = "9p"

    def __init__(self, driver: Driver, inner: NinePServer) -> None:
        self.driver = driver
        self.inner = inner

    @property
    def root(self) -> Node:
        return self.inner.root

    walk = _driven("walk")
    locate = _driven("locate")
    stat = _driven("stat")
    readdir = _driven("readdir")
    open = _driven("open")
    readlink = _driven("readlink")
    create = _driven("create")
    mkdir = _driven("mkdir")
    symlink = _driven("symlink")
    link = _driven("link")
    unlink = _driven("unlink")
    rmdir = _driven("rmdir")
    rename = _driven("rename")
    setattr = _driven("setattr")
    statfs = _driven("statfs")
