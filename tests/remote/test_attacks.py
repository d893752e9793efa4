"""What hostile clients send to the door of remote sandboxes, and a hostile server to a client: nothing comes of it.

Each case ends at most the attacker's own session; the neighbour's sandbox answers afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve

from belljar import InfrastructureError, Limits, RemoteSandbox, SandboxClosed, SandboxCreationError, SandboxError
from belljar.abi.wire import Answer, Boot, Call, Credit, HostMessage, Input, Renew, Signal, Start
from belljar.abi.wire import encode as frame
from belljar.remote import wire
from tests.server.serving import Server

CREATE = wire.Create({}, "/workspace", "agent", "belljar", {}, [], "base", 60.0)
SECONDS = 60.0


class Raw:
    """A client that says what it likes."""

    def __init__(self, server: Server, key: str, hello: Any, **headers: str) -> None:
        self.socket: ClientConnection = connect(
            server.url.replace("http", "ws") + wire.PATH,
            additional_headers={"X-API-KEY": key, **headers},
            compression=None,
            open_timeout=SECONDS,
            proxy=None,
        )
        self.socket.send(hello if isinstance(hello, bytes) else wire.encode(hello))
        self.greeting = wire.decode_greeting(self.bytes())

    def bytes(self) -> bytes:
        data = self.socket.recv(SECONDS)
        assert isinstance(data, bytes)
        return data

    @property
    def welcome(self) -> wire.Welcome:
        assert isinstance(self.greeting, wire.Welcome), self.greeting
        return self.greeting

    def send(self, message: Any) -> None:
        self.socket.send(message if isinstance(message, bytes) else wire.encode(message))

    def say(self, message: HostMessage) -> None:
        self.send(wire.Data(0, frame(message)))

    def number(self, n: int) -> int:
        return (self.welcome.slot << 32) + n

    def over(self) -> wire.Over | None:
        """What the server says at the end; None if it closes without a word."""
        try:
            while True:
                message = wire.decode(self.bytes())
                if isinstance(message, wire.Over):
                    return message
        except ConnectionClosed:
            return None

    def close(self) -> None:
        self.socket.close()


@pytest.fixture(scope="module")
def mallory(server: Server) -> str:
    return server.new_key("mallory")


@pytest.fixture(scope="module")
def victim(server: Server) -> Iterator[RemoteSandbox]:
    with RemoteSandbox(server.url, server.key) as sandbox:
        sandbox.files.write("/workspace/secret", "mine")
        yield sandbox


@pytest.fixture
def raw(server: Server, mallory: str, victim: RemoteSandbox) -> Iterator[Raw]:
    """A session of an attacker's; the victim is well afterwards."""
    client = Raw(server, mallory, CREATE)
    yield client
    client.close()
    assert victim.exec("cat secret").stdout == "mine"


def start(number: int, *argv: bytes, **changes: Any) -> Start:
    given: dict[str, Any] = {"env": {}, "cwd": None, "stdin": None, "merge": False, "live": True, "limits": {}}
    return Start(number, [*argv] or [b"true"], **{**given, **changes})


# Who may come in at all.


