"""The network of native sandboxes: real programs, under the policies of the virtual tier."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from belljar import AsyncSandbox, Event, Network, Sandbox, SandboxCreationError
from belljar.native import netlink
from belljar.net.policy import Conn
from tests.native.boxes import native_sandbox
from tests.native.conftest import needs_native
from tests.native.debian_mirror import Mirror
from tests.net.servers import (
    Authority,
    DnsServer,
    GitServer,
    HttpServer,
    PackageIndex,
    Registry,
    Request,
    Tripwire,
    bodies,
)

SECRET = "ghp_canary_0123456789"
pytestmark = needs_native
AT = "127.0.0.7"
"""Where the servers are, outside."""
Start = Callable[..., Sandbox]


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda network=None, **settings: stack.enter_context(native_sandbox(network=network, **settings))


def run(sandbox: Sandbox, script: str, **options: Any) -> str:
    result = sandbox.exec(script, **options)
    assert result.exit_code == 0, (result.exit_code, result.stdout[-2000:], result.stderr[-2000:])
    return str(result.stdout)


def with_token(*names: str, **options: Any) -> Network:
    """A policy that adds a credential to the requests for these names, and hides it in answers."""

    def policy(conn: Conn) -> Any:
        if question := conn.match_dns("*.test"):
            return question.accept()
        for name in names:
            if flow := conn.match_http(f"{name}:{conn.dst.port}"):
                return flow.accept(
                    lambda request: request.headers.set("authorization", f"Bearer {SECRET}"), redact=True
                )
        if plain := conn.match_http(f"plain.test:{conn.dst.port}"):
            return plain.accept()
        return None

    return Network.policy(policy, hosts=dict.fromkeys((*names, "plain.test", "closed.test"), AT), **options)


def test_what_is_allowed_and_nothing_else(start: Start) -> None:
    events: list[Event] = []
    with HttpServer({"/": b"hello", "/big": b"x" * 3_000_000}, address=AT) as server, Tripwire(AT) as wire:
        names = {"api.test": AT, "other.test": AT}
        network = Network.allow(f"api.test:{server.port}", hosts=names)
        sandbox = start(network, on_event=events.append)
        assert run(sandbox, f"curl -sS http://api.test:{server.port}/") == "hello"
        assert run(sandbox, f"curl -sS http://api.test:{server.port}/big | wc -c").strip() == "3000000"
        for command, codes in (
            (f"curl -sS http://other.test:{server.port}/", (6,)),
            (f"curl -sS http://api.test:{wire.port}/", (7, 56)),
            ("curl -sS http://8.8.8.8/", (7, 56)),
            (f"curl -sS http://{AT}:{server.port}/", (7,)),  # its own loopback
        ):
            assert sandbox.exec(command).exit_code in codes, command
        assert not wire.touched()
        assert len(server.requests) == 2
        stats = sandbox.stats()
        assert stats["network_bytes_in"] > 3_000_000
        assert stats["network_connections"] == 2
        assert stats["network_denied"] >= 3
        told = [event.data for event in events if event.kind == "network"]
        assert any(event.get("ip") == "8.8.8.8" and event["action"] == "connect" for event in told)
        assert any(event.get("target") == "other.test." and event.get("result") == "denied" for event in told)


def test_what_is_denied_is_recorded_where_somebody_asked_for_it(start: Start) -> None:
    record: list[dict[str, Any]] = []
    sandbox = start(Network.deny(audit=record.append))
    assert sandbox.exec("curl -sS http://example.com/").exit_code == 6
    assert sandbox.exec("curl -sS http://8.8.8.8/").exit_code in (7, 56)
    sandbox.close()
    told = {(event["of"], event["target"], event["result"]) for event in record if event["action"] == "outcome"}
    assert {("dns", "example.com.", "denied"), ("connection", "tcp 8.8.8.8:80", "denied")} <= told


def test_a_policy_of_an_event_loop_s(tmp_path: Path) -> None:
    upstream = Authority(tmp_path)

    async def work() -> None:
        loop = asyncio.get_running_loop()

        async def policy(conn: Conn) -> Any:
            assert asyncio.get_running_loop() is loop
            await asyncio.sleep(0)
            if question := conn.match_dns("api.test"):
                return question.accept()
            if flow := conn.match_http(f"api.test:{conn.dst.port}"):
                return flow.accept(middleware)
            return None

        async def middleware(request: Any) -> Any:
            await asyncio.sleep(0)
            return request.respond(200, {}, f"{request.method} {request.path}".encode())

        network = Network.policy(policy, hosts={"api.test": AT}, ca_bundle=str(upstream.path))
        async with AsyncSandbox(tier="native", network=network) as sandbox:
            result = await sandbox.exec("curl -sS https://api.test/a && curl -sS http://api.test/b")
            assert (result.stdout, result.stderr) == ("GET /aGET /b", "")
            assert (await sandbox.exec("curl -sS https://evil.test/")).exit_code == 6
            assert (await sandbox.stats())["network_requests"] == 2

    asyncio.run(work())


def test_a_credential_is_added_and_never_seen(start: Start, tmp_path: Path) -> None:
    upstream = Authority(tmp_path)
    context = upstream.context("api.test", "plain.test")
    with HttpServer({"/": bodies.echo}, address=AT, context=context) as server:
        sandbox = start(with_token("api.test", ca_bundle=str(upstream.path)))
        url = f"https://api.test:{server.port}/"
        fetch = f'fetch("{url}").then(r => r.text()).then(console.log)'
        clients = [
            f"curl -sS {url}",
            f"curl -sS --http2 {url}",
            f"wget -qO- {url}",
            f"python3 -c 'from urllib.request import urlopen; print(urlopen(\"{url}\").read().decode())'",
            f"node -e '{fetch}'",
            f"printf 'GET / HTTP/1.0\\r\\nHost: api.test:{server.port}\\r\\n\\r\\n' | openssl s_client -quiet"
            f" -verify_return_error -servername api.test -connect api.test:{server.port}",
        ]
        # And without the variables, by the trust store alone.
        clients += [f"env -i {clients[number]}" for number in (0, 2, 3, 5)]
        for command in clients:
            before = len(server.requests)
            said = run(sandbox, command)
            assert SECRET not in said, command
            assert [request.header("authorization") for request in server.requests[before:]] == [f"Bearer {SECRET}"]
        # A flow without middleware shows the server's own certificate, which this image does not trust.
        assert sandbox.exec(f"curl -sS https://plain.test:{server.port}/").exit_code == 60
        assert sandbox.exec(f"curl -sS https://closed.test:{server.port}/").exit_code in (35, 56)
        seen = run(
            sandbox, "cat /etc/ssl/certs/belljar.pem; env; cat /proc/self/environ; ls -la /etc/ssl/certs | wc -l"
        )
        assert SECRET not in seen
        assert "PRIVATE KEY" not in seen


def test_variables_of_the_owner_win(start: Start) -> None:
    sandbox = start(with_token("api.test"), env={"SSL_CERT_FILE": "/mine.pem"})
    said = run(sandbox, "echo $SSL_CERT_FILE; echo $NODE_EXTRA_CA_CERTS; cat $CURL_CA_BUNDLE | grep -c BEGIN")
    own, extra, count = said.split()
    assert own == "/mine.pem"
    assert extra == "/etc/ssl/certs/belljar.pem"
    assert int(count) > 1
    assert "belljar.pem" not in run(start(Network.allow("a.test")), "env; ls /etc/ssl/certs")


def test_git_clone_and_push_with_a_credential(start: Start, tmp_path: Path) -> None:
    upstream = Authority(tmp_path)

    def only_with_token(request: Request) -> bool:
        return request.header("authorization") == f"Bearer {SECRET}"

    with GitServer(address=AT, context=upstream.context("git.test")) as server:
        server.commit({"a.txt": b"one\n", "dir/b.txt": b"two\n"}, "first")
        sandbox = start(with_token("git.test", ca_bundle=str(upstream.path)))
        url = f"https://git.test:{server.port}/repo.git"
        who = "git config user.name A; git config user.email a@example.com"
        said = run(sandbox, f"cd /tmp && git clone -q {url} r && cd r && cat a.txt dir/b.txt && git remote -v")
        assert said.startswith("one\ntwo\n")
        run(sandbox, f"cd /tmp/r && {who}; echo three > c.txt && git add . && git commit -qm second && git push -q")
        assert server.file("c.txt") == b"three\n"
        assert server.requests
        assert all(only_with_token(request) for request in server.requests)
        assert SECRET not in run(sandbox, "cd /tmp/r; cat .git/config; git log; grep -r ghp_ . || true")


def test_pip_installs_from_an_index(start: Start, tmp_path: Path) -> None:
    upstream = Authority(tmp_path)
    with PackageIndex(address=AT, context=upstream.context("pypi.test"), json=False) as index:
        index.release("leaf", "1.2", {"leaf.py": "VALUE = 7\n"})
        index.release("tree", "2.0", {"tree.py": "import leaf\n"}, requires=("leaf>=1",))
        sandbox = start(with_token("pypi.test", ca_bundle=str(upstream.path)))
        source = f"https://pypi.test:{index.port}/simple/"
        run(sandbox, f"cd /tmp && python3 -m pip install -q --no-cache-dir --target t -i {source} tree")
        assert run(sandbox, "cd /tmp/t && python3 -c 'import tree, leaf; print(leaf.VALUE)'") == "7\n"
        assert all(request.header("authorization") == f"Bearer {SECRET}" for request in index.requests)


def test_npm_installs_from_a_registry(start: Start, tmp_path: Path) -> None:
    upstream = Authority(tmp_path)
    with Registry(address=AT, context=upstream.context("npm.test")) as registry:
        registry.address = "npm.test"  # in the addresses of tarballs
        registry.publish("leaf", "1.0.0", {"index.js": "module.exports = 7\n"})
        registry.publish(
            "tree", "1.0.0", {"index.js": "module.exports = require('leaf')\n"}, dependencies={"leaf": "1"}
        )
        sandbox = start(with_token("npm.test", ca_bundle=str(upstream.path)))
        source = f"--registry https://npm.test:{registry.port}/ --no-audit --no-fund --cache /tmp/c"
        run(
            sandbox,
            f"mkdir -p /tmp/p && cd /tmp/p && echo '{{}}' > package.json && npm install --loglevel=error {source} tree",
        )
        assert run(sandbox, "cd /tmp/p && node -p 'require(\"tree\")'") == "7\n"


def test_apt_gets_a_package(start: Start, tmp_path: Path) -> None:
    upstream = Authority(tmp_path)
    mirror = Mirror(tmp_path / "mirror")
    mirror.add("hello-tool", files={"usr/bin/hello-tool": (b"#!/bin/sh\necho from a package\n", 0o755)})
    mirror.publish(fields={"Architectures": "amd64", "Components": "main"})
    files = {
        f"/{path.relative_to(mirror.root)}": path.read_bytes() for path in mirror.root.rglob("*") if path.is_file()
    }
    with HttpServer(files, address=AT, context=upstream.context("deb.test")) as server:
        sandbox = start(with_token("deb.test", ca_bundle=str(upstream.path)))
        source = f"deb [trusted=yes arch=amd64] https://deb.test:{server.port}/ bookworm main"
        script = f"""
        mkdir -p a/lists/partial a/cache/archives/partial && cd a && echo '{source}' > sources.list && touch status
        printf '%s\\n' 'Dir::Etc "'$PWD'";' 'Dir::State "'$PWD'";' 'Dir::State::status "'$PWD/status'";' \\
            'Dir::Cache "'$PWD/cache'";' > apt.conf
        export APT_CONFIG=$PWD/apt.conf
        apt-get -q update >&2 && apt-get -q download hello-tool >&2 && dpkg -x hello-tool_*.deb root
        root/usr/bin/hello-tool
        """
        assert run(sandbox, script) == "from a package\n"
        assert {request.header("authorization") for request in server.requests} == {f"Bearer {SECRET}"}


def test_a_sandbox_has_a_loopback_of_its_own(start: Start) -> None:
    serve = "python3 -m http.server -b {0} {1} >/dev/null 2>&1 & "
    ready = "for n in $(seq 600); do curl -s -o /dev/null {0} && break; sleep 0.05; done; "
    network = Network.allow("api.test:80", hosts={"api.test": AT})
    with Tripwire("127.0.0.1") as wire:
        for sandbox in (start(), start(network)):
            for address, url in (("127.0.0.1", "http://localhost:8001/"), ("::", "http://[::1]:8002/")):
                port = url.rstrip("/").rpartition(":")[2]
                script = serve.format(address, port) + ready.format(url) + f"curl -sS {url} | head -1; kill %1"
                assert "DOCTYPE" in run(sandbox, script)
            assert sandbox.exec(f"curl -sS http://127.0.0.1:{wire.port}/").exit_code == 7
        own = serve.format("0.0.0.0", 8003) + ready.format("http://10.0.2.15:8003/") + "curl -sS http://10.0.2.15:8003/"
        assert "DOCTYPE" in run(sandbox, f"{own}; kill %1")
        assert not wire.touched()


def test_names_are_answered_by_the_policy_whoever_is_asked(start: Start) -> None:
    public = "93.184.216.34"
    with DnsServer(
        {"good.test": [public, 'TXT "x"'], "inside.test": ["10.1.2.3"], "meta.test": ["169.254.169.254"]}
    ) as names:
        network = Network.allow("*.test", resolvers=[names.authority])
        sandbox = start(network)
        assert run(sandbox, "getent ahostsv4 good.test").split()[0] == public
        assert run(sandbox, ASK.format("8.8.8.8", "good.test", 2, 1)) == f"0 1 {public}\n"
        assert run(sandbox, ASK.format("1.1.1.1", "good.test", 1, 1)) == f"0 1 {public}\n"
        assert run(sandbox, ASK.format("2606:4700:4700::1111", "good.test", 2, 1)) == f"0 1 {public}\n"
        tunnels = [f"{'ab' * 30}.{n}.evil.example" for n in range(5)]
        for name in ("evil.example", *tunnels):
            assert run(sandbox, ASK.format("8.8.8.8", name, 2, 16)).startswith("5 0")
        assert sandbox.exec("getent hosts evil.example").exit_code == 2
        assert {name for name, _ in names.questions} == {"good.test"}, "what is denied is not asked for"
        for name in ("inside.test", "meta.test"):
            assert run(sandbox, ASK.format("8.8.8.8", name, 2, 1)).startswith("3 0")


ASK = """python3 -c '
import socket, struct, sys
server, name, kind, record = "{0}", "{1}", {2}, {3}
question = struct.pack("!6H", 7, 256, 1, 0, 0, 0)
question += b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + struct.pack("!BHH", 0, record, 1)
s = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, kind)
s.settimeout(20)
s.connect((server, 53))
if kind == 1:
    s.sendall(struct.pack("!H", len(question)) + question)
    size = struct.unpack("!H", s.recv(2))[0]
    reply = b""
    while len(reply) < size:
        reply += s.recv(size)
