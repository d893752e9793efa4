"""awk's files, pipes and coprocesses: everything `>`, `|`, `<`, getline, close() and system() name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Protocol

from belljar.abi.errors import SysError
from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.reader import Reader, Separator, Source

BUFFER = 1 << 16
_DESCRIPTOR = re.compile(r"/dev/fd/[0-9]{1,6}")


class Sink(Protocol):
    """Destination of output."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class Child(Protocol):
    """A command that runs beside us; `wait` gives its exit code, or 256 + the signal that ended it."""

    def wait(self) -> int: ...


class World(Protocol):
    """An awk program's interface to its process. Opening and starting raise SysError."""

    environment: Mapping[str, str]
    pid: int
    ppid: int

    def charge(self, steps: int) -> None: ...

    def charge_size(self, size: int) -> None: ...

    def now(self) -> float: ...

    def timezone(self) -> str: ...

    def is_terminal(self, fd: int) -> bool: ...

    def descriptor_source(self, fd: int) -> Source: ...

    def descriptor_sink(self, fd: int) -> Sink: ...

    def open_source(self, path: str) -> Source: ...

    def open_sink(self, path: str, append: bool) -> Sink: ...

    def start(self, command: str, *, feed: bool, take: bool) -> tuple[Sink | None, Source | None, Child]: ...

    def system(self, command: str) -> int: ...

    def replace_file(self, path: str, backup: str) -> Sink: ...

    def finish_replacement(self, path: str, backup: str) -> None: ...


class Output:
    """A buffered text stream to a sink."""

    __slots__ = ("child", "encoding", "limit", "name", "parts", "sink", "size")

    def __init__(self, sink: Sink, encoding: str, name: str, limit: int = BUFFER, child: Child | None = None) -> None:
        self.sink = sink
        self.encoding = encoding
        self.name = name
        self.limit = limit
        self.child = child
        self.parts: list[str] = []
        self.size = 0

    def write(self, text: str) -> None:
        self.parts.append(text)
        self.size += len(text)
        if self.size >= self.limit:
            self.flush("print")

    def flush(self, what: str = "flush") -> None:
        if self.parts:
            text = "".join(self.parts)
            try:
                data = text.encode(self.encoding, "surrogateescape")
            except UnicodeEncodeError:
                # A character beyond the byte locale, or half of a surrogate pair: only %c makes these.
                data = text.encode("utf-8", "replace")
            self.parts = []
            self.size = 0
            try:
                self.sink.write(data)
            except SysError as error:
                raise AwkFatal(f'{what} to "{self.name}" failed: {error.reason}') from error