@pytest.mark.parametrize(
    "key", ["", "bj_" + "0" * 42, "nonsense", "bj_" + "x" * 5000], ids=["none", "wrong", "odd", "long"]
)
def test_a_key_is_needed(server: Server, key: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        Raw(server, key, CREATE)
    assert refused.value.response.status_code in (401, 429, 431)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_pages_of_other_sites_are_refused(server: Server, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        Raw(server, server.key, CREATE, Origin=origin)
    assert refused.value.response.status_code == 403


def test_a_revoked_key_resumes_nothing(server: Server) -> None:
    key = server.new_key("leaver")
    client = Raw(server, key, CREATE)
    server.cli("key", "revoke", key[3:13])
    with pytest.raises(InvalidStatus):
        Raw(server, key, wire.Resume(client.welcome.token, 0))
    client.close()


HELLOS: dict[str, Any] = {
    "nothing": b"",
    "text in bytes": b"GET / HTTP/1.1\r\n\r\n",
    "an array without a tag": msgspec.msgpack.encode([1, 2, 3]),
    "a deep list": b"\x91" * 5000 + b"\x90",
    "a million empty lists": b"\xdd\x00\x0f\x00\x00" + b"\x90" * 983_040,
    "a message of the session": wire.encode(wire.Data(0, b"x")),
    "another version": msgspec.msgpack.encode(["attach", "i" + "a" * 24, 99]),
    "a list that claims four billion": b"\xdd\xff\xff\xff\xff",
    "bytes that claim four billion": b"\x92\xa6attach\xc6\xff\xff\xff\xff",
    "too many fields": msgspec.msgpack.encode(["resume", "t", 0, 1, 2, 3]),
    "a negative count": msgspec.msgpack.encode(["resume", "t", -5, 1]),
    "limits that there are not": wire.Create({}, "/", "agent", "b", {"nonsense": 5}, [], "base", 60.0),
    "limits below zero": wire.Create({}, "/", "agent", "b", {"steps": -5}, [], "base", 60.0),
    "a user of ours": wire.Create({}, "/", "root; rm", "b", {}, [], "base", 60.0),
    "a relative directory": wire.Create({}, "../..", "agent", "b", {}, [], "base", 60.0),
    "an image by path": wire.Create({}, "/", "agent", "b", {}, [], "../../etc/passwd", 60.0),
    "a timeout without end": wire.Create({}, "/", "agent", "b", {}, [], "base", 1e300),
    "no number": wire.Create({}, "/", "agent", "b", {}, [], "base", float("nan")),
}


@pytest.mark.parametrize("hello", HELLOS.values(), ids=HELLOS)
def test_hellos_that_make_no_sense(server: Server, mallory: str, victim: RemoteSandbox, hello: Any) -> None:
    client = Raw(server, mallory, hello)
    assert isinstance(client.greeting, wire.Refused)
    assert "Traceback" not in client.greeting.text
    client.close()
    assert victim.exec("cat secret").stdout == "mine"


def test_text_instead_of_bytes(server: Server, mallory: str) -> None:
    url = server.url.replace("http", "ws") + wire.PATH
    with connect(url, additional_headers={"X-API-KEY": mallory}, proxy=None, open_timeout=SECONDS) as socket:
        socket.send("hello")
        refused = socket.recv(SECONDS)
        assert isinstance(refused, bytes)
        assert isinstance(wire.decode_greeting(refused), wire.Refused)


def test_a_message_that_is_too_long(raw: Raw) -> None:
    with suppress(ConnectionClosed):  # the server need not have read all of it
        raw.send(b"\xc6\x00\x20\x00\x00" + bytes(2 << 20))
    assert raw.over() is None


# Other tenants.


def test_anothers_sandbox_is_not_attached_to(server: Server, mallory: str, victim: RemoteSandbox) -> None:
    """By an answer that is the same for one that never was."""
    theirs = Raw(server, mallory, wire.Attach(victim.id)).greeting
    none = Raw(server, mallory, wire.Attach("i" + "a" * 24)).greeting
    assert isinstance(theirs, wire.Refused)
    assert isinstance(none, wire.Refused)
    assert theirs.text.replace(victim.id, "?") == none.text.replace("i" + "a" * 24, "?")
    with pytest.raises(SandboxClosed):
        RemoteSandbox.attach(server.url, mallory, victim.id)


@pytest.mark.parametrize("number", ["", "../x", "i" * 5000, "\0", "*", "%00"])
def test_ids_that_are_none(server: Server, mallory: str, number: str) -> None:
    assert isinstance(Raw(server, mallory, wire.Attach(number)).greeting, wire.Refused)


def test_a_stolen_token_is_worth_nothing_with_another_key(server: Server, mallory: str, victim: RemoteSandbox) -> None:
    token = victim._client.welcome.token
    for hello in (wire.Resume(token, 0), wire.Open(token)):
        assert isinstance(Raw(server, mallory, hello).greeting, wire.Refused)
    assert victim.exec("cat secret").stdout == "mine"


def test_processes_of_another_session_are_not_copied(raw: Raw, victim: RemoteSandbox) -> None:
    victim.js.run("var secret = 'mine'")
    raw.send(wire.Request(1, "js.copy", [1, victim._client.welcome.token, 1]))
    while not isinstance(message := wire.decode(raw.bytes()), wire.Response):
        pass
    assert message.error is not None
    assert victim.js.run("secret").value == "mine"


# Sessions that are resumed.


def test_a_resumed_session_takes_over(server: Server, mallory: str, raw: Raw) -> None:
    """The connection before, which may be half open, is closed: there is only ever one."""
    again = Raw(server, mallory, wire.Resume(raw.welcome.token, 0))
    assert again.welcome.id == raw.welcome.id
    assert raw.over() is None
    again.close()


@pytest.mark.parametrize("received", [1_000_000, 2**62])
def test_more_was_received_than_was_sent(server: Server, mallory: str, raw: Raw, received: int) -> None:
    assert isinstance(Raw(server, mallory, wire.Resume(raw.welcome.token, received)).greeting, wire.Refused)


def test_a_token_of_a_session_that_is_over(server: Server, mallory: str, raw: Raw) -> None:
    raw.send(wire.Over("closed", ""))
    assert raw.over() is not None
    assert isinstance(Raw(server, mallory, wire.Resume(raw.welcome.token, 0)).greeting, wire.Refused)


def test_acknowledgements_of_what_was_never_sent(raw: Raw) -> None:
    raw.send(wire.Acknowledge(10_000))
    assert raw.over() is not None


# Messages of a session.

LISTS = b"\x95\xa4call\x01\xa4stat\xdd\x00\x0f\x42\x40" + b"\x90" * 1_000_000 + b"\x00"
MESSAGES: dict[str, Callable[[Raw], list[Any]]] = {
    "an answer to no request": lambda raw: [wire.Response(7, "x")],
    "a request of no name": lambda raw: [wire.Request(1, "nonsense", [])],
    "a request with odd arguments": lambda raw: [wire.Request(1, "js.start", ["x", {}, None])],
    "a process that is none": lambda raw: [wire.Request(1, "js.take", [9, "x"])],
    "a grant without end": lambda raw: [wire.Grant(0, 1 << 40)],
    "a negative grant": lambda raw: [wire.Grant(0, -1)],
    "a reset of the conversation": lambda raw: [wire.Reset(0)],
    "more than was granted": lambda raw: [
        wire.Data(0, b"\xff\xff\xff\x00" + bytes(200_000)),
        *[wire.Data(0, bytes(200_000))] * 80,
    ],
    "a stream that is opened twice": lambda raw: [wire.Data(0, b"\x01", [5]), wire.Data(0, b"\x02", [5])],
    "too many streams": lambda raw: [wire.Data(0, b"\x01", list(range(1, 2000)))],
    "a frame that is too long": lambda raw: [wire.Data(0, b"\xff\xff\xff\x7f" + b"\x95\xa5start")],
    "a frame of nothing": lambda raw: [wire.Data(0, b"\x00\x00\x00\x00")],
    "a frame that is no message": lambda raw: [wire.Data(0, b"\x04\x00\x00\x00\xff\xff\xff\xff")],
    "a frame of a million lists": lambda raw: [
        wire.Data(0, (len(LISTS)).to_bytes(4, "little") + LISTS[:100_000]),
        *(wire.Data(0, LISTS[at : at + 100_000]) for at in range(100_000, len(LISTS), 100_000)),
    ],
}
FRAMES: dict[str, Callable[[Raw], HostMessage]] = {
    "a boot": lambda raw: Boot({}, b"/", b"root", b"x", {}),
    "a number of the server's own": lambda raw: start(1),
    "a number of another session": lambda raw: start((raw.welcome.slot + 1 << 32) + 1),
    "a negative number": lambda raw: start(-1),
    "a number beyond all": lambda raw: start(2**63 - 1),
    "news of another's command": lambda raw: Signal(5, 9, True),
    "input for another's command": lambda raw: Input(5, b"x"),
    "credit for another's command": lambda raw: Credit(5, 1, 100),
    "another's interpreter renewed": lambda raw: Renew(5, {"steps": 1}),
    "a copy of another's interpreter": lambda raw: start(raw.number(1), forks=5),
    "limits that there are not": lambda raw: start(raw.number(1), limits={"x": 1}),
    "an answer to a question never asked": lambda raw: Answer(1, "x"),
    "an answer with a descriptor that did not come": lambda raw: Answer(1, None, fds=3),
    "a call for engines": lambda raw: Call(raw.number(1), "hold", [[]]),
    "a call to let them go": lambda raw: Call(raw.number(1), "release", []),
    "a call for native programs": lambda raw: Call(raw.number(1), "native", [b"sh"]),
    "a fork of the server's commands": lambda raw: Call(raw.number(1), "fork", [[1, 2, 3]]),
    "a fork with odd arguments": lambda raw: Call(raw.number(1), "fork", ["x", "y"]),
    "a port without a descriptor": lambda raw: Call(raw.number(1), "port", [80], 1),
    "a call with descriptors": lambda raw: Call(raw.number(1), "stat", [b"/"], 4),
    "a call of no name": lambda raw: Call(raw.number(1), "no such call", []),
}


@pytest.mark.parametrize("attack", MESSAGES.values(), ids=MESSAGES)
def test_messages_that_break_the_rules(raw: Raw, attack: Callable[[Raw], list[Any]]) -> None:
    try:
        for message in attack(raw):
            raw.send(message)
    except ConnectionClosed:
        return
    over = raw.over()
    assert over is None or over.kind == "infrastructure"


@pytest.mark.parametrize("attack", FRAMES.values(), ids=FRAMES)
def test_frames_that_break_the_rules(raw: Raw, attack: Callable[[Raw], HostMessage]) -> None:
    raw.say(attack(raw))
    over = raw.over()
    assert over is not None
    assert over.kind == "infrastructure"


def test_a_number_twice(raw: Raw) -> None:
    raw.say(start(raw.number(1), b"sleep", b"60"))
    raw.say(start(raw.number(1), b"sleep", b"60"))
    assert raw.over() is not None


def test_limits_are_those_of_the_sandbox(server: Server, mallory: str) -> None:
    """A client that asks for more has what its sandbox has."""
    with RemoteSandbox(server.url, mallory, limits=Limits(steps=5000)) as sb:
        link = sb._link
        _, running, data = link.conversation.start(
            ["bash", "-c", "while :; do :; done"],
            env={},
            cwd=None,
            stdin=None,
            merge=False,
            live=False,
            limits={"steps": 1 << 50},
            allowed_output=1 << 20,
            on_chunk={},
        )
        link.send(data)
        link.wait(running, None)
        assert running.exited is not None
        assert running.exited.limit == "steps"


def test_the_servers_own_files_are_not_to_be_had(server: Server, mallory: str) -> None:
    with RemoteSandbox(server.url, mallory) as sb:
        assert sb.exec(["ls", str(server.directory)]).exit_code != 0
        assert sb.exec("cat /proc/1/environ 2>/dev/null | tr '\\0' '\\n' | grep -c BELLJAR").stdout.strip() in ("", "0")


@pytest.mark.battery
def test_a_client_that_says_nothing_is_closed(server: Server, mallory: str) -> None:
    url = server.url.replace("http", "ws") + wire.PATH
    with (
        connect(url, additional_headers={"X-API-KEY": mallory}, proxy=None, open_timeout=SECONDS) as socket,
        pytest.raises(ConnectionClosed),
    ):
        socket.recv(SECONDS)


# A hostile server.


def hostile(answers: Callable[[ServerConnection], None]) -> tuple[Any, str]:
    server = serve(answers, "127.0.0.1", 0, compression=None)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.socket.getsockname()[1]}"


WELCOME = wire.Welcome("t", 0, 1, "ihostile", "virtual", "base", 0.0, "v8", "/workspace", {}, 1.0)
ANSWERS: dict[str, list[Any]] = {
    "nonsense": [b"nonsense"],
    "text": ["hello"],
    "a refusal with control characters": [wire.Refused("sandbox", "\x1b[2Jowned\r\n")],
    "a refusal of no kind": [wire.Refused("os.system", "x")],
    "a welcome, then nonsense": [WELCOME, b"\xc1\xc1"],
    "a welcome, then an answer to nothing": [WELCOME, wire.Response(99, "x")],
    "a welcome, then a request": [WELCOME, wire.Request(1, "usage", [])],
    "a welcome, then more than was granted": [WELCOME, *[wire.Data(0, bytes(200_000))] * 50],
    "a welcome, then descriptors": [WELCOME, wire.Data(0, b"x", [3])],
    "a welcome, then frames that are none": [WELCOME, wire.Data(0, b"\x04\x00\x00\x00\xff\xff\xff\xff")],
    "a welcome, then a grant without end": [WELCOME, wire.Grant(0, 1 << 40)],
}


@pytest.mark.parametrize("said", ANSWERS.values(), ids=ANSWERS)
def test_servers_that_break_the_rules(said: list[Any]) -> None:
    def answer(connection: ServerConnection) -> None:
        connection.recv()
        for message in said:
            connection.send(message if isinstance(message, bytes | str) else wire.encode(message))
        connection.recv()

    server, url = hostile(answer)
    try:
        with pytest.raises((InfrastructureError, SandboxError)) as caught:
            RemoteSandbox(url, "bj_x").exec("true", timeout=5)
        assert "\x1b" not in str(caught.value)
        assert not isinstance(caught.value, SandboxCreationError)
    finally:
        server.shutdown()
