"""curl's command line: which options there are, and what they say, operation by operation (`--next`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin.curl.catalogue import LONG, SHORT, Kind, Option, takes_value
from belljar.kernel.process import Process


class BadUsage(Exception):
    """A wrong command line; the text is what follows `curl: `. `status` is the exit code."""

    def __init__(self, message: str, status: int = 2, *, hint: bool = True) -> None:
        super().__init__(message)
        self.status = status
        self.hint = hint


@dataclass(slots=True)
class Target:
    """A URL, where its body goes to, and what is uploaded to it; the parts may come in any order."""

    url: str | None = None
    output: str | None = None
    remote_name: bool = False
    has_output: bool = False
    upload: str | None = None


@dataclass(slots=True)
class Operation:
    """Everything said between two `--next`."""

    flags: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    data: list[tuple[str, str]] = field(default_factory=list)
    """-d and its kin: the option and its argument, in order."""
    forms: list[tuple[str, str]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)

    def flag(self, name: str) -> bool:
        return name in self.flags

    def all(self, name: str) -> list[str]:
        return self.lists.get(name, [])

    def free(self, taken: Callable[[Target], bool]) -> Target:
        """The first target that still lacks something."""
        for target in self.targets:
            if not taken(target):
                return target
        self.targets.append(Target())
        return self.targets[-1]


GLOBAL: Final = frozenset(
    {"silent", "show-error", "verbose", "progress-bar", "no-progress-meter", "fail-early", "parallel"}
)
"""Flags that hold for all operations."""


class CommandLine:
    """Reads arguments, and config files named among them."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.operations = [Operation()]
        self.flags: set[str] = set()
        """The global ones."""
        self.stderr: str | None = None
        self.help: str | None = None
        self.version = False
        self._depth = 0

    @property
    def _now(self) -> Operation:
        return self.operations[-1]

    def read(self, args: list[str]) -> None:
        """Raises BadUsage."""
        index = 0
        only_operands = False
        while index < len(args):
            arg = args[index]
            index += 1
            following = args[index] if index < len(args) else None
            if only_operands or not arg.startswith("-") or arg == "-":
                self._operand(arg)
            elif arg == "--":
                only_operands = True
            elif arg.startswith("--"):
                index += self._long(arg, following)
            else:
                index += self._short(arg, following)
            if self.help is not None or self.version:
                return

    def _operand(self, url: str) -> None:
        self._now.free(lambda target: target.url is not None).url = url

    def _long(self, arg: str, following: str | None) -> int:
        """Return how many arguments beyond its own it took."""
        name = arg[2:]
        option = LONG.get(name)
        on = True
        if option is None and name.startswith("no-"):
            option, on = LONG.get(name[3:]), False
            if option is not None and not option.kind.negatable:
                raise BadUsage(f"option {arg}: the given option cannot be reversed with a --no- prefix")
        if option is None:
            raise BadUsage(f"option {arg}: is unknown")
        if not takes_value(option):
            self._set(option, "", arg, on=on)
            return 0
        if following is None:
            if option.name == "help":
                self.help = ""
                return 0
            raise BadUsage(f"option {arg}: requires parameter")
        self._set(option, following, arg)
        return 1

    def _short(self, arg: str, following: str | None) -> int:
        position = 1
        while position < len(arg):
            letter = arg[position]
            position += 1
            option = SHORT.get(letter)
            if option is None:
                raise BadUsage(f"option {arg}: is unknown")
            if not takes_value(option):
                self._set(option, "", f"-{letter}")
                continue
            if position < len(arg):
                self._set(option, arg[position:], f"-{letter}")
                return 0
            if following is None:
                if option.name == "help":
                    self.help = ""
                    return 0
                raise BadUsage(f"option {arg}: requires parameter")
            self._set(option, following, arg)
            return 1
        return 0

    def _set(self, option: Option, text: str, shown: str, *, on: bool = True) -> None:
        now, name = self._now, option.name
        match option.kind:
            case Kind.FLAG:
                flags = self.flags if name in GLOBAL else now.flags
                (flags.add if on else flags.discard)(name)
                if name in ("fail", "fail-with-body") and on:
                    now.flags.discard("fail" if name == "fail-with-body" else "fail-with-body")
            case Kind.TEXT:
                now.values[name] = text
            case Kind.LIST:
                now.lists.setdefault(name, []).append(text)
            case Kind.NUMBER:
                now.numbers[name] = _number(text, shown)
            case Kind.REFUSED:
                raise BadUsage(f"option {shown}: {option.help}")
            case Kind.SPECIAL:
                self._special(name, text, shown)
            case Kind.IGNORED | Kind.IGNORED_TEXT:
                pass

    def _special(self, name: str, text: str, shown: str) -> None:
        now = self._now
        match name:
            case "url":
                self._operand(text)
            case "output" | "remote-name":
                target = now.free(lambda target: target.has_output)
                target.has_output = True
                target.output = text if name == "output" else None
                target.remote_name = name == "remote-name"
            case "upload-file":
                now.free(lambda target: target.upload is not None).upload = text
            case "data" | "data-ascii" | "data-raw" | "data-binary" | "data-urlencode" | "json":
                now.data.append((name, self._data(name, text, shown)))
            case "form" | "form-string":
                if "=" not in text:
                    raise BadUsage(f"option {shown}: is badly used here")
                now.forms.append((name, text))
            case "header":
                now.lists.setdefault(name, []).extend(self._header_lines(text, shown))
            case "user-agent" | "referer":
                now.values[name] = text
            case "next":
                self.operations.append(Operation())
            case "config":
                self._config(text, shown)
            case "help":
                self.help = text
            case "version":
                self.version = True
            case "stderr":
                self.stderr = text

    def _read_file(self, name: str, shown: str) -> bytes:
        try:
            return self._process.read_file(name)
        except SysError:
            if "silent" not in self.flags:
                self._process.error(f"curl: Failed to open {name}\n")
            raise BadUsage(f"option {shown}: error encountered when reading a file", 26) from None

    def _data(self, name: str, text: str, shown: str) -> str:
        """Return the text that an option of -d's family adds to the body."""
        if name == "data-raw":
            return text
        if name == "data-urlencode":
            return self._urlencoded(text, shown)
        if not text.startswith("@"):
            return text
        data = self._read_file(text[1:], shown)
        if name in ("data", "data-ascii"):
            data = data.translate(None, b"\r\n\0")
        return fsdecode(data)

    def _urlencoded(self, text: str, shown: str) -> str:
        separator = min((text.find(char) for char in "=@" if char in text), default=-1)
        if separator < 0:
            return escape(text.encode("utf-8", "surrogateescape"))
        name, mark, rest = text[:separator], text[separator], text[separator + 1 :]
        content = self._read_file(rest, shown) if mark == "@" else rest.encode("utf-8", "surrogateescape")
        return f"{name}={escape(content)}" if name else escape(content)

    def _header_lines(self, text: str, shown: str) -> list[str]:
        if not text.startswith("@"):
            return [text]
        lines = fsdecode(self._read_file(text[1:], shown)).splitlines()
        return [line for line in lines if line.strip()]

    def _config(self, name: str, shown: str) -> None:
        """A file of options, one to a line: `-o x`, `output = x`, `url "http://..."`."""
        if self._depth >= 8:
            raise BadUsage(f"option {shown}: config files are nested too deeply")
        text = fsdecode(self._read_file(name, shown))
        self._depth += 1
        args: list[str] = []
        for number, line in enumerate(text.splitlines(), 1):
            words = _config_line(line)
            if not words:
                continue
            option = words[0] if words[0].startswith("-") else f"--{words[0]}"
            known = LONG.get(option[2:].removeprefix("no-")) or LONG.get(option[2:])
            if option.startswith("--") and known is None:
                raise BadUsage(f"{name}:{number}: option {words[0]}: is unknown")
            args += [option, *words[1:]]
        self.read(args)
        self._depth -= 1


