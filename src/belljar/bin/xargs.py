"""xargs - build and execute command lines from standard input

Usage: xargs [OPTION]... COMMAND [INITIAL-ARGS]...

Run COMMAND with arguments INITIAL-ARGS and more arguments read from input. Blanks and newlines separate arguments;
quotes and backslashes protect them.
"""

import re
from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._kit import LineBatches, UsageError, choice, flag, utility, value
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process
from belljar.kernel.vfs.openfile import OpenFile

_DEFAULT_SIZE = 128 * 1024
_QUOTED = rb"|'([^'\n]*)'|\"([^\"\n]*)\"|\\(.)"
_TOKEN = re.compile(rb"([ \t\n\v\f\r]+)" + _QUOTED + rb"|[^ \t\n\v\f\r'\"\\]+", re.S)
_LINE_TOKEN = re.compile(rb"(\n[ \t\n\v\f\r]*|\A[ \t\n\v\f\r]+)" + _QUOTED + rb"|[^\n'\"\\]+", re.S)
"""For -I: an item is a line without the blanks before it."""


@dataclass(frozen=True, slots=True)
class Options:
    null: bool = flag("-0", "--null", "items are separated by a null, not whitespace; no quote processing")
    arg_file: str | None = value("-a", "--arg-file", "read arguments from FILE, not standard input", metavar="FILE")
    delimiter: str | None = value(
        "-d", "--delimiter", "items in input stream are separated by CHARACTER", metavar="CHARACTER"
    )
    eof: str | None = value("-E", "set logical EOF string", metavar="END")
    eof_old: str | None = value("-e", "--eof", "like -E, optional", metavar="END", bare="")
    replace: str | None = value("-I", "same as --replace=R", metavar="R")
    replace_old: str | None = value(
        "-i", "--replace", "replace R in INITIAL-ARGS with names read", metavar="R", bare="{}"
    )
    max_lines: str | None = value("-L", "use at most MAX-LINES non-blank input lines per command", metavar="MAX-LINES")
    max_lines_old: str | None = value("-l", "--max-lines", "like -L", metavar="MAX-LINES", bare="1")
    max_args: str | None = value(
        "-n", "--max-args", "use at most MAX-ARGS arguments per command line", metavar="MAX-ARGS"
    )
    open_tty: bool = flag("-o", "--open-tty", "reopen stdin as /dev/tty in the child process")
    max_procs: str = value(
        "-P", "--max-procs", "run at most MAX-PROCS processes at a time", metavar="MAX-PROCS", default="1"
    )
    interactive: bool = flag("-p", "--interactive", "prompt before running commands")
    slot_var: str | None = value("--process-slot-var", "set environment variable VAR in child processes", metavar="VAR")
    empty: str = choice({"-r": "no", "--no-run-if-empty": "no"}, "if there are no arguments, do not run COMMAND", "run")
    show_limits: bool = flag("--show-limits", "show limits on command-line length")
    max_chars: str | None = value("-s", "--max-chars", "limit length of command line to MAX-CHARS", metavar="MAX-CHARS")
    verbose: bool = flag("-t", "--verbose", "print commands before executing them")
    exit: bool = flag("-x", "--exit", "exit if the size (see -s) is exceeded")


class Stop(Exception):
    """No more commands: the exit status."""

    def __init__(self, status: int) -> None:
        self.status = status


@utility("xargs", Options, order="first-operand-ends")
def main(process: Process, options: Options, operands: list[str]) -> int:
    return Runner(process, options, operands or ["echo"]).run()


