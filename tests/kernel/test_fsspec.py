"""fsspec URLs as file servers: what the contract battery does not ask."""

import builtins
from errno import EACCES, EIO, ENOENT, ENOSPC, EPERM, EROFS
from itertools import count

import fsspec
import pytest

from belljar.abi.flags import O_CREAT, O_RDWR, O_WRONLY
from belljar.abi.records import Owner, SetAttr
from belljar.kernel.fs import fsspec_host
from belljar.kernel.fs.fsspec_host import FsspecServer
from tests.contract.calls import read, write
from tests.contract.servers import view_of
from tests.kernel.rig import errno_of

_TREES = count()


def store() -> str:
    url = f"memory://test-{next(_TREES)}"
    fsspec.filesystem("memory").mkdir(url)
    return url


def test_what_is_written_is_there_for_others() -> None:
    url = store()
    view = view_of(FsspecServer(url, read_only=False, owner=Owner(1000, 1000)))
    view.mkdir("/d")
    write(view, "/d/f", b"content")
    assert view.stat("/d/f").uid == 1000
    with fsspec.open(f"{url}/d/f") as file:
        assert file.read() == b"content"
    other = view_of(FsspecServer(url))
    assert read(other, "/d/f") == b"content"
    assert errno_of(other.open, "/d/f", O_WRONLY) == EROFS
    assert errno_of(FsspecServer(url).setattr, other.resolve("/d/f").node, SetAttr(size=0)) == EROFS


def test_an_upload_happens_at_sync_and_at_close() -> None:
    url = store()
    view = view_of(FsspecServer(url, read_only=False))
    file = view.open("/f", O_RDWR | O_CREAT).retain()
    memory = fsspec.filesystem("memory")
    file.write(b"one")
    assert memory.cat_file(f"{url}/f") == b""
    file.handle.sync()
    assert memory.cat_file(f"{url}/f") == b"one"
    file.write(b" two")
    file.release()
    assert memory.cat_file(f"{url}/f") == b"one two"


def test_what_a_store_cannot_do() -> None:
    view = view_of(FsspecServer(store(), read_only=False))
    write(view, "/f", b"x")
    assert errno_of(view.chmod, "/f", 0o600) == EPERM
    assert errno_of(view.chown, "/f", 5, 5) == EPERM
    assert errno_of(view.utimens, "/f", 1, 1) == EPERM
    assert errno_of(view.symlink, "x", "/l") == EROFS
    view.chmod("/f", 0o644)


def test_a_file_held_for_upload_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsspec_host, "BUFFER_MAX", 100)
    view = view_of(FsspecServer(store(), read_only=False))
    file, other = (view.open(path, O_RDWR | O_CREAT).retain() for path in ("/f", "/g"))
    assert errno_of(file.write, b"x" * 101) == ENOSPC
    assert errno_of(file.truncate, 1 << 40) == ENOSPC
    assert file.write(b"x" * 60) == 60
    assert errno_of(other.write, b"x" * 60) == ENOSPC
    file.release()
    assert other.write(b"x" * 60) == 60
    assert errno_of(view.open, "/f", O_RDWR) == ENOSPC
    other.release()
    again = view.open("/f", O_RDWR).retain()
    assert again.read(100) == b"x" * 60
    again.truncate(0)
    again.release()


def test_the_store_keeps_few_files_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsspec_host, "READERS_MAX", 3)
    server = FsspecServer(store(), read_only=False)
    view = view_of(server)
    for number in range(10):
        write(view, f"/f{number}", b"%d" % number)
    files = [view.open(f"/f{number}", 0).retain() for number in range(10)]
    assert len(server._readers) == 3
    assert [file.pread(10, 0) for file in files] == [b"%d" % number for number in range(10)]
    assert len(server._readers) == 3
    for file in files:
        file.release()
    assert server._readers == {}
    assert server.held == 0


@pytest.mark.parametrize("url", ["file:///etc", "local:///etc", "/etc", "etc"])
def test_local_files_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"Mount\.host"):
        FsspecServer(url)


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        FsspecServer("nonsense://x")


def test_without_fsspec_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def refuse(name: str, *rest: object) -> object:
        if name.startswith("fsspec"):
            raise ImportError(name)
        return real_import(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install -e '\.\[fs\]'"):
        FsspecServer("memory://x")


def test_a_stores_failures_become_errnos() -> None:
    server = FsspecServer(store(), read_only=False)
    view = view_of(server)
    write(view, "/f", b"x")

    def broken(*_arguments: object, **_options: object) -> object:
        raise RuntimeError("token=secret")

    server._fs = type("Broken", (), {"info": broken, "ls": broken, "open": broken})()
    assert errno_of(view.stat, "/f") == EIO
    assert errno_of(view.readdir, "/") == EIO

    def forbidden(*_arguments: object, **_options: object) -> object:
        raise PermissionError("no")

    server._fs = type("Forbidden", (), {"info": forbidden})()
    assert errno_of(view.stat, "/f") == EACCES


def test_names_a_store_must_not_use_are_not_shown() -> None:
    url = store()
    server = FsspecServer(url)

    class Odd:
        def ls(self, path: str, *, detail: bool) -> list[dict[str, object]]:
            names = ["ok", "..", ".", "", "nul\0"]
            return [{"name": f"{path}/{name}", "type": "file", "size": 1} for name in names]

        def info(self, path: str) -> dict[str, object]:
            raise FileNotFoundError(path)

    server._fs = Odd()
    view = view_of(server)
    assert [entry.name for entry in view.readdir("/")] == ["ok"]
    assert errno_of(view.stat, "/..x") == ENOENT
