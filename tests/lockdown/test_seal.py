"""A sealed process, from the inside: arbitrary Python in it reaches nothing."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from belljar.lockdown.layers import LAYERS
from belljar.lockdown.seal_host import enter_namespaces, prove, seal

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the lockdown is Linux's")

libc = ctypes.CDLL(None, use_errno=True)
Outcome = tuple[str, int]


def data_size() -> int:
    """What RLIMIT_DATA counts of this process already: a test run may have grown large."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmData:")[2].split()[0]) * 1024


def probe(attempt: Callable[[], object]) -> Outcome:
    """Run `attempt` in a sealed grandchild with 512 MiB to spare.

    Gives ("raised" | "returned" | "killed", errno or signal).
    """
    memory = data_size() + (512 << 20)
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            ours.close()
            enter_namespaces()
            child = os.fork()
            if child == 0:
                _sealed(theirs, attempt, memory)
            theirs.close()
            _, status = os.waitpid(child, 0)
            code = 100 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        finally:
            os._exit(code)
    theirs.close()
    with ours:
        said = b"".join(iter(lambda: ours.recv(4096), b""))
    _, status = os.waitpid(pid, 0)
    code = os.WEXITSTATUS(status)
    if code >= 100:
        return "killed", code - 100
    word, _, number = said.decode().partition(" ")
    return word, int(number or 0)


def _sealed(report: socket.socket, attempt: Callable[[], object], memory: int) -> None:
    try:
        seal({report.fileno()}, memory, 60)
        prove()
        attempt()
        report.send(b"returned")
    except OSError as error:
        report.send(b"raised %d" % (error.errno or 0))
    except MemoryError:
        report.send(b"raised 12")
    except BaseException:
        report.send(b"raised 0")
        raise
    finally:
        os._exit(0)


def call(number: int, *arguments: int) -> Callable[[], object]:
    def attempt() -> None:
        if libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in arguments]) < 0:
            raise OSError(ctypes.get_errno(), "refused")

    return attempt


REFUSED = {
    "read a file": lambda: os.open("/etc/passwd", os.O_RDONLY),
    "write a file": lambda: os.open("/tmp/x", os.O_WRONLY | os.O_CREAT),
    "list a directory": lambda: os.listdir("/"),
    "stat": lambda: os.stat("/"),
    "tcp": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
    "unix socket": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
    "fork": os.fork,
    "signal init": lambda: os.kill(1, signal.SIGTERM),
    "signal every process": lambda: os.kill(-1, signal.SIGKILL),
    "shared memory": lambda: mmap.mmap(-1, 1 << 20),
    "executable memory": lambda: mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7),
    "raise a limit": lambda: __import__("resource").setrlimit(7, (1024, 1024)),
    "600 MB where 512 are left": lambda: bytearray(600 << 20),
}

# x86_64 call numbers; anything unlisted ends the process.
KILLED = {
    "execve": 59,
    "vfork": 58,
    "ptrace": 101,
    "unshare": 272,
    "setns": 308,
    "mount": 165,
    "pivot_root": 155,
    "memfd_create": 319,
    "io_uring_setup": 425,
    "bpf": 321,
    "userfaultfd": 323,
    "process_vm_readv": 310,
    "keyctl": 250,
    "seccomp": 317,
    "setuid": 105,
    "chroot": 161,
    "open_by_handle_at": 304,
    "perf_event_open": 298,
    "pidfd_open": 434,
    "pidfd_getfd": 438,
    "x32 getpid": 0x40000000 + 39,
}


class _Raises:
    def __del__(self) -> None:
        raise ValueError("nobody is told")


def test_nothing_is_printed_to_a_connection_with_the_number_of_stderr() -> None:
    ours, theirs = socket.socketpair()
    if not (pid := os.fork()):
        try:
            os.dup2(theirs.fileno(), 2)
            seal({2}, data_size() + (512 << 20), 60)
            del [_Raises()][0]
            os.write(2, b"a frame")
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    theirs.close()
    with ours:
        assert b"".join(iter(lambda: ours.recv(4096), b"")) == b"a frame"


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    outcome, _ = probe(REFUSED[what])
    assert outcome == "raised"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are x86_64's")
@pytest.mark.parametrize("what", KILLED)
def test_killed(what: str) -> None:
    assert probe(call(KILLED[what])) == ("killed", signal.SIGSYS)


def test_ordinary_work_goes_on() -> None:
    def work() -> None:
        assert sum(range(1000)) == 499500
        assert len(bytearray(50 << 20)) == 50 << 20
        assert len(os.urandom(16)) == 16

    assert probe(work) == ("returned", 0)


def test_every_layer_has_a_meaning() -> None:
    assert all(text and text[0].islower() for text in LAYERS.values())
