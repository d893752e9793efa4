"""V8 where it can be had, QuickJS where not: chosen by what is there or by the owner, and said openly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import belljar
from belljar.engines import artefact_host
from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner import js_build_host as build_host
from belljar.engines.owner import js_choice_host as choice_host
from belljar.engines.owner import quickjs_package_host as package_host
from belljar.engines.owner import template_host
from belljar.engines.owner.js_choice_host import VARIABLE, Choice, SlowerEngine, choose, describe, expected


@pytest.fixture
def undecided(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that has not looked yet."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(choice_host, "_found", None)
    templates = template_host._templates
    kinds = ["js", "node"]
    before = {kind: templates.pop(kind) for kind in kinds if kind in templates}
    yield
    for kind in kinds:
        if kind in templates:
            templates.pop(kind).close()
    templates |= before


@pytest.fixture
def no_compiler(undecided: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A machine where the addon is neither built nor can be. What QuickJS needs is kept where it was."""
    monkeypatch.setattr(build_host, "cache_directories", list[str])
    monkeypatch.setattr(build_host, "cache_directory", lambda: str(tmp_path))
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CXX", raising=False)
    build_host.addon.cache_clear()
    yield
    build_host.addon.cache_clear()


def test_v8_is_taken_where_it_is(undecided: None) -> None:
    assert expected() == Choice("v8", "")
    assert choose() == Choice("v8", "")
    assert describe() == "v8"


def test_without_a_compiler_quickjs_runs_it_and_the_owner_is_told_why(no_compiler: None) -> None:
    assert expected().engine == "quickjs"
    with belljar.js() as js:
        with pytest.warns(SlowerEngine, match=r"needs a C\+\+ compiler.*BELLJAR_JS=quickjs"):
            prefix = js.precompile("globalThis.n = 40")
        assert prefix.run("export default n + 2").value == 42
        assert js.engine == "quickjs"
        js.run("1")  # it is said once
    with belljar.Sandbox() as sandbox:
        assert sandbox.info.js.startswith("quickjs (V8 needs a C++ compiler")
        assert re.fullmatch(r"v24\.\d+\.\d+-quickjs\n", sandbox.exec("node --version").stdout)


def test_what_compiles_may_still_not_run(undecided: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken.node"
    artefact_host.store(broken, b"no library")
    monkeypatch.setattr(build_host, "addon", lambda: broken)
    monkeypatch.setattr(build_host, "addon_places", lambda: (broken, tmp_path / "built.node"))
    with pytest.warns(SlowerEngine, match="V8 does not run here"):
        assert choose().engine == "quickjs"
    assert expected().engine == "quickjs"
    assert "V8 does not run here" in describe()


def test_with_neither_it_says_what_both_lack(no_compiler: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(package_host, "distribution", missing)
    with pytest.raises(EngineUnavailable, match=r"C\+\+ compiler.*fallback.*pip install -e '\.\[js\]'"):
        choose()
    assert describe().startswith("none (")
    with belljar.js() as js, pytest.raises(belljar.EngineUnavailable):
        js.precompile("1")


def test_the_owner_decides(undecided: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "quickjs")
    assert choose() == expected() == Choice("quickjs", "BELLJAR_JS=quickjs")
    monkeypatch.setenv(VARIABLE, "v8")
    assert choose() == Choice("v8", "")
    monkeypatch.setenv(VARIABLE, "auto")
    assert choose() == Choice("v8", "")
    monkeypatch.setenv(VARIABLE, "spidermonkey")
    with pytest.raises(EngineUnavailable, match="'spidermonkey' is no engine: it may be v8, quickjs or auto"):
        choose()
    assert describe().startswith("none (")


def test_another_build_of_the_engine_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "quickjs_rs").mkdir()
    for name in ("_guest.wasm", "_transform.wasm"):
        (tmp_path / "quickjs_rs" / name).write_bytes(b"\0asm\1\0\0\0")

    class Package:
        def locate_file(self, name: str) -> Path:
            return tmp_path / name

    monkeypatch.setattr(package_host, "distribution", lambda _name: Package())
    monkeypatch.setenv("BELLJAR_CACHE", str(tmp_path / "cache"))
    with pytest.raises(EngineUnavailable, match="is not that of quickjs-rs"):
        package_host.sources()
