"""WebAssembly programs for the battery: small ones from text, and two from C, built only for the whole of it."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

from belljar.cli import __main__ as cli
from tests.engines.test_wasm import PROGRAMS, module, plain

HERE = Path(__file__).parent
MORE = {
    "trapped": module("unreachable"),
    # A type of a garbage collector's: (type (struct)).
    "collected": (b"\0asm\1\0\0\0\1\3\1\x5f\0", 0o755),
    "large": plain('(memory (export "memory") 3000) (func (export "_start"))'),
}
FROM_C = ("a program of C walks files", "a program of C uses files in every way")
"""The cases that need them."""


def programs() -> dict[str, str]:
    """Names and contents, as base64."""
    unused = ("many", "trap")
    return {name: b64encode(data).decode() for name, (data, _) in {**PROGRAMS, **MORE}.items() if name not in unused}


def programs_from_c(scratch: Path) -> dict[str, str]:
    for directory in (HERE.parents[1] / "examples/wasm/census", HERE / "ways"):
        assert cli.main(["wasm", "build", str(directory), "-o", str(scratch)]) == 0
    return {name: b64encode((scratch / name).read_bytes()).decode() for name in ("census", "ways")}
