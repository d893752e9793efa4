"""Limits: each gives its name, ends what it should, and leaves the sandbox usable."""

from __future__ import annotations

import errno

import pytest

from belljar import FileError, Limits, Sandbox
from tests.tiers.conftest import Make, Tier

MIB = 1 << 20


def test_wall_seconds(sb: Sandbox) -> None:
    result = sb.exec("sleep 60", limits=Limits(wall_seconds=0.3))
    assert (result.exit_code, result.limit, result.timed_out) == (137, "wall_seconds", False)
    assert result.stderr == "belljar: timed out after 0.3 s (limit wall_seconds) and was stopped\n"


def test_cpu_seconds(sb: Sandbox) -> None:
    result = sb.exec("while :; do :; done", limits=Limits(cpu_seconds=0.5), timeout=60)
    assert (result.exit_code, result.limit) == (137, "cpu_seconds")
    assert result.stderr == "belljar: used up 0.5 s of processor time (limit cpu_seconds) and was stopped\n"


def test_cpu_of_all_its_processes_counts(sb: Sandbox) -> None:
    loop = "while :; do :; done"
    result = sb.exec(f"({loop}) & ({loop}) & wait", limits=Limits(cpu_seconds=0.5), timeout=60)
    assert result.limit == "cpu_seconds"


def test_sleeping_is_no_processor_time(sb: Sandbox) -> None:
    for seconds in (0.5, 5):  # what its start takes is less, sooner or later
        result = sb.exec(f"sleep {seconds + 0.1}; echo done", limits=Limits(cpu_seconds=seconds))
        if result.limit is None:
            break
    assert result.stdout == "done\n"


def test_output_bytes_counts_both_streams(sb: Sandbox) -> None:
    command = "head -c 6000 /dev/zero; head -c 6000 /dev/zero >&2; sleep 0.2; echo more"
    assert sb.exec(command, limits=Limits(output_bytes=20_000)).limit is None
    result = sb.exec(command, limits=Limits(output_bytes=10_000))
    assert (result.limit, result.truncated) == ("output_bytes", True)


def test_output_that_goes_to_files_does_not_count(sb: Sandbox) -> None:
    result = sb.exec("head -c 100000 /dev/zero > f; wc -c < f", limits=Limits(output_bytes=1000))
    assert (result.stdout.strip(), result.limit) == ("100000", None)


def test_processes(sb: Sandbox, tier: Tier) -> None:
    result = sb.exec("for n in $(seq 60); do sleep 30 & done; wait", limits=Limits(processes=20), timeout=60)
    assert result.limit == tier.behaviour("limit processes", "processes")
    assert not result.ok
    assert sb.exec("echo usable").stdout == "usable\n"
    assert (
        sb.exec("for n in $(seq 15); do sleep 0.1 & done; wait; echo ok", limits=Limits(processes=20)).stdout == "ok\n"
    )


def test_a_fork_bomb(sb: Sandbox) -> None:
    result = sb.exec("bomb() { bomb | bomb & }; bomb; sleep 20", limits=Limits(processes=50), timeout=20)
    assert not result.ok or result.exit_code == 0
    assert sb.exec("echo usable", timeout=120).stdout == "usable\n"


def test_open_files(sb: Sandbox) -> None:
    script = 'for n in $(seq 3 200); do eval "exec $n</dev/null" || exit 9; done; echo all'
    assert sb.exec(script).stdout == "all\n"
    result = sb.exec(script, limits=Limits(open_files=100))
    assert "all" not in result.stdout
    assert (result.exit_code, result.limit) == (9, None)
    assert "descriptor" in result.stderr or "Too many open files" in result.stderr


def test_file_bytes(make: Make) -> None:
    sb = make(limits=Limits(file_bytes=16 * MIB))
    result = sb.exec("head -c 40000000 /dev/zero > big")
    assert result.exit_code != 0
    assert "No space left on device" in result.stderr
    assert result.limit is None
    assert sb.exec("rm big; echo small > small; cat small").stdout == "small\n"


def test_file_bytes_hold_for_the_owner_as_well(make: Make) -> None:
    sb = make(limits=Limits(file_bytes=16 * MIB))
    with pytest.raises(FileError) as raised:
        sb.files.write("big", bytes(40 * MIB))
    assert raised.value.errno == errno.ENOSPC


def test_number_of_files(make: Make) -> None:
    sb = make(limits=Limits(files=3000))
    result = sb.exec("mkdir d; cd d; for n in $(seq 4000); do : > $n || exit 9; done")
    assert (result.exit_code, result.limit) == (9, None)
    assert "No space left on device" in result.stderr
    assert sb.exec("rm -r d; touch f && echo ok").stdout == "ok\n"


def test_memory(make: Make, tier: Tier) -> None:
    """A program that needs more than there is fails; the sandbox, or a new one, goes on."""
    sb = make(limits=Limits(memory_bytes=256 * MIB))
    result = sb.exec(["python3", "-c", "x = [bytearray(1 << 20) for _ in range(2000)]; print('had it all')"])
    assert "had it all" not in result.stdout
    assert not result.ok
    assert sb.exec("echo usable").stdout == "usable\n"


UNITS = {
    "steps": ("while :; do :; done", Limits(steps=10_000)),
    "depth": ("f() { f; }; f", Limits(depth=50)),
    "expansion_bytes": ("x=xxxxxxxx; while :; do x=$x$x; done", Limits(expansion_bytes=100_000)),
}


@pytest.mark.parametrize("name", UNITS)
def test_units_of_the_virtual_kernel(sb: Sandbox, tier: Tier, name: str) -> None:
    """Other tiers run real programs: there the limits above end them."""
    command, limits = UNITS[name]
    counted = tier.behaviour("limits of the interpreter", True)
    result = sb.exec(command, limits=limits, timeout=60 if counted else 1)
    assert not result.ok
    if counted:
        assert result.limit == name
    else:
        assert result.limit in (None, "wall_seconds")


@pytest.mark.parametrize("name", ["wall_seconds", "cpu_seconds", "output_bytes", "processes", "file_bytes"])
def test_what_is_no_limit(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be positive"):
        Limits(**{name: 0})
    with pytest.raises(TypeError, match=f"{name} must be a number"):
        Limits(**{name: "1"})  # type: ignore[arg-type]


def test_two_commands_have_budgets_of_their_own(sb: Sandbox) -> None:
    loop = "for n in 1 2 3; do sleep 0.1; done; echo done"
    for _ in range(3):
        assert sb.exec(loop, limits=Limits(wall_seconds=30)).stdout == "done\n"
