"""A program that ends while it starts, before its engine process has heard of it, leaves no engine process behind."""

from collections.abc import Mapping
from errno import EIO

import pytest

from belljar.abi.errors import SysError
from belljar.abi.wire import Plain
from belljar.engines.worker.calls.server import CallServer
from belljar.engines.worker.programs import find, names
from belljar.kernel.engines import EngineLink, NoEngines
from belljar.kernel.machine_host import host_machine
from belljar.worker.session import Session


class Link:
    number = 1
    waits = False
    closed = False

    def recv(self, size: int = 1) -> bytes:
        return b""

    def send(self, data: bytes) -> None:
        return

    def kill(self) -> None:
        return

    def close(self) -> None:
        self.closed = True


class Engines(NoEngines):
    def __init__(self) -> None:
        self.links: list[Link] = []

    def open(self, kind: str, options: Mapping[str, Plain]) -> EngineLink:
        self.links.append(Link())
        return self.links[-1]


def fail(*_: object) -> None:
    raise SysError(EIO)


@pytest.mark.parametrize("command", ["python3 -c 1", "node -e 1", "/tmp/program"])
def test_its_process_is_let_go(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CallServer, "start", fail)
    session = Session(host_machine(), programs=find, names=names())
    engines = session.kernel.engines = Engines()
    session.kernel.init.write_file("/tmp/program", b"\0asm\1\0\0\0", 0o755)
    assert session.exec(command).status == 1
    assert [link.closed for link in engines.links] == [True]