else:
    s.send(question)
    reply = s.recv(4096)
flags, _, count = struct.unpack_from("!3H", reply, 2)
print(flags & 15, count, socket.inet_ntoa(reply[-4:]) if count else "")
'"""


def test_a_forked_owner_has_no_part_in_it(start: Start) -> None:
    """Or its sockets would keep the namespace when the sandbox is long gone."""

    def addresses() -> set[str]:
        found = set()
        for number in map(int, os.listdir("/proc/self/fd")):
            with suppress(OSError):  # another thread closes its own meanwhile
                if os.readlink(f"/proc/self/fd/{number}").startswith("socket:"):
                    with socket.socket(fileno=os.dup(number)) as copy:
                        inet = copy.family in (socket.AF_INET, socket.AF_INET6)
                        found.add(str(copy.getsockname()[0]) if inet else "")
        return found

    own = {"192.0.0.8", "100::8"}
    deadline = time.monotonic() + 60
    while own & addresses():  # of a sandbox that a thread is closing: no thread goes on in a child
        assert time.monotonic() < deadline
        time.sleep(0.01)
    sandbox = start(Network.allow("a.test:80", hosts={"a.test": AT}))
    assert own <= addresses()
    child = os.fork()
    if child == 0:
        os._exit(len(own & addresses()))
    assert os.waitpid(child, 0)[1] == 0
    assert run(sandbox, "getent hosts a.test").startswith("240.0.0.7")


