"""The system-call filter of a worker, as classic BPF: an allow-list, built here and interpreted by the kernel.

Pure: builds bytes, touches nothing. `tests/lockdown/test_bpf.py` runs every path of it through a small interpreter.
"""

from __future__ import annotations

import struct
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EACCES, ENOSYS, EPERM

KILL_PROCESS: Final = 0x80000000
ERRNO: Final = 0x00050000
USER_NOTIFY: Final = 0x7FC00000
ALLOW: Final = 0x7FFF0000

LOAD: Final = 0x20
JUMP_EQUAL: Final = 0x15
JUMP_GREATER_EQUAL: Final = 0x35
JUMP_SET: Final = 0x45
RETURN: Final = 0x06

# Offsets in struct seccomp_data; arguments are 64 bits, their low words come first on our (little-endian) machines.
NUMBER: Final = 0
ARCHITECTURE: Final = 4
ARGUMENTS: Final = 16

THREAD_FLAGS: Final = (0x003D0F00, 0x007D0F00)
"""Flags that the C library (glibc, musl) gives to clone for a thread: all it must share, and no namespace."""
FORK_FLAGS: Final = 0x00200000 | 0x01000000 | 17
"""Flags that the C library's fork() gives to clone: CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID, then SIGCHLD."""
MAP_SHARED: Final = 0x1
MAP_GROWSDOWN: Final = 0x100
MAP_HUGETLB: Final = 0x40000
PROT_EXEC: Final = 4
MSG_PEEK: Final = 0x2
MSG_DONTWAIT: Final = 0x40
MSG_WAITALL: Final = 0x100
MSG_NOSIGNAL: Final = 0x4000
MSG_CMSG_CLOEXEC: Final = 0x40000000
_SEND_FLAGS: Final = MSG_DONTWAIT | MSG_NOSIGNAL
_RECEIVE_FLAGS: Final = MSG_PEEK | MSG_DONTWAIT | MSG_WAITALL | MSG_CMSG_CLOEXEC
MESSAGE_FLAGS: Final = {"sendto": (3, _SEND_FLAGS), "recvfrom": (3, _RECEIVE_FLAGS), "recvmsg": (2, _RECEIVE_FLAGS)}
"""By call: which argument has its flags, and those that are let through. No MSG_OOB: with such a byte in a socket, poll
says that it is readable, and recv waits."""

ALLOWED: Final = (
    "read", "write", "readv", "writev", "close", "fstat", "lseek", "poll", "ppoll", "epoll_wait", "epoll_pwait",
    "epoll_ctl", "epoll_create1", "munmap", "brk", "mremap", "madvise",
    "futex", "sched_yield", "nanosleep", "clock_nanosleep", "clock_gettime", "getrandom", "gettid", "getpid",
    "getrusage", "setitimer", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "set_robust_list",
    "rseq", "restart_syscall", "exit", "exit_group",
)  # fmt: skip
"""Calls that a worker makes once it is locked."""

REFUSED: Final = (
    "open", "openat", "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "readlink",
    "readlinkat", "getdents64", "getcwd", "ioctl", "fcntl", "socket", "connect", "sendmsg", "getsockname", "unlink",
    "unlinkat", "kill", "tgkill", "prctl", "getppid", "sched_getaffinity", "uname", "sysinfo", "prlimit64",
    "dup", "pipe2",
)  # fmt: skip
"""Calls that library code may try in passing: EPERM, which Python turns into an exception."""


@dataclass(frozen=True, slots=True)
class Machine:
    """An instruction set: its audit number and its call numbers."""

    audit: int
    numbers: dict[str, int]
    foreign: int | None = None
    """Call numbers from here on belong to another ABI of the same processor."""


X86_64: Final = Machine(
    0xC000003E,
    {
        "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8,
        "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14,
        "rt_sigreturn": 15, "ioctl": 16, "readv": 19, "writev": 20, "access": 21, "sched_yield": 24, "mremap": 25,
        "madvise": 28, "dup": 32, "nanosleep": 35, "setitimer": 38, "getpid": 39, "socket": 41, "connect": 42,
        "sendto": 44, "recvfrom": 45, "sendmsg": 46, "recvmsg": 47, "getsockname": 51, "clone": 56, "exit": 60,
        "uname": 63, "kill": 62, "fcntl": 72, "getcwd": 79, "unlink": 87, "readlink": 89, "getrusage": 98,
        "sysinfo": 99, "getppid": 110, "sigaltstack": 131, "prctl": 157, "gettid": 186, "futex": 202,
        "sched_getaffinity": 204, "getdents64": 217, "restart_syscall": 219, "clock_gettime": 228,
        "clock_nanosleep": 230, "exit_group": 231, "epoll_wait": 232, "epoll_ctl": 233, "tgkill": 234,
        "openat": 257, "newfstatat": 262, "unlinkat": 263, "readlinkat": 267, "faccessat": 269, "ppoll": 271,
        "set_robust_list": 273, "epoll_pwait": 281, "epoll_create1": 291, "pipe2": 293, "prlimit64": 302,
        "getrandom": 318, "statx": 332, "rseq": 334, "clone3": 435, "faccessat2": 439,
    },
    foreign=0x40000000,
)  # fmt: skip

