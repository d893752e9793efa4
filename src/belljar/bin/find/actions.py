"""The actions of find: printing, running commands, deleting."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY
from belljar.abi.paths import basename, byte_length, dirname, fsencode
from belljar.bin._kit import UsageError
from belljar.bin._kit.quoting import quote
from belljar.bin._tree import Visit
from belljar.bin.find.details import Detailer
from belljar.bin.find.printf import compile_format
from belljar.bin.find.search import Matcher, Quit, Search
from belljar.kernel.vfs.namespace import Place

if TYPE_CHECKING:
    from belljar.bin.find.parse import Parser

_ARGUMENTS: Final = 128 << 10
"""How many bytes of paths one command of `-exec ... {} +` gets."""


def print_path(search: Search) -> Matcher:
    return _printer(search.process.stdout.write, b"\n")


def _printer(write: Callable[[bytes], None], end: bytes) -> Matcher:
    def action(visit: Visit) -> bool:
        write(visit.path.encode("utf-8", "surrogateescape") + end)
        return True

    return action


def _print(parser: Parser) -> Matcher:
    return print_path(parser.search)


def _print0(parser: Parser) -> Matcher:
    return _printer(parser.search.process.stdout.write, b"\0")


def _file(parser: Parser, name: str) -> Callable[[bytes], None]:
    path = parser.argument(name)
    try:
        return parser.search.output(path)
    except SysError as error:
        raise UsageError(f"{quote(path, parser.search.process.env)}: {error.reason}") from None


def _fprint(parser: Parser) -> Matcher:
    return _printer(_file(parser, "-fprint"), b"\n")


def _fprint0(parser: Parser) -> Matcher:
    return _printer(_file(parser, "-fprint0"), b"\0")


def _printf(parser: Parser) -> Matcher:
    return _formatted(parser, parser.search.process.stdout.write, parser.argument("-printf"))


def _fprintf(parser: Parser) -> Matcher:
    write = _file(parser, "-fprintf")
    return _formatted(parser, write, parser.argument("-fprintf"))


def _formatted(parser: Parser, write: Callable[[bytes], None], template: str) -> Matcher:
    render = compile_format(parser.search, template)

    def action(visit: Visit) -> bool:
        write(fsencode(render(visit)))
        return True

    return action


def _ls(parser: Parser) -> Matcher:
    return _listed(parser, parser.search.process.stdout.write)


def _fls(parser: Parser) -> Matcher:
    return _listed(parser, _file(parser, "-fls"))


def _listed(parser: Parser, write: Callable[[bytes], None]) -> Matcher:
    detailer = Detailer(parser.search)

    def action(visit: Visit) -> bool:
        write(fsencode(detailer.line(visit) + "\n"))
        return True

    return action


def _prune(parser: Parser) -> Matcher:
    def action(visit: Visit) -> bool:
        visit.prune = True
        return True

    return action


def _quit(parser: Parser) -> Matcher:
    def action(visit: Visit) -> bool:
        raise Quit

    return action


def _delete(parser: Parser) -> Matcher:
    search = parser.search
    search.contents_first = True
    fs = search.process.fs

    def action(visit: Visit) -> bool:
        if visit.path == ".":
            return True
        fs.cwd = visit.directory
        try:
            if visit.stat.is_dir:
                fs.rmdir(visit.name)
            else:
                fs.unlink(visit.name)
        except SysError as error:
            search.fail(f"cannot delete {quote(visit.path, search.process.env)}: {error.reason}")
            return False
        return True

    return action


# Commands.


class Command:
    """A command of -exec and its kin."""

    def __init__(self, search: Search, name: str, words: list[str]) -> None:
        self._search = search
        self._process = search.process
        self._words = words
        self._in_directory = name.endswith("dir")
        self._asks = name.startswith("-ok")

    def once(self, visit: Visit) -> bool:
        """`COMMAND ;` - true if it succeeds."""
        where, path = self._place(visit)
        argv = [word.replace("{}", path) for word in self._words]
        if self._asks and not self._agreed(visit):
            return False
        return self._run(argv, where) == 0

    def _place(self, visit: Visit) -> tuple[Place, str]:
        """Return where the command runs, and what the file is called there."""
        if not self._in_directory:
            return self._search.home, visit.path
        if visit.depth:
            return visit.directory, f"./{visit.name}"
        self._process.fs.cwd = visit.directory
        above = self._process.fs.resolve(dirname(visit.path))
        name = basename(visit.path)
        return above, name if name.startswith("/") else f"./{name}"

    def _agreed(self, visit: Visit) -> bool:
        process = self._process
        process.stdout.flush()
        process.error(f"< {self._words[0]} ... {visit.path} > ? ")
        first = b""
        while (char := process.read(0, 1)) not in (b"", b"\n"):
            first = first or char
        return first in (b"y", b"Y")

    def _run(self, argv: list[str], where: Place) -> int:
        process = self._process
        process.fs.cwd = where
        try:
            stdin = process.fs.open("/dev/null", O_RDONLY) if self._asks else None
            return process.run(argv, stdin=stdin).shell
        except SysError as error:
            self._search.fail(f"{quote(argv[0], process.env)}: {error.reason}")
            # find itself goes on as if the command had failed
            self._search.status = self._search.status if self._in_directory else 0
            return 1

    # Many files at once.

    def gather(self) -> Matcher:
        """`COMMAND {} +` - always true; a command that fails makes find fail."""
        paths: list[str] = []
        size = 0
        where = self._search.home

        def flush() -> None:
            nonlocal size
            if not paths:
                return
            argv = [*self._words, *paths]
            paths.clear()
            size = 0
            if self._run(argv, where) != 0:
                self._search.status = 1

        def add(visit: Visit) -> bool:
            nonlocal size, where
            place, path = self._place(visit)
            length = byte_length(path) + 9
            if paths and (size + length > _ARGUMENTS or place != where):
                flush()
            where = place
            paths.append(path)
            size += length
            return True

        self._search.at_end(flush)
        return add


def _command(name: str) -> Callable[[Parser], Matcher]:
    def make(parser: Parser) -> Matcher:
        rest = parser.rest()
        end = next((i for i, word in enumerate(rest) if word == ";" or (word == "+" and rest[i - 1 : i] == ["{}"])), -1)
        if end < 0 or end == 0:
            raise UsageError(f"missing argument to `{name}'")
        words = rest[:end]
        many = rest[end] == "+"
        if many and name.startswith("-ok"):
            raise UsageError(f"missing argument to `{name}'")
        parser.skip(end + 1)
        if not many:
            return Command(parser.search, name, words).once
        if sum("{}" in word for word in words) > 1:
            raise UsageError(f"Only one instance of {{}} is supported with {name} ... +")
        if len(words) < 2:
            raise UsageError(f"invalid argument to `{name}'")
        return Command(parser.search, name, words[:-1]).gather()

    return make


ACTIONS: Final[dict[str, Callable[[Parser], Matcher]]] = {
    "-delete": _delete,
    "-exec": _command("-exec"),
    "-execdir": _command("-execdir"),
    "-fls": _fls,
    "-fprint": _fprint,
    "-fprint0": _fprint0,
    "-fprintf": _fprintf,
    "-ls": _ls,
    "-ok": _command("-ok"),
    "-okdir": _command("-okdir"),
    "-print": _print,
    "-print0": _print0,
    "-printf": _printf,
    "-prune": _prune,
    "-quit": _quit,
}
