"""The system-call filter, run through a small interpreter: every call on the lists, and every argument check."""

from __future__ import annotations

import struct
from errno import EACCES, ENOSYS, EPERM

import pytest

from belljar.lockdown import bpf
from belljar.lockdown.bpf import (
    ALLOW,
    ERRNO,
    FORK_FLAGS,
    KILL_PROCESS,
    MACHINES,
    USER_NOTIFY,
    Machine,
    fork_filter,
    worker_filter,
)

Instruction = tuple[int, int, int, int]


def decode(program: bytes) -> list[Instruction]:
    return [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]


def verdict(
    program: list[Instruction], audit: int, number: int, arguments: tuple[int, ...] = (), seen: set[int] | None = None
) -> int:
    """What the kernel would answer. Fails on anything a valid program does not do."""
    data = struct.pack("<IIQ6Q", number, audit, 0, *arguments, *([0] * (6 - len(arguments))))
    register, at = 0, 0
    while True:
        code, true, false, operand = program[at]
        if seen is not None:
            seen.add(at)
        at += 1
        if code == bpf.LOAD:
            (register,) = struct.unpack_from("<I", data, operand)
        elif code == bpf.RETURN:
            return operand
        elif code == bpf.JUMP_EQUAL:
            at += true if register == operand else false
        elif code == bpf.JUMP_GREATER_EQUAL:
            at += true if register >= operand else false
        elif code == bpf.JUMP_SET:
            at += true if register & operand else false
        else:
            pytest.fail(f"unknown instruction {code:#x}")


@pytest.fixture(params=sorted(MACHINES))
def machine(request: pytest.FixtureRequest) -> Machine:
    return MACHINES[request.param]


def test_allows_exactly_what_is_listed(machine: Machine) -> None:
    program = decode(worker_filter(machine))
    names = {number: name for name, number in machine.numbers.items()}
    for number in range(600):
        name = names.get(number, "")
        got = verdict(program, machine.audit, number)
        if name in bpf.ALLOWED or name in bpf.MESSAGE_FLAGS or name in ("mmap", "mprotect"):
            assert got == ALLOW, name
        elif name in bpf.REFUSED or name == "clone":
            assert got == ERRNO | EPERM, name
        elif name == "clone3":
            assert got == ERRNO | ENOSYS
        else:
            assert got == KILL_PROCESS, (number, name)


def test_another_architecture_is_killed(machine: Machine) -> None:
    program = decode(worker_filter(machine))
    other = next(m.audit for m in MACHINES.values() if m.audit != machine.audit)
    assert verdict(program, other, machine.numbers["read"]) == KILL_PROCESS
    assert verdict(program, 0x40000003, machine.numbers["read"]) == KILL_PROCESS


def test_x32_calls_are_killed() -> None:
    program = decode(worker_filter(bpf.X86_64))
    assert verdict(program, bpf.X86_64.audit, 0x40000000 + 39) == KILL_PROCESS


@pytest.mark.parametrize(
    ("call", "arguments", "answer"),
    [
        ("clone", (bpf.THREAD_FLAGS[0],), ERRNO | EPERM),
        ("clone", (17,), ERRNO | EPERM),
        ("sendto", (3, 0, 0, bpf.MSG_NOSIGNAL | bpf.MSG_DONTWAIT), ALLOW),
        ("sendto", (3, 0, 0, 1), ERRNO | EPERM),
        ("sendto", (3, 0, 0, 0x4000000), ERRNO | EPERM),
        ("recvfrom", (3, 0, 0, bpf.MSG_PEEK), ALLOW),
        ("recvfrom", (3, 0, 0, 1), ERRNO | EPERM),
        ("recvmsg", (3, 0, bpf.MSG_CMSG_CLOEXEC), ALLOW),
        ("recvmsg", (3, 0, 1), ERRNO | EPERM),
        ("mmap", (0, 4096, 3, 0x122), ERRNO | EPERM),
        ("mmap", (0, 4096, 3, 0x40022), ERRNO | EPERM),
        ("mmap", (0, 4096, 3, 0x22), ALLOW),
        ("mmap", (0, 4096, 3, 0x21), ERRNO | EPERM),
        ("mmap", (0, 4096, 7, 0x22), ERRNO | EACCES),
        ("mprotect", (0, 4096, 3), ALLOW),
        ("mprotect", (0, 4096, 5), ERRNO | EACCES),
    ],
)
def test_arguments_are_checked(machine: Machine, call: str, arguments: tuple[int, ...], answer: int) -> None:
    program = decode(worker_filter(machine))
    assert verdict(program, machine.audit, machine.numbers[call], arguments) == answer


