"""Native code of WebAssembly programs: made once, kept by the program's digest, never another's."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import wasmtime

from belljar import Limits, Sandbox
from belljar.abi.wire import Ask, WireError
from belljar.api.engines_host import EngineBroker, Opening
from belljar.engines.owner import wasm_natives_host as natives_host
from belljar.engines.owner import wasm_start_host as start_host
from belljar.engines.owner.template_host import EngineLimits, EngineProcess
from belljar.engines.owner.wasm_natives_host import Natives
from belljar.engines.wire import wasm as orders


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BELLJAR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "wasm"


def read(fd: int | None) -> bytes | None:
    if fd is None:
        return None
    with open(fd, "rb") as file:
        return file.read()


def digest(program: bytes | bytearray) -> str:
    return hashlib.sha256(program).hexdigest()


def test_is_found_again_in_memory_and_by_the_next_owner(cache: Path) -> None:
    natives = Natives()
    assert natives.find(digest(b"a")) is None
    natives.add(b"a", b"native a")
    natives.add(b"b", b"native b")
    for owner in (natives, natives, Natives()):
        assert read(owner.find(digest(b"a"))) == b"native a"
        assert read(owner.find(digest(b"b"))) == b"native b"
    assert {path.stat().st_mode & 0o077 for path in cache.glob("*.*")} == {0}


def test_what_is_handed_out_can_be_read_and_nothing_else(cache: Path) -> None:
    natives = Natives()
    natives.add(b"a", b"native")
    fd = natives.find(digest(b"a"))
    assert fd is not None
    for change in (lambda: os.write(fd, b"x"), lambda: os.ftruncate(fd, 0)):
        with pytest.raises(OSError, match=r"\[Errno"):
            change()
    # Its position is its own: two processes read it at a time.
    assert os.read(fd, 3) == b"nat"
    assert read(natives.find(digest(b"a"))) == b"native"
    os.close(fd)


@pytest.mark.parametrize("suffix", [".cwasm", ".mac"])
def test_what_was_changed_on_disk_is_not_used(cache: Path, suffix: str) -> None:
    Natives().add(b"a", b"native")
    (path,) = cache.glob(f"*{suffix}")
    path.write_bytes(b"x" * path.stat().st_size)
    assert Natives().find(digest(b"a")) is None
    assert not list(cache.glob("*.cwasm"))


def test_a_file_of_another_program_is_not_used(cache: Path) -> None:
    Natives().add(b"a", b"evil")
    (theirs,) = cache.glob("*.cwasm")
    Natives().add(b"b", b"good")
    (ours,) = set(cache.glob("*.cwasm")) - {theirs}
    for suffix in (".cwasm", ".mac"):
        theirs.with_suffix(suffix).replace(ours.with_suffix(suffix))
    assert Natives().find(digest(b"b")) is None


def test_another_compiler_or_processor_makes_its_own(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Natives().add(b"a", b"native")
    for name in ("version", "instruction_set"):
        with monkeypatch.context() as patch:
            patch.setattr(natives_host, name, lambda *_: "another")
            assert Natives().find(digest(b"a")) is None
    assert read(Natives().find(digest(b"a"))) == b"native"


def test_those_used_longest_ago_make_room(cache: Path) -> None:
    natives = Natives(memory_max=25, disk_max=25)
    for number, name in enumerate((b"a", b"b")):
        natives.add(name, name * 10)
        for path in cache.glob("*.cwasm"):
            if path.read_bytes() == name * 10:
                os.utime(path, (number, number))
    assert read(Natives().find(digest(b"a"))) == b"a" * 10  # and so was used last
    natives.add(b"c", b"c" * 10)
    kept = [name for name in (b"a", b"b", b"c") if read(Natives().find(digest(name))) is not None]
    assert kept == [b"a", b"c"]
    assert len(list(cache.glob("*.mac"))) == 2


def test_without_a_directory_of_ours_it_is_kept_in_memory(cache: Path) -> None:
    cache.parent.mkdir(parents=True)
    cache.parent.chmod(0o777)
    natives = Natives()
    natives.add(b"a", b"native")
    assert read(natives.find(digest(b"a"))) == b"native"
    assert not cache.exists()


# In sandboxes.


def program(code: int) -> bytes:
    """Ends with a code; no two are the same bytes."""
    text = f"""(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
      (memory (export "memory") 1) (data (i32.const 0) "{os.urandom(8).hex()}")
      (func (export "_start") (call $exit (i32.const {code}))))"""
    return bytes(wasmtime.wat2wasm(text))


@pytest.fixture
def compilations(cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The digests of what is compiled."""
    found: list[str] = []
    real = start_host.compile_program

    def counting(given: bytearray, limits: EngineLimits, begun: Callable[[EngineProcess], None]) -> float:
        found.append(digest(given))
        return real(given, limits, begun)

    monkeypatch.setattr(start_host, "compile_program", counting)
    return found


