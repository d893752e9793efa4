"""Scripts as compiled programs: parsed command by command, as bash reads them, and kept by their text."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, TypeAlias

from belljar.shell.compile.commands import compile_command
from belljar.shell.control import Abandon, Discard
from belljar.shell.parse import ParseOptions, Parser, ShellSyntaxError

if TYPE_CHECKING:
    from belljar.shell.processes import Run
    from belljar.shell.shell import Shell

Step: TypeAlias = "tuple[Run, int]"
"""A command of a script, and the line it ends on: what errors name until a part of it says where it stands."""
CACHED_PROGRAMS: Final = 512
CACHED_SIZE: Final = 1 << 20
"""Longer texts aren't kept."""
CACHED_TOTAL: Final = 4 << 20
"""Characters of all texts kept together; their closures take some fifty times as many bytes."""
ProgramKey = tuple[str, int, object]
"""Text, number of its first line, and what else its parse depends on."""


class SyntaxFailure(Exception):
    """A syntax error, already reported; a shell whose script it is in exits with `status`."""

    def __init__(self, status: int = 2) -> None:
        super().__init__(status)
        self.status = status


class ProgramCache:
    """Programs that were read to their end, by text and parse options; the least recently used go first."""

    def __init__(self) -> None:
        self._programs: OrderedDict[ProgramKey, list[Step]] = OrderedDict()
        self._size = 0

    def get(self, key: ProgramKey) -> list[Step] | None:
        found = self._programs.get(key)
        if found is not None:
            self._programs.move_to_end(key)
        return found

    def put(self, key: ProgramKey, runs: list[Step]) -> None:
        if key not in self._programs:
            self._size += len(key[0])
        self._programs[key] = runs
        while len(self._programs) > CACHED_PROGRAMS or self._size > CACHED_TOTAL:
            (text, _, _), _ = self._programs.popitem(last=False)
            self._size -= len(text)


_CACHE: Final = ProgramCache()
"""Closures hold nothing of the shell that made them, so every shell of the worker shares them."""


def options_for(shell: Shell, options: ParseOptions | None = None) -> ParseOptions:
    """Parser options for the shell's current state."""
    options = options or ParseOptions()
    options.extglob = shell.extglob
    options.posix = shell.posix
    options.comments = not shell.interactive or shell.shopts["interactive_comments"]
    options.alias = shell.aliases.get if shell.expand_aliases and shell.aliases else None
    return options


def report_warnings(shell: Shell, parser: Parser) -> None:
    for warned in parser.warnings:
        shell.report_line(warned.line, f"warning: {warned.message}")
    parser.warnings.clear()


def run_script(shell: Shell, text: str, *, line: int, what: str, top: bool = False, verbose: bool = True) -> int:
    """Run a script's text. `top`: it is the shell's own script, so a discarded command does not end it.

    `verbose`: `set -v` shows it.
    """
    key = shell.parse_key()
    cache_key: ProgramKey | None = (text, line, key) if len(text) < CACHED_SIZE and key is not None else None
    looks = shell.noexec or (verbose and shell.options["verbose"])
    runs = _CACHE.get(cache_key) if cache_key is not None and not looks else None
    if runs is not None:
        return _replay(shell, runs, text, line, what, key, top)
    return _read_and_run(shell, text, line, what, cache_key, top, skip=0, verbose=verbose)


def _replay(shell: Shell, runs: list[Step], text: str, line: int, what: str, key: object, top: bool) -> int:
    status = 0
    for place, (run, shell.line) in enumerate(runs):
        status = _run_one(shell, run, top)
        if shell.parse_key() != key or shell.options["verbose"]:
            return _read_and_run(shell, text, line, what, None, top, skip=place + 1)
    return status


def _run_one(shell: Shell, run: Run, top: bool) -> int:
    if not top:
        return run(shell)
    shell.command_number += 1
    try:
        return run(shell)
    except Discard as error:
        if shell.from_argument and not isinstance(error, Abandon):
            raise
        shell.loops = 0
        shell.status = error.status
        return error.status


def _read_and_run(
    shell: Shell,
    text: str,
    line: int,
    what: str,
    cache_key: ProgramKey | None,
    top: bool,
    *,
    skip: int,
    verbose: bool = True,
) -> int:
    options = options_for(shell)
    parser = Parser(text, options, line)
    key = shell.parse_key()
    runs: list[Step] = []
    status = 0
    single = cache_key is not None and "\n" not in text
    place = 0
    shown = line
    while True:
        try:
            node = parser.next_command()
        except ShellSyntaxError as error:
            if verbose and shell.options["verbose"]:
                _echo(shell, text, line, shown, parser.line_at(parser.pos - 1))
            before = shell.status
            report_warnings(shell, parser)
            shell.report_syntax(error, what)
            if error.mild and top:
                shell.status = status = 1
                cache_key = None
                continue
            raise SyntaxFailure(before if error.ends else error.status) from None
        if parser.warnings:
            report_warnings(shell, parser)
        end = parser.line_at(parser.pos - 1)
        if verbose and shell.options["verbose"] and place >= skip:
            _echo(shell, text, line, shown, end)
        shown = end + 1
        if node is None:
            break
        run = compile_command(node)
        runs.append((run, end))
        if single:
            # One line is one command: it may be kept before it has run, however it ends.
            single = False
            assert cache_key is not None
            _CACHE.put(cache_key, runs)
        place += 1
        if place <= skip:
            continue
        if shell.noexec:
            continue
        shell.line = end
        status = _run_one(shell, run, top)
        if shell.parse_key() != key:
            cache_key = None
            options_for(shell, options)
            key = shell.parse_key()
    if cache_key is not None:
        _CACHE.put(cache_key, runs)
    return status


def _echo(shell: Shell, text: str, first: int, start: int, end: int) -> None:
    """The lines from `start` to `end` as `set -v` shows them when they are read; the first of the text is `first`."""
    lines = text.split("\n")[start - first : end - first + 1]
    if lines and not lines[-1] and end - first + 1 > text.count("\n"):
        lines.pop()  # what follows the last newline is no line
    shell.process.error("".join(f"{line}\n" for line in lines))
