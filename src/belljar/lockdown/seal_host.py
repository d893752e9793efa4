"""Seals a process: namespaces, resource limits, Landlock, seccomp; and proves it before the first guest byte.

Pure ctypes. Each layer is tried and reported; `layers.py` says what each is for. The order matters and is explained
where it is not obvious.

What a process does here it does once, just forked, sharing all its memory. So names of modules and libraries are bound
here, once for all: looking one up there (`os.setsid`) writes to three pages, each of which is copied for it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import socket
import sys
from ctypes import byref, get_errno
from functools import cache
from os import O_RDONLY, _exit, close, closerange, getpid, getppid, setsid, strerror
from re import findall
from resource import (
    RLIM_INFINITY,
    RLIMIT_AS,
    RLIMIT_CORE,
    RLIMIT_CPU,
    RLIMIT_DATA,
    RLIMIT_FSIZE,
    RLIMIT_MEMLOCK,
    RLIMIT_NOFILE,
    RLIMIT_NPROC,
    getrlimit,
    setrlimit,
)
from struct import pack
from typing import Final

from belljar.lockdown.bpf import MACHINES, fork_filter, worker_filter
from belljar.lockdown.forks_host import bare_fork
from belljar.lockdown.layers import LAYERS
from belljar.lockdown.privileges_host import (
    NOBODY,
    PrivilegesKept,
    clear_capabilities,
    drop_capabilities,
    drop_root,
    root_is_mapped,
)
from belljar.lockdown.sockets_host import send_descriptors

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_RDONLY, _MS_REC, _MS_PRIVATE = 2, 4, 8, 1, 16384, 1 << 18
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_PR_SET_CHILD_SUBREAPER: Final = 36
_SECCOMP_SET_MODE_FILTER, _SECCOMP_TSYNC = 1, 1
_SECCOMP_NEW_LISTENER, _SECCOMP_WAIT_KILLABLE = 8, 32

# Numbers of calls that Python has no function for; landlock's and close_range's are the same on every machine.
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446
_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}
_SECCOMP: Final = {"x86_64": 317, "aarch64": 277}

TASKS_MAX: Final = 8192
"""RLIMIT_NPROC: processes and threads of all sandboxes of one zygote or template together: so the kernel counts."""
FAMILY_TASKS_MAX: Final = 512
"""RLIMIT_NPROC of one engine process and its copies together, if it may start threads."""
ADDRESS_SPACE: Final = 4 << 30
"""Bytes that a worker may reserve beside its memory: some of it is the interpreter's own."""
ENGINE_SPACE: Final = 64 << 30
"""As much for an engine of WebAssembly, which reserves eight gigabytes for each memory of a guest's."""

_SIGINT, _SIGTERM, _SIGHUP, _SIGPIPE = map(int, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE))
_AT_FDCWD: Final = -100
_INTERNET, _STREAM = int(socket.AF_INET), int(socket.SOCK_STREAM)

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_libc_prctl = _libc.prctl
_libc_prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
_libc_signal = _libc.signal
_libc_signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
_libc_signal.restype = ctypes.c_void_p


@cache
def _machine() -> str:
    return platform.machine()


class LockdownFailed(RuntimeError):
    """A layer that must hold does not; says which and why."""


def _check(result: int, what: str) -> None:
    if result != 0:
        number = get_errno()
        raise OSError(number, f"{what}: {strerror(number)}")


def _prctl(option: int, value: int) -> None:
    _check(_libc_prctl(option, value, 0, 0, 0), "prctl")


def set_signal(number: int, *, ignored: bool) -> None:
    """Have the kernel ignore a signal or act by default. Python's own function makes enums of it all, page by page."""
    _libc_signal(number, 1 if ignored else 0)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that forked it ends; at once if that has happened already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if getppid() != parent:
        _exit(1)


