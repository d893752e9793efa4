"""read: a line of input, split into variables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from belljar.abi.dataclass import replace
from belljar.abi.errno import EINTR, EISDIR
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.signals import parse_signal
from belljar.abi.termios import ECHO, ICANON, Termios
from belljar.libc.numbers import parse_integer
from belljar.shell.arrays import Array
from belljar.shell.builtins.registry import Options, builtin
from belljar.shell.control import ReadonlyError, ShellError, SubscriptError
from belljar.shell.input import read_line
from belljar.shell.lines import End, Lines, is_ready
from belljar.shell.variables import ASSOC, is_name

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

_TIMED_OUT = 142
"""128 + SIGALRM, by which bash notices."""


@builtin("read", "a:d:ei:n:N:p:rst:u:")
def read(shell: Shell, options: Options, args: list[str]) -> int:
    """read [-ers] [-a array] [-d delim] [-i text] [-n nchars] [-N nchars] [-p prompt] [-t timeout] [-u fd] [name ...]
    Read a line and split it into the variables named (the last takes the rest), or put it into REPLY.

    Options:
      -a ARRAY    the fields go into an array
      -d DELIM    read up to its first character instead of a newline; NUL if it is empty
      -e, -i TEXT edit the line, with TEXT to begin with (on a terminal)
      -n N        at most N characters
      -N N        exactly N characters, delimiters and fields don't matter
      -p PROMPT   show it first, on a terminal
      -r          backslashes are ordinary
      -s          don't echo (on a terminal)
      -t SECONDS  give up after that time; 0 only tells whether there is input
      -u FD       read from a descriptor
    Fails at the end of the input, or (above 128) when the time is up.
    """
    if (not options or (len(options) == 1 and "r" in options)) and args and "TMOUT" not in shell.vars.table:
        status = _read_simply(shell, args, raw="r" in options)
        if status is not None:
            return status
    for name in args:
        if not is_target(name):
            shell.error(f"read: `{name}': not a valid identifier")
            return 1
    fd = 0
    if "u" in options:
        number = parse_integer(options["u"])
        if number is None or number < 0:
            shell.error(f"read: {options['u']}: invalid file descriptor specification")
            return 1
        fd = number
        if fd not in shell.process.fds:
            shell.error(f"read: {fd}: invalid file descriptor: Bad file descriptor")
            return 1
    timeout = parse_timeout(options.get("t", shell.vars.get("TMOUT") or ""))
    if "t" in options and (timeout is None or timeout < 0):
        shell.error(f"read: {options['t']}: invalid timeout specification")
        return 1
    limit: int | None = None
    for letter in ("n", "N"):
        if letter in options:
            limit = parse_integer(options[letter])
            if limit is None or limit < 0:
                shell.error(f"read: {options[letter]}: invalid number")
                return 1
    if timeout == 0 and "t" in options:
        return int(not is_ready(shell.process, fd))
    exact = "N" in options
    delimiter: bytes | None = fsencode(options["d"])[:1] or b"\0" if "d" in options else b"\n"
    if exact:
        delimiter = None
    if "p" in options and shell.process.isatty(fd):
        shell.process.error(options["p"])
    try:
        with _Quiet(shell, fd, silent="s" in options, single=limit is not None):
            data, end = _take(shell, fd, delimiter, limit, timeout or None, raw="r" in options)
    except SysError as error:
        if error.errno == EINTR:
            return 128 + (parse_signal(shell.traps.pending[-1]) or 0) if shell.traps.pending else 1
        shell.error(f"read: read error: {fd}: {error.reason}")
        return 1
    status = 1 if end is End.EOF else _TIMED_OUT if end is End.TIMEOUT else 0
    text = fsdecode(data.replace(b"\0", b""))
    quoted: frozenset[int] = frozenset()
    if "r" not in options and "\\" in text:
        text, quoted = unescape(text)
    return max(status, _store(shell, options, args, text, quoted, exact=exact))


_BLANKS = re.compile("[ \t\n]+")


def _read_simply(shell: Shell, names: list[str], *, raw: bool) -> int | None:
    """`read -r x y` and the like, which loops run for every line; None: nothing was read, it's not that simple."""
    ifs = shell.vars.get("IFS")
    blank = ifs is None or ifs == " \t\n"
    if not (blank or not ifs or (len(ifs) == 1 and ifs not in " \t\n\\")) or not raw:
        return None
    for name in names:
        if not is_name(name):
            return None
    try:
        data = read_line(shell.process, 0)
    except SysError as error:
        if error.errno == EINTR:
            return 128 + (parse_signal(shell.traps.pending[-1]) or 0) if shell.traps.pending else 1
        shell.error(f"read: read error: 0: {error.reason}")
        return 1
    ended = data.endswith(b"\n")
    text = (data[:-1] if ended else data).decode("utf-8", "surrogateescape")
    if "\0" in text:
        text = text.replace("\0", "")
    count = len(names)
    if blank:
        text = text.strip(" \t\n")
        values = [text] if count == 1 else _BLANKS.split(text, count - 1)
    elif not ifs:
        values = [text]
    else:
        values = text.split(ifs, count - 1)
        last = values[-1]
        if last.endswith(ifs) and last.count(ifs) == 1:
            values[-1] = last[:-1]
    values += [""] * (count - len(values))
    try:
        for name, value in zip(names, values, strict=True):
            shell.vars.set(name, value)
    except ReadonlyError as error:
        shell.error(str(error))
        return 1
    return 0 if ended else 1


