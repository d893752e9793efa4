"""Builds WebAssembly commands from a directory's sources, with compilers of this machine: Zig's for C and C++, cargo.

The compilers run as you, on your sources: build what you would compile anyway. What they make is run by sandboxes only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from belljar.abi.install import install_hint
from belljar.engines.compiler_host import Progress, run_compiler
from belljar.engines.owner.wasm_recipe import FILE, Command, is_rust, parse_commands
from belljar.engines.wire.wasm import MAGIC
from belljar.engines.zig_host import NoCompiler, zig_compiler

TARGET: Final = "wasm32-wasip1"
OLD_TARGET: Final = "wasm32-wasi"
"""The same target before rustc 1.78."""
INSTALL: Final = install_hint("wasm")
_ZIG_TARGET: Final = "wasm32-wasi"
_FLAGS: Final = {"cc": ("-O2", "-s"), "c++": ("-O2", "-s", "-fno-exceptions")}
"""Compiler flags, overridden by a command's own. There is no library for C++'s exceptions."""
_SUPPORT: Final = Path(__file__).parents[1] / "wasm" / "support" / "start.c"
_INCLUDE: Final = Path(__file__).parents[1] / "wasm" / "include"


class BuildFailed(RuntimeError):
    """A build failed; says what to do, or what the compiler said."""


@dataclass(frozen=True, slots=True)
class Built:
    """A command that is ready."""

    name: str
    path: Path
    size: int
    warnings: str
    """Compiler warnings."""


class _Artefact(msgspec.Struct):
    """The fields of cargo's messages that are used here."""

    reason: str
    executable: str | None = None


def build(directory: Path, out: Path, progress: Progress) -> list[Built]:
    """Build what the directory describes, into `out`. Raises BadRecipe, BuildFailed, OSError."""
    directory, out = directory.resolve(), out.resolve()
    if is_rust(os.listdir(directory)):
        made = _build_rust(directory, progress)
    else:
        made = {command.name: _build_c(directory, command, progress) for command in _commands(directory, out)}
    out.mkdir(parents=True, exist_ok=True)
    return [_install(out / name, program, warnings) for name, (program, warnings) in made.items()]


def _commands(directory: Path, out: Path) -> list[Command]:
    paths = (path for path in directory.rglob("*") if path.is_file() and out not in path.parents)
    recipe = directory / FILE
    text = recipe.read_text("utf-8", "replace") if recipe.is_file() else None
    return parse_commands(directory.name, [str(path.relative_to(directory)) for path in paths], text)


def _install(path: Path, program: bytes, warnings: str) -> Built:
    if not program.startswith(MAGIC):
        raise BuildFailed(f"{path.name}: the compiler made no WebAssembly; do its flags change the target?")
    descriptor, beside = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(program)
            os.fchmod(descriptor, 0o755)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
    return Built(path.name, path, len(program), warnings)


def _build_c(directory: Path, command: Command, progress: Progress) -> tuple[bytes, str]:
    driver: Literal["cc", "c++"] = "c++" if command.is_cplusplus else "cc"
    with tempfile.TemporaryDirectory() as scratch:
        target = os.path.join(scratch, "out.wasm")
        try:
            compiler, environment = zig_compiler(driver, _ZIG_TARGET, scratch)
        except NoCompiler:
            raise BuildFailed(f"C and C++ are compiled by Zig's compiler, which is not installed; {INSTALL}") from None
        sources = [f"./{source}" for source in command.sources]
        words = [
            *compiler,
            *_FLAGS[driver],
            "-isystem",
            str(_INCLUDE),
            "-x",
            "c",
            str(_SUPPORT),
            "-x",
            "none",
            *command.flags,
            "-o",
            target,
            *sources,
        ]
        _, said = _compile(words, directory, environment, command.name, progress)
        if not os.path.exists(target):
            raise BuildFailed(f"{command.name}: the compiler made no program; do its flags stop it early (-c, -E)?")
        return Path(target).read_bytes(), said


def _build_rust(directory: Path, progress: Progress) -> dict[str, tuple[bytes, str]]:
    words = ["cargo", "build", "--release", "--target", _rust_target(), "--message-format=json-render-diagnostics"]
    messages, said = _compile(words, directory, os.environ, directory.name, progress)
    programs = [Path(path) for path in parse_executables(messages)]
    if not programs:
        raise BuildFailed("cargo built no program: the package has no [[bin]] and no src/main.rs")
    warnings = [said] + [""] * (len(programs) - 1)
    return {path.stem: (path.read_bytes(), text) for path, text in zip(programs, warnings, strict=True)}


def parse_executables(messages: bytes) -> list[str]:
    """Return the executables in cargo's messages."""
    found: list[str] = []
    for line in messages.splitlines():
        with suppress(msgspec.DecodeError):  # what a build script printed
            artefact = msgspec.json.decode(line, type=_Artefact)
            if artefact.reason == "compiler-artifact" and artefact.executable:
                found.append(artefact.executable)
    return found


def _rust_target() -> str:
    """The target that this rustc has a library for. Raises BuildFailed, with what to run, if there is none."""
    for program in ("cargo", "rustc"):
        if shutil.which(program) is None:
            raise BuildFailed(f"Rust is compiled by cargo; {program} is not on the PATH: see https://rustup.rs")
    said = ""
    for target in (TARGET, OLD_TARGET):
        asked = ["rustc", "--print", "target-libdir", "--target", target]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603 - as the owner would
        if not done.returncode and os.path.isdir(done.stdout.strip()):
            return target
        said = said or done.stderr.strip()
    advice = f"rustup target add {TARGET}"
    if shutil.which("rustup") is None:
        advice = f"install your distribution's Rust library for {TARGET} (Debian: libstd-rust-dev-wasm32)"
    raise BuildFailed(f"Rust's library for {TARGET} is not installed: {advice}" + (f" ({said})" if said else ""))


def _compile(
    words: Sequence[str], directory: Path, environment: Mapping[str, str], title: str, progress: Progress
) -> tuple[bytes, str]:
    """Run a compiler: what it said on standard output and, in words, on standard error. Raises BuildFailed."""
    done = run_compiler(words, title, progress, cwd=directory, env=environment, stdout=subprocess.PIPE)
    text = done.stderr.decode("utf-8", "replace")
    if done.returncode:
        raise BuildFailed(f"{text.rstrip()}\n{title}: not built: the compiler ended with status {done.returncode}")
    return done.stdout, text
