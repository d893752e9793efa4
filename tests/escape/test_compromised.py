"""Arbitrary code inside a sealed process: what it could use against its owner or its machine is refused.

Each case runs in a process that is sealed as one of ours is: a worker, an engine process, one that compiles, a prefix
whose forks are judged. Nothing here goes through an interpreter of ours: it is what a guest has who broke it.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import belljar
from belljar.forking.owner.copies_host import EngineFamily
from belljar.lockdown.family_host import Family
from belljar.lockdown.polling_host import readable
from belljar.lockdown.seal_host import ENGINE_SPACE, FAMILY_TASKS_MAX, enter_namespaces, prove, seal
from belljar.owner.supervisor_host import shared

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's"),
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are x86_64's"),
]

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
PROFILES: dict[str, dict[str, Any]] = {
    "worker": {},
    "engine": {"threads": True},
    "compiler": {"threads": True, "compiles": True},
    "javascript": {"compiles": True},
}
SPARE = 512 << 20
CLONE, PIDFD_OPEN, UNSHARE = 56, 434, 272
THREAD = 0x003D0F00


def data_size() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmData:")[2].split()[0]) * 1024


def compromised(attack: Callable[[socket.socket], object], profile: str) -> str:
    """Run an attack in a sealed process, which has one socket; return "errno N", "signal N" or what it gives."""
    memory = data_size() + SPARE
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            ours.close()
            enter_namespaces()
            child = os.fork()
            if child == 0:
                _be_sealed(theirs, attack, memory, profile)
            _, status = os.waitpid(child, 0)
            code = 100 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        finally:
            os._exit(code)
    theirs.close()
    with ours:
        said = b"".join(iter(lambda: ours.recv(4096), b""))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return f"signal {code - 100}" if code >= 100 else said.decode()


def _be_sealed(report: socket.socket, attack: Callable[[socket.socket], object], memory: int, profile: str) -> None:
    try:
        seal({report.fileno()}, memory, 60, None, address_space=ENGINE_SPACE, **PROFILES[profile])
        prove()
        said = f"{attack(report)}"
    except OSError as error:
        said = f"errno {error.errno}"
    except BaseException as error:  # noqa: BLE001 - the test sees it
        said = f"{type(error).__name__}: {error}"
    with suppress(OSError):
        report.send(said.encode())
    os._exit(0)


def syscall(number: int, *arguments: int) -> int:
    result = int(libc.syscall(ctypes.c_long(number), *[ctypes.c_long(each) for each in arguments]))
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def map_memory(size: int, protection: int, flags: int) -> int:
    found = libc.mmap(None, size, protection, flags, -1, 0)
    if found in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "refused")
    return int(found)


def reserve_without_end(_: socket.socket) -> str:
    reserved = 0
    try:
        while reserved < 1 << 44:
            map_memory(1 << 33, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
            reserved += 1 << 33
    except OSError:
        return "bounded" if reserved <= ENGINE_SPACE + SPARE + (4 << 30) else f"reserved {reserved}"
    return "unbounded"


def start_threads(_: socket.socket) -> str:
    threading.stack_size(1 << 16)
    stop = threading.Event()
    for count in range(2000):
        try:
            threading.Thread(target=stop.wait, daemon=True).start()
        except RuntimeError:
            return "bounded" if count <= FAMILY_TASKS_MAX else f"{count} threads"
    return "unbounded"


def fill_stack_mapping(_: socket.socket) -> str:
    return f"mapped at {map_memory(1 << 20, 3, 0x122):x}"


REFUSED = f"errno {errno.EPERM}"
KILLED = f"signal {signal.SIGSYS.value}"
ATTACKS: dict[str, tuple[Callable[[socket.socket], object], str]] = {
    "an urgent byte": (lambda end: end.send(b"x", socket.MSG_OOB), REFUSED),
    "an urgent byte without waiting": (lambda end: end.send(b"x", socket.MSG_OOB | socket.MSG_DONTWAIT), REFUSED),
    "more to come for ever": (lambda end: end.send(b"x", socket.MSG_MORE), REFUSED),
    "zero-copy sending": (lambda end: end.send(b"x", 0x4000000), REFUSED),
    "receive the urgent byte": (lambda end: end.recv(1, socket.MSG_OOB | socket.MSG_DONTWAIT), REFUSED),
    "receive errors": (lambda end: end.recv(1, 0x2000 | socket.MSG_DONTWAIT), REFUSED),
    "recvmsg with flags": (lambda end: end.recvmsg(1, 0, socket.MSG_OOB | socket.MSG_DONTWAIT), REFUSED),
    "send a descriptor": (lambda end: end.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, bytes(4))]), REFUSED),
    "send credentials": (lambda end: end.sendmsg([b"x"], [(socket.SOL_SOCKET, 2, bytes(12))]), REFUSED),
    "a pidfd of the owner": (lambda _: syscall(PIDFD_OPEN, 1, 0), KILLED),
    "a pidfd of itself": (lambda _: syscall(PIDFD_OPEN, os.getpid(), 0), KILLED),
    "a mapping that grows": (fill_stack_mapping, REFUSED),
    "huge pages": (lambda _: map_memory(1 << 21, 3, 0x40022), REFUSED),
    "shared memory": (lambda _: map_memory(1 << 20, 3, 0x21), REFUSED),
    "page tables": (reserve_without_end, "bounded"),
    "a thread in a network namespace": (lambda _: syscall(CLONE, THREAD | 0x40000000), REFUSED),
    "a thread in a user namespace": (lambda _: syscall(CLONE, THREAD | 0x10000000), REFUSED),
    "a thread in a mount namespace": (lambda _: syscall(CLONE, THREAD | 0x20000), REFUSED),
    "a process in a namespace": (lambda _: syscall(CLONE, 17 | 0x10000000), REFUSED),
    "a thread that shares too little": (lambda _: syscall(CLONE, 0x10000 | 0x100 | 0x800), REFUSED),
    "a plain fork": (lambda _: syscall(CLONE, 17), REFUSED),
    "a fork as the C library's": (lambda _: os.fork(), REFUSED),
    "a process with the same memory": (lambda _: syscall(CLONE, 0x100 | 17), REFUSED),
    "clone3": (lambda _: syscall(435, 0, 0), f"errno {errno.ENOSYS}"),
    "a namespace of its own": (lambda _: syscall(UNSHARE, 0x10000000), KILLED),
    "back to its capabilities": (lambda _: syscall(126, 0, 0), KILLED),
    "another session": (lambda _: syscall(112), KILLED),
    "an end that does not come with its parent's": (lambda _: syscall(157, 1, 0), REFUSED),
}


@pytest.mark.battery(sample=30)
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_compromised_process_is_refused(attack: str, profile: str) -> None:
    attempt, expected = ATTACKS[attack]
    assert compromised(attempt, profile) == expected


@pytest.mark.parametrize("profile", ["engine", "compiler"])
def test_who_has_threads_starts_so_many_and_no_more(profile: str) -> None:
    assert compromised(start_threads, profile) == "bounded"


@pytest.mark.parametrize("profile", ["worker", "javascript"])
def test_who_needs_no_threads_starts_none(profile: str) -> None:
    def start(_: socket.socket) -> str:
        with suppress(RuntimeError):
            threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
            return "started"
        return "none"

    assert compromised(start, profile) == "none"


def test_limits_that_are_set() -> None:
    def limits(_: socket.socket) -> str:
        space, tasks = resource.getrlimit(resource.RLIMIT_AS), resource.getrlimit(resource.RLIMIT_NPROC)
        return f"{space[0] == space[1] != -1} {tasks[0] == tasks[1] != -1}"

    # getrlimit is refused to a worker, not to a process that compiles
    assert compromised(limits, "compiler") == "True True"


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is not ours to kill: the leader of a session of its own."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_a_reused_session_number_kills_nobody(victim: subprocess.Popen[bytes]) -> None:
    family = Family(victim.pid)
    family.add(1 << 22)
    family._started = 0.0  # of an earlier process with this number
    family.expect()
    family.finish(made=False)
    family.remove(1 << 22)
    family.add(victim.pid)
    family.kill_members({victim.pid})
    time.sleep(0.05)
    assert victim.poll() is None


@pytest.mark.parametrize("could_fork", [True, False])
def test_a_process_of_the_session_is_a_stray_if_it_was_started_while_one_could_fork(could_fork: bool) -> None:
    script = "sleep 600 & echo $!; exec sleep 600"
    with subprocess.Popen(["sh", "-c", script], start_new_session=True, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        stray = int(first.stdout.readline())
        family = Family(first.pid)
        family.add(first.pid)
        family.expect()
        if not could_fork:
            family._permitted_until = 0.0
        pidfd = os.pidfd_open(stray)
        family.finish(made=False)
        assert readable(pidfd, 30 if could_fork else 0.1) is could_fork
        os.close(pidfd)
        assert first.poll() is None, "it is known"
        first.kill()
        with suppress(ProcessLookupError):
            os.kill(stray, signal.SIGKILL)


def test_a_prefix_cannot_name_a_process(victim: subprocess.Popen[bytes]) -> None:
    """It sends what prefixes once were believed: a pid. Nothing but a listener is taken, and it can send none."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        theirs.send(b"+%d" % victim.pid)
        assert not EngineFamily(os.getpid()).take_listener(ours)
    assert victim.poll() is None


OWNER = """
import os, sys, time
import belljar

sandbox = belljar.Sandbox()
sandbox.exec("true")
print(sandbox._link.pid, flush=True)
sys.stdin.read()
os.kill(os.getpid(), 9)
"""


def test_a_worker_that_does_not_listen_ends_with_its_owner() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdin is not None
        pid = int(owner.stdout.readline())
        pidfd = os.pidfd_open(pid)
        os.kill(pid, signal.SIGSTOP)  # it hears nothing of its connection's end
        owner.stdin.close()
        assert readable(pidfd, 30), "its zygote did not end it"
        os.close(pidfd)


def test_the_next_sandbox_works_after_all_that() -> None:
    with belljar.Sandbox() as sandbox:
        assert sandbox.exec("echo ok").stdout == "ok\n"
    assert shared.zygote is not None
