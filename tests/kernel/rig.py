"""A small kernel on virtual time for tests: a root in memory, /dev, /proc, /tmp, and programs given as functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from belljar.abi.errors import SysError
from belljar.abi.limits import Limits
from belljar.kernel.fs.dev import DevServer
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.proc import ProcServer
from belljar.kernel.fs.quota import Quota
from belljar.kernel.kernel import Kernel
from belljar.kernel.loader import Program, program_file
from belljar.kernel.machine import Machine, virtual_machine
from belljar.kernel.process import Body, Process
from belljar.kernel.status import ExitStatus
from belljar.kernel.vfs.credentials import Credentials

T = TypeVar("T")


def new_kernel(
    machine: Machine | None = None, *, limits: Limits | None = None, programs: Mapping[str, Program] | None = None
) -> Kernel:
    machine = machine if machine is not None else virtual_machine()
    limits = limits if limits is not None else Limits()
    quota = Quota(limits.file_bytes, limits.files)
    known = dict(programs or {})
    root = MemoryServer(machine.clock.time_ns, quota)
    kernel = Kernel(machine, root, limits=limits, quota=quota, programs=known.get)
    fs = kernel.init.fs
    for path in ("/bin", "/dev", "/proc", "/tmp"):
        fs.mkdir(path)
    fs.chmod("/tmp", 0o1777)
    for name in known:
        kernel.init.write_file(f"/bin/{name}", program_file(name), 0o755)
        fs.chmod(f"/bin/{name}", 0o755)
    for server, path in ((DevServer(kernel), "/dev"), (ProcServer(kernel, kernel.init.space), "/proc")):
        kernel.register(server)
        fs.mount(server, path, source=server.kind)
    return kernel


def run(
    kernel: Kernel,
    body: Body,
    *,
    limits: Limits | None = None,
    uid: int = 0,
    env: dict[str, str] | None = None,
    argv: list[str] | None = None,
) -> ExitStatus:
    """Run one process to its end, and the kernel until it comes to rest."""
    process = start(kernel, body, limits=limits, uid=uid, env=env, argv=argv)
    kernel.hub.run(lambda: process.status is not None)
    assert process.status is not None, "the process never ended: nothing can wake it"
    return process.status


def start(
    kernel: Kernel,
    body: Body,
    *,
    limits: Limits | None = None,
    uid: int = 0,
    env: dict[str, str] | None = None,
    argv: list[str] | None = None,
) -> Process:
    return kernel.start(
        body,
        argv if argv is not None else ["test"],
        limits=limits,
        credentials=Credentials(uid, uid),
        env=env if env is not None else {"PATH": "/bin"},
    )


def result(kernel: Kernel, body: Callable[[Process], T], *, uid: int = 0) -> T:
    """What a function returns when a process runs it."""
    found: list[T] = []

    def main(process: Process) -> int:
        found.append(body(process))
        return 0

    status = run(kernel, main, uid=uid)
    assert status == ExitStatus(0), status
    return found[0]


def doing(action: Callable[[Process], object], code: int = 0) -> Body:
    """A program that does one thing and exits."""

    def body(process: Process) -> int:
        action(process)
        return code

    return body


def sleeping(seconds: float = 100, code: int = 0) -> Body:
    return doing(lambda process: process.sleep(seconds), code)


def errno_of(call: Callable[..., object], *arguments: object) -> int:
    """The errno a call fails with; it must fail."""
    try:
        call(*arguments)
    except SysError as error:
        return error.errno
    raise AssertionError("the call succeeded")
