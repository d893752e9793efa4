"""Frames that break the rules: the agent ends, or answers that it can't. It never crashes, hangs or grows."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest

from belljar.abi.wire import Answer, Call, Credit, Exited, Failure, Input, Ready, Renew, Reply, Resize, Signal, Start
from tests.agent.running import Agent, Talk, talk

GARBAGE = {
    "no bytes": b"\0\0\0\0",
    "too long": struct.pack("<I", (64 << 20) + 1),
    "longest length": b"\xff\xff\xff\xff",
    "no array": b"\x01\0\0\0\x00",
    "an invalid value": b"\x01\0\0\0\xc1",
    "an array that claims more": b"\x05\0\0\0\xdd\xff\xff\xff\xff",
    "a string that claims more": b"\x03\0\0\0\x91\xa9x",
    "a bin that claims more": b"\x06\0\0\0\x91\xc6\xff\xff\xff\xff",
    "no kind": b"\x01\0\0\0\x90",
    "extension types": b"\x04\0\0\0\x91\xd4\0\0",
}
VALUES: dict[str, list[Any]] = {
    "an unknown kind": ["nothing", 1],
    "a kind of the worker's": ["exited", 1, 0, 0, None, b"", b"", False, False],
    "a start without fields": ["start"],
    "a start of a string": ["start", "x"],
    "a start of other types": ["start", 1, {}, [], 5, 5, 5, 5, 5],
    "a size of one": ["start", 1, [b"true"], {}, None, None, False, True, {}, [1]],
    "limits that are a list": ["start", 1, [b"true"], {}, None, None, False, True, [1]],
    "an input without data": ["input", 1],
    "a credit of bytes": ["credit", 1, 1, b"x"],
    "a signal of nothing": ["signal"],
    "a call without arguments": ["call", 1, "stat"],
    "a call with descriptors that did not come": ["call", 1, "port", [80], 1],
    "a call with a map": ["call", 1, "stat", {}],
    "a boot of nothing": ["boot"],
    "a boot of other types": ["boot", 1, 2, 3, 4, 5, 6],
    "an answer of nothing": ["answer"],
    "numbers too large": ["signal", (1 << 64) - 1, 9, True],
}


def frame(value: Any) -> bytes:
    body = msgspec.msgpack.encode(value)
    return struct.pack("<I", len(body)) + body


@pytest.mark.parametrize("what", [*GARBAGE, *VALUES])
def test_what_makes_no_sense_ends_it(agent: Talk, what: str) -> None:
    assert isinstance(agent.hear(), Ready)
    agent.connection.sendall(GARBAGE[what] if what in GARBAGE else frame(VALUES[what]))
    assert agent.hear() is None


@pytest.mark.parametrize("cut", [1, 3, 4, 9, 30])
def test_a_frame_that_is_cut_off(program: Path, cut: int) -> None:
    made = Agent(program)
    Talk(made).hear()
    made.connection.sendall(frame(["start", 1, [b"true"], {}, None, None, False, True, {}])[:cut])
    made.kill()


def test_input_that_no_program_has_read_is_no_longer_held(agent: Talk) -> None:
    """In all more than the agent holds, which would have it take nothing more from its owner."""
    agent.hear()
    for number in range(1, 6):
        agent.say(Start(number, [b"true"], {}, None, bytes(60 << 20), False, False, {}))
        assert isinstance(agent.hear(), Exited)
    agent.say(Start(6, [b"true"], {}, None, None, False, False, {}))
    assert isinstance(agent.hear(), Exited)


def test_frames_in_pieces_of_one_byte(agent: Talk) -> None:
    agent.hear()
    for byte in frame(["start", 1, [b"echo", b"x"], {}, None, None, False, False, {}, None, False, 0, False]):
        agent.connection.send(bytes([byte]))
    assert isinstance(said := agent.hear(), Exited)
    assert said.stdout == b"x\n"


def test_news_of_what_is_not_there_is_passed_over(agent: Talk) -> None:
    agent.hear()
    agent.say(
        Input(7, b"x"), Input(7, b"", 3), Input(7, b"x", 99), Credit(7, 1, 5), Credit(7, -1, -5), Signal(7, 9, True),
        Resize(7, -1, 1 << 40), Renew(7, {"cpu_seconds": 1}), Answer(7, None), Answer(7, [[[]]], 5, b"m"),
        Call(1, "input", [7, b"x"]),
    )  # fmt: skip
    assert agent.hear() == Reply(1, False)


def test_odd_starts(agent: Talk) -> None:
    agent.hear()
    agent.say(Start(1, [], {}, None, b"", False, True, {}))
    assert isinstance(agent.hear(), Failure)
    agent.say(Start(2, [b"true"], {}, b"a\0b", b"", False, True, {}))
    assert isinstance(agent.hear(), Failure)
    agent.say(Start(3, [b"true"], {}, None, b"", False, True, {}, forks=1))
    assert isinstance(agent.hear(), Failure)
    agent.say(Start(4, [b""], {}, None, b"", False, False, {}))
    assert isinstance(said := agent.hear(), Exited)
    assert said.code in (126, 127)
    agent.say(
        Start(5, [b"cat"], {b"=": b"x", b"": b"", b"A=B": b"c"}, None, b"in", False, False, {"wall_seconds": 1e300})
    )
    assert isinstance(said := agent.hear(), Exited)
    assert said.stdout == b"in"
    agent.say(Start(6, [b"sleep", b"9"], {}, None, b"", False, False, {"wall_seconds": -1, "processes": -1}))
    assert isinstance(said := agent.hear(), Exited)
    assert said.limit == "wall_seconds"
    agent.say(Start(7, [b"x" * 30_000], {}, None, b"", False, False, {}))
    assert isinstance(said := agent.hear(), Exited)
    assert said.code == 127


def test_an_id_in_use_ends_it(agent: Talk) -> None:
    agent.hear()
    agent.say(*[Start(1, [b"sleep", b"9"], {}, None, b"", False, False, {})] * 2)
    assert agent.hear() is None


def test_an_owner_that_reads_nothing_holds_no_memory(program: Path) -> None:
    """Output waits in the pipes of its programs, and answers in the processes that made them."""
    with talk(program) as agent:
        agent.hear()
        for number in range(1, 9):
            agent.say(Start(number, [b"yes"], {}, None, None, False, True, {}))
        agent.say(*[Call(100 + number, "read", [b"/proc/self/exe", 0, 8 << 20]) for number in range(200)])
        agent.say(Start(99, [b"sleep", b"1"], {}, None, None, False, True, {}))
        import time

        time.sleep(1)
        [status] = Path(f"/proc/{agent.pid}/status").read_text().split("VmRSS:")[1:]
        assert int(status.split()[0]) < 64 << 10