def adopt_orphans() -> None:
    """Be the parent of descendants whose own has ended, so that they can be waited for."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def allow_descriptors() -> None:
    """Have as many as may be: a server of processes holds many, and those on their way count for a whole user."""
    hard = getrlimit(RLIMIT_NOFILE)[1]
    setrlimit(RLIMIT_NOFILE, (hard, hard))


def enter_namespaces() -> list[str]:
    """For a zygote or template, once, after everything is imported: empty namespaces, and no privileges.

    Returns the layers that hold. What this machine does not permit is left out: user namespaces may be forbidden, and
    with them the others; a container may have taken away the right to become nobody. But no capability is ever kept.
    Raises LockdownFailed if one is.
    """
    is_nobody = drop_root() or not root_is_mapped()
    held = _enter_namespaces(is_nobody=is_nobody)
    try:
        drop_capabilities()
    except PrivilegesKept as error:
        raise LockdownFailed(f"privileges: {error}") from error
    return [layer for layer in held if layer in LAYERS]


def _enter_namespaces(*, is_nobody: bool) -> list[str]:
    uid, gid = os.geteuid(), os.getegid()
    # A process that changed its ids is not dumpable, and then may not write its own uid_map.
    _prctl(_PR_SET_DUMPABLE, 1)
    held: list[str] = []
    try:
        _check(_libc.unshare(_CLONE_NEWUSER), "unshare user")
    except OSError:
        return held
    try:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{NOBODY} {uid} 1")
        _write("/proc/self/gid_map", f"{NOBODY} {gid} 1")
        if is_nobody:
            held.append("user")
    except OSError:
        pass  # no /proc, or root without CAP_SETFCAP, which may not be mapped: the other namespaces are to be had still
    for layer, flag in (("network", _CLONE_NEWNET), ("ipc", _CLONE_NEWIPC), ("uts", _CLONE_NEWUTS)):
        try:
            _check(_libc.unshare(flag), f"unshare {layer}")
            held.append(layer)
        except OSError:
            continue
    try:
        _empty_root()
        held.append("mount")
    except OSError:
        pass
    return held


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _empty_root() -> None:
    _check(_libc.unshare(_CLONE_NEWNS), "unshare mount")
    _check(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "make mounts private")
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    _check(_libc.mount(b"tmpfs", b"/proc", b"tmpfs", flags, b"size=4k,mode=0555"), "mount tmpfs")
    os.chdir("/proc")
    _check(_syscall(_PIVOT_ROOT[_machine()], b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount old root")
    os.chdir("/")
    _check(_libc.mount(None, b"/", None, flags | _MS_RDONLY | 32, None), "make root read-only")


def seal(
    keep: set[int],
    memory_bytes: int,
    cpu_seconds: int,
    fork_judge: socket.socket | None = None,
    *,
    threads: bool = False,
    compiles: bool = False,
    address_space: int = ADDRESS_SPACE,
) -> list[str]:
    """For a forked worker: everything from here on is irrevocable. Returns the layers that hold.

    `keep` are the descriptors it may have. `fork_judge` leads to the trusted side, which gets what it needs to answer
    for each fork; without it, or where the kernel has no such thing, no fork is possible. `threads`: it starts
    threads; `compiles`: it makes native code. `address_space`: what it may reserve beside its memory; who could reserve
    without limit could fill the kernel's page tables. Raises LockdownFailed if seccomp can't be had: without it there
    is no wall.
    """
    setsid()
    for number in (_SIGINT, _SIGTERM, _SIGHUP):
        set_signal(number, ignored=False)
    set_signal(_SIGPIPE, ignored=True)
    _close_all_but(keep if fork_judge is None else keep | {fork_judge.fileno()})
    # Whatever Python prints by itself (what a `__del__` raised) would go to a connection that got the number 2.
    sys.stdin = sys.stdout = sys.stderr = None
    held: list[str] = []
    for what, amount in (
        (RLIMIT_DATA, memory_bytes),
        (RLIMIT_CORE, 0),
        (RLIMIT_FSIZE, 0),
        (RLIMIT_CPU, cpu_seconds),
        (RLIMIT_MEMLOCK, 0),
        (RLIMIT_NPROC, TASKS_MAX),
        (RLIMIT_AS, address_space + memory_bytes),
    ):
        _limit(what, amount)
    if threads:
        _limit_own_tasks()
    held.append("rlimits")
    _prctl(_PR_SET_DUMPABLE, 0)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    held.append("no_new_privs")
    if _landlock():
        held.append("landlock")
    judged = fork_judge is not None and _ask_about_forks(fork_judge)
    # Only now: who sends a descriptor must be allowed more than all processes of this user have on their way.
    _limit(RLIMIT_NOFILE, 64)
    _close_all_but(keep)
    _seccomp(judged=judged, threads=threads, compiles=compiles)
    held.append("seccomp")
    return held


def _limit(what: int, amount: int) -> None:
    hard = getrlimit(what)[1]
    limit = amount if hard == RLIM_INFINITY else min(amount, hard)
    setrlimit(what, (limit, limit))


def _limit_own_tasks() -> None:
    """Count this process and its copies apart from all others: since Linux 5.14 each user namespace has its own count.

    Where no user namespace can be made, TASKS_MAX stays the limit. Raises LockdownFailed.
    """
    if _kernel_version() >= (5, 14) and _libc.unshare(_CLONE_NEWUSER) == 0:
        try:
            clear_capabilities()
        except PrivilegesKept as error:
            raise LockdownFailed(f"privileges: {error}") from error
        _limit(RLIMIT_NPROC, FAMILY_TASKS_MAX)


@cache
def _kernel_version() -> tuple[int, ...]:
    return tuple(int(number) for number in findall("[0-9]+", os.uname().release)[:2])


def _close_all_but(keep: set[int]) -> None:
    low = 0
    for fd in [*sorted(keep), 1 << 30]:
        closerange(low, min(fd, 65536))
        low = fd + 1


@cache
def landlock_rules() -> bytes:
    """struct landlock_ruleset_attr, as far as this kernel knows it; empty if it has no Landlock."""
    version = _syscall(_LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        return b""
    rights = {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)
    fields = pack("<QQQ", (1 << rights) - 1, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    return fields[: 8 if version < 4 else 16 if version < 6 else 24]


def _landlock() -> bool:
    """Handle every right the kernel knows and allow none."""
    fields = landlock_rules()
    fd = _syscall(_LANDLOCK_CREATE, fields, len(fields), 0) if fields else -1
    if fd < 0:
        return False
    held = int(_syscall(_LANDLOCK_RESTRICT, fd, 0)) == 0
    close(fd)
    return held


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def prepare() -> None:
    """For a zygote: make what sealing needs once, for all its workers. Raises LockdownFailed on a strange machine."""
    prepare_judged()
    landlock_rules()
    _attempts()
    set_signal(_SIGPIPE, ignored=True)


@cache
def prepare_filter(*, judged: bool, threads: bool = False, compiles: bool = False) -> _Program:
    """The system-call filter of this machine."""
    machine = _machine()
    if machine not in MACHINES or sys.byteorder != "little":
        raise LockdownFailed(f"seccomp: no filter for {machine}; belljar knows {', '.join(MACHINES)}")
    _kernel_version()
    program = worker_filter(MACHINES[machine], judged=judged, threads=threads, compiles=compiles)
    return _Program(len(program) // 8, program)


def prepare_judged(*, threads: bool = False) -> None:
    """For a template: make what its processes need to seal themselves so that their forks are judged."""
    prepare_filter(judged=True, threads=threads)
    _prepare_fork_filter(_machine())


@cache
def _prepare_fork_filter(machine: str) -> _Program:
    program = fork_filter(MACHINES[machine])
    return _Program(len(program) // 8, program)


def _ask_about_forks(judge: socket.socket) -> bool:
    """Have the kernel ask about each fork, on a descriptor that the judge gets with our pid. False where it can't."""
    machine = _machine()
    if machine not in MACHINES:
        return False
    head = byref(_prepare_fork_filter(machine))
    for flags in (_SECCOMP_NEW_LISTENER | _SECCOMP_WAIT_KILLABLE, _SECCOMP_NEW_LISTENER):
        fd = int(_syscall(_SECCOMP[machine], _SECCOMP_SET_MODE_FILTER, flags, head))
        if fd >= 0:
            try:
                send_descriptors(judge, b"%d" % getpid(), [fd])
            except OSError:
                return False  # the judge is gone
            return True
    return False


