"""The operand of --files0-from: file names that end in NUL, read from a file."""

from __future__ import annotations

from collections.abc import Iterator

from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.kernel.process import Process


def files0_names(process: Process, source: str) -> list[str] | None:
    """The names in order; empty ones are reported and left out. None if the list can't be read."""
    entries = files0_entries(process, source)
    return None if entries is None else [name for name in entries if name is not None]


def files0_entries(process: Process, source: str) -> Iterator[str | None] | None:
    """The names in order, None for each that is none, which is then reported. None if the list can't be read."""
    try:
        data = process.read_file(source)
    except SysError as error:
        process.warn(f"cannot open '{source}' for reading: {error.reason}")
        return None
    return _entries(process, source, data)


def _entries(process: Process, source: str, data: bytes) -> Iterator[str | None]:
    for number, raw in enumerate(data.removesuffix(b"\0").split(b"\0") if data else [], 1):
        name = fsdecode(raw)
        if not name:
            process.warn(f"{source}:{number}: invalid zero-length file name")
            yield None
        elif name == "-" and source == "-":
            process.warn("when reading file names from stdin, no file name of '-' allowed")
            yield None
        else:
            yield name