class Streams:
    """All streams a program has open, by the name it gave them."""

    def __init__(self, world: World, encoding: str, warn: Callable[[str, int], None]) -> None:
        self.world = world
        self.encoding = encoding
        self.warn = warn
        limit = 0 if world.is_terminal(1) else BUFFER
        self.stdout = Output(world.descriptor_sink(1), encoding, "standard output", limit)
        self.stderr = Output(world.descriptor_sink(2), encoding, "standard error", 0)
        self.outputs: dict[tuple[str, str], Output] = {}
        self.inputs: dict[tuple[str, str], Reader] = {}
        self.children: dict[tuple[str, str], Child] = {}
        self.separator = Separator("\n")
        self.error = ""

    # -- output -------------------------------------------------------------------------------------------------

    def output(self, redirect: str, name: str, line: int) -> Output:
        kind = "file" if redirect in (">", ">>") else redirect
        found = self.outputs.get((kind, name))
        if found is not None:
            return found
        if not name:
            raise AwkFatal(f"expression for `{redirect}' redirection has null string value", line)
        if kind == "file":
            opened = self._open_file(name, redirect == ">>", line)
        else:
            opened = self._open_command(kind, name, line)
        self.outputs[kind, name] = opened
        return opened

    def _open_file(self, name: str, append: bool, line: int) -> Output:
        if name in ("/dev/stdout", "-"):
            return self.stdout
        if name == "/dev/stderr":
            return self.stderr
        try:
            if _DESCRIPTOR.fullmatch(name):
                return Output(self.world.descriptor_sink(int(name[8:])), self.encoding, name)
            return Output(self.world.open_sink(self.path(name), append), self.encoding, name)
        except SysError as error:
            self.stdout.flush()
            raise AwkFatal(f"cannot redirect to `{name}': {error.reason}", line) from error

    def _open_command(self, kind: str, name: str, line: int) -> Output:
        self.flush_all()
        try:
            sink, source, child = self.world.start(self.path(name), feed=True, take=kind == "|&")
        except SysError as error:
            raise AwkFatal(f"cannot open pipe `{name}' for output: {error.reason}", line) from error
        assert sink is not None
        self.children[kind, name] = child
        if source is not None:
            self.inputs[kind, name] = self.reader(source)
        # Both sides of a conversation expect each line at once.
        return Output(sink, self.encoding, name, 0 if kind == "|&" else BUFFER, child)

    # -- input --------------------------------------------------------------------------------------------------

    def reader(self, source: Source) -> Reader:
        return Reader(source, self.separator, self.encoding, self.world.charge, self.world.charge_size)

    def input(self, kind: str, name: str, line: int) -> Reader | None:
        """The reader getline wants; None when it can't be had (the reason is in `error`)."""
        found = self.inputs.get((kind, name))
        if found is not None:
            return found
        if not name:
            raise AwkFatal(f"expression for `{kind}' redirection has null string value", line)
        try:
            if kind == "<":
                source = self.open_input(name)
                self.inputs[kind, name] = reader = self.reader(source)
                return reader
            self.flush_all()
            sink, command_source, child = self.world.start(self.path(name), feed=kind == "|&", take=True)
        except SysError as error:
            self.error = error.reason
            return None
        assert command_source is not None
        if sink is not None:
            self.outputs[kind, name] = Output(sink, self.encoding, name, 0, child)
        self.children[kind, name] = child
        self.inputs[kind, name] = reader = self.reader(command_source)
        return reader

    def open_input(self, name: str) -> Source:
        """Open a file to read; the names of standard streams are understood. Raises SysError."""
        if name in ("-", "/dev/stdin"):
            return self.world.descriptor_source(0)
        if _DESCRIPTOR.fullmatch(name):
            return self.world.descriptor_source(int(name[8:]))
        return self.world.open_source(self.path(name))

    def set_separator(self, separator: Separator) -> None:
        self.separator = separator
        for reader in self.inputs.values():
            reader.change_separator(separator)

    def path(self, name: str) -> str:
        """A name as the system takes it: in a byte locale, characters are bytes."""
        if self.encoding == "utf-8" or name.isascii():
            return name
        return name.encode("latin-1", "replace").decode("utf-8", "surrogateescape")

    # -- both ---------------------------------------------------------------------------------------------------

    def flush_all(self) -> None:
        self.stdout.flush()
        for output in list(self.outputs.values()):
            output.flush()

    def flush(self, name: str) -> float:
        if not name:
            self.flush_all()
            return 0.0
        if name == "/dev/stdout":
            self.stdout.flush()
            return 0.0
        found = [output for (_, known), output in self.outputs.items() if known == name]
        for output in found:
            output.flush()
        return 0.0 if found or name == "/dev/stderr" else -1.0

    def close(self, name: str, part: str, line: int) -> float:
        """close(): the command's status, 0 for a file, -1 for what was not open."""
        result = -1.0
        for kind in ("|&", "|", "file", "<"):
            key = (kind, name)
            if part != "from" and key in self.outputs:
                result = max(result, self._close_output(key))
            if part != "to" and key in self.inputs:
                self.inputs.pop(key).close()
                result = max(result, 0.0)
            if key in self.children and key not in self.outputs and key not in self.inputs:
                result = float(self.children.pop(key).wait())
        return result

    def _close_output(self, key: tuple[str, str]) -> float:
        output = self.outputs.pop(key)
        output.flush()
        if output is not self.stdout and output is not self.stderr:
            output.sink.close()
        return 0.0

    def close_all(self) -> None:
        """The end of the program: last opened first, waiting for every command."""
        self.stdout.flush()
        for key in reversed(list(self.outputs)):
            self._close_output(key)
        for key in reversed(list(self.inputs)):
            self.inputs.pop(key).close()
        for key in reversed(list(self.children)):
            self.children.pop(key).wait()

    def system(self, command: str, line: int) -> float:
        self.flush_all()
        try:
            return float(self.world.system(self.path(command)))
        except SysError:
            return 127.0
