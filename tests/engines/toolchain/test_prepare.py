"""Preparing tools: what is fetched is checked, what is kept is found, and removed again."""

from __future__ import annotations

import base64
import hashlib
import io
import mmap
import sys
import tarfile
from pathlib import Path

import pytest

from belljar import Sandbox
from belljar.abi.dataclass import replace
from belljar.engines.owner import tools_host
from belljar.engines.prepared_host import READY, place_of, prepared_beside
from belljar.engines.wasm.tar_library import tar_library
from belljar.engines.wire.tools import LLVM, TOOLS, Tool
from belljar.owner.supervisor_host import shared

WASM = b"\0asm\1\0\0\0"
"""An empty module."""


def archive(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def tool_of(data: bytes, wasm: bytes = WASM, library: bytes = b"") -> Tool:
    return replace(
        LLVM,
        integrity=base64.b64encode(hashlib.sha512(data).digest()).decode(),
        program_sha256=hashlib.sha256(wasm).hexdigest(),
        library_sha256=hashlib.sha256(library).hexdigest(),
        archive="",
    )


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BELLJAR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.slow
def test_a_tool_is_prepared_found_and_removed(cache: Path) -> None:
    data = archive({LLVM.program: WASM, LLVM.library: b"files", "package/other": b"x"})
    tool = tool_of(data, library=b"files")
    asked: list[str] = []

    def fetch(url: str) -> bytes:
        asked.append(url)
        return data

    for _ in range(2):  # the second time nothing is to be done
        tools_host.prepare_tool(tool, fetch=fetch)
    assert asked == ["https://registry.npmjs.org/@yowasp/clang/-/clang-22.0.0-git20542-10.tgz"]
    assert tools_host.is_ready(tool)
    place = place_of(tool)
    assert place is not None
    assert sorted(path.name for path in Path(place).iterdir()) == ["library.tar", "ready"]
    assert tools_host.remove_tool(tool) > 0
    assert not tools_host.is_ready(tool)
    assert place_of(tool) is None
    assert not list(cache.glob("*.cwasm"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="there is no zygote")
def test_new_sandboxes_have_what_was_prepared_since_the_first(cache: Path) -> None:
    shared.close()  # the next zygote looks into this cache
    try:
        ready = cache / LLVM.place / READY
        with Sandbox() as first:
            assert first.exec("command -v gcc").stdout == ""
            ready.parent.mkdir(parents=True)
            ready.touch()
            with Sandbox() as second:
                assert second.exec("command -v gcc").stdout == "/usr/bin/gcc\n"
            with first.fork() as branch:  # by the zygote that it came from
                assert branch.exec("echo works").stdout == "works\n"
        ready.unlink()
        with Sandbox() as third:
            assert third.exec("command -v gcc").stdout == ""
    finally:
        shared.close()


def test_other_files_than_the_known_ones_are_refused(cache: Path) -> None:
    good = archive({LLVM.program: WASM, LLVM.library: b"files"})
    with pytest.raises(tools_host.NotFetched, match="nothing was kept"):
        tools_host.prepare_tool(tool_of(good), fetch=lambda _: good + b"x")
    for files in ({LLVM.program: WASM}, {LLVM.program: b"other", LLVM.library: b""}):
        data = archive(files)
        with pytest.raises(tools_host.NotFetched, match=r"has another package/gen/\S+ than belljar knows"):
            tools_host.prepare_tool(tool_of(data, library=b"files"), fetch=lambda _, data=data: data)  # type: ignore[misc]
    assert place_of(tool_of(good)) is None


def test_a_registry_that_can_not_be_reached_says_what_to_set(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9/npm/")
    with pytest.raises(
        tools_host.NotFetched, match=r"http://127.0.0.1:9/npm/@yowasp/clang/\S+ can't be .* NPM_CONFIG_REGISTRY"
    ):
        tools_host.prepare_tool(LLVM)


def test_nothing_is_prepared_without_a_cache(tmp_path: Path) -> None:
    assert prepared_beside("") == ()
    assert prepared_beside(str(tmp_path / "modules")) == ()


def test_names_do_not_meet() -> None:
    names = [name for tool in TOOLS.values() for name in tool.names]
    assert len(names) == len(set(names))


def test_files_of_a_tar_are_a_library(tmp_path: Path) -> None:
    path = tmp_path / "t.tar"
    long = "d/" * 60 + "deep"
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in (("./include/a.h", b"abc"), ("include/sub/b.h", b"x" * 1000), (long, b"end")):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        link = tarfile.TarInfo("include/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with open(path, "rb") as file:
        library = tar_library(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), b"/r")
    assert library[b"/r/include"] == [b"a.h", b"sub"]
    found = library[b"/r/include/sub/b.h"]
    assert not isinstance(found, list)
    assert (found.size, found.read(998, 10), found.read(1000, 10), found.read(5000, 1)) == (1000, b"xx", b"", b"")
    deep = library[b"/r/" + long.encode()]
    assert not isinstance(deep, list)
    assert deep.read(0, 10) == b"end"