def test_a_fork_is_let_through_only_where_somebody_is_asked(machine: Machine) -> None:
    clone, asks = machine.numbers["clone"], decode(fork_filter(machine))
    judged, alone = decode(worker_filter(machine, judged=True)), decode(worker_filter(machine))
    flags = [FORK_FLAGS, 17, FORK_FLAGS | 0x100, FORK_FLAGS & ~0x01000000, FORK_FLAGS | 0x4000, FORK_FLAGS | 0x10000000]
    for given in flags:
        is_fork = given == FORK_FLAGS
        assert verdict(asks, machine.audit, clone, (given,)) == (USER_NOTIFY if is_fork else ALLOW)
        assert verdict(judged, machine.audit, clone, (given,)) == (ALLOW if is_fork else ERRNO | EPERM)
        assert verdict(alone, machine.audit, clone, (given,)) == ERRNO | EPERM
    for number in range(600):
        if number != clone:
            assert verdict(asks, machine.audit, number, (FORK_FLAGS,)) == ALLOW
            assert verdict(judged, machine.audit, number) == verdict(alone, machine.audit, number)


def test_no_instruction_is_dead(machine: Machine) -> None:
    program = decode(worker_filter(machine))
    seen: set[int] = set()
    calls = [(number, ()) for number in range(600)]
    extra = [
        *((machine.numbers[call], (0, 0, 1, 1)) for call in bpf.MESSAGE_FLAGS),
        (machine.numbers["mmap"], (0, 1, 7, 2)),
        (machine.numbers["mmap"], (0, 1, 3, 1)),
        (machine.numbers["mprotect"], (0, 1, 4)),
    ]
    for number, arguments in [*calls, *extra]:
        verdict(program, machine.audit, number, arguments, seen)
    verdict(program, 0, 0, (), seen)
    if machine.foreign is not None:
        verdict(program, machine.audit, machine.foreign, (), seen)
    assert seen == set(range(len(program)))


def test_a_compiling_process_may_map_code_and_lower_its_own_limits_only(machine: Machine) -> None:
    program = decode(worker_filter(machine, compiles=True))

    def ask(call: str, *arguments: int) -> int:
        return verdict(program, machine.audit, machine.numbers[call], arguments)

    assert ask("mprotect", 0, 0, bpf.PROT_EXEC) == ALLOW
    assert ask("mmap", 0, 0, bpf.PROT_EXEC, 2) == ALLOW
    assert ask("mmap", 0, 0, bpf.PROT_EXEC, bpf.MAP_SHARED) == ERRNO | EPERM
    assert ask("prlimit64", 0) == ALLOW
    assert ask("prlimit64", 1) == ERRNO | EPERM
    assert ask("clone", 17) == ERRNO | EPERM
    assert ask("openat") == ask("socket") == ask("kill") == ERRNO | EPERM


def test_threads_are_started_as_the_c_library_does_or_not_at_all(machine: Machine) -> None:
    clone = machine.numbers["clone"]
    with_threads, without = decode(worker_filter(machine, threads=True)), decode(worker_filter(machine))
    for flags in bpf.THREAD_FLAGS:
        assert verdict(with_threads, machine.audit, clone, (flags,)) == ALLOW
        assert verdict(without, machine.audit, clone, (flags,)) == ERRNO | EPERM
        for namespace in (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
            assert verdict(with_threads, machine.audit, clone, (flags | namespace,)) == ERRNO | EPERM
    for flags in (17, 0x10000, 0x100, FORK_FLAGS):
        assert verdict(with_threads, machine.audit, clone, (flags,)) == ERRNO | EPERM


@pytest.mark.parametrize("compiles", [False, True])
@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("judged", [False, True])
def test_no_filter_lets_a_process_name_another_or_pass_descriptors(
    machine: Machine, compiles: bool, threads: bool, judged: bool
) -> None:
    program = decode(worker_filter(machine, compiles=compiles, threads=threads, judged=judged))
    same_everywhere = {"pidfd_open": 434, "pidfd_getfd": 438, "pidfd_send_signal": 424}
    for number in same_everywhere.values():
        assert verdict(program, machine.audit, number) == KILL_PROCESS
    for call in ("sendmsg", "kill", "tgkill", "prctl", "socket"):
        assert verdict(program, machine.audit, machine.numbers[call]) == ERRNO | EPERM
