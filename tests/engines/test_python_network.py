"""Guest Python's network: sockets, TLS, clients of the standard library and those pip installs, and what is denied."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from belljar import Network, Sandbox
from belljar.net.policy import Conn
from tests.net.servers import Authority, DnsServer, HttpServer, Listener, PackageIndex, Response, Tripwire, bodies

SECRET = "tok-5b1f0c9e-canary"
CLIENTS = (
    "requests urllib3 idna certifi charset-normalizer httpx httpcore h11 anyio sniffio typing-extensions"
).split()


class Echo(Listener):
    """Raw bytes: sends back what comes, in upper case; counts it."""

    received = b""

    def serve(self, connection: socket.socket) -> None:
        while data := connection.recv(65536):
            self.received += data
            connection.sendall(data.upper())
        connection.sendall(b"BYE")


class Mail(Listener):
    """A server that turns to TLS when asked, as SMTP's do."""

    def __init__(self, authority: Authority) -> None:
        super().__init__()
        self._tls = authority.context("mail.test")

    def serve(self, connection: socket.socket) -> None:
        connection.sendall(b"220 mail.test\r\n")
        lines = connection.makefile("rb")
        while line := lines.readline():
            if line.upper().startswith(b"EHLO"):
                connection.sendall(b"250-mail.test\r\n250 STARTTLS\r\n")
            elif line.startswith(b"STARTTLS"):
                connection.sendall(b"220 go\r\n")
                with self._tls.wrap_socket(connection, server_side=True) as secured:
                    lines = secured.makefile("rb")
                    while line := lines.readline():
                        secured.sendall((b"221 " if line.startswith(b"QUIT") else b"250 ") + line)
                return
            else:
                connection.sendall(b"250 " + line)


@dataclass
class World:
    """The servers, a sandbox that may reach some of them, and what the policy told about it."""

    plain: HttpServer
    secure: HttpServer
    broken: HttpServer
    secret: HttpServer
    echo: Echo
    mail: Mail
    wire: Tripwire
    index: PackageIndex
    datagrams: socket.socket
    sandbox: Sandbox
    events: list[dict[str, Any]] = field(default_factory=list)

    def python(self, source: str, *, timeout: float = 60) -> list[Any]:
        """What a program says, a line of JSON at a time."""
        places = {
            "PLAIN": f"http://web.test:{self.plain.port}",
            "SECURE": f"https://web.test:{self.secure.port}",
            "BROKEN": f"https://web.test:{self.broken.port}",
            "API": f"https://api.test:{self.secret.port}",
            "ECHO": ("raw.test", self.echo.port),
            "MAIL": ("mail.test", self.mail.port),
            "WIRE": ("127.0.0.1", self.wire.port),
            "DATAGRAMS": self.datagrams.getsockname(),
        }
        result = self.sandbox.exec(
            ["python3", "-c", PRELUDE + source], env={"PLACES": json.dumps(places)}, timeout=timeout
        )
        assert result.exit_code == 0, result.stderr
        return [json.loads(line) for line in result.stdout.splitlines()]


