"""A JavaScript process as a program of the sandbox: its only connection is to the kernel, by engines/calls."""

from __future__ import annotations

from belljar.abi.flags import O_CREAT, O_RDWR, O_TRUNC
from belljar.bin._kit.discovery import find, names
from belljar.engines.owner.template_host import EngineLimits, template
from belljar.engines.worker.calls.server import CallServer
from belljar.kernel.machine_host import EpollPoller, host_machine
from belljar.kernel.process import Process
from belljar.kernel.status import ExitStatus
from belljar.worker.session import Session
from tests.engines.rig import SocketLink


def run(code: str) -> tuple[str, ExitStatus]:
    """What `node -e code` prints, and how it ends."""
    machine = host_machine()
    assert isinstance(machine.poller, EpollPoller)
    session = Session(machine, programs=find, names=names())
    engine = template("node").fork(EngineLimits(1 << 30, 10.0), {})
    link = SocketLink(engine.connection, session.kernel.hub, machine.poller)
    ended: list[ExitStatus] = []

    def body(process: Process) -> int:
        server = CallServer(process, link)
        server.start({})
        server.serve()

    def over(process: Process) -> None:
        assert process.status is not None
        ended.append(process.status)

    process = session.kernel.start(body, ["node", "-e", code], env={"PATH": "/usr/bin"}, on_exit=over)
    for fd in (0, 1, 2):
        process.fds.put(fd, process.fs.open("/tmp/out", O_RDWR | O_CREAT | O_TRUNC))
    try:
        session.kernel.hub.run(lambda: bool(ended))
    finally:
        engine.kill()
        machine.poller.close()
    return session.exec("cat /tmp/out").stdout.decode(), ended[0]


def test_it_prints_waits_and_exits(engine: str) -> None:
    said, status = run("console.log('hello', [1]); setTimeout(() => console.log('later'), 5)")
    assert said == "hello [ 1 ]\nlater\n"
    assert status.code == 0


def test_an_exception_is_the_end_of_it(engine: str) -> None:
    said, status = run("throw new TypeError('no')")
    assert "TypeError: no" in said
    assert status.code == 1
