"""`belljar serve` at the command line: what it prints, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from belljar.server.config import Config
from belljar.server.serve_host import CannotServe, data_path, is_loopback
from tests.server.serving import Server


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "belljar.cli", "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def test_it_says_how_to_use_it(server: Server) -> None:
    said = "".join(server.said)
    assert f"belljar serves at {server.url}\n" in said
    assert f"API key: {server.key}" in said
    assert f"export E2B_API_KEY={server.key} E2B_API_URL={server.url} E2B_SANDBOX_URL={server.url}" in said


def test_beyond_this_machine_it_needs_a_key_and_tls(tmp_path: Path) -> None:
    store = str(tmp_path / "s.db")
    without_key = run("--host", "0.0.0.0", "--port", "0", "--store", store)
    assert without_key.returncode == 125
    assert "belljar serve key create" in without_key.stderr
    assert run("key", "create", "--store", store).stdout.startswith("bj_")
    without_tls = run("--host", "0.0.0.0", "--port", "0", "--store", store)
    assert without_tls.returncode == 125
    assert "--tls-cert" in without_tls.stderr
    server = Server(tmp_path / "x", "--host", "0.0.0.0", "--insecure", "--data", f"{store}.server.db", store=False)
    assert server.stop() == 0


def test_one_server_for_each_file(server: Server) -> None:
    second = run("--port", "0", "--store", str(server.directory / "store.db"))
    assert second.returncode == 125
    assert "another server uses" in second.stderr


def test_a_port_that_is_taken(server: Server, tmp_path: Path) -> None:
    second = run("--port", str(server.port), "--store", str(tmp_path / "s.db"))
    assert second.returncode == 125
    assert f"can't listen on 127.0.0.1 port {server.port}" in second.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("colour = 1", "has no option colour"),
        ("[quota]\nsandboxen = 1", "has no option sandboxen"),
        ("[limits]\nfile_bytes = -1", "file_bytes"),
        ("port = 99999999", "is no port"),
    ],
)
def test_a_wrong_config_file_is_told(tmp_path: Path, text: str, complaint: str) -> None:
    config = tmp_path / "serve.toml"
    config.write_text(text)
    told = run("--config", str(config))
    assert told.returncode == 2
    assert complaint in told.stderr


def test_a_package_that_is_missing_is_named() -> None:
    code = (
        "import sys\nsys.modules['uvicorn'] = None\nfrom belljar.cli.__main__ import main\n"
        "raise SystemExit(main(['serve', '--port', '0']))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert told.returncode == 125
    assert "pip install -e '.[server]'" in told.stderr


def test_keys_need_a_server() -> None:
    assert "--data FILE or --store PATH" in run("key", "list").stderr


def test_where_the_servers_file_is(tmp_path: Path) -> None:
    assert data_path(None, None) is None
    assert data_path("x.db", None) == "x.db"
    assert data_path(None, str(tmp_path / "s.db")) == str(tmp_path / "s.db.server.db")
    assert data_path(None, str(tmp_path)) == str(tmp_path / "server.db")
    with pytest.raises(CannotServe):
        data_path(None, "s3://bucket/x")


def test_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.com", "127.0.0.1.example.com")))
    assert is_loopback(Config().host)
