"""Files of this machine that a command line names."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any


def is_file(path: str) -> bool:
    return os.path.isfile(path)


def is_directory(path: str) -> bool:
    return os.path.isdir(path)


def contents(path: str) -> tuple[bytes, int]:
    """A file's bytes and mode. OSError."""
    with open(path, "rb") as file:
        return file.read(), os.fstat(file.fileno()).st_mode & 0o777


def append_lines(path: str) -> Callable[[dict[str, Any]], None]:
    """Return a function that appends each event to a file as a line of JSON. OSError if it can't be written."""
    file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - it is written to until the program ends

    def write(event: dict[str, Any]) -> None:
        file.write(json.dumps(event, default=str) + "\n")
        file.flush()

    return write