def _take(
    shell: Shell, fd: int, delimiter: bytes | None, limit: int | None, timeout: float | None, *, raw: bool
) -> tuple[bytes, End]:
    """The input without its delimiter; an escaped newline joins lines unless `raw`."""
    deadline = shell.process.kernel.hub.clock.monotonic() + timeout if timeout else None
    lines = Lines(shell.process, fd, deadline)
    data, end = lines.read(delimiter, limit)
    while not raw and b"\\" in data:
        if end is End.DELIMITER and delimiter is not None and _is_escaped(data[:-1]):
            # The delimiter itself is escaped: a newline vanishes with its backslash, another one is kept.
            data = data[:-2] if delimiter == b"\n" else data
            missing = None if limit is None else limit - _count(data)
        elif end is End.LIMIT and limit is not None and (missing := limit - _count(data)) > 0:
            pass
        else:
            break
        more, end = lines.read(delimiter, missing)
        data += more
    if end is End.DELIMITER:
        data = data[:-1]
    return data, end


def _count(data: bytes) -> int:
    """The number of characters after backslashes are removed."""
    text, _ = unescape(fsdecode(data))
    return len(text)


def _is_escaped(line: bytes) -> bool:
    return (len(line) - len(line.rstrip(b"\\"))) % 2 == 1


def unescape(text: str) -> tuple[str, frozenset[int]]:
    """The text without its backslashes, and where the characters they protected now are."""
    parts: list[str] = []
    quoted: set[int] = set()
    position = size = 0
    while True:
        at = text.find("\\", position)
        if at < 0 or at + 1 >= len(text):
            parts.append(text[position:] if at < 0 else text[position:at])
            return "".join(parts), frozenset(quoted)
        parts.append(text[position:at])
        size += at - position
        if text[at + 1] == "\n":  # which only another delimiter leaves there
            position = at + 2
            continue
        quoted.add(size)
        parts.append(text[at + 1])
        size += 1
        position = at + 2


def _store(shell: Shell, options: Options, args: list[str], text: str, quoted: frozenset[int], *, exact: bool) -> int:
    ifs = shell.vars.get("IFS")
    fields = Fields(text, quoted, " \t\n" if ifs is None else ifs)
    if "a" in options:
        name = options["a"]
        if not is_name(name):
            shell.error(f"read: `{name}': not a valid identifier")
            return 1
        if shell.vars.attrs(name) & ASSOC:
            shell.error(f"read: {name}: cannot convert associative to indexed array")
            return 1
        try:
            shell.vars.set_array(name, [text] if exact else fields.all())
        except ReadonlyError as error:
            shell.error(str(error))
            return 1
        return 0
    if not args:
        shell.vars.set("REPLY", text)
        return 0
    if exact:
        values = [text] + [""] * (len(args) - 1)
    else:
        values = [fields.next() for _ in args[:-1]]
        values.append(fields.rest())
    for name, value in zip(args, values, strict=True):
        try:
            shell.assign(name, value)
        except SubscriptError:
            raise
        except ShellError as error:
            prefix = "read: " if type(error) is ShellError else ""
            shell.error(f"{prefix}{error}")
            return 1
    return 0


