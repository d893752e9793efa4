"""A worker or interpreter that is no longer ours: what it can make its owner hold, do and wait for."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from belljar import AsyncSandbox, Limits, Mount, Network, Sandbox, SandboxClosed, SandboxError, ToolError
from belljar.abi import values
from belljar.abi.errno import EAGAIN, ENOMEM
from belljar.abi.limits import RunLimits
from belljar.abi.wire import Answer, Ask, Exited, Incident, Output, Reply, Started, WireError, encode, host_frames
from belljar.api import asks, js_link_host
from belljar.api.await_host import Threads
from belljar.api.core import FRAMES_PER_TURN, INCIDENTS_MAX, Conversation
from belljar.api.dialogue import PYTHON, Dialogue
from belljar.api.engines_host import ENGINES_MAX, EngineBroker, Opening
from belljar.api.outgoing import OWED_MAX, UNTAKEN_MAX
from belljar.api.tools import load_json
from belljar.engines.wire.js import MESSAGE, frame
from belljar.owner.handle_host import WorkerHandle
from belljar.owner.supervisor_host import shared
from tests.escape.test_ipc import Impostor, exited, send_all

MB = 1 << 20


@pytest.fixture
def impostor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Impostor]:
    made = Impostor()
    monkeypatch.setattr(shared, "take", lambda _memory: made.handle)
    yield made
    made.close()


def peak(act: Callable[[], object]) -> int:
    """Bytes that it took at most."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def raw(body: bytes) -> bytes:
    return struct.pack("<I", len(body)) + body


# Waiting.


def test_an_out_of_band_byte_makes_no_call_wait(impostor: Impostor) -> None:
    with Sandbox() as sandbox:
        impostor.socket.send(b"x", socket.MSG_OOB)
        began = time.monotonic()
        with pytest.raises(SandboxError):
            sandbox.exec("true", timeout=0.3)
        assert time.monotonic() - began < 20


@pytest.mark.battery
def test_nor_awaited(impostor: Impostor) -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            impostor.socket.send(b"x", socket.MSG_OOB)
            began = time.monotonic()
            with pytest.raises(SandboxError):
                await sandbox.exec("true", timeout=0.3)
            assert time.monotonic() - began < 20

    asyncio.run(main())


class _Engine:
    """Stands in for a JavaScript process."""

    def __init__(self) -> None:
        self.connection, self.socket = socket.socketpair()

    def kill(self) -> None:
        self.connection.close()


@pytest.fixture
def engine() -> Iterator[_Engine]:
    made = _Engine()
    yield made
    made.kill()
    made.socket.close()


def run_on(engine: _Engine, said: bytes, flags: int = 0, seconds: float = 30) -> tuple[Any, js_link_host.JsLink]:
    link = js_link_host.JsLink(engine, MB, Threads())  # type: ignore[arg-type]
    limits = RunLimits(wall_ms=int(seconds * 1000))
    run, sent = link.dialogue.begin("1", "repl", "run.js", {"f": print}, {}, limits)
    sender = threading.Thread(
        target=lambda: engine.socket.send(said, flags) if flags else send_all(engine.socket, said)
    )
    sender.start()
    link.drive(run, sent, seconds)
    link.kill()
    sender.join(30)
    return run, link


def test_an_out_of_band_byte_of_a_javascript_process(engine: _Engine) -> None:
    began = time.monotonic()
    run, _ = run_on(engine, b"x", socket.MSG_OOB, seconds=0.3)
    assert time.monotonic() - began < 20
    assert run.error is not None


@pytest.mark.battery
def test_a_flood_of_questions_does_not_outlast_the_deadline(impostor: Impostor, tmp_path: Path) -> None:
    impostor.socket.sendall(encode(Reply(1, None)))
    with Sandbox(mounts={"/m": Mount.host(str(tmp_path))}) as sandbox:
        flood = b"".join(encode(Ask(number, b"0", "file", [{"op": "root"}])) for number in range(200_000))
        sender = threading.Thread(target=send_all, args=(impostor.socket, flood), daemon=True)
        sender.start()
        began = time.monotonic()
        with pytest.raises(SandboxError):
            sandbox.exec("true", timeout=0.3)
        assert time.monotonic() - began < 20