PRELUDE = """
import json, os
for name, place in json.loads(os.environ["PLACES"]).items():
    globals()[name] = tuple(place) if isinstance(place, list) else place
def say(value):
    print(json.dumps(value))
def attempt(function, *arguments, **named):
    try:
        value = function(*arguments, **named)
        say(value.decode() if isinstance(value, bytes) else value)
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        say([kinds, str(error)])
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    routes: dict[str, Any] = {
        "/": b"hello",
        "/echo": bodies.echo,
        "/big": b"0123456789abcdef" * (2 << 20),
        "/endless": bodies.endless,
        "/slow": bodies.late(30),
        "/moved": bodies.redirect("/"),
        "/away": bodies.redirect("http://elsewhere.test/"),
    }
    with ExitStack() as stack:
        enter = stack.enter_context
        plain, secure = enter(HttpServer(routes)), enter(HttpServer(routes, context=authority.context("web.test")))
        broken = enter(HttpServer(routes, context=authority.context("other.test")))
        secret = enter(HttpServer(routes, context=authority.context("api.test")))
        echo, mail, wire, index = enter(Echo()), enter(Mail(authority)), enter(Tripwire()), enter(PackageIndex())
        dns = enter(DnsServer({name: ["127.0.0.1"] for name in "web.test raw.test mail.test api.test".split()}))
        datagrams = enter(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("127.0.0.1", 0))
        for client in CLIENTS:
            index.installed(client)
        events: list[dict[str, Any]] = []

        def add_token(request: Any) -> Any:
            if request.method == "DELETE":
                return request.deny("this agent deletes nothing")
            request.headers.set("authorization", f"Bearer {SECRET}")
            return None

        def policy(conn: Conn) -> Any:
            if question := conn.match_dns("*.test"):
                return question.accept(resolvers=[dns.authority], private=True)
            if raw := conn.match_tcp(f"raw.test:{echo.port}") or conn.match_tcp(f"mail.test:{mail.port}"):
                return raw.accept()
            if udp := conn.match_udp(f"127.0.0.1:{datagrams.getsockname()[1]}"):
                return udp.accept()
            if conn.dst.port == secret.port and (http := conn.match_http(f"api.test:{conn.dst.port}")):
                return http.accept(add_token, redact=True)
            if conn.dst.port in (plain.port, secure.port, broken.port) and (
                http := conn.match_http(f"web.test:{conn.dst.port}")
            ):
                return http.accept()
            return conn.accept() if conn.dst.port == index.port else None

        network = Network.policy(policy, ca_bundle=str(authority.path), audit=events.append)
        sandbox = enter(Sandbox(network=network, env={"PIP_INDEX_URL": index.index}))
        # The first use on a machine compiles: no test's own limit is to pay for that.
        sandbox.exec(["python3", "-c", "pass"], timeout=590).check()
        yield World(plain, secure, broken, secret, echo, mail, wire, index, datagrams, sandbox, events)


def test_urllib(world: World) -> None:
    said = world.python("""
from urllib.request import Request, urlopen
for base in (PLAIN, SECURE):
    attempt(lambda: urlopen(base + "/").read())
    attempt(lambda: urlopen(base + "/moved").read())
    attempt(lambda: urlopen(Request(base + "/echo", data=b"a=1", headers={"X-Mine": "yes"})).read())
    with urlopen(base + "/") as response:
        say([response.status, response.reason, response.headers["content-length"], response.url == base + "/"])
""")
    for plain, moved, posted, head in (said[:4], said[4:]):
        assert plain == moved == "hello"
        assert posted.startswith("POST /echo\n")
        assert "\nx-mine: yes\n" in posted
        assert posted.endswith("\n\na=1")
        assert head == [200, "OK", "5", True]


def test_errors_of_http_and_of_the_network(world: World) -> None:
    world.plain.routes["/gone"] = lambda request: Response(410, b"no more")
    said = world.python("""
from urllib.error import HTTPError
from urllib.request import urlopen
try:
    urlopen(PLAIN + "/gone")
except HTTPError as error:
    say([error.code, error.read().decode()])
attempt(urlopen, PLAIN + "/away")
attempt(urlopen, "http://nowhere.example/")
attempt(urlopen, "http://%s:%d/" % WIRE)
attempt(urlopen, PLAIN + "/slow", timeout=0.3)
attempt(urlopen, BROKEN + "/")
""")
    assert said[0] == [410, "no more"]
    away, nowhere, wire, slow, broken = ((set(kinds), text) for kinds, text in said[1:])
    assert "URLError" in away[0]
    assert "Name or service not known" in away[1]
    assert "URLError" in nowhere[0]
    assert "nowhere.example is not a name this sandbox may look up" in nowhere[1]
    assert "URLError" in wire[0]
    assert f"[Errno 13] Permission denied (127.0.0.1:{world.wire.port} is not open to this sandbox)" in wire[1]
    assert "timed out" in slow[1]
    assert "URLError" in broken[0]
    assert "CERTIFICATE_VERIFY_FAILED" in broken[1]
    assert "Hostname mismatch" in broken[1]
    assert not world.wire.touched()


def test_servers_are_verified_whatever_a_context_says(world: World) -> None:
    before = len(world.broken.requests)
    said = world.python("""
