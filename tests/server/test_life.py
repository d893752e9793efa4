"""What happens to sandboxes by themselves: idle ones, crashed ones, images, TLS, host names, network."""

from __future__ import annotations

import datetime
import json
import os
import signal
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from belljar import Image, Store
from tests.server.serving import Server, children, descendants, from_elsewhere
from tests.server.test_control import envd, state, until


@pytest.mark.slow
def test_idle_sandboxes_are_paused(tmp_path: Path) -> None:
    server = Server(tmp_path, "--idle", "1")
    try:
        idle, busy = server.create(), server.create()
        body = b'{"process": {"cmd": "/bin/sleep", "args": ["4"]}}'
        headers = {"Content-Type": "application/connect+json", "Connect-Timeout-Ms": "2500"}
        content = b"\0" + len(body).to_bytes(4, "big") + body
        assert (
            b"start" in envd(server, busy, "POST", "/process.Process/Start", content=content, headers=headers).content
        )
        until(lambda: state(server, idle) == "paused")
        assert envd(server, idle, "GET", "/files?path=/etc/hostname").status_code == 200
    finally:
        server.stop()


def test_a_sandbox_whose_worker_dies_is_gone(own: Server) -> None:
    assert own.process is not None
    made, other = own.create(), own.create()
    assert envd(own, made, "GET", "/health").status_code == 204
    for pid in set(descendants(own.process.pid)) - set(children(own.process.pid)):  # workers, spare ones among them
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: state(own, made) == state(own, other) == "404")
    assert own.request("GET", "/healthz").status_code == 200
    again = own.create()
    assert envd(own, again, "GET", "/files?path=/etc/hostname").status_code == 200


def test_images_of_the_store_are_templates(own: Server) -> None:
    store = Store.sqlite(str(own.directory / "store.db"))
    Image().files({"/opt/hello": "from the image"}).env(STAGE="test").build(store, name="app")
    made = own.create(templateID="app")
    assert envd(own, made, "GET", "/files?path=/opt/hello").text == "from the image"
    run = envd(own, made, "POST", "/execute", json={"code": "echo $STAGE; whoami; pwd", "language": "bash"}).text
    assert "test" in run


@pytest.mark.slow
def test_the_native_tier(tmp_path: Path) -> None:
    """The same protocol over real Linux programs, where this machine can have them."""
    server = Server(tmp_path, "--tier", "native")
    try:
        answer = server.request("POST", "/v2/sandboxes", json={"templateID": "base"})
        if answer.status_code != 201:
            pytest.skip(f"no native sandboxes here: {answer.text}")
        made = answer.json()
        assert envd(server, made, "POST", "/files?path=a", files={"file": ("a", b"kept")}).status_code == 200
        run = {"code": "uname -s; cat a; pwd", "language": "bash"}
        events = [json.loads(line) for line in envd(server, made, "POST", "/execute", json=run).text.splitlines()]
        said = "".join(event["text"] for event in events if event["type"] == "stdout")
        assert said == "Linux\nkept/home/user\n"
        entry = envd(server, made, "POST", "/filesystem.Filesystem/Stat", json={"path": "a"}).json()["entry"]
        assert (entry["owner"], entry["size"]) == ("user", "4")
        assert server.request("POST", f"/sandboxes/{made['sandboxID']}/pause", json={}).status_code == 204
        assert envd(server, made, "GET", "/files?path=a").text == "kept"
    finally:
        server.stop()


def test_a_boot_id_is_one_sandboxs_until_it_is_paused(server: Server) -> None:
    """Nothing that runs outlives a pause: to programs, it is a boot. And no sandbox has another one's."""

    def boot_id(made: dict[str, Any]) -> str:
        return envd(server, made, "GET", "/files?path=/proc/sys/kernel/random/boot_id").text

    first, second = server.create(), server.create()
    before = boot_id(first)
    assert boot_id(first) == before != boot_id(second)
    assert server.request("POST", f"/sandboxes/{first['sandboxID']}/pause", json={}).status_code == 204
    assert len({before, boot_id(first), boot_id(second)}) == 3
    for made in (first, second):
        server.request("DELETE", f"/sandboxes/{made['sandboxID']}")


def test_a_sandbox_is_found_by_its_host_name(server: Server) -> None:
    made = server.create()
    token = {"X-Access-Token": made["envdAccessToken"]}
    host = {"Host": f"49983-{made['sandboxID']}.sandboxes.example.com"}
    assert httpx.get(f"{server.url}/health", headers={**token, **host}, timeout=30).status_code == 204
    assert httpx.get(f"{server.url}/health", headers=token, timeout=30).status_code == 400
    other = {"Host": f"8000-{made['sandboxID']}.sandboxes.example.com"}
    assert (
        httpx.get(f"{server.url}/health", headers={**token, **other, **from_elsewhere()}, timeout=30).status_code == 403
    )  # it is a preview's
    traffic = {"E2B-Traffic-Access-Token": made["trafficAccessToken"]}
    answer = httpx.get(f"{server.url}/health", headers={**traffic, **other}, timeout=30)
    assert (answer.status_code, "port 8000 is not open" in answer.text) == (502, True)
    server.request("DELETE", f"/sandboxes/{made['sandboxID']}")


def test_networks_stay_within_what_the_operator_grants(tmp_path: Path) -> None:
    server = Server(tmp_path, "--allow-host", "allowed.example.com")
    try:
        granted = {"allowOut": ["allowed.example.com"]}
        made = server.create(network=granted)
        for wish in ({"allowOut": ["other.example.com"]}, {"allowOut": ["*"]}):
            answer = server.request("POST", "/v2/sandboxes", json={"templateID": "base", "network": wish})
            assert answer.status_code == 403
            assert server.request("PUT", f"/sandboxes/{made['sandboxID']}/network", json=wish).status_code == 403
        assert server.request("PUT", f"/sandboxes/{made['sandboxID']}/network", json=granted).status_code == 204
        wrong = {"denyOut": ["no address"]}
        assert server.request("PUT", f"/sandboxes/{made['sandboxID']}/network", json=wrong).status_code == 400
        sealed = {"denyOut": ["0.0.0.0/0"]}
        assert server.request("PUT", f"/sandboxes/{made['sandboxID']}/network", json=sealed).status_code == 204
        shown = server.request("GET", f"/sandboxes/{made['sandboxID']}").json()
        assert shown["network"] == {"allowOut": [], "denyOut": ["0.0.0.0/0"]}
        code = {"code": "curl -sS --max-time 5 http://allowed.example.com/; echo $?", "language": "bash"}
        assert "no network" in envd(server, made, "POST", "/execute", json=code).text
    finally:
        server.stop()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    cert, secret = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert, secret


def test_tls(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    server = Server(tmp_path, "--tls-cert", str(cert), "--tls-key", str(key))
    try:
        assert server.url.startswith("https://")
        trusted = ssl.create_default_context(cafile=str(cert))
        answer = httpx.get(f"https://localhost:{server.port}/healthz", verify=trusted, timeout=30)
        assert answer.json() == {"status": "ok"}
    finally:
        server.stop()
