"""The cache of compiled programs: made once, authenticated, never loaded when it is not ours."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest

from belljar.engines import artefact_host as artefacts
from belljar.engines.artefact_host import ArtefactError, Source, find, open_checked, prepare

wasmtime = pytest.importorskip("wasmtime")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.setenv("BELLJAR_CACHE", str(tmp_path / "cache"))
    wasm = bytes(wasmtime.wat2wasm('(module (func (export "f") (result i32) (i32.const 7)))'))
    path = tmp_path / "f.wasm"
    path.write_bytes(wasm)
    return Source(path, hashlib.sha256(wasm).hexdigest(), "f")


def load(path: Path, *, optimised: bool) -> int:
    from belljar.engines.wasi.linker_host import engine

    native = engine(optimised=optimised)
    with open_checked(path) as name:
        module = wasmtime.Module.deserialize_file(native, name)
    store = wasmtime.Store(native)
    return int(wasmtime.Instance(store, module, []).exports(store)["f"](store))


def test_made_once_in_two_qualities(source: Source) -> None:
    assert find(source) is None
    quick = prepare(source, "quick")
    assert find(source) == (quick, "quick")
    assert load(quick, optimised=False) == 7
    made = quick.stat().st_mtime_ns
    assert prepare(source, "quick") == quick
    assert quick.stat().st_mtime_ns == made
    best = prepare(source, "optimised")
    assert find(source) == (best, "optimised")
    assert load(best, optimised=True) == 7
    assert {path.stat().st_mode & 0o077 for path in (best, best.with_suffix(".mac"), best.parent / "key")} == {0}


@pytest.mark.parametrize("damage", ["contents", "seal", "key", "name"])
def test_what_we_did_not_write_is_not_loaded(source: Source, damage: str) -> None:
    path = prepare(source, "quick")
    if damage == "contents":
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    elif damage == "seal":
        path.with_suffix(".mac").write_bytes(bytes(32))
    elif damage == "key":
        (path.parent / "key").write_bytes(bytes(32))
    else:
        other = path.with_name("0" * 32 + ".cwasm")
        path.rename(other)
        path.with_suffix(".mac").rename(other.with_suffix(".mac"))
        path = other
    with pytest.raises(ArtefactError, match="not what was written"), open_checked(path):
        pass
    assert not path.exists(), "so that the next use makes a new one"


def test_a_cache_of_others_is_refused(source: Source) -> None:
    prepare(source, "quick")
    directory = artefacts.directory()
    directory.chmod(0o777)
    with pytest.raises(ArtefactError, match="can be written by others"):
        find(source)
    directory.chmod(0o700)
    (directory / "key").chmod(0o644)
    with pytest.raises(ArtefactError, match="can be read by others"):
        prepare(source, "optimised")


def test_another_file_is_not_compiled(source: Source) -> None:
    wrong = Source(source.path, "0" * 64, "f")
    with pytest.raises(ArtefactError, match="its SHA-256 differs"):
        prepare(wrong, "quick")


def test_two_at_once_make_one(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = artefacts._compile

    def counted(*arguments: object) -> None:
        made.append("x")
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(artefacts, "_compile", counted)
    threads = [threading.Thread(target=prepare, args=(source, "quick")) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert made == ["x"]