def test_a_kernel_without_the_rules(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netlink, "untracked", lambda: netlink._expression("belljar"))
    with pytest.raises(SandboxCreationError, match="modprobe -a nf_tables"):
        start(Network.allow("a.test"))
    run(start(), "true")


def test_a_sandbox_without_a_network(start: Start) -> None:
    for network in (None, Network.deny()):
        sandbox = start(network)
        said = run(sandbox, f"python3 -c '{TRY}'")
        assert json.loads(said) == [101] * 6 + ["gaierror"] * 2, said
        assert sandbox.exec("curl -sS http://example.com/").exit_code == 6


TRY = """
import errno, json, socket, time
def look():
    said = []
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        for address in ("8.8.8.8", "169.254.169.254", "2606:4700:4700::1111"):
            with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind) as s:
                try:
                    s.connect((address, 53))
                    said.append("connected")
                except OSError as error:
                    said.append(error.errno)
    for name in ("example.com", "localhost.example.com"):
        try:
            said.append(socket.getaddrinfo(name, 80)[0][4][0])
        except socket.gaierror:
            said.append("gaierror")
    return said
seconds = []
for _ in range(3):  # a wait for an answer would be in each, one for a busy machine is not
    began = time.monotonic()
    said = look()
    seconds.append(time.monotonic() - began)
assert min(seconds) < 4, "it took too long"
print(json.dumps(said))
"""