import ssl
from urllib.request import urlopen
loose = ssl.create_default_context()
loose.check_hostname = False
loose.verify_mode = ssl.CERT_NONE
attempt(lambda: urlopen(BROKEN + "/", context=loose).read())
attempt(lambda: urlopen(SECURE + "/", context=loose).read())
attempt(lambda: urlopen(SECURE + "/", context=ssl._create_unverified_context()).read())
attempt(ssl.create_default_context().load_cert_chain, "mine.pem")
""")
    assert "CERTIFICATE_VERIFY_FAILED" in said[0][1]
    assert said[1:3] == ["hello", "hello"]
    assert "no client certificates" in said[3][1]
    assert len(world.broken.requests) == before


def test_a_raw_connection(world: World) -> None:
    said = world.python("""
import socket
connection = socket.create_connection(ECHO, timeout=20)
connection.sendall(b"abc")
say(connection.recv(10).decode())
say([connection.getpeername()[0], connection.gettimeout(), connection.family.name, connection.type.name])
connection.settimeout(0.2)
attempt(connection.recv, 10)
connection.setblocking(False)
attempt(connection.recv, 10)
connection.settimeout(20)
with connection.makefile("rwb") as stream:
    stream.write(b"line one\\nline two\\n")
    stream.flush()
    say([stream.readline().decode(), stream.readline().decode()])
connection.send(b"peek")
say([connection.recv(4, socket.MSG_PEEK).decode(), connection.recv(2).decode(), connection.recv(9).decode()])
connection.shutdown(socket.SHUT_WR)
attempt(connection.send, b"more")
say([connection.recv(10).decode(), connection.recv(10).decode()])
connection.close()
attempt(connection.recv, 1)
attempt(socket.socket().recv, 1)
""")
    assert said[0] == "ABC"
    assert said[1] == ["127.0.0.1", 20.0, "AF_INET", "SOCK_STREAM"]
    assert (said[2][0][0], said[2][1]) == ("TimeoutError", "timed out")
    assert (said[3][0][0], said[3][1]) == ("BlockingIOError", "[Errno 11] Resource temporarily unavailable")
    assert said[4] == ["LINE ONE\n", "LINE TWO\n"]
    assert said[5] == ["PEEK", "PE", "EK"]
    assert said[6][0][0] == "BrokenPipeError"
    assert said[7] == ["BYE", ""]
    assert said[8][1] == "[Errno 9] Bad file descriptor"
    assert said[9][1] == "[Errno 107] Transport endpoint is not connected"


def test_a_connection_turns_to_tls_in_the_middle(world: World) -> None:
    said = world.python("""
import smtplib, ssl
with smtplib.SMTP(*MAIL, timeout=20) as mail:
    say(mail.ehlo()[0])
    say(mail.starttls(context=ssl.create_default_context())[0])
    say(mail.docmd("NOOP", "over TLS")[0])
    say([mail.sock.version(), mail.sock.getpeercert()["subjectAltName"]])
""")
    assert said[:3] == [250, 220, 250]
    assert said[3][0].startswith("TLS")
    assert said[3][1] == [["DNS", "mail.test"]]


def test_datagrams(world: World) -> None:
    def serve() -> None:
        for _ in range(3):
            data, peer = world.datagrams.recvfrom(65536)
            world.datagrams.sendto(data.upper(), peer)

    world.datagrams.settimeout(30)
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    said = world.python("""
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    one.settimeout(20)
    say(one.sendto(b"first", DATAGRAMS))
    data, address = one.recvfrom(100)
    say([data.decode(), address == DATAGRAMS])
    one.sendto(b"a longer one", DATAGRAMS)
    say(one.recv(8).decode())
    attempt(one.sendto, b"x", WIRE)
