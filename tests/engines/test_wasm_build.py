"""`belljar wasm build`: sources become commands, and sandboxes run them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from belljar import Mount, Sandbox
from belljar.cli import __main__ as cli
from belljar.engines import zig_host
from belljar.engines.owner.wasm_build_host import parse_executables
from tests.debian import install_newest

EXAMPLES = Path(__file__).parents[2] / "examples" / "wasm"


def build(*arguments: object) -> int:
    return cli.main(["wasm", "build", *map(str, arguments)])


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """With the examples on its PATH, from a directory of the host."""
    out = tmp_path_factory.mktemp("built")
    for name in ("nearest", "census"):
        assert build(EXAMPLES / name, "-o", out) == 0
    path = "/opt/examples:/usr/local/bin:/usr/bin:/bin"
    with Sandbox(mounts={"/opt/examples": Mount.host(str(out))}, env={"PATH": path}) as made:
        yield made


@pytest.mark.battery
@pytest.mark.slow
def test_an_example_reads_its_input_and_arguments(sandbox: Sandbox) -> None:
    result = sandbox.exec("echo bell jar bowl belljar | nearest ball")
    assert (result.stdout, result.stderr, result.exit_code) == ("1\nbell\n", "", 0)
    assert sandbox.exec("nearest").exit_code == 2


@pytest.mark.slow
def test_an_example_walks_the_sandboxs_files(sandbox: Sandbox) -> None:
    sandbox.exec("mkdir -p tree/a/b; echo 12345 > tree/a/x.txt; printf 1 > tree/a/b/y.txt; touch tree/.z").check()
    expected = "       7      2 .txt\n       0      1 (none)\n"
    assert sandbox.exec("echo /workspace/tree | census").stdout == expected
    # A relative path is one of the directory that it is called in.
    assert sandbox.exec("cd tree; echo . | census").stdout == expected
    missing = sandbox.exec("echo nothing | census")
    assert (missing.exit_code, missing.stderr) == (1, "census: nothing: No such file or directory\n")


@pytest.mark.slow
def test_cplusplus_and_files_with_their_mode(tmp_path: Path) -> None:
    (tmp_path / "plus.cc").write_text(
        "#include <stdio.h>\ntemplate <typename T> T twice(T v) { return v + v; }\n"
        'int main() { printf("%d\\n", twice(N)); }\n'
    )
    # Without the standard library of C++, which takes half a minute to build when first used.
    recipe = 'flags = ["-nostdlib++"]\n[commands.plus]\nsources = ["*.cc"]\nflags = ["-DN=21"]\n'
    (tmp_path / "belljar.toml").write_text(recipe)
    assert build(tmp_path) == 0
    program = tmp_path / "build" / "plus"
    assert program.stat().st_mode & 0o777 == 0o755
    with Sandbox(files={"/usr/local/bin/plus": (program.read_bytes(), 0o755)}) as sandbox:
        assert sandbox.exec("plus").stdout == "42\n"


@pytest.mark.slow
def test_what_the_compiler_says_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "broken.c"
    source.write_text("int main(void) { return x; }\n")
    assert build(tmp_path, "-o", tmp_path / "out") == 1
    said = capsys.readouterr().err
    assert "broken.c:1:25: error: use of undeclared identifier 'x'" in said
    assert "not built: the compiler ended with status 1" in said
    assert not (tmp_path / "out").exists()


def test_a_missing_compiler_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tool.c").write_text("int main(void) { return 0; }\n")

    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(zig_host, "distribution", missing)
    assert build(tmp_path) == 1
    assert "pip install -e '.[wasm]'" in capsys.readouterr().err


def test_a_directory_that_is_not_there_or_has_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build(tmp_path / "none")
    assert "no such directory" in capsys.readouterr().err
    assert build(tmp_path) == 1
    assert "nothing to build" in capsys.readouterr().err


# Rust: Debian's own cargo and rustc, unpacked without root.

RUST = ["cargo", "rustc", "libstd-rust-dev-wasm32", "lld-14"]
NO_RUST = frozenset(
    "libc6 libc6-dev libc-dev-bin linux-libc-dev gcc gcc-12 gcc-12-base cpp cpp-12 libgcc-12-dev binutils "
    "binutils-common binutils-x86-64-linux-gnu libbinutils".split()
)
"""What a compiler for WebAssembly does without, and the C library, which goes with the loader of the host."""
MAIN = """
use std::io::Read;
fn main() {
    std::env::set_current_dir(std::env::var("PWD").unwrap()).unwrap();
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    println!("{} {}", text.trim().to_uppercase(), std::fs::read_dir(".").unwrap().count());
    std::process::exit(7);
}
"""


def _under_usr(name: str) -> str | None:
    """Where a file of a package goes: /lib is /usr/lib."""
    name = name.removeprefix("./")
    return name if name.startswith("usr/") else f"usr/{name}" if name.startswith("lib/") else None


def script(path: Path, text: str) -> None:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of Rust; the directory `bin` beside it is the first of the PATH."""
    made = tmp_path / "package"
    (made / "src").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (made / "Cargo.toml").write_text("[package]\nname = 'jar'\nversion = '0.1.0'\nedition = '2021'\n")
    (made / "src" / "main.rs").write_text(MAIN)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}/usr/bin:/bin")
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "cargo"))
    return made


@pytest.mark.battery
@pytest.mark.slow
def test_rust_is_built_by_cargo_and_runs(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = install_newest("rust", RUST, NO_RUST, _under_usr)
    libraries = f"{root}/usr/lib/x86_64-linux-gnu:{root}/usr/lib/llvm-14/lib"
    for name in ("cargo", "rustc", "rust-lld"):
        script(package.parent / "bin" / name, f'LD_LIBRARY_PATH={libraries} exec {root}/usr/bin/{name} "$@"\n')
    assert build(package, "-o", package / "out") == 0
    assert "Compiling jar" in capsys.readouterr().err
    with Sandbox(files={"/usr/local/bin/jar": ((package / "out" / "jar").read_bytes(), 0o755)}) as sandbox:
        done = sandbox.exec("mkdir d; cd d; touch a b; echo hello | jar", timeout=300)
    assert (done.stdout, done.exit_code) == ("HELLO 2\n", 7), done.stderr


def test_a_missing_target_says_what_to_run(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("cargo", "rustup"):
        script(package.parent / "bin" / name, "exit 9\n")
    script(package.parent / "bin" / "rustc", "echo /nowhere\n")
    assert build(package) == 1
    assert capsys.readouterr().err.endswith("is not installed: rustup target add wasm32-wasip1\n")


def test_cargos_messages_are_told_from_a_build_scripts() -> None:
    lines = [
        b"cargo:warning=text",
        b'{"reason":"compiler-artifact","executable":null}',
        b'{"reason":"compiler-artifact","executable":"/t/a.wasm","fresh":true}',
        b'{"reason":"build-finished","success":true}',
        b"[1]",
    ]
    assert parse_executables(b"\n".join(lines)) == ["/t/a.wasm"]
