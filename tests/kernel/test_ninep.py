"""The kernel as a 9P client: of servers that lie, hang or die, each of which costs an EIO in time and nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable
from errno import EIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.abi.errors import SysError
from belljar.abi.flags import O_CREAT, O_RDONLY, O_RDWR
from belljar.kernel.fs import ninep_wire as wire
from belljar.kernel.fs.ninep import NinePServer
from belljar.kernel.fs.ninep_link import MESSAGE, NinePLink
from belljar.kernel.fs.ninep_wire import Frames, Malformed, Message, Qid
from belljar.kernel.kernel import Kernel
from belljar.kernel.machine import virtual_machine
from belljar.kernel.process import Process
from belljar.kernel.vfs.server import FileServer
from belljar.ninep.session import Session
from tests.adapter import new_session
from tests.contract.servers import Dir, File, Link, Tree, make_memory, view_of
from tests.kernel.rig import errno_of, new_kernel, result

TREE: Tree = {"f": File(b"contents\n"), "d": Dir(), "d/g": File(b"deep\n"), "l": Link("f")}
SECONDS = 5.0

Answer = bytes | None
Twist = Callable[[Message, bytes], Answer]


def at(name: str, twist: Callable[[Message, bytes], Answer]) -> Twist:
    """Answer honestly, but for requests of one kind."""
    return lambda message, honest: twist(message, honest) if message.name == name else honest


def instead(name: str, answer: str, *values: Any, tag: int | None = None) -> Twist:
    """Another answer than the honest one to requests of one kind."""
    return at(name, lambda message, _: wire.encode(answer, message.tag if tag is None else tag, *values))


def _attributes(**changed: int) -> tuple[Any, ...]:
    values = {"valid": 0x7FF, "mode": 0o100644, "path": 77, "kind": 0, "size": 3, "mtime": 1}
    values |= changed
    qid = Qid(values["kind"], 0, values["path"])
    return (values["valid"], qid, values["mode"], 0, 0, 1, 0, values["size"], 4096, 1, 0, 0, values["mtime"], *[0] * 7)


def _entries(*names: bytes, step: int = 1) -> bytes:
    return b"".join(wire.pack_entry(Qid(0, 0, n), n * step, 8, name) for n, name in enumerate(names, 1))


def _raw(data: bytes) -> Twist:
    return lambda _message, _honest: data


def _garbled(seed: int) -> Twist:
    def twist(_message: Message, honest: bytes) -> bytes:
        rng = random.Random(seed * 1000 + len(honest))
        data = bytearray(honest)
        for _ in range(3):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data)

    return twist


HOSTILE: dict[str, Twist] = {
    "never answers anything": lambda _m, _h: None,
    "never answers reads": at("Tread", lambda _m, _h: None),
    "never answers walks": at("Twalk", lambda _m, _h: None),
    "never answers listings": at("Treaddir", lambda _m, _h: None),
    "another version": instead("Tversion", "Rversion", MESSAGE, "9P2000"),
    "a version of unknown": instead("Tversion", "Rversion", MESSAGE, "unknown"),
    "larger messages than were offered": instead("Tversion", "Rversion", MESSAGE * 4, wire.VERSION),
    "messages of no bytes": instead("Tversion", "Rversion", 0, wire.VERSION),
    "a tag that was not asked": instead("Twalk", "Rwalk", [Qid(0, 0, 1)], tag=4242),
    "the version's tag": instead("Twalk", "Rwalk", [Qid(0, 0, 1)], tag=wire.NOTAG),
    "the answer to something else": instead("Twalk", "Rattach", Qid(0, 0, 1)),
    "a request instead of an answer": instead("Tread", "Tread", 1, 0, 10),
    "two answers": at("Tgetattr", lambda _m, honest: honest * 2),
    "an answer of no known type": at("Tread", lambda m, _: wire.HEADER.pack(7, 250, m.tag)),
    "a size of nothing": at("Tread", lambda m, _: wire.HEADER.pack(0, 117, m.tag)),
    "a size of four gigabytes": at("Tread", lambda m, _: wire.HEADER.pack(0xFFFFFFFF, 117, m.tag)),
    "a size that is too small": at("Twalk", lambda m, h: wire.HEADER.pack(len(h) - 3, 111, m.tag) + h[7:]),
    "a message that is cut off": at("Tgetattr", lambda _m, honest: honest[:-3]),
    "a message with more behind it": at(
        "Tgetattr", lambda m, h: wire.HEADER.pack(len(h) + 3, 25, m.tag) + h[7:] + b"xxx"
    ),
    "data longer than the message": at(
        "Tread", lambda m, _: wire.HEADER.pack(11, 117, m.tag) + (1000).to_bytes(4, "little")
    ),
    "more data than was asked for": at("Tread", lambda m, _: wire.encode("Rread", m.tag, b"x" * 60_000)),
    "bytes that are nothing": _raw(b"\xff" * 64),
    "half a header for ever": _raw(b"\x20"),
    "walks further than was asked": instead("Twalk", "Rwalk", [Qid(0, 0, 1)] * 5),
    "walks nowhere": instead("Twalk", "Rwalk", []),
    "walks with a hundred qids": at(
        "Twalk", lambda m, _: wire.HEADER.pack(9 + 1300, 111, m.tag) + b"\x64\0" + bytes(1300)
    ),
    "another file's attributes": instead("Tgetattr", "Rgetattr", *_attributes()),
    "a file of no kind": instead("Tgetattr", "Rgetattr", *_attributes(mode=0o644)),
    "a directory that is a file": instead("Tgetattr", "Rgetattr", *_attributes(mode=0o040755, path=1)),
    "a size past all files": instead("Tgetattr", "Rgetattr", *_attributes(size=1 << 63)),
    "a time past all times": instead("Tgetattr", "Rgetattr", *_attributes(mtime=(1 << 64) - 1)),
    "attributes that are not valid": instead("Tgetattr", "Rgetattr", *_attributes(valid=0)),
    "an endless listing": at("Treaddir", lambda m, _: wire.encode("Rreaddir", m.tag, _entries(b"same"))),
    "an endless listing of new names": at(
        "Treaddir",
        lambda m, _: wire.encode(
            "Rreaddir", m.tag, wire.pack_entry(Qid(0, 0, 1), m.values[1] + 1, 8, b"n%d" % m.values[1])
        ),
    ),
    "a listing that stands still": at("Treaddir", lambda m, _: wire.encode("Rreaddir", m.tag, _entries(b"x", step=0))),
    "names with slashes": at("Treaddir", lambda m, _: wire.encode("Rreaddir", m.tag, _entries(b"a/../../etc"))),
    "names with zeros": at("Treaddir", lambda m, _: wire.encode("Rreaddir", m.tag, _entries(b"a\0b"))),
    "no names": at("Treaddir", lambda m, _: wire.encode("Rreaddir", m.tag, _entries(b""))),
    "names that are too long": at("Treaddir", lambda m, _: wire.encode("Rreaddir", m.tag, _entries(b"x" * 300))),
    "entries that are cut off": at("Treaddir", lambda m, _: wire.encode("Rreaddir", m.tag, _entries(b"abc")[:-1])),
    "a link to nowhere": instead("Treadlink", "Rreadlink", ""),
    "a link of 60,000 bytes": instead("Treadlink", "Rreadlink", "x" * 60_000),
    "an error of no number": instead("Tread", "Rlerror", 0),
    "an error past all numbers": instead("Tread", "Rlerror", 1 << 31),
    "a root that is a file": instead("Tattach", "Rattach", Qid(0, 0, 1)),
    **{f"garbled answers {seed}": _garbled(seed) for seed in range(8)},
}


def connect(kernel: Kernel, twist: Twist | None, server: FileServer | None = None) -> NinePLink:
    """A connection to a program that answers, honestly but for a twist."""
    honest = Session(server or make_memory(TREE, None))  # type: ignore[arg-type]
    requests, ask = kernel.open_pipe(kernel.init)
    answers, answer = kernel.open_pipe(kernel.init)
    reader, writer, frames = requests.retain(), answer.retain(), Frames()

    def run() -> None:
        while data := reader.read(1 << 16):
            for frame in frames.feed(data):
                said: Answer = b"".join(honest.receive(frame))
                if twist is not None and said is not None:
                    said = twist(wire.decode(frame), said)
                if said:
                    try:
                        writer.write(said)
                    except SysError:
                        return

    kernel.hub.spawn(run)
    return NinePLink(kernel.hub, answers, ask, SECONDS)


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_server_costs_an_error_in_time(case: str) -> None:
    """Every call ends within its time limit, with what it says or an error; then the sandbox goes on."""

    def main(process: Process) -> list[int]:
        clock = process.kernel.hub.clock
        errors: list[int] = []

        def attempt(work: Callable[[], object]) -> None:
            began = clock.monotonic()
            try:
                work()
            except SysError as error:
                errors.append(error.errno)
            assert clock.monotonic() - began < 3 * SECONDS

        link = connect(process.kernel, HOSTILE[case])
        made: list[NinePServer] = []
        attempt(lambda: made.append(NinePServer(link.call, MESSAGE)))
        if not made:
            return errors
        view = view_of(made[0])
        for _ in range(2):
            attempt(lambda: view.stat("/f"))
            attempt(lambda: view.readdir("/d"))
            attempt(lambda: view.readdir("/"))
            attempt(lambda: view.open("/f", O_RDONLY).retain().read(100))
            attempt(lambda: view.stat("/d/g"))
            attempt(lambda: view.stat("/l"))
            attempt(lambda: view.chdir("/d"))
            attempt(view.getcwd)
        assert clock.monotonic() < 10 * SECONDS, "a server that is late is not asked again and again"
        process.write_file("/tmp/alive", b"x")
        return errors

    errors = result(new_kernel(), main)
    if not case.startswith("garbled"):
        assert EIO in errors


def test_there_are_enough_cases() -> None:
    assert len(HOSTILE) >= 40


def test_a_server_that_dies_fails_all_that_wait() -> None:
    def main(process: Process) -> None:
        kernel = process.kernel
        requests, ask = kernel.open_pipe(kernel.init)
        answers, answer = kernel.open_pipe(kernel.init)
        reader, writer = requests.retain(), answer.retain()
        link = NinePLink(kernel.hub, answers, ask, SECONDS)
        failed: list[int] = []
        for _ in range(5):
            process.add_fiber(lambda: failed.append(errno_of(link.call, "Tstatfs", 1)))
        process.sleep(1)
        assert failed == []
        reader.release()
        writer.release()
        process.sleep(0.1)
        assert failed == [EIO] * 5
        assert "gone" in link.dead

    result(new_kernel(), main)


def test_a_late_answer_brings_the_server_back() -> None:
    def main(process: Process) -> None:
        kernel, slow = process.kernel, {"seconds": 0.0}

        def twist(message: Message, honest: bytes) -> bytes:
            kernel.hub.sleep(slow["seconds"])
            return honest

        link = connect(kernel, twist)
        view = view_of(NinePServer(link.call, MESSAGE))
        assert view.stat("/f").size == 9
        slow["seconds"] = 8.0
        began = kernel.hub.clock.monotonic()
        assert errno_of(view.stat, "/f") == EIO
        for _ in range(10):
            assert errno_of(view.stat, "/f") == EIO
        assert kernel.hub.clock.monotonic() - began < SECONDS + 0.1, "only the first of them waits"
        slow["seconds"] = 0.0
        process.sleep(10)
        assert view.stat("/f").size == 9

    result(new_kernel(), main)


def test_a_killed_reader_does_not_confuse_the_next() -> None:
    def main(process: Process) -> None:
        kernel = process.kernel

        def wait(_message: Message, honest: bytes) -> bytes:
            kernel.hub.sleep(1)
            return honest

        link = connect(kernel, wait)
        view = view_of(NinePServer(link.call, MESSAGE))
        child = process.fork(lambda me: int(view.stat("/d/g").size))
        process.sleep(0.5)
        child.deliver(9)
        process.wait_for(child)
        assert view.stat("/f").size == 9

    result(new_kernel(), main)


def test_fids_of_files_that_are_gone_are_given_back() -> None:
    def main(process: Process) -> None:
        live: set[int] = set()

        def twist(message: Message, honest: bytes) -> bytes:
            if message.name in ("Twalk", "Tattach") and honest[4] in (111, 105):
                live.add(message.values[1 if message.name == "Twalk" else 0])
            if message.name == "Tclunk":
                live.discard(message.values[0])
            return honest

        view = view_of(NinePServer(connect(process.kernel, twist).call, MESSAGE))
        for _ in range(200):
            view.open("/d/g", O_RDONLY).retain().release()
            view.readdir("/d")
        assert len(live) < 10

    result(new_kernel(), main)


# Posting.


def serve_by_name(process: Process) -> int:
    """A program that serves by its name in /mnt/srv."""
    fd = process.open("/mnt/srv/t", O_RDWR | O_CREAT)
    process.write(fd, b"9p")
    return serve_on(process, fd, fd)


def serve_by_numbers(process: Process) -> int:
    """A program that serves on its standard streams."""
    return serve_on(process, 0, 1)


def serve_on(process: Process, requests: int, answers: int) -> int:
    session = Session(make_memory(TREE, None))  # type: ignore[arg-type]
    while data := process.read(requests):
        process.write_all(answers, b"".join(session.receive(data)))
    return 0


USE = "cat /tmp/m/f /tmp/m/d/g; grep -rl deep /tmp/m; readlink /tmp/m/l; echo new >/tmp/m/n; cat /tmp/m/n"
USED = "contents\ndeep\n/tmp/m/d/g\nf\nnew\n"


FIFOS = "mkfifo /tmp/q /tmp/a; by-numbers </tmp/q >/tmp/a & exec 9>/tmp/q 8</tmp/a; echo 8 9 >/mnt/srv/t"


@pytest.mark.parametrize("post", ["by-name & sleep 0.1", FIFOS], ids=["by name", "by numbers"])
def test_a_program_posts_itself_and_others_mount_it(post: str) -> None:
    session = new_session(machine=virtual_machine())
    session.add_program("by-name", serve_by_name)
    session.add_program("by-numbers", serve_by_numbers)
    session.kernel.outer_programs.clear()
    done = session.exec(f"{post}; mkdir /tmp/m; sudo bash -c 'mount /mnt/srv/t /tmp/m; {USE}'")
    assert (done.stdout.decode(), done.stderr.decode()) == (USED, "")
    done = session.exec("cat /tmp/m/f; sudo mount --system -o timeout=2 /mnt/srv/t /tmp/m; mount --system a b")
    assert (done.stdout, done.stderr.count(b"\n")) == (b"", 2)
    done = session.exec("cat /tmp/m/f; pkill by-n; sleep 0.1; cat /tmp/m/f; echo alive")
    assert done.stdout == b"contents\nalive\n"
    assert b"Input/output error" in done.stderr


def test_what_can_not_be_posted() -> None:
    session = new_session(machine=virtual_machine())
    for words, error in (
        ("5", "Not a directory"), ("99", "Bad file descriptor"), ("x", "Invalid argument"),
        ("1 2 3", "Invalid argument"), ("6 6", "Bad file descriptor"), ("7 7", "Bad file descriptor"),
    ):  # fmt: skip
        done = session.exec(f"exec 5</etc/passwd 6< <(sleep 9) 7> >(sleep 9); echo {words} >/mnt/srv/x")
        assert error in done.stderr.decode(), words
    done = session.exec("exec 6< <(sleep 9) 7> >(sleep 9); echo 6 7 >/mnt/srv/y; echo 6 7 >/mnt/srv/y; mkdir m")
    assert b"Device or resource busy" in done.stderr
    done = session.exec("time -p mount -o timeout=3 /mnt/srv/y m; mount -o timeout=x /mnt/srv/y m")
    assert b"its server" in done.stderr
    assert b"it must be a number of seconds" in done.stderr
    assert b"nothing is posted there" in session.exec("mount /mnt/srv/x m").stderr


# The messages.


def test_messages_round_trip() -> None:
    samples: dict[str, Any] = {
        "b": 7, "h": 300, "i": 1 << 30, "q": 1 << 60, "s": "näme\udcff", "d": b"\0data", "Q": Qid(128, 1, 2),
        "S": ["a", "b"], "X": [Qid(0, 0, 1)],
    }  # fmt: skip
    for name, (_, fields) in wire._FIELDS.items():
        values = tuple(samples[letter] for letter in fields)
        assert wire.decode(wire.encode(name, 9, *values)) == Message(name, 9, values)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_malformed(data: bytes) -> None:
    for frame in (data, wire.HEADER.pack(len(data) + 7, data[0] if data else 0, 1) + data):
        try:
            wire.decode(frame)
        except Malformed:
            continue


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_any_bytes_to_our_server_are_answered_or_refused(pieces: list[bytes]) -> None:
    session = Session(make_memory(TREE, None))  # type: ignore[arg-type]
    list(session.receive(wire.encode("Tversion", wire.NOTAG, 8192, wire.VERSION)))
    list(session.receive(wire.encode("Tattach", 1, 1, wire.NOFID, "me", "", 0)))
    for number, piece in enumerate(pieces):
        kinds = [kind for name, (kind, _) in wire._FIELDS.items() if name[0] == "T"]
        frame = wire.HEADER.pack(len(piece) + 7, kinds[(number + len(piece)) % len(kinds)], 3) + piece
        try:
            wire.decode(b"".join(session.receive(frame)))
        except Malformed:
            continue


def test_small_requests_with_large_answers_are_answered_one_by_one() -> None:
    """A client that asks for much and reads nothing costs one answer, not all of them."""
    server = make_memory({"big": File(bytes(1 << 20))}, None)  # type: ignore[arg-type]
    session = Session(server)
    for name, *values in (
        ("Tversion", 1 << 18, wire.VERSION),
        ("Tattach", 1, wire.NOFID, "me", "", 0),
        ("Twalk", 1, 2, ["big"]),
        ("Tlopen", 2, 0),
    ):
        (answer,) = session.receive(wire.encode(str(name), 1, *values))
        assert wire.decode(answer).name == "R" + str(name)[1:]
    asked = b"".join(wire.encode("Tread", tag, 2, 0, 1 << 18) for tag in range(10_000))
    answers = session.receive(asked)
    assert len(next(answers)) > 260_000
    assert wire.decode(next(answers)).tag == 1


def test_directories_that_are_being_read_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belljar.ninep.session._LISTED_MAX", 25)
    session = Session(make_memory({f"f{n}": File(b"") for n in range(10)}, None))  # type: ignore[arg-type]

    def ask(name: str, *values: Any) -> Message:
        (answer,) = session.receive(wire.encode(name, 1, *values))
        return wire.decode(answer)

    ask("Tversion", 8192, wire.VERSION)
    ask("Tattach", 1, wire.NOFID, "me", "", 0)
    for fid in (2, 3, 4):
        ask("Twalk", 1, fid, [])
        ask("Tlopen", fid, 0)
        said = [ask("Treaddir", fid, 0, 4000).name for _ in range(3)]
        assert set(said) == ({"Rreaddir"} if fid < 4 else {"Rlerror"})
    ask("Tclunk", 2)
    assert ask("Treaddir", 4, 0, 4000).name == "Rreaddir", "what is closed makes room"