AARCH64: Final = Machine(
    0xC00000B7,
    {
        "getcwd": 17, "epoll_create1": 20, "epoll_ctl": 21, "epoll_pwait": 22, "dup": 23, "fcntl": 25, "ioctl": 29,
        "unlinkat": 35, "faccessat": 48, "openat": 56, "close": 57, "pipe2": 59, "getdents64": 61, "lseek": 62,
        "read": 63, "write": 64, "readv": 65, "writev": 66, "ppoll": 73, "readlinkat": 78, "newfstatat": 79,
        "fstat": 80, "exit": 93, "exit_group": 94, "futex": 98, "set_robust_list": 99, "nanosleep": 101,
        "setitimer": 103, "clock_gettime": 113, "clock_nanosleep": 115, "sched_getaffinity": 123,
        "sched_yield": 124, "restart_syscall": 128, "kill": 129, "tgkill": 131, "sigaltstack": 132,
        "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "uname": 160, "getrusage": 165,
        "prctl": 167, "getpid": 172, "getppid": 173, "gettid": 178, "sysinfo": 179, "socket": 198, "connect": 203,
        "getsockname": 204, "sendto": 206, "recvfrom": 207, "sendmsg": 211, "recvmsg": 212, "brk": 214,
        "munmap": 215, "mremap": 216, "clone": 220, "mmap": 222, "mprotect": 226, "madvise": 233, "prlimit64": 261,
        "getrandom": 278, "statx": 291, "rseq": 293, "clone3": 435, "faccessat2": 439,
    },
)  # fmt: skip

MACHINES: Final = {"x86_64": X86_64, "aarch64": AARCH64}


def fork_filter(machine: Machine) -> bytes:
    """Asks the trusted side about each fork. Everything else is up to `worker_filter`, which is there beside it."""
    program = [
        _load(NUMBER),
        _jump(JUMP_EQUAL, machine.numbers["clone"], 0, 3),
        _load(ARGUMENTS),
        _jump(JUMP_EQUAL, FORK_FLAGS, 0, 1),
        _return(USER_NOTIFY),
        _return(ALLOW),
    ]
    return b"".join(program)


def worker_filter(machine: Machine, *, compiles: bool = False, threads: bool = False, judged: bool = False) -> bytes:
    """The whole filter: check the architecture, allow what is needed, refuse politely, kill for anything else.

    `compiles`: for a process whose engine makes machine code; it may also lower its own limits. `threads`: for one that
    starts threads. `judged`: the fork filter is there too, so that its answer decides.
    """
    numbers = machine.numbers
    program = [_load(ARCHITECTURE), _jump(JUMP_EQUAL, machine.audit, 1, 0), _return(KILL_PROCESS), _load(NUMBER)]
    if machine.foreign is not None:
        program += [_jump(JUMP_GREATER_EQUAL, machine.foreign, 0, 1), _return(KILL_PROCESS)]
    for name in ALLOWED:
        if name in numbers:
            program += [_jump(JUMP_EQUAL, numbers[name], 0, 1), _return(ALLOW)]
    for name, (argument, flags) in MESSAGE_FLAGS.items():
        program += _check(numbers[name], argument, [_jump(JUMP_SET, ~flags & 0xFFFFFFFF, 1, 0), _return(ALLOW)], EPERM)
    if compiles:
        # Of any other process than itself: refused. Nobody may raise a hard limit.
        program += _check(numbers["prlimit64"], 0, [_jump(JUMP_EQUAL, 0, 0, 1), _return(ALLOW)], EPERM)
    # clone3 keeps its flags in memory, where a filter can't look: without it the C library falls back to clone.
    program += [_jump(JUMP_EQUAL, numbers["clone3"], 0, 1), _return(ERRNO | ENOSYS)]
    allowed_clones = []
    for flags in (*(THREAD_FLAGS if threads else ()), *((FORK_FLAGS,) if judged else ())):
        allowed_clones += [_jump(JUMP_EQUAL, flags, 0, 1), _return(ALLOW)]
    program += _check(numbers["clone"], 0, allowed_clones, EPERM)
    # Shared anonymous memory, huge pages and mappings that grow by themselves escape RLIMIT_DATA.
    program += [
        _jump(JUMP_EQUAL, numbers["mmap"], 0, 4),
        _load(ARGUMENTS + 8 * 3),
        _jump(JUMP_SET, MAP_SHARED | MAP_GROWSDOWN | MAP_HUGETLB, 0, 1),
        _return(ERRNO | EPERM),
        _load(NUMBER),
    ]
    for name in ("mmap", "mprotect"):
        if compiles:
            program += [_jump(JUMP_EQUAL, numbers[name], 0, 1), _return(ALLOW)]
        else:  # executable memory is how a bug becomes native code
            program += _check(numbers[name], 2, [_jump(JUMP_SET, PROT_EXEC, 1, 0), _return(ALLOW)], EACCES)
    for name in REFUSED:
        if name in numbers:
            program += [_jump(JUMP_EQUAL, numbers[name], 0, 1), _return(ERRNO | EPERM)]
    program.append(_return(KILL_PROCESS))
    return b"".join(program)


def _check(number: int, argument: int, allowing: list[bytes], errno: int) -> list[bytes]:
    """For one call: load an argument's low word, run what may allow it, and refuse it with an error otherwise."""
    load = _load(ARGUMENTS + 8 * argument)
    return [_jump(JUMP_EQUAL, number, 0, len(allowing) + 2), load, *allowing, _return(ERRNO | errno)]


def _load(offset: int) -> bytes:
    return struct.pack("<HBBI", LOAD, 0, 0, offset)


def _jump(code: int, operand: int, true: int, false: int) -> bytes:
    return struct.pack("<HBBI", code, true, false, operand)


def _return(verdict: int) -> bytes:
    return struct.pack("<HBBI", RETURN, 0, 0, verdict)