class Fields:
    """Takes fields off a line one by one, as IFS says; protected characters don't separate."""

    def __init__(self, text: str, quoted: frozenset[int], ifs: str) -> None:
        self.text = text
        self._quoted = quoted
        self._ifs = ifs
        self._blanks = "".join(char for char in ifs if char in " \t\n")
        self._pos = 0
        self._skip_blanks()

    def _is(self, position: int, chars: str) -> bool:
        return self.text[position] in chars and position not in self._quoted

    def _skip_blanks(self) -> None:
        text, blanks = self.text, self._blanks
        while self._pos < len(text) and self._is(self._pos, blanks):
            self._pos += 1

    def next(self) -> str:
        """The next field; "" when there are no more."""
        text, start = self.text, self._pos
        end = start
        if self._quoted or len(self._ifs) != 1:
            while end < len(text) and not self._is(end, self._ifs):
                end += 1
        else:
            found = text.find(self._ifs, start)
            end = found if found >= 0 else len(text)
        self._pos = end
        self._skip_blanks()
        if self._pos < len(text) and self._is(self._pos, self._ifs):
            self._pos += 1
            self._skip_blanks()
        return text[start:end]

    def all(self) -> list[str]:
        found: list[str] = []
        while self._pos < len(self.text):
            found.append(self.next())
        return found

    def rest(self) -> str:
        """The remaining text, without trailing blanks (of several fields even a protected one, as bash does it).

        A single field also loses the delimiter that ends it.
        """
        start = self._pos
        word = self.next()
        if self._pos >= len(self.text):
            return word
        rest = self.text[start:]
        return rest.rstrip(self._blanks or "\0") or rest


def is_target(text: str) -> bool:
    """A name, or an element of an array."""
    name, bracket, rest = text.partition("[")
    return is_name(name) and (not bracket or (rest.endswith("]") and len(rest) > 1))


def parse_timeout(text: str) -> float | None:
    """Seconds, with a fraction; None if it is no such number."""
    digits = text.removeprefix("+").removeprefix("-")
    whole, _, part = digits.partition(".")
    if not digits.isascii() or len(digits) > 18 or not (whole + part).isdecimal():
        return None
    value = float(digits)
    return -value if text.startswith("-") else value


class _Quiet:
    """While it lasts, a terminal doesn't echo (`-s`) and gives characters at once (`-n`)."""

    def __init__(self, shell: Shell, fd: int, *, silent: bool, single: bool) -> None:
        self._process = shell.process
        self._fd = fd
        self._silent = silent
        self._single = single
        self._saved: Termios | None = None

    def __enter__(self) -> None:
        if (self._silent or self._single) and self._process.isatty(self._fd):
            saved = self._process.ioctl(self._fd, "termios")
            assert isinstance(saved, Termios)
            self._saved = saved
            off = (ECHO if self._silent else 0) | (ICANON if self._single else 0)
            self._process.ioctl(self._fd, "set_termios", replace(saved, lflag=saved.lflag & ~off))

    def __exit__(self, *_: object) -> None:
        if self._saved is not None:
            self._process.ioctl(self._fd, "set_termios", self._saved)


