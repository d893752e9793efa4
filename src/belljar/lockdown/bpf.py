"""The system-call filter of a worker, as classic BPF: an allow-list, built here and interpreted by the kernel.

Pure: builds bytes, touches nothing. `tests/lockdown/test_bpf.py` runs every path of it through a small interpreter.
"""

from __future__ import annotations

import struct
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EACCES, ENOSYS, EPERM
from belljar.lockdown import call_numbers

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


X86_64: Final = Machine(0xC000003E, call_numbers.X86_64, foreign=0x40000000)
AARCH64: Final = Machine(0xC00000B7, call_numbers.AARCH64)
MACHINES: Final = {"x86_64": X86_64, "aarch64": AARCH64}


def fork_filter(machine: Machine) -> bytes:
    """Asks the trusted side about each fork. Everything else is up to `worker_filter`, which is there beside it."""
    program = [
        load(NUMBER),
        jump(JUMP_EQUAL, machine.numbers["clone"], 0, 3),
        load(ARGUMENTS),
        jump(JUMP_EQUAL, FORK_FLAGS, 0, 1),
        give(USER_NOTIFY),
        give(ALLOW),
    ]
    return b"".join(program)


def worker_filter(machine: Machine, *, compiles: bool = False, threads: bool = False, judged: bool = False) -> bytes:
    """The whole filter: check the architecture, allow what is needed, refuse politely, kill for anything else.

    `compiles`: for a process whose engine makes machine code; it may also lower its own limits. `threads`: for one that
    starts threads. `judged`: the fork filter is there too, so that its answer decides.
    """
    numbers = machine.numbers
    program = check_machine(machine)
    for name in ALLOWED:
        if name in numbers:
            program += [jump(JUMP_EQUAL, numbers[name], 0, 1), give(ALLOW)]
    for name, (argument, flags) in MESSAGE_FLAGS.items():
        program += check_argument(
            numbers[name], argument, [jump(JUMP_SET, ~flags & 0xFFFFFFFF, 1, 0), give(ALLOW)], EPERM
        )
    if compiles:
        # Of any other process than itself: refused. Nobody may raise a hard limit.
        program += check_argument(numbers["prlimit64"], 0, [jump(JUMP_EQUAL, 0, 0, 1), give(ALLOW)], EPERM)
    # clone3 keeps its flags in memory, where a filter can't look: without it the C library falls back to clone.
    program += [jump(JUMP_EQUAL, numbers["clone3"], 0, 1), give(ERRNO | ENOSYS)]
    allowed_clones = []
    for flags in (*(THREAD_FLAGS if threads else ()), *((FORK_FLAGS,) if judged else ())):
        allowed_clones += [jump(JUMP_EQUAL, flags, 0, 1), give(ALLOW)]
    program += check_argument(numbers["clone"], 0, allowed_clones, EPERM)
    # Shared anonymous memory, huge pages and mappings that grow by themselves escape RLIMIT_DATA.
    program += [
        jump(JUMP_EQUAL, numbers["mmap"], 0, 4),
        load(ARGUMENTS + 8 * 3),
        jump(JUMP_SET, MAP_SHARED | MAP_GROWSDOWN | MAP_HUGETLB, 0, 1),
        give(ERRNO | EPERM),
        load(NUMBER),
    ]
    for name in ("mmap", "mprotect"):
        if compiles:
            program += [jump(JUMP_EQUAL, numbers[name], 0, 1), give(ALLOW)]
        else:  # executable memory is how a bug becomes native code
            program += check_argument(numbers[name], 2, [jump(JUMP_SET, PROT_EXEC, 1, 0), give(ALLOW)], EACCES)
    for name in REFUSED:
        if name in numbers:
            program += [jump(JUMP_EQUAL, numbers[name], 0, 1), give(ERRNO | EPERM)]
    program.append(give(KILL_PROCESS))
    return b"".join(program)


def check_machine(machine: Machine) -> list[bytes]:
    """Begin a filter: kill for the calls of another machine or ABI, and load the call's number."""
    program = [load(ARCHITECTURE), jump(JUMP_EQUAL, machine.audit, 1, 0), give(KILL_PROCESS), load(NUMBER)]
    if machine.foreign is not None:
        program += [jump(JUMP_GREATER_EQUAL, machine.foreign, 0, 1), give(KILL_PROCESS)]
    return program


def check_argument(number: int, argument: int, allowing: list[bytes], errno: int) -> list[bytes]:
    """For one call: load an argument's low word, run what may allow it, and refuse it with an error otherwise."""
    loading = load(ARGUMENTS + 8 * argument)
    return [jump(JUMP_EQUAL, number, 0, len(allowing) + 2), loading, *allowing, give(ERRNO | errno)]


def load(offset: int) -> bytes:
    """Load 32 bits of struct seccomp_data."""
    return struct.pack("<HBBI", LOAD, 0, 0, offset)


def jump(code: int, operand: int, true: int, false: int) -> bytes:
    """Compare what was loaded; skip so many instructions."""
    return struct.pack("<HBBI", code, true, false, operand)


def give(verdict: int) -> bytes:
    """End with a verdict."""
    return struct.pack("<HBBI", RETURN, 0, 0, verdict)