with socket.socket(type=socket.SOCK_DGRAM) as two:
    two.connect(DATAGRAMS)
    two.send(b"third")
    say(two.recv(100).decode())
""")
    assert said[:3] == [5, ["FIRST", True], "A LONGER"]
    assert said[3][0][0] == "PermissionError"
    assert said[4] == "THIRD"
    thread.join(30)
    assert not world.wire.touched()


def test_what_is_refused_is_told(world: World) -> None:
    said = world.python("""
import socket
attempt(socket.create_connection, WIRE)
attempt(socket.getaddrinfo, "denied.example", 80)
attempt(socket.gethostbyname, "missing.test")
attempt(socket.socket, socket.AF_INET, socket.SOCK_RAW)
attempt(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto, b"x", WIRE)
say(socket.socket().connect_ex(WIRE) == __import__("errno").EACCES)
""")
    texts = [text for _, text in said[:-1]]
    assert texts[0] == f"[Errno 13] Permission denied (127.0.0.1:{world.wire.port} is not open to this sandbox)"
    assert texts[1] == "[Errno 13] Permission denied (denied.example is not a name this sandbox may look up)"
    assert texts[2] == "[Errno -2] Name or service not known"
    assert "TCP and UDP only" in texts[3]
    assert "is not open to this sandbox" in texts[4]
    assert said[-1] is True
    assert not world.wire.touched()


def test_without_a_network(shared: Sandbox) -> None:
    source = """
import socket, urllib.request
for attempt in (
    lambda: urllib.request.urlopen("https://example.com/"),
    lambda: socket.create_connection(("93.184.215.14", 80)),
):
    try:
        attempt()
    except OSError as error:
        print(error)
"""
    assert shared.exec(["python3", "-c", source]).stdout.splitlines() == [
        "<urlopen error [Errno 13] Permission denied (this sandbox was granted no network)>",
        "[Errno 13] Permission denied (this sandbox was granted no network)",
    ]


def test_where_only_web_requests_may_go_nothing_else_does(world: World) -> None:
    before = len(world.plain.requests), len(world.secure.requests)
    said = world.python("""
import socket, ssl
def talk(base, data, tls=None):
    host, port = base.split("/")[2].split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        if tls:
            connection = ssl.create_default_context().wrap_socket(connection, server_hostname=tls)
        connection.sendall(data)
        return connection.makefile("rb").read()
attempt(talk, PLAIN, b"EHLO me\\r\\n\\r\\n")
attempt(talk, PLAIN, b"GET / HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n")
attempt(talk, PLAIN, b"GET http://api.test/ HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n")
attempt(talk, PLAIN, b"CONNECT web.test:22 HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n")
both = b"Content-Length: 3\\r\\nTransfer-Encoding: chunked"
attempt(talk, PLAIN, b"POST / HTTP/1.1\\r\\nHost: web.test\\r\\n" + both + b"\\r\\n\\r\\n")
attempt(talk, SECURE, b"GET / HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n", tls="other.test")
""")
    texts = [text for _, text in said]
    assert "is only open to web requests, and this is none" in texts[0]
    assert "is not whom this connection leads to" in texts[1]
    assert "a request has one Host header, and a path" in texts[2]
    assert "a request has one Host header, and a path" in texts[3]
    assert "not one that led to this address" in texts[5]
    # Another test's request for /slow, which was not waited for, may come as late as now.
    assert [request.path for request in world.plain.requests[before[0] :] if request.path != "/slow"] == []
    assert len(world.secure.requests) == before[1]


def test_large_bodies_stream_both_ways(world: World) -> None:
    digest = hashlib.sha256(b"0123456789abcdef" * (2 << 20)).hexdigest()
    said = world.python("""
