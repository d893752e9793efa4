"""The command of fd -x and -X, with its placeholders."""

from __future__ import annotations

import re

from belljar.abi.errors import SysError
from belljar.abi.paths import basename, byte_length, dirname
from belljar.kernel.process import Process

_PLACEHOLDER = re.compile(r"\{(|/|//|\.|/\.)\}")
_ARGUMENTS = 128 << 10


class Command:
    def __init__(self, process: Process, words: list[str], *, batch: bool) -> None:
        self._process = process
        self._words = words if any(_PLACEHOLDER.search(word) for word in words) else [*words, "{}"]
        self._batch = batch
        self._paths: list[str] = []
        self._size = 0
        self._status = 0

    def add(self, path: str) -> None:
        if not self._batch:
            self._run([_fill(word, path) for word in self._words])
            return
        self._size += byte_length(path) + 9
        if self._paths and self._size > _ARGUMENTS:
            self._flush()
        self._paths.append(path)

    def finish(self) -> int:
        if self._paths:
            self._flush()
        return self._status

    def _flush(self) -> None:
        argv: list[str] = []
        for word in self._words:
            if _PLACEHOLDER.search(word):
                argv += [_fill(word, path) for path in self._paths]
            else:
                argv.append(word)
        self._paths = []
        self._size = 0
        self._run(argv)

    def _run(self, argv: list[str]) -> None:
        process = self._process
        try:
            code = process.run(argv).shell
        except SysError as error:
            process.error(f"[fd error]: Command not found: {argv[0]} ({error.reason})\n")
            code = 1
        if code:
            self._status = 1


def _fill(word: str, path: str) -> str:
    def value(match: re.Match[str]) -> str:
        base = basename(path)
        stem = base.rpartition(".")[0] or base
        match match[1]:
            case "":
                return path
            case "/":
                return base
            case "//":
                return dirname(path)
            case "/.":
                return stem
            case _:
                plain = path.removeprefix("./")
                return f"{dirname(plain)}/{stem}" if "/" in plain else stem

    return _PLACEHOLDER.sub(value, word)