def _config_line(line: str) -> list[str]:
    line = line.strip()
    if not line or line.startswith("#"):
        return []
    end = 0
    while end < len(line) and not line[end].isspace() and line[end] not in "=:":
        end += 1
    name, rest = line[:end], line[end:].lstrip(" \t=:")
    if not rest:
        return [name]
    if not rest.startswith('"'):
        return [name, rest.split()[0]]
    out: list[str] = []
    index = 1
    while index < len(rest) and rest[index] != '"':
        if rest[index] == "\\" and index + 1 < len(rest):
            index += 1
            out.append({"n": "\n", "r": "\r", "t": "\t", "v": "\v"}.get(rest[index], rest[index]))
        else:
            out.append(rest[index])
        index += 1
    return [name, "".join(out)]


def _number(text: str, shown: str) -> float:
    """A count, seconds or a size with a suffix."""
    scale = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}.get(text[-1:].lower(), 1)
    try:
        number = float(text[:-1] if scale > 1 else text)
    except ValueError:
        raise BadUsage(f"option {shown}: expected a proper numerical parameter") from None
    if not 0 <= number < 1e15:
        raise BadUsage(f"option {shown}: expected a positive numerical parameter")
    return number * scale


def escape(data: bytes) -> str:
    """As a form encodes it: a space is a plus."""
    safe = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
    return "".join(chr(byte) if byte in safe else "+" if byte == 32 else f"%{byte:02X}" for byte in data)