# Memory.

BOMBS = {
    "empty lists": b"\x90",
    "empty dicts": b"\x80",
    "lists in lists": b"\x91\x90",
    "numbers": b"\xcb" + bytes(8),
    "texts": b"\xa1x",
    "nothing": b"\xc0",
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("kind", ["reply", "ask"])
def test_many_small_values_are_refused_before_they_are_made(bomb: str, kind: str) -> None:
    piece = BOMBS[bomb]
    items = struct.pack(">BI", 0xDD, 8 * MB // len(piece)) + piece * (8 * MB // len(piece))
    head = {"reply": b"\x93\xa5reply\x01", "ask": b"\x95\xa3ask\x01\xc4\x010\xa4file\x91"}[kind]
    body = raw(head + items)
    conversation = Conversation()
    conversation.call("read")

    def feed() -> None:
        with pytest.raises(WireError, match="more than"):
            conversation.feed(body)

    assert peak(feed) < 32 * MB


@pytest.mark.parametrize(
    ("tag", "size"),
    [("ready", MB), ("started", MB), ("failure", MB), ("output", MB), ("reply", 20 * MB), ("ask", 40 * MB)],
)
def test_a_frame_too_long_for_its_kind_is_not_even_received(tag: str, size: int) -> None:
    conversation = Conversation()
    with pytest.raises(WireError):
        conversation.feed(struct.pack("<I", size) + b"\x93" + msgspec.msgpack.encode(tag) + b"\x01" + bytes(20))


def test_large_answers_of_an_honest_kind_pass() -> None:
    conversation = Conversation()
    pending, _ = conversation.call("read")
    conversation.feed(encode(Reply(1, [bytes(8 * MB), True])))
    assert pending.value == [bytes(8 * MB), True]


def reply_when_asked(impostor: Impostor) -> None:
    """Answer the call that mounts, once it is there."""
    deadline = time.monotonic() + 30
    while b"mount" not in impostor.socket.recv(4096, socket.MSG_PEEK) and time.monotonic() < deadline:
        time.sleep(0.01)
    impostor.socket.sendall(encode(Reply(1, None)))


def reads(path: str, count: int) -> bytes:
    asked: list[dict[str, object]] = [{"op": "root"}, {"op": "walk", "node": 1, "name": path.encode()}]
    asked.append({"op": "open", "node": 2, "flags": 0})
    asked += [{"op": "read", "handle": 3, "offset": 0, "size": MB}] * count
    return b"".join(encode(Ask(number, b"0", "file", [each])) for number, each in enumerate(asked, 1))


def test_answers_that_are_not_read_are_not_made(impostor: Impostor, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(MB))
    impostor.socket.sendall(encode(Reply(1, None)))
    with Sandbox(mounts={"/m": Mount.host(str(tmp_path))}) as sandbox:
        send_all(impostor.socket, reads("big", 600))
        with pytest.raises(SandboxError):
            sandbox.exec("true", timeout=0.7)
        assert sandbox._link._outgoing.written + OWED_MAX + 3 * MB > sandbox._link._outgoing.queued


def test_answers_that_are_not_read_are_not_made_awaited(impostor: Impostor, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(MB))

    async def main() -> None:
        reply = asyncio.create_task(asyncio.to_thread(reply_when_asked, impostor))
        async with AsyncSandbox(mounts={"/m": Mount.host(str(tmp_path))}) as sandbox:
            await reply
            outgoing = sandbox._link._outgoing
            send_all(impostor.socket, reads("big", 600))
            async with asyncio.timeout(60):
                while outgoing.owed <= OWED_MAX:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.5)
            assert OWED_MAX < outgoing.owed < OWED_MAX + 3 * MB
            # It is asked no more until it reads; then it gets all that it asked for.
            answers = await asyncio.to_thread(read_answers, impostor.socket, 603)
            assert len(answers) == 603
            assert sum(len(answer.value.get("ok") or b"") for answer in answers[3:]) == 600 * MB

    asyncio.run(main())


def read_answers(connection: socket.socket, count: int) -> list[Any]:
    frames = host_frames()
    found: list[Any] = []
    while len(found) < count:
        found += [message for message in frames.feed(connection.recv(MB)) if isinstance(message, Answer)]
    return found


@pytest.mark.battery
def test_output_in_tiny_pieces_takes_little_more_than_itself() -> None:
    conversation = Conversation()
    conversation.start(
        ["x"], env={}, cwd=None, stdin=None, merge=False, live=True, limits={}, allowed_output=8 * MB, on_chunk={}
    )
    pieces = encode(Output(1, 1, b"x")) * 50_000

    def feed() -> None:
        for _ in range(5):
            more = conversation.feed(pieces)
            while more:
                more = conversation.feed(b"")

    assert peak(feed) < 16 * MB


@pytest.mark.parametrize(
    "frames",
    [
        encode(Output(1, 1, b"")),
        encode(Started(1, 5)) * 2,
        encode(Started(1, 0)),
        encode(Incident(b"id", b"x", b"trace")) * (INCIDENTS_MAX + 1),
    ],
    ids=["nothing said", "started twice", "no pid", "incidents"],
)
def test_what_an_honest_worker_never_says_ends_it(frames: bytes, impostor: Impostor) -> None:
    with Sandbox(on_event=lambda _event: None) as sandbox:
        send_all(impostor.socket, frames)
        with pytest.raises(SandboxError):
            sandbox.exec("true", timeout=30)


ACTS: dict[str, Callable[[Any], Any]] = {
    "read": lambda sandbox: sandbox.files.read("/x"),
    "stat": lambda sandbox: sandbox.files.stat("/x"),
    "list": lambda sandbox: sandbox.files.list("/x"),
    "readlink": lambda sandbox: sandbox.files.readlink("/x"),
    "stats": lambda sandbox: sandbox.stats(),
    "download": lambda sandbox: sandbox.files.download("/x", "/nowhere/x"),
}
WRONG = [7, "text", [], [1], [b"x"], ["x", True], [b"x", 1], [[1, 2]], [[b"n", "x", 1, 1, 1, 1]], {"a": b""}, [1.5] * 9]


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_an_answer_of_another_form_is_a_sandbox_error(act: str, value: object, impostor: Impostor) -> None:
    with Sandbox() as sandbox:
        impostor.socket.sendall(encode(Reply(1, value)) + encode(Reply(2, value)))
        impostor.socket.shutdown(socket.SHUT_WR)
        if act == "list" and value == []:
            assert sandbox.files.list("/x") == []
            return
        with pytest.raises(SandboxError):
            ACTS[act](sandbox)


def test_changes_of_another_form_are_a_sandbox_error(impostor: Impostor) -> None:
    with Sandbox() as sandbox:
        impostor.socket.sendall(encode(Reply(1, 1)))
        watch = sandbox.files.watch("/")
        impostor.socket.sendall(encode(Reply(2, [["created", 7, None]])) + encode(Reply(3, None)))
        with pytest.raises(SandboxError):
            watch.next(30)


@pytest.mark.parametrize("target", [b"9" * 5000, b"\xb2", b"1" * 10, b"01x"])
def test_a_mount_that_was_never_offered(target: bytes, impostor: Impostor, tmp_path: Path) -> None:
    impostor.socket.sendall(encode(Reply(1, None)))
    with Sandbox(mounts={"/m": Mount.host(str(tmp_path))}) as sandbox:
        impostor.socket.sendall(encode(Ask(1, target, "file", [{"op": "root"}])))
        with pytest.raises(SandboxClosed):
            sandbox.exec("true", timeout=30)


def _raise(*_: object) -> None:
    raise ZeroDivisionError


def test_a_frame_that_was_not_foreseen_ends_its_sandbox_and_no_more(
    impostor: Impostor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asks.Asks, "take", _raise)
    with Sandbox() as sandbox:
        impostor.socket.sendall(encode(Ask(1, b"x", "tool", [[]])))
        with pytest.raises(SandboxClosed, match="ZeroDivisionError"):
            sandbox.exec("true", timeout=30)


def test_nor_awaited_either(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asks.Asks, "take", _raise)

    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            impostor.socket.sendall(encode(Ask(1, b"x", "tool", [[]])))
            with pytest.raises(SandboxClosed, match="ZeroDivisionError"):
                await sandbox.exec("true", timeout=30)

    asyncio.run(main())


def test_frames_of_any_kind_are_taken_in_turns() -> None:
    conversation = Conversation()
    conversation.start(
        ["x"], env={}, cwd=None, stdin=None, merge=False, live=True, limits={}, allowed_output=8 * MB, on_chunk={}
    )
    turns = 1
    more = conversation.feed(encode(Output(1, 1, b"x")) * 50_000)
    while more:
        turns += 1
        more = conversation.feed(b"")
    assert turns >= 50_000 // FRAMES_PER_TURN


def test_a_control_line_without_an_end_is_not_kept_between_runs() -> None:
    dialogue = Dialogue(Conversation(), lambda _frame: None, PYTHON, Limits(), lambda _dialogue, _call: None)

    def hear() -> None:
        for _ in range(400):
            dialogue._hear(bytes(256 << 10))

    assert peak(hear) < 8 * MB
    run = dialogue.begin("1", "repl", {}, {}, RunLimits())
    dialogue._hear(b'the rest of it\n1 {"op":"done","ok":true,"exports":{"default":7},"unsent":{}}\n')
    assert run.result(0).value == 7
    assert dialogue.dropped == 1


@pytest.mark.parametrize(
    "text", ["[" + "[]," * 4_000_000 + "1]", "[" + "{}," * 2_000_000 + "1]", "[" + "1," * 8_000_000 + "1]"]
)
def test_a_result_of_too_many_values_is_refused_before_it_is_read(text: str) -> None:
    def load() -> None:
        with pytest.raises(ValueError, match="more than"):
            values.loads(text)

    assert peak(load) < 3 * len(text) + 8 * MB


def test_long_texts_and_long_lists_still_cross() -> None:
    assert values.loads(values.dumps("[,{" * 3_000_000)) == "[,{" * 3_000_000
    assert len(values.loads(values.dumps(list(range(900_000))))) == 900_000
    assert len(values.loads(values.dumps([[n] for n in range(200_000)]))) == 200_000


# Counted: everything that a worker can ask for.


def asked(broker: EngineBroker, operation: str, *arguments: object) -> object:
    return broker.take(Ask(1, b"engine", operation, list(arguments)))


def errno_of(reply: object) -> int:
    assert isinstance(reply, bytes)
    (message,) = host_frames().feed(reply)
    assert isinstance(message, Answer)
    return message.errno


def test_processes_that_are_being_made_are_counted_even_when_given_up() -> None:
    broker = EngineBroker(Limits())
    made = []
    for number in range(200):
        made.append(asked(broker, "open", number, "python", {}))
        asked(broker, "kill", number)
    assert sum(isinstance(each, Opening) for each in made) == ENGINES_MAX
    assert {errno_of(each) for each in made[ENGINES_MAX:]} == {EAGAIN}


def test_pieces_of_programs() -> None:
    broker = EngineBroker(Limits())
    with pytest.raises(WireError):
        asked(broker, "piece", 1, b"")
    began = time.process_time()
    replies = [asked(broker, "piece", number, b"x") for number in range(40_000)]
    assert time.process_time() - began < 4
    assert errno_of(replies[-1]) == ENOMEM


def net_opens(count: int) -> bytes:
    return b"".join(encode(Ask(number, b"net", "open", [])) for number in range(1, count + 1))


def open_count() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.battery
def test_descriptors_that_a_worker_does_not_take_are_few(impostor: Impostor) -> None:
    with Sandbox(network=Network.allow("127.0.0.1:9")) as sandbox:
        before = open_count()
        seen = []
        sender = threading.Thread(target=send_all, args=(impostor.socket, net_opens(3000)), daemon=True)
        sender.start()
        timer = threading.Timer(1.5, lambda: seen.append(open_count()))
        timer.start()
        with pytest.raises(SandboxError):
            sandbox.exec("true", timeout=1)
        timer.join()
        assert seen[0] - before < 2 * UNTAKEN_MAX + 20


def test_descriptors_that_it_takes_are_no_matter_of_count(impostor: Impostor) -> None:
    with Sandbox(network=Network.allow("127.0.0.1:9")) as sandbox:
        taken: list[int] = []

        def take() -> None:
            frames = host_frames()
            for number in range(1, 4 * UNTAKEN_MAX):
                impostor.socket.sendall(encode(Ask(number, b"net", "open", [])))
                while len(taken) < number:
                    data, fds, _, _ = socket.recv_fds(impostor.socket, MB, 8)
                    for fd in fds:
                        os.close(fd)
                    taken.extend(each.errno for each in frames.feed(data) if isinstance(each, Answer))
            impostor.socket.sendall(encode(exited(1)))

        taker = threading.Thread(target=take)
        taker.start()
        assert sandbox.exec("true", timeout=20).exit_code == 0
        taker.join()
        assert set(taken) == {0}


def test_a_thousand_tool_calls_take_few_threads(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    monkeypatch.setattr(asks, "CALLS_MAX", 100)
    impostor.socket.sendall(encode(Reply(1, None)))
    before = threading.active_count()
    with Sandbox(tools={"slow": lambda: go.wait(20)}) as sandbox:
        calls = b"".join(encode(Ask(number, b"slow", "tool", [[]])) for number in range(1, 1001))
        send_all(impostor.socket, calls + encode(exited(2)))
        assert sandbox.exec("true").exit_code == 0
        assert threading.active_count() - before <= 40
        refused = read_answers(impostor.socket, 900)
        assert {answer.errno for answer in refused} == {EAGAIN}
        go.set()
        assert {answer.errno for answer in read_answers(impostor.socket, 100)} == {0}


def test_a_thousand_tool_calls_awaited(impostor: Impostor) -> None:
    go = threading.Event()
    impostor.socket.sendall(encode(Reply(1, None)))
    before = threading.active_count()

    async def main() -> None:
        async with AsyncSandbox(tools={"slow": lambda: go.wait(20)}) as sandbox:
            calls = b"".join(encode(Ask(number, b"slow", "tool", [[]])) for number in range(1, 1001))
            send_all(impostor.socket, calls + encode(exited(2)))
            await sandbox.exec("true")
            assert threading.active_count() - before <= 40
            go.set()

    asyncio.run(main())


# Results that were not asked for.


def test_what_an_earlier_run_left_behind_can_not_answer_for_a_later_one() -> None:
    forged = json.dumps({"op": "done", "ok": True, "exports": {"default": "forged"}, "unsent": {}})
    with Sandbox() as sandbox:
        code = f"import os, atexit\nforge = lambda: os.write(4, b'1 ' + {forged.encode()!r} + b'\\n')"
        assert sandbox.python.run(code).ok
        result = sandbox.python.run("forge()\n'mine'")
        assert result.value == "mine"
        assert sandbox.python.run("'again'").value == "again"
        assert sandbox.python.core.dialogue is not None
        assert sandbox.python.core.dialogue.dropped == 1


@pytest.mark.parametrize("number", [0, 2, None, "1"])
def test_a_javascript_result_of_another_run_is_dropped(number: object, engine: _Engine) -> None:
    done = {"op": "done", "ok": True, "exports": {"default": 666}, "unsent": {}}
    right = {**done, "run": 1, "exports": {"default": 7}}
    said = b"".join(frame(MESSAGE, json.dumps(each).encode()) for each in ({**done, "run": number}, right))
    run, link = run_on(engine, said)
    assert run.result(0).value == 7
    assert link.dialogue.dropped == 1


# Tools.


def test_arguments_nested_too_deep_are_an_error_and_not_the_end() -> None:
    with Sandbox(tools={"f": lambda x: "ok", "g": list_of_ints}) as sandbox:
        for command in ("f", "g"):
            deep = '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}"
            result = sandbox.exec([command, "-"], stdin=deep)
            assert result.exit_code == 2, result
            assert "nested deeper than" in result.stderr
        result = sandbox.exec(["g", "-"], stdin="--x=" + "[" * 100_000)
        assert result.exit_code == 2
        assert sandbox.exec("f 1").stdout == "ok\n"


BOMB = '{"x": [' + "[]," * 1_000_000 + "1]}"


def test_arguments_of_too_many_values_are_refused_before_they_are_read() -> None:
    def load() -> None:
        with pytest.raises(ValueError, match="more than"):
            load_json(BOMB)

    assert peak(load) < 3 * len(BOMB) + 8 * MB
    with Sandbox(tools={"f": lambda x: "ok"}) as sandbox:
        result = sandbox.exec(["f", "-"], stdin=BOMB)
        assert (result.exit_code, result.stdout) == (2, "")
        assert sandbox.exec("f 1").stdout == "ok\n"


@pytest.mark.parametrize("kind", ["tool", "call"])
def test_long_arguments_are_decoded_off_the_loop(
    kind: str, impostor: Impostor, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps({"x": [{"$int": "0x1"}] * 50_000})
    line = text if kind == "tool" else f'{{"args": [], "kwargs": {text}}}'
    arguments = [[line.encode()]] if kind == "tool" else [line.encode()]
    threads: list[threading.Thread] = []
    monkeypatch.setattr("belljar.api.tools.check_size", lambda _: threads.append(threading.current_thread()))
    monkeypatch.setattr("belljar.abi.values.check_size", lambda _: threads.append(threading.current_thread()))
    impostor.socket.sendall(encode(Reply(1, None)))

    async def main() -> None:
        async with AsyncSandbox(tools={"f": lambda x: "ok"}) as sandbox:
            await asyncio.to_thread(send_all, impostor.socket, encode(Ask(1, b"f", kind, arguments)))
            await asyncio.to_thread(read_answers, impostor.socket, 1)
            assert not sandbox._link.closed

    asyncio.run(main())
    assert threads
    assert threading.main_thread() not in threads


def list_of_ints(x: list[int], y: str = "") -> str:
    assert all(type(item) is int for item in x)
    assert type(y) is str
    return str(sum(x))


@pytest.mark.parametrize("given", ['{"x": "a"}', '{"x": ["a"]}', '{"x": [1], "y": 2}', '{"x": [true]}', '{"x": null}'])
def test_annotated_types_hold_for_every_kind_of_call(given: str) -> None:
    with Sandbox(tools={"f": list_of_ints}) as sandbox:
        by_json = sandbox.exec(["f", given])
        assert by_json.exit_code == 2
        assert "is not" in by_json.stderr
        by_values = sandbox.python.run(f"import json\nf(**json.loads({given!r}))")
        assert by_values.error is not None
        assert by_values.error.name == "TypeError"
        program = f"import json, tools\ntools.f(**json.loads({given!r}))"
        by_file = sandbox.exec(["python3", "-c", program])
        assert "TypeError" in by_file.stderr
        assert sandbox.exec(["f", '{"x": [1, 2]}']).stdout == "3\n"


def test_exceptions_tell_nothing_of_the_host() -> None:
    secret = f"{os.getcwd()}/secret/place.txt"

    def fail() -> None:
        raise OSError(2, "No such file", secret)

    def show() -> None:
        raise ValueError(f"{object()!r} in {secret}, not in https://example.org/a/b")

    def tell() -> None:
        raise ToolError(f"look at {secret}")

    def read(path: str) -> None:
        raise FileNotFoundError(f"there is no {path} in {secret}")

    tools: dict[str, Callable[..., None]] = {"fail": fail, "show": show, "tell": tell, "read_it": read}
    with Sandbox(tools=tools) as sandbox:
        for name in ("fail", "show"):
            assert secret not in (said := sandbox.exec(name).stderr)
            assert "0x" not in said
            assert os.getcwd() not in str(sandbox.python.run(f"{name}()").error)
            assert os.getcwd() not in str(sandbox.js.run(f"await {name}()").error)
        assert "https://example.org/a/b" in sandbox.exec("show").stderr
        assert (
            sandbox.exec("read_it /workspace/my/file").stderr == "read_it: there is no /workspace/my/file in <path>\n"
        )
        assert secret in sandbox.exec("tell").stderr
        assert secret in str(sandbox.python.run("tell()").error)


def test_the_harness_speaks_as_a_worker_does(impostor: Impostor) -> None:
    assert isinstance(impostor.handle, WorkerHandle)
    with Sandbox() as sandbox:
        impostor.socket.sendall(encode(Output(1, 1, b"hi")) + encode(Exited(1, 0, 0, None, b"", b"", False)))
        assert sandbox.exec("true").stdout == "hi"
    with pytest.raises(SandboxClosed):
        sandbox.exec("true")