def _seccomp(*, judged: bool, threads: bool, compiles: bool) -> None:
    head = byref(prepare_filter(judged=judged, threads=threads, compiles=compiles))
    result = _syscall(_SECCOMP[_machine()], _SECCOMP_SET_MODE_FILTER, _SECCOMP_TSYNC, head)
    if result != 0:
        raise LockdownFailed(f"seccomp: {strerror(get_errno())}")


def prove(*, forks: bool = False) -> None:
    """Try what must not work. Raises LockdownFailed, naming the first thing that did.

    `forks`: it may fork, or whoever answers for its forks is not there yet. By bare system calls: an exception for each
    refusal would be made of memory that is copied for it.
    """
    for what, number, *arguments in _attempts():
        if _syscall(number, *arguments) >= 0:
            raise LockdownFailed(f"the lock does not hold: could {what}")
    if not forks:
        pid = bare_fork()
        if pid == 0:
            _exit(125)
        if pid > 0:
            raise LockdownFailed("the lock does not hold: could fork")


@cache
def _attempts() -> tuple[tuple[str, int, *tuple[int | bytes, ...]], ...]:
    """System calls that a sealed process is refused."""
    numbers = MACHINES[_machine()].numbers
    return (
        ("open a file", numbers["openat"], _AT_FDCWD, b"/", O_RDONLY),
        ("make a socket", numbers["socket"], _INTERNET, _STREAM, 0),
        ("signal another process", numbers["kill"], 1, 0),
    )