import hashlib, http.client, urllib.request
digest = hashlib.sha256()
with urllib.request.urlopen(PLAIN + "/big") as response:
    while data := response.read(1 << 18):
        digest.update(data)
say(digest.hexdigest())
with urllib.request.urlopen(SECURE + "/endless") as response:
    say(len(response.read(3_000_000)))
connection = http.client.HTTPConnection(PLAIN.split("/")[2], timeout=30)
connection.request("POST", "/echo", body=(b"x" * 100_000 for _ in range(50)), encode_chunked=True)
say(len(connection.getresponse().read()) > 5_000_000)
connection.request("PUT", "/echo", body=b"y" * 3_000_000)
say(connection.getresponse().read().endswith(b"y" * 100))
""")
    assert said == [digest, 3_000_000, True, True]
    chunked, whole = [request for request in world.plain.requests if request.method in ("POST", "PUT")][-2:]
    assert (chunked.header("transfer-encoding"), whole.header("content-length")) == ("chunked", "3000000")


def test_credentials_are_added_outside_and_never_seen_inside(world: World) -> None:
    script = """
import http.client, ssl, socket, sys, urllib.request
print(urllib.request.urlopen(API + "/echo").read().decode())
connection = http.client.HTTPSConnection(API.split("/")[2], timeout=20)
for _ in range(2):
    connection.request("GET", "/echo", headers={"Authorization": "Bearer mine"})
    print(connection.getresponse().read().decode())
connection.request("DELETE", "/echo")
try:
    connection.getresponse()
except OSError as error:
    print("refused:", error)
"""
    before, asked = len(world.events), len(world.secret.requests)
    places = json.dumps({"API": f"https://api.test:{world.secret.port}"})
    result = world.sandbox.exec(["python3", "-c", PRELUDE + script], env={"PLACES": places}, timeout=60)
    assert "refused: [Errno 13] Permission denied (this agent deletes nothing)" in result.stdout, result.stderr
    told = [request.header("authorization") for request in world.secret.requests[asked:]]
    assert told == [f"Bearer {SECRET}"] * 3
    seen = result.stdout + result.stderr + world.sandbox.exec("cat /proc/*/environ /tmp/* 2>/dev/null").stdout
    assert SECRET not in seen + json.dumps(world.events)
    assert seen.count("authorization: **") == 3
    # Those of its own address: of a request that another test gave up, something may be told now.
    new = [event for event in world.events[before:] if "//api.test:" in event.get("url", "")]
    requests = [event for event in new if event["action"] == "request"]
    assert [event["method"] for event in requests] == ["GET", "GET", "GET"]
    assert all(event["rewrote"] == ["authorization"] for event in requests)
    assert [event["reason"] for event in new if event["action"] == "refused"] == ["this agent deletes nothing"]


def test_clients_that_pip_installs(world: World) -> None:
    installed = world.sandbox.exec("pip install requests httpx", timeout=120)
    assert installed.exit_code == 0, installed.stderr
    said = world.python("""
import requests, httpx, urllib3
for base in (PLAIN, SECURE):
    answer = requests.post(base + "/echo", json={"a": [1]}, timeout=20)
    say([answer.status_code, answer.text.endswith('{"a": [1]}')])
    say(requests.get(base + "/moved", timeout=20).text)
    say(httpx.get(base + "/moved", follow_redirects=True, timeout=60).text)
    say(urllib3.PoolManager().request("GET", base + "/").data.decode())
with requests.Session() as session:
    say([session.get(SECURE + "/").text for _ in range(3)])
