"""The filters of native sandboxes, run through the interpreter of `tests/lockdown`: every call and argument check."""

from __future__ import annotations

import pytest

from belljar.abi.errno import EAFNOSUPPORT, ENOSYS, EPERM, EPROTONOSUPPORT
from belljar.lockdown.bpf import ALLOW, ERRNO, KILL_PROCESS, MACHINES, Machine
from belljar.native import filters
from belljar.native.filters import guest_filter, init_filter
from tests.lockdown.test_bpf import Instruction, decode, verdict

CHECKED = {"clone", "unshare", "ioctl", "personality", "socket"}
INSTRUCTIONS_MAX = 4096


@pytest.fixture(params=sorted(MACHINES))
def machine(request: pytest.FixtureRequest) -> Machine:
    return MACHINES[request.param]


def answers(program: list[Instruction], machine: Machine, name: str, *arguments: int) -> int:
    return verdict(program, machine.audit, machine.numbers[name], arguments)


@pytest.mark.parametrize("build", [guest_filter, init_filter])
def test_every_call_is_answered_as_listed(machine: Machine, build: object) -> None:
    program = decode(build(machine))  # type: ignore[operator]
    more = filters.MOUNTING if build is init_filter else frozenset()
    names = {number: name for name, number in machine.numbers.items()}
    for number in range(600):
        name = names.get(number, "")
        if name in CHECKED:
            continue
        if name in filters.ALLOWED | more:
            expected = ALLOW
        elif name in filters.KILLED:
            expected = KILL_PROCESS
        elif name in filters.REFUSED:
            expected = ERRNO | EPERM
        else:
            expected = ERRNO | ENOSYS
        assert verdict(program, machine.audit, number) == expected, (number, name)
    assert len(program) <= INSTRUCTIONS_MAX


def test_names_are_calls_and_in_one_list() -> None:
    known = set().union(*(machine.numbers for machine in MACHINES.values()))
    lists = [filters.ALLOWED, filters.REFUSED, filters.KILLED]
    assert set().union(*lists) <= known
    assert sum(map(len, lists)) == len(set().union(*lists))
    assert not CHECKED & set().union(*lists)
    assert filters.MOUNTING <= filters.REFUSED


def test_pid_1_is_refused_nothing_that_a_guest_may(machine: Machine) -> None:
    guest, init = decode(guest_filter(machine)), decode(init_filter(machine))
    samples = [(), (0x7E020000,), (0, 0x5412), (16, 3, 0), (2, 1, 6), (1, 1, 0), (0xFFFFFFFF,)]
    for number in range(600):
        for arguments in samples:
            if verdict(guest, machine.audit, number, arguments) == ALLOW:
                assert verdict(init, machine.audit, number, arguments) == ALLOW


def test_other_machines_are_killed(machine: Machine) -> None:
    program = decode(guest_filter(machine))
    other = next(each.audit for each in MACHINES.values() if each.audit != machine.audit)
    assert verdict(program, other, 0) == KILL_PROCESS
    assert verdict(program, 0x40000003, 20) == KILL_PROCESS
    if machine.foreign is not None:
        assert verdict(program, machine.audit, machine.foreign + 39) == KILL_PROCESS


@pytest.mark.parametrize("flag", [1 << bit for bit in range(32)])
def test_no_namespace_by_clone_or_unshare(machine: Machine, flag: int) -> None:
    program = decode(guest_filter(machine))
    makes_one = flag in (0x20000, *(1 << bit for bit in range(25, 31)))
    expected = ERRNO | EPERM if makes_one else ALLOW
    assert answers(program, machine, "clone", flag | 17) == expected
    assert answers(program, machine, "clone", flag | 17 | 0xFFFFFFFF << 32) == expected
    assert answers(program, machine, "unshare", flag) == (ERRNO | EPERM if makes_one or flag == 0x80 else ALLOW)


@pytest.mark.parametrize("high", [0, 1 << 32, 0xFFFFFFFF << 32])
def test_terminal_input_is_not_forged_whatever_the_upper_half_says(machine: Machine, high: int) -> None:
    program = decode(guest_filter(machine))
    for request in (filters.TIOCSTI, filters.TIOCLINUX):
        assert answers(program, machine, "ioctl", 0, high | request) == ERRNO | EPERM
    for request in (0x5401, 0x5413, 0x541B, 0x5411, 0x541D):
        assert answers(program, machine, "ioctl", 0, high | request) == ALLOW


def test_sockets_by_family_and_protocol(machine: Machine) -> None:
    program = decode(guest_filter(machine))
    for family in range(64):
        for protocol in range(300):
            if family in (2, 10):
                expected = ALLOW if protocol in filters.PROTOCOLS else ERRNO | EPROTONOSUPPORT
            elif family == 16:
                expected = ALLOW if protocol == 0 else ERRNO | EPROTONOSUPPORT
            else:
                expected = ALLOW if family == 1 else ERRNO | EAFNOSUPPORT
            assert answers(program, machine, "socket", family, 1, protocol) == expected, (family, protocol)


def test_personalities(machine: Machine) -> None:
    program = decode(guest_filter(machine))
    for value in (0, 8, 0x40000, 0xFFFFFFFF):
        assert answers(program, machine, "personality", value) == ALLOW
    for value in (0x0400000, 0x0100000, 0x440000, 1, 0x7FFFFFFF):
        assert answers(program, machine, "personality", value) == ERRNO | EPERM


def test_every_instruction_is_used(machine: Machine) -> None:
    for build in (guest_filter, init_filter):
        program = decode(build(machine))
        seen: set[int] = set()
        verdict(program, 0, 0, (), seen)
        if machine.foreign is not None:
            verdict(program, machine.audit, machine.foreign, (), seen)
        for number in range(600):
            verdict(program, machine.audit, number, (), seen)
        for flags in (0x10000000, 17):
            for name in ("clone", "unshare"):
                verdict(program, machine.audit, machine.numbers[name], (flags,), seen)
        for family in range(50):
            for protocol in (*filters.PROTOCOLS, 200):
                verdict(program, machine.audit, machine.numbers["socket"], (family, 1, protocol), seen)
        for value in (*filters.PERSONALITIES, 5):
            verdict(program, machine.audit, machine.numbers["personality"], (value,), seen)
        for request in (filters.TIOCSTI, filters.TIOCLINUX, 1):
            verdict(program, machine.audit, machine.numbers["ioctl"], (0, request), seen)
        assert seen == set(range(len(program)))
