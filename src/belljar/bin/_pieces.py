"""The output files of split: their names in order, and writing them one after another or through a filter."""

from __future__ import annotations

import string
from collections.abc import Iterator

from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_TRUNC, O_WRONLY
from belljar.bin._kit.quoting import quote_name
from belljar.kernel.process import Process


class PiecesError(Exception):
    """No more can be written; the text is what to say, `status` what split ends with."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def suffixes(digits: str, length: int, *, start: int = 0, grows: bool = False) -> Iterator[str]:
    """aa, ab, ...; if they may grow, zaaa follows yz, so that names stay in order."""
    base = len(digits)
    number = start
    prefix = ""
    while True:
        last = base**length
        if grows and number >= last - last // base:
            # All names that begin with the last digit are kept for the longer ones.
            prefix += digits[-1]
            number, length = 0, length + 1
            continue
        if number >= last:
            raise PiecesError("output file suffixes exhausted")
        text, rest = "", number
        for _ in range(length):
            rest, digit = divmod(rest, base)
            text = digits[digit] + text
        yield prefix + text
        number += 1


def alphabet(kind: str) -> str:
    return {"letters": string.ascii_lowercase, "decimal": string.digits, "hex": "0123456789abcdef"}[kind]


class Pieces:
    """Opens one piece at a time."""

    def __init__(
        self,
        process: Process,
        names: Iterator[str],
        prefix: str,
        suffix: str,
        *,
        command: str | None = None,
        verbose: bool = False,
        skip_empty: bool = False,
    ) -> None:
        self._process = process
        self._names = names
        self._prefix = prefix
        self._suffix = suffix
        self._filter = command
        self._verbose = verbose
        self._skip_empty = skip_empty

    def name(self) -> str:
        return f"{self._prefix}{next(self._names)}{self._suffix}"

    def create(self) -> Piece:
        piece = Piece(self._process, self.name(), self._filter, verbose=self._verbose)
        if not self._skip_empty:
            piece.open()
        return piece


class Piece:
    """One output file, or the input of one command."""

    def __init__(self, process: Process, name: str, command: str | None, *, verbose: bool) -> None:
        self._process = process
        self.name = name
        self._filter = command
        self._verbose = verbose
        self._fd = -1
        self._child: Process | None = None
        self.broken = False
        """The filter does not want more."""

    def open(self) -> None:
        process = self._process
        if self._verbose:
            what = "executing with FILE=" if self._filter is not None else "creating file "
            process.print(what + quote_name(self.name))
        if self._filter is not None:
            self._start(self._filter)
            return
        try:
            self._fd = process.open(self.name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC)
        except SysError as error:
            raise PiecesError(f"{self.name}: {error.reason}") from None

    def _start(self, command: str) -> None:
        process = self._process
        process.stdout.flush()
        reader, self._fd = process.pipe(cloexec=True)
        shell = process.env.get("SHELL") or "/bin/sh"
        env = {**process.env, "FILE": self.name}
        try:
            self._child = process.spawn([shell, "-c", command], env=env, stdin=process.fds[reader])
        except SysError as error:
            raise PiecesError(f'failed to run command: "{shell} -c {command}": {error.reason}') from None
        finally:
            process.close(reader)

    def write(self, data: bytes) -> None:
        if self._fd < 0:
            self.open()
        try:
            self._process.write_all(self._fd, data)
        except SysError as error:
            if self._filter is not None and error.name == "EPIPE":
                self.broken = True
                return
            raise PiecesError(f"{self.name}: {error.reason}") from None

    def close(self) -> None:
        if self._fd >= 0:
            self._process.close(self._fd)
            self._fd = -1
        if self._child is not None:
            status = self._process.wait_for(self._child)
            self._child = None
            if status.code and not status.signal:
                raise PiecesError(
                    f"with FILE={self.name}, exit {status.code} from command: {self._filter}", status.code
                )
