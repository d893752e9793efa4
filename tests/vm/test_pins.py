"""`belljar prepare microvm` where a mirror has a pinned version no more: a mirror on loopback that answers 404."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from belljar.abi.errors import ImageError
from belljar.cli.__main__ import main
from belljar.image.debian.control import Package
from belljar.image.debian.fetch_host import PinsGone, fetch_pinned
from belljar.vm import parts_host, pins_host

ROOT = Path(__file__).parents[2]


class Mirror:
    """Serves `files` by path, and 404 for the rest. `asked`: the paths of requests."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        mirror = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                mirror.asked.append(self.path)
                data = mirror.files.get(self.path)
                self.send_response(404 if data is None else 200)
                self.send_header("Content-Length", str(len(data or b"")))
                self.end_headers()
                self.wfile.write(data or b"")

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Mirror:
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    monkeypatch.setenv("BELLJAR_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with Mirror() as found:
        monkeypatch.setattr(pins_host, "_SNAPSHOT", f"{found.url}/snapshot")
        yield found


def package(name: str, data: bytes) -> Package:
    digest = hashlib.sha256(data).hexdigest()
    fields = {
        "package": name,
        "version": "1.0-1",
        "filename": f"pool/{name}.deb",
        "size": str(len(data)),
        "sha256": digest,
    }
    return Package(fields, "")


def wanted(mirror: Mirror, *packages: Package) -> list[tuple[Package, list[str]]]:
    return [(each, [f"{mirror.url}/debian", f"{mirror.url}/snapshot"]) for each in packages]


def test_each_missing_version_is_named_and_the_others_are_kept(mirror: Mirror) -> None:
    here, gone, also = package("here", b"one"), package("gone", b"two"), package("also", b"three")
    mirror.files["/debian/pool/here.deb"] = b"one"
    with pytest.raises(PinsGone) as raised:
        list(fetch_pinned(wanted(mirror, gone, here, also)))
    assert [(each.name, each.version) for each in raised.value.gone] == [("gone", "1.0-1"), ("also", "1.0-1")]
    assert f"{mirror.url}/debian/pool/gone.deb: HTTP Error 404" in str(raised.value)
    mirror.asked.clear()
    assert [data for _, data in fetch_pinned(wanted(mirror, here))] == [b"one"]
    assert mirror.asked == []  # from the cache


def test_the_archive_of_old_versions_has_it(mirror: Mirror) -> None:
    mirror.files["/snapshot/pool/old.deb"] = b"old"
    assert [data for _, data in fetch_pinned(wanted(mirror, package("old", b"old")))] == [b"old"]


def test_a_cached_copy_is_used_only_if_it_is_the_pinned_one(mirror: Mirror, tmp_path: Path) -> None:
    one = package("one", b"right")
    place = tmp_path / "cache" / "debian"
    place.mkdir(parents=True, mode=0o700)
    (place.parent).chmod(0o700)
    (place / one.sha256).write_bytes(b"right")
    assert [data for _, data in fetch_pinned(wanted(mirror, one))] == [b"right"]
    assert mirror.asked == []
    (place / one.sha256).write_bytes(b"wrong")
    with pytest.raises(PinsGone):
        list(fetch_pinned(wanted(mirror, one)))


def test_another_file_under_the_name_is_an_error(mirror: Mirror) -> None:
    mirror.files["/debian/pool/one.deb"] = mirror.files["/snapshot/pool/one.deb"] = b"other"
    with pytest.raises(ImageError, match="another size or digest"):
        list(fetch_pinned(wanted(mirror, package("one", b"right"))))


def test_the_command_says_what_is_missing_and_what_to_do(mirror: Mirror, capsys: pytest.CaptureFixture[str]) -> None:
    before = (ROOT / "src/belljar/vm/pins.txt").read_bytes()
    assert main(["prepare", "microvm", "--mirror", mirror.url]) == 1
    told = capsys.readouterr().err
    names = [each.name for each, _ in pins_host.pinned(pins_host.TOOLS)]
    assert f"not have these pinned packages any more ({len(names)})" in told
    for name in names:
        assert f"\n  {name} " in told
    assert "HTTP Error 404" in told
    assert "python tools/pin_microvm.py" in told
    assert "Look at what that changed" in told
    assert (ROOT / "src/belljar/vm/pins.txt").read_bytes() == before


def test_what_is_prepared_needs_no_mirror(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Path(parts_host.directory()) / f"parts-{parts_host._key()}"
    place.mkdir(mode=0o700)
    (place / "done").touch()
    found = parts_host.Parts("root", "boot", "qemu", 1, "key")
    monkeypatch.setattr(parts_host, "find_parts", lambda: found)
    monkeypatch.setattr(parts_host, "agent_program", lambda: place)
    assert parts_host.prepare(lambda step: None, mirror.url) is found
    assert mirror.asked == []