class Runner:
    def __init__(self, process: Process, options: Options, command: list[str]) -> None:
        self._process = process
        self._options = options
        self._command = command
        self._replace = options.replace if options.replace is not None else options.replace_old
        lines = options.max_lines if options.max_lines is not None else options.max_lines_old
        self._max_args = _number(options.max_args, "-n")
        self._max_lines = _number(lines, "-L") if self._replace is None else 1
        self._max_chars = _number(options.max_chars, "-s") or _DEFAULT_SIZE
        self._procs = _number(options.max_procs, "-P", zero=True) or (1 << 30)
        self._status = 0
        self._running = 0
        self._input = 0
        self._child_stdin: OpenFile | None = None

    def run(self) -> int:
        process, options = self._process, self._options
        if options.arg_file is not None:
            try:
                self._input = process.open(options.arg_file, O_RDONLY)
            except SysError as error:
                raise UsageError(
                    f"Cannot open input file {quote(options.arg_file, process.env)}: {error.reason}", hint=False
                ) from None
        else:
            path = "/dev/tty" if options.open_tty else "/dev/null"
            self._child_stdin = process.fs.open(path, O_RDONLY).retain()
        try:
            self._feed(self._items())
            while self._running:
                self._reap()
        except Stop as stop:
            while self._running:
                self._reap(quietly=True)
            return stop.status
        finally:
            if self._child_stdin is not None:
                self._child_stdin.release()
        return self._status

    # Input.

    def _chunks(self) -> Iterator[bytes]:
        while chunk := self._process.read(self._input):
            yield chunk

    def _batches(self, delimiter: bytes) -> LineBatches:
        return LineBatches(self._chunks(), delimiter, self._process.budget)

    def _texts(self) -> Iterator[bytes]:
        """The input in pieces that end where a line does, so that no word or quotation goes on in the next."""
        held = b""
        batches = self._batches(b"\n")
        for batch in batches:
            held += b"\n".join(batch) + (b"\n" if batches.complete else b"")
            self._process.budget.charge_size(len(held))
            if not held.endswith(b"\\\n"):
                yield held
                held = b""
        yield held

    def _items(self) -> Iterator[tuple[bytes, bool]]:
        """Each argument, and whether it ends an input line (as -L counts them)."""
        options = self._options
        delimiter = b"\0" if options.null else _delimiter(options.delimiter)
        if delimiter is not None:
            for item in self._batches(delimiter).lines():
                yield item, True
            return
        end = options.eof if options.eof is not None else options.eof_old
        stop = fsencode(end) if end else None
        token = _LINE_TOKEN if self._replace is not None else _TOKEN
        for text in self._texts():
            for item, last in self._words(text, token):
                if item == stop:
                    return
                if item or self._replace is None:
                    yield item, last

    def _words(self, data: bytes, token: re.Pattern[bytes]) -> Iterator[tuple[bytes, bool]]:
        word: list[bytes] = []
        started = False
        position = 0
        while position < len(data):
            match = token.match(data, position)
            if match is None:
                kind = "double" if data[position : position + 1] == b'"' else "single"
                if data[position : position + 1] == b"\\":
                    position += 1
                    continue
                raise UsageError(
                    f"unmatched {kind} quote; by default quotes are special to xargs unless you use the -0 option",
                    hint=False,
                )
            position = match.end()
            space, single, double, escaped = match.groups()
            if single is not None or double is not None or escaped is not None:
                word.append(next(g for g in (single, double, escaped) if g is not None))
                started = True
            elif space is not None:
                if started:
                    # A trailing blank continues the line, for -L.
                    newline = match[0].find(b"\n")
                    yield b"".join(word), newline == 0 or (newline > 0 and self._options.max_lines is None)
                    word, started = [], False
            else:
                word.append(match[0])
                started = True
        if started:
            yield b"".join(word), True

    # Commands.

    def _feed(self, items: Iterator[tuple[bytes, bool]]) -> None:
        if self._replace is not None:
            for item, _ in items:
                text = fsdecode(item)
                self._start([arg.replace(self._replace, text) for arg in self._command])
            return
        base = sum(len(fsencode(arg)) + 1 for arg in self._command)
        batch: list[str] = []
        size, lines, started = base, 0, False
        try:
            for item, last in items:
                length = len(item) + 1
                if batch and size + length > self._max_chars:
                    self._start([*self._command, *batch])
                    started, batch, size, lines = True, [], base, 0
                if size + length > self._max_chars:
                    raise UsageError("argument line too long", hint=False)
                batch.append(fsdecode(item))
                size += length
                lines += last
                if len(batch) == self._max_args or lines == self._max_lines:
                    self._start([*self._command, *batch])
                    started, batch, size, lines = True, [], base, 0
        except UsageError:
            if batch:  # what was read before the mistake
                self._start([*self._command, *batch])
            raise
        if batch or (not started and self._options.empty == "run"):
            self._start([*self._command, *batch])

    def _start(self, argv: list[str]) -> None:
        process, options = self._process, self._options
        while self._running >= self._procs:
            self._reap()
        if options.verbose or options.interactive:
            process.error(" ".join(_quote(arg) for arg in argv) + (" ?..." if options.interactive else "\n"))
        if options.interactive and not self._confirmed():
            return
        process.stdout.flush()
        env = None
        if options.slot_var:
            env = {**process.env, options.slot_var: str(self._running)}
        try:
            process.spawn(argv, env=env, stdin=self._child_stdin)
        except SysError as error:
            process.warn(f"{argv[0]}: {error.reason}")
            raise Stop(127 if error.name in ("ENOENT", "ENOTDIR") else 126) from None
        self._running += 1
        if self._procs == 1:
            self._reap()

    def _confirmed(self) -> bool:
        fd = self._process.open("/dev/tty", O_RDONLY)
        try:
            return self._process.read(fd, 256)[:1].lower() == b"y"
        finally:
            self._process.close(fd)

    def _reap(self, *, quietly: bool = False) -> None:
        result = self._process.wait()
        assert result is not None
        self._running -= 1
        if quietly:
            return
        name, status = self._command[0], result.status
        if status.signal:
            self._process.warn(f"{name}: terminated by signal {status.signal}")
            raise Stop(125)
        if status.code == 255:
            self._process.warn(f"{name}: exited with status 255; aborting")
            raise Stop(124)
        if status.code:
            self._status = 123


def _quote(text: str) -> str:
    return text if re.fullmatch(r"[\w@%+=:,./-]+", text) else "'" + text.replace("'", "'\\''") + "'"


def _number(text: str | None, option: str, *, zero: bool = False) -> int | None:
    if text is None:
        return None
    if not text.isdecimal():
        raise UsageError(f'invalid number "{text}" for {option} option')
    number = int(text[:18])
    if number == 0 and not zero:
        raise UsageError(f"value {text} for {option} option should be >= 1")
    return number


def _delimiter(text: str | None) -> bytes | None:
    if text is None:
        return None
    if len(fsencode(text)) == 1:
        return fsencode(text)
    named = {
        "\\n": b"\n",
        "\\t": b"\t",
        "\\0": b"\0",
        "\\r": b"\r",
        "\\\\": b"\\",
        "\\a": b"\a",
        "\\b": b"\b",
        "\\f": b"\f",
        "\\v": b"\v",
    }
    if text in named:
        return named[text]
    if re.fullmatch(r"\\x[0-9a-fA-F]{1,2}", text):
        return bytes([int(text[2:], 16)])
    if re.fullmatch(r"\\[0-7]{1,3}", text):
        return bytes([int(text[1:], 8) & 0xFF])
    raise UsageError(
        f"Invalid input delimiter specification {text}: the delimiter must be either a single character "
        "or an escape sequence starting with \\.",
        hint=False,
    )