def test_a_program_is_compiled_once_for_all_sandboxes(compilations: list[str]) -> None:
    wasm = program(7)
    for _ in range(2):
        with Sandbox(files={"/usr/local/bin/seven": (wasm, 0o755)}) as sandbox:
            assert [sandbox.exec(["seven"]).exit_code for _ in range(2)] == [7, 7]
    assert compilations == [digest(wasm)]


def test_a_file_that_changes_is_another_program(compilations: list[str]) -> None:
    one, two = program(1), program(2)
    with Sandbox(files={"/workspace/p": (one, 0o755)}) as sandbox:
        assert sandbox.exec(["./p"]).exit_code == 1
        sandbox.files.write("/workspace/p", two)
        assert sandbox.exec(["./p"]).exit_code == 2
        sandbox.files.write("/workspace/p", one)
        assert sandbox.exec(["./p"]).exit_code == 1
    assert compilations == [digest(one), digest(two)]


def test_a_program_that_takes_too_long_to_compile_spends_its_command(compilations: list[str]) -> None:
    body = "(i32.add (i32.const 1) " * 300 + "(i32.const 0)" + ")" * 300
    many = "".join(f"(func (result i32) {body})" for _ in range(6000))
    wasm = bytes(wasmtime.wat2wasm(f'(module {many} (data "{os.urandom(8).hex()}") (func (export "_start")))'))
    limits = Limits(cpu_seconds=0.2)
    with Sandbox(files={"/workspace/p": (wasm, 0o755)}, limits=limits) as sandbox:
        result = sandbox.exec(["./p"])
        assert result.limit == "cpu_seconds"
        assert sandbox.exec("echo fine").stdout == "fine\n"
        assert sandbox.exec(["./p"]).limit == "cpu_seconds"
    assert len(compilations) == 2, "nothing is kept of it"


# What a hostile worker could say.


def test_what_a_worker_uploads_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belljar.api.engines_host.PROGRAM_MAX", 10)
    broker = EngineBroker(Limits())

    def upload(number: int, piece: bytes) -> bytes:
        answer = broker.take(Ask(1, b"engine", "piece", [number, piece]))
        assert isinstance(answer, bytes)
        return answer

    fine = upload(1, b"123456")
    assert upload(2, b"12345") != fine
    assert upload(2, b"1234") == fine
    broker.kill(1)
    assert upload(3, b"123456") == fine
    opening = broker.take(Ask(1, b"engine", "compile", [3, {}]))
    assert isinstance(opening, Opening)
    assert opening.program == bytearray(b"123456")
    for wrong in (["x", b"1"], [1, "text"], [1]):
        with pytest.raises(WireError):
            broker.take(Ask(1, b"engine", "piece", wrong))
    broker.close()


def test_a_digest_is_no_path_and_need_not_be_one(cache: Path) -> None:
    for given in ("../../key", "", 7, None, "0" * 64):
        with pytest.raises(orders.NotCompiled):
            start_host.start(EngineLimits(1 << 26, 1), given)


def test_bytes_that_are_no_program_are_refused_with_a_reason(cache: Path) -> None:
    with pytest.raises(orders.CompilerRefused) as raised:
        start_host.compile_program(bytearray(b"\0asm\1\0\0\0\xff"), EngineLimits(1 << 26, 5), lambda _: None)
    assert str(raised.value)
    assert not raised.value.spent