say(sum(len(piece) for piece in requests.get(PLAIN + "/big", stream=True).iter_content(65536)))
attempt(requests.get, BROKEN + "/")
attempt(requests.get, BROKEN + "/", verify=False)
attempt(requests.get, "http://%s:%d/" % WIRE)
attempt(requests.get, "https://denied.example/")
attempt(requests.get, PLAIN + "/slow", timeout=0.3)
attempt(httpx.get, "https://denied.example/", timeout=60)
attempt(httpx.get, PLAIN + "/slow", timeout=0.3)
""")
    for each in (said[:4], said[4:8]):
        assert each == [[200, True], "hello", "hello", "hello"]
    assert said[8:10] == [["hello"] * 3, 32 << 20]
    kinds = [set(kinds) for kinds, _ in said[10:]]
    texts = [text for _, text in said[10:]]
    assert "SSLError" in kinds[0] & kinds[1]
    assert "ConnectionError" in kinds[2]
    assert "is not open to this sandbox" in texts[2]
    assert "ConnectionError" in kinds[3]
    assert "denied.example is not a name this sandbox may look up" in texts[3]
    assert "Timeout" in kinds[4]
    assert "ConnectError" in kinds[5]
    assert "TimeoutException" in kinds[6]
    assert not world.wire.touched()


def test_asyncio(world: World) -> None:
    said = world.python("""
import asyncio, ssl
async def get(base, path="/"):
    host, port = base.split("/")[2].split(":")
    tls = ssl.create_default_context() if base.startswith("https") else None
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
    writer.write(f"GET {path} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\nConnection: close\\r\\n\\r\\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer.decode().partition("\\r\\n\\r\\n")[2]
async def main():
    say(await asyncio.gather(*(get(base) for base in (PLAIN, SECURE) * 4)))
    say(len(await get(SECURE, "/big")))
    for place in (WIRE, ("denied.example", 80)):
        try:
            await asyncio.open_connection(*place)
        except OSError as error:
            say(type(error).__name__)
    try:
        await get(BROKEN)
    except OSError as error:
        say(str(error))
    try:
        async with asyncio.timeout(0.3):
            await get(PLAIN, "/slow")
    except TimeoutError:
        say("late")
asyncio.run(main())
""")
    assert said[:2] == [["hello"] * 8, 32 << 20]
    assert said[2:4] == ["PermissionError", "DeniedError"]
    assert "CERTIFICATE_VERIFY_FAILED" in said[4]
    assert said[5] == "late"
    assert not world.wire.touched()


def test_an_asynchronous_client(world: World) -> None:
    world.sandbox.exec("pip install httpx", timeout=120).check()
    said = world.python("""
import asyncio, httpx
async def main():
    async with httpx.AsyncClient(timeout=60) as client:
        asked = (client.get(base + "/moved", follow_redirects=True) for base in (PLAIN, SECURE) * 3)
        answers = await asyncio.gather(*asked)
        say([answer.text for answer in answers])
        say((await client.post(SECURE + "/echo", content=b"z" * 300_000)).text.endswith("\\n\\n" + "z" * 300_000))
asyncio.run(main())
""")
    assert said == [["hello"] * 6, True]


def test_names(world: World) -> None:
    said = world.python("""
import socket
say(socket.gethostbyname("web.test"))
say(socket.gethostbyname_ex("web.test"))
say([list(entry[:3]) + [list(entry[4])] for entry in socket.getaddrinfo("web.test", "https", type=socket.SOCK_STREAM)])
say(socket.getaddrinfo("127.0.0.1", 80, socket.AF_INET, socket.SOCK_STREAM)[0][4])
say([socket.getservbyname("https"), socket.getservbyport(443), socket.gethostbyname("127.0.0.1")])
say(socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, "2001:db8::1")))
say([int(socket.AF_INET), int(socket.SOCK_STREAM), socket.SOL_SOCKET])
""")
    assert said == [
        "127.0.0.1",
        ["web.test", [], ["127.0.0.1"]],
        [[2, 1, 6, ["127.0.0.1", 443]]],
        ["127.0.0.1", 80],
        [443, "https", "127.0.0.1"],
        "2001:db8::1",
        [2, 1, 1],
    ]


def test_a_session_has_it_too(world: World) -> None:
    code = f"import urllib.request\nurllib.request.urlopen('https://web.test:{world.secure.port}/').read().decode()"
    assert world.sandbox.python.run(code).value == "hello"