def _mapfile(shell: Shell, name: str, options: Options, args: list[str]) -> int:
    numbers = {
        "n": ("line count", 0),
        "s": ("line count", 0),
        "O": ("array origin", 0),
        "c": ("callback quantum", 5000),
    }
    values: dict[str, int] = {}
    for letter, (what, default) in numbers.items():
        value = parse_integer(options[letter]) if letter in options else default
        if value is None or value < 0 or (letter == "c" and value == 0):
            shell.error(f"{name}: {options[letter]}: invalid {what}")
            return 1
        values[letter] = value
    fd = 0
    if "u" in options:
        number = parse_integer(options["u"])
        if number is None or number < 0:
            shell.error(f"{name}: {options['u']}: invalid file descriptor specification")
            return 1
        fd = number
        if fd not in shell.process.fds:
            shell.error(f"{name}: {fd}: invalid file descriptor: Bad file descriptor")
            return 1
    array = args[0] if args else "MAPFILE"
    if not array:
        shell.error(f"{name}: empty array variable name")
        return 2
    if not is_name(array):
        shell.error(f"{name}: `{array}': not a valid identifier")
        return 1
    if shell.vars.attrs(array) & ASSOC:
        shell.error(f"{name}: {array}: not an indexed array")
        return 1
    delimiter = fsencode(options["d"])[:1] or b"\0" if "d" in options else b"\n"
    try:
        if "O" not in options:
            shell.vars.set_array(array, [])
        _fill(shell, array, fd, delimiter, values, trim="t" in options, callback=options.get("C"))
    except ReadonlyError as error:
        shell.error(str(error))
        return 1
    except SysError as error:
        if error.errno != EISDIR:  # bash takes a directory for an empty file here
            shell.error(f"{name}: read error: {fd}: {error.reason}")
            return 1
    return 0


def _fill(
    shell: Shell, array: str, fd: int, delimiter: bytes, values: dict[str, int], *, trim: bool, callback: str | None
) -> None:
    lines = Lines(shell.process, fd)
    for _ in range(values["s"]):
        if lines.read(delimiter)[1] is End.EOF:
            return
    if callback is None and values["n"] == 0:
        data = b"".join(_drain(shell, fd))
        pieces = data.split(delimiter)
        last = pieces.pop()
        keep = b"" if trim or delimiter == b"\0" else delimiter
        found = [fsdecode((piece + keep).partition(b"\0")[0]) for piece in pieces]
        if last:
            found.append(fsdecode(last.partition(b"\0")[0]))
        shell.process.budget.charge(len(found))
        _append(shell, array, values["O"], found)
        return
    count = 0
    while values["n"] == 0 or count < values["n"]:
        line, end = lines.read(delimiter)
        if not line:
            return
        if trim and end is End.DELIMITER:
            line = line[:-1]
        text = fsdecode(line.partition(b"\0")[0])
        index = values["O"] + count
        count += 1
        if callback is not None and count % values["c"] == 0:
            shell.run_text(f"{callback} {index} {_quote(text)}", line=shell.line)
        shell.vars.set_index(shell.vars.resolve(array)[0], index, text)
        if end is End.EOF:
            return


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _append(shell: Shell, array: str, origin: int, found: list[str]) -> None:
    if origin == 0 and isinstance(contents := shell.vars.contents(array), Array) and len(contents) == 0:
        shell.vars.set_array(array, found)
        return
    target = shell.vars.resolve(array)[0]
    for index, text in enumerate(found, origin):
        shell.vars.set_index(target, index, text)
    if not found:
        shell.vars.own_array(target)


def _drain(shell: Shell, fd: int) -> list[bytes]:
    parts: list[bytes] = []
    total = 0
    while data := shell.process.read(fd):
        total += len(data)
        shell.process.budget.charge_size(total)
        parts.append(data)
    return parts


@builtin("mapfile", "d:n:O:s:tu:C:c:")
def mapfile(shell: Shell, options: Options, args: list[str]) -> int:
    """mapfile [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]
    Read lines into an indexed array (MAPFILE).

    Options:
      -d DELIM  lines end with its first character instead of a newline; NUL if it is empty
      -n COUNT  at most that many lines; 0 means all
      -O INDEX  begin there, and keep the elements there are
      -s COUNT  skip that many lines first
      -t        without the delimiters
      -u FD     read from a descriptor
      -C CODE   run after every QUANTUM lines, with the index and the line as arguments
      -c N      the quantum (5000)
    """
    return _mapfile(shell, "mapfile", options, args)


@builtin("readarray", "d:n:O:s:tu:C:c:")
def readarray(shell: Shell, options: Options, args: list[str]) -> int:
    """readarray [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]
    The same as `mapfile`.
    """
    return _mapfile(shell, "readarray", options, args)
