"""WebAssembly files with the execute bit are programs: compiled in a sealed process, over the kernel's calls."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import wasmtime

from belljar import Limits, Sandbox

HEAD = """(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
 (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
 (import "wasi_snapshot_preview1" "path_open"
   (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
 (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
 (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
 (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
 (import "wasi_snapshot_preview1" "fd_renumber" (func $renumber (param i32 i32) (result i32)))
 (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
 (memory (export "memory") 2)"""
COPY = """(i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 4096))
  (drop (call $read (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8)))
  (i32.store (i32.const 4) (i32.load (i32.const 8)))
  (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))"""


def module(body: str, more: str = "") -> tuple[bytes, int]:
    text = f'(module {HEAD} {more} (func (export "_start") (local $fd i32) {body}))'
    return bytes(wasmtime.wat2wasm(text)), 0o755


def plain(text: str) -> tuple[bytes, int]:
    return bytes(wasmtime.wat2wasm(f"(module {text})")), 0o755


MANY = "".join(f"(func (result i32) {'(i32.add (i32.const 1) ' * 200}(i32.const 0){')' * 200})" for _ in range(3000))
PROGRAMS = {
    # Copies its standard input to its standard output, and ends with 7.
    "copy": module(f"{COPY} (call $exit (i32.const 7))"),
    # Prints the file that its first argument names (without the slash before it).
    "show": module(
        f"""(drop (call $sizes (i32.const 16) (i32.const 20))) (drop (call $args (i32.const 32) (i32.const 256)))
        (local.set $fd (call $open (i32.const 3) (i32.const 1) (i32.load (i32.const 36))
          (i32.sub (i32.add (i32.const 255) (i32.load (i32.const 20))) (i32.load (i32.const 36)))
          (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 12)))
        (if (local.get $fd) (then (call $exit (local.get $fd))))
        (local.set $fd (i32.load (i32.const 12))) {COPY}"""
    ),
    "spin": module("(loop $l (br $l))"),
    "trap": module("unreachable"),
    "deep": module("(call $deep)", "(func $deep (call $deep))"),
    "grow": module(
        "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 256)) (i32.const -1)))) (call $exit (i32.const 3))"
    ),
    "starts": plain('(memory (export "memory") 1) (func $s (loop $l (br $l))) (start $s) (func (export "_start"))'),
    # Never the same bytes, so that it is always compiled.
    "many": module("", f'{MANY} (data "{os.urandom(8).hex()}")'),
    "poll": module("(call $exit (call $poll (i32.const 0) (i32.const 0) (i32.const 1000000) (i32.const 8)))"),
    "renumber": module(f"(drop (call $renumber (i32.const 1) (i32.const 0))) {COPY} (call $exit (i32.const 0))"),
    "wild": module("(call $exit (call $write (i32.const 1) (i32.const 0x7fffffff) (i32.const 9) (i32.const -4)))"),
    "library": plain('(memory (export "memory") 1)'),
    "bare": plain('(func (export "_start"))'),
    "foreign": plain('(import "env" "system" (func)) (func (export "_start"))'),
    "bad": (b"\0asm\1\0\0\0\xff\xff\xff", 0o755),
    "name": (plain("")[0] + b"\0\x86\x80\x80\x80\x08\x04../x", 0o755),
}  # fmt: skip


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    files = {f"/usr/local/bin/{name}": program for name, program in PROGRAMS.items()}
    with Sandbox(files=files, limits=Limits(cpu_seconds=3, memory_bytes=256 << 20)) as made:
        yield made


def test_runs_from_the_path_with_streams_and_status(sandbox: Sandbox) -> None:
    result = sandbox.exec("echo through | copy | tr a-z A-Z; echo ${PIPESTATUS[1]}")
    assert (result.stdout, result.stderr) == ("THROUGH\n7\n", "")


def test_reads_the_sandboxs_files(sandbox: Sandbox) -> None:
    sandbox.files.write("/workspace/note", "in the jar\n")
    assert sandbox.exec("show workspace/note").stdout == "in the jar\n"
    assert sandbox.exec("show none").exit_code == 44  # WASI's ENOENT
    assert sandbox.exec("show ../../../etc/shadow").exit_code != 0


@pytest.mark.parametrize(("name", "limit"), [("spin", "cpu_seconds"), ("starts", "cpu_seconds")])
def test_is_limited(sandbox: Sandbox, name: str, limit: str) -> None:
    result = sandbox.exec(name)
    assert (result.exit_code, result.limit) == (137, limit)
    assert sandbox.exec("echo fine").stdout == "fine\n"


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("trap", 134, "ended by a trap: wasm trap: wasm `unreachable` instruction executed"),
        ("deep", 134, "call stack exhausted"),
        ("grow", 3, ""),
        ("poll", 28, ""),
        ("wild", 21, ""),
        ("library", 126, "cannot execute: it has no _start"),
        ("bare", 126, "cannot execute: the program exports no memory"),
        ("foreign", 126, "cannot execute: "),
        ("bad", 126, "cannot execute: "),
        ("name", 126, "cannot execute: "),
    ],
)
def test_what_goes_wrong_stays_inside(sandbox: Sandbox, name: str, code: int, said: str) -> None:
    result = sandbox.exec([name])
    assert result.exit_code == code, result
    assert said in result.stderr
    assert "site-packages" not in result.stderr
    assert sandbox.exec("echo fine").stdout == "fine\n"


def test_a_large_module_is_compiled_or_ended_within_its_time(sandbox: Sandbox) -> None:
    result = sandbox.exec(["many"])
    assert result.exit_code == 0 or result.limit == "cpu_seconds"


def test_a_stream_may_be_renumbered(sandbox: Sandbox) -> None:
    assert sandbox.exec(["renumber"], stdin=b"x").exit_code is not None
    assert sandbox.exec("echo fine").stdout == "fine\n"


def test_without_the_execute_bit_it_is_a_file(sandbox: Sandbox) -> None:
    sandbox.exec("cp /usr/local/bin/copy plain; chmod -x plain").check()
    assert sandbox.exec("./plain").exit_code == 126
