"""The kernel's side of the calls on processes: children, signals, waiting."""

from __future__ import annotations

from typing import Final

from belljar.abi.errno import E2BIG, EINVAL
from belljar.abi.errors import SysError
from belljar.abi.flags import POLLERR, POLLHUP
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.signals import UNCATCHABLE
from belljar.engines.wire.calls import CLOSE_OTHERS, INHERIT_ENV, NEW_GROUP, NEW_SESSION
from belljar.engines.worker.calls.files import at
from belljar.kernel import rlimits
from belljar.kernel.loader import load, search_path
from belljar.kernel.process import Process

POLL_MAX: Final = 4096
SLEEP_MAX: Final = 1 << 62


def chdir(process: Process, dirfd: int, path: bytes) -> None:
    name = fsdecode(path)
    view = at(process, dirfd)
    view.chdir(name)
    process.fs.cwd = view.cwd


def getcwd(process: Process) -> tuple[bytes]:
    return (fsencode(process.fs.getcwd()),)


def umask(process: Process, mask: int) -> tuple[int]:
    old, process.fs.umask = process.fs.umask, mask & 0o777
    return (old,)


def sleep(process: Process, nanoseconds: int) -> None:
    if not 0 <= nanoseconds <= SLEEP_MAX:
        raise SysError(EINVAL)
    process.sleep(nanoseconds / 1e9)


def poll(process: Process, fds: list[int], events: list[int], timeout: int) -> tuple[list[int]]:
    if len(fds) != len(events) or len(fds) > POLL_MAX:
        raise SysError(EINVAL)
    process.budget.charge(1 + len(fds) // 8)
    wanted: dict[int, int] = {}
    for fd, flags in zip(fds, events, strict=True):
        wanted[fd] = wanted.get(fd, 0) | flags
    ready = process.poll(wanted, None if timeout < 0 else timeout / 1e9)
    return ([ready.get(fd, 0) & (flags | POLLERR | POLLHUP) for fd, flags in zip(fds, events, strict=True)],)


def spawn(
    process: Process,
    path: bytes,
    argv: list[bytes],
    env: list[bytes],
    cwd: bytes,
    targets: list[int],
    sources: list[int],
    flags: int,
) -> tuple[int]:
    if not argv or len(targets) != len(sources) or any(b"\0" in word for word in (path, *argv, *env)):
        raise SysError(EINVAL)
    if len(argv) + len(env) > 100_000:
        raise SysError(E2BIG)
    environment = dict(process.env) if flags & INHERIT_ENV else _environment(env)
    starter = process.fs.fork()
    if cwd:
        starter.chdir(fsdecode(cwd))
    files = [(target, process.fds[source]) for target, source in zip(targets, sources, strict=True)]
    # A relative name is looked up from the directory that the child starts in.
    previous, process.fs = process.fs, starter
    try:
        name = search_path(process, fsdecode(path), environment.get("PATH"))
        program, arguments = load(process, name, [fsdecode(word) for word in argv])
    finally:
        process.fs = previous
    for _, file in files:
        file.retain()
    try:
        child = process.kernel.fork(process, arguments)
        child.fs.cwd = starter.cwd
        if flags & CLOSE_OTHERS:
            for fd in child.fds.fds():
                if fd > 2:
                    child.fds.close(fd)
        for target, file in files:
            child.fds.put(target, file)
    finally:
        for _, file in files:
            file.release()
    if flags & NEW_SESSION:
        process.kernel.new_session(child)
    elif flags & NEW_GROUP:
        child.pgid = child.pid

    def body(child: Process) -> int:
        child.prepare_exec(name, arguments, environment)
        return program(child)

    child.start_fiber(body)
    return (child.pids[process.space],)


def _environment(entries: list[bytes]) -> dict[str, str]:
    pairs = (fsdecode(entry).partition("=") for entry in entries)
    return {name: value for name, _, value in pairs if name}


def wait(process: Process, pid: int, options: int) -> tuple[int, int, int]:
    result = process.wait(pid, options)
    if result is None:
        return 0, 0, 0
    return result.pid, result.status.code, result.status.signal


def kill(process: Process, pid: int, number: int) -> None:
    process.kill(pid, number)


def ids(process: Process) -> tuple[list[int]]:
    who = process.fs.credentials
    parent = process.parent
    return (
        [
            process.pid,
            parent.pids.get(process.space, 0) if parent is not None else 0,
            process.pgid,
            process.session.leader,
            who.uid,
            who.gid,
        ],
    )


def getrlimit(process: Process, number: int) -> tuple[int, int]:
    soft, hard = rlimits.getrlimit(process, _resource(number))
    return -1 if soft is None else soft, -1 if hard is None else hard


def setrlimit(process: Process, number: int, soft: int, hard: int) -> None:
    if soft < -1 or hard < -1:
        raise SysError(EINVAL)
    rlimits.setrlimit(process, _resource(number), None if soft == -1 else soft, None if hard == -1 else hard)


def _resource(number: int) -> rlimits.Resource:
    if not 0 <= number < len(rlimits.RESOURCES):
        raise SysError(EINVAL)
    return rlimits.RESOURCES[number]


def hostname(process: Process) -> tuple[bytes]:
    return (fsencode(process.hostname),)


def check_signal(number: int) -> None:
    if not 0 < number <= 64 or number in UNCATCHABLE:
        raise SysError(EINVAL)
