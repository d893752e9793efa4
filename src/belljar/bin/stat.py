"""stat - display file or file system status

Usage: stat [OPTION]... FILE...

Display file or file system status.
"""

import re
from collections.abc import Callable

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import PERMISSIONS
from belljar.abi.paths import dirname, fsdecode
from belljar.abi.records import NANO, Stat, StatFs
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.choices import pick
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.kinds import kind_name
from belljar.bin._kit.modes import render_mode
from belljar.bin._kit.quoting import quote, quote_name
from belljar.bin._kit.users import Accounts
from belljar.kernel.process import Process
from belljar.kernel.vfs.namespace import Place
from belljar.kernel.vfs.resolve import path_of
from belljar.libc.quotearg import shell_escape

_DIRECTIVE = re.compile(r"%([#0 +'-]*)(\d*)(\.(\d*))?([HL][dr]|.?)", re.DOTALL)
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.|\Z)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FILE = """  File: %N
  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F
Device: %Hd,%Ld\tInode: %-11i Links: %h{rdev}
Access: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)
Access: %x
Modify: %y
Change: %z
 Birth: %w
"""
_FILE_TERSE = "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o\n"
_SYSTEM = """  File: "%n"
    ID: %-8i Namelen: %-7l Type: %T
Block size: %-10s Fundamental block size: %S
Blocks: Total: %-10b Free: %-10f Available: %a
Inodes: Total: %-10c Free: %d
"""
_SYSTEM_TERSE = "%n %i %l %t %s %S %b %f %a %c %d\n"
_BLOCK = 4096


_MAGIC = 0x01021994
"""TMPFS_MAGIC of statfs(2)."""


@dataclass(frozen=True, slots=True)
class Octal:
    number: int


@dataclass(frozen=True, slots=True)
class Hex:
    number: int


@dataclass(frozen=True, slots=True)
class Time:
    ns: int


Value = str | int | Octal | Hex | Time


@dataclass(frozen=True, slots=True)
class Options:
    dereference: bool = flag("-L", "--dereference", "follow links")
    file_system: bool = flag("-f", "--file-system", "display file system status instead of file status")
    cached: str | None = value("--cached", "default, never or always (nothing is cached here)", metavar="MODE")
    format: str | None = value(
        "-c",
        "--format",
        "use the specified FORMAT instead of the default; output a newline after each use",
        metavar="FORMAT",
    )
    printf: str | None = value(
        "--printf",
        "like --format, but interpret backslash escapes, and do not output a trailing newline",
        metavar="FORMAT",
    )
    terse: bool = flag("-t", "--terse", "print the information in terse form")


@utility("stat", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    if options.cached is not None:
        pick(process, "--cached", options.cached, {"default": (), "never": (), "always": ()})
    template = _template(process, options)
    printer = Printer(process, options)
    status = 0
    for path in operands:
        process.budget.charge()
        try:
            if options.file_system:
                printer.file_system(template or (_SYSTEM_TERSE if options.terse else _SYSTEM), path)
            else:
                printer.file(template, path)
        except SysError as error:
            what = "cannot read file system information for" if options.file_system else "cannot statx"
            if path == "-" and not options.file_system:
                process.warn(f"cannot stat standard input: {error.reason}")
            else:
                process.warn(f"{what} {quote_name(path)}: {error.reason}")
            status = 1
    return status


def _template(process: Process, options: Options) -> str | None:
    if options.printf is not None:
        return _ESCAPE.sub(lambda match: _unescape(process, match), options.printf)
    return options.format


def _unescape(process: Process, match: re.Match[str]) -> str:
    body = match[1]
    if not body:
        process.warn("warning: backslash at end of format")
        return "\\"
    if body[0] in "01234567":
        return fsdecode(bytes([int(body, 8) & 0xFF])).replace("%", "%%")
    if body[0] == "x" and len(body) > 1:
        return fsdecode(bytes([int(body[1:], 16)])).replace("%", "%%")
    if body in _ESCAPES:
        return _ESCAPES[body]
    if body not in '"\\':
        process.warn(f"warning: unrecognized escape '\\{body}'")
    return body


class Printer:
    def __init__(self, process: Process, options: Options) -> None:
        self._process = process
        self._options = options
        self._accounts = Accounts(process)
        self._zone = zone_of(process.env)

    def file(self, template: str | None, path: str) -> None:
        fs = self._process.fs
        stat = self._process.fstat(0) if path == "-" else fs.stat(path, follow=self._options.dereference)
        if template is None:
            rdev = "     Device type: %t,%T" if stat.rdev else ""
            template = _FILE_TERSE if self._options.terse else _FILE.replace("{rdev}", rdev)
        self._expand(template, lambda letter: self._file_value(letter, path, stat))

    def file_system(self, template: str, path: str) -> None:
        place = self._process.fs.resolve(path)
        figures = place.mount.server.statfs()
        identity = place.mount.server.stat(place.mount.root).dev
        self._expand(template, lambda letter: _system_value(letter, path, figures, identity))

    def _expand(self, template: str, find: Callable[[str], Value]) -> None:
        def replace(match: re.Match[str]) -> str:
            flags, width, precision, letter = match[1], match[2], match[4] if match[3] else None, match[5]
            if not letter:
                if flags or width or match[3]:
                    raise UsageError(f"{quote(match[0], self._process.env)}: invalid directive", hint=False)
                return "%"
            if letter == "%":
                if match[0] != "%%":
                    raise UsageError(f"{quote(match[0], self._process.env)}: invalid directive", hint=False)
                return "%"
            self._process.budget.charge_size(int((width or "0")[:18]) + int((precision or "0")[:18]))
            return format_value(find(letter), flags, width, precision)

        end = "\n" if self._options.format is not None and self._options.printf is None else ""
        self._process.print(_DIRECTIVE.sub(replace, template), end=end)

    def _file_value(self, letter: str, path: str, stat: Stat) -> Value:
        match letter:
            case "N":
                return self._name(path, stat)
            case "U":
                return self._accounts.user_name(stat.uid) or "UNKNOWN"
            case "G":
                return self._accounts.group_name(stat.gid) or "UNKNOWN"
            case "m":
                return self._mount_point(path)
            case "x" | "y" | "z":
                return format_time("%Y-%m-%d %H:%M:%S.%N %z", _time_of(letter, stat), self._zone)
        return _plain_value(letter, path, stat)

    def _name(self, path: str, stat: Stat) -> str:
        always = self._options.format is not None or self._options.printf is not None
        shown = shell_escape(path, always=always)
        if stat.is_symlink:
            shown += f" -> {shell_escape(self._process.fs.readlink(path), always=always)}"
        return shown

    def _mount_point(self, path: str) -> str:
        fs = self._process.fs
        place = fs.resolve(path)
        if not place.mount.server.stat(place.node).is_dir:
            place = fs.resolve(dirname(path))
        while place.node is not place.mount.root and (above := place.mount.server.locate(place.node)) is not None:
            place = Place(place.mount, above[0])
        return path_of(fs, place) or "/"


def _time_of(letter: str, stat: Stat) -> int:
    return {"x": stat.atime, "y": stat.mtime, "z": stat.ctime}[letter.lower()]


def _plain_value(letter: str, path: str, stat: Stat) -> Value:
    """A directive that needs nothing but the file's figures."""
    match letter:
        case "a":
            return Octal(stat.mode & PERMISSIONS)
        case "A":
            return render_mode(stat.mode)
        case "f":
            return Hex(stat.mode)
        case "F":
            return kind_name(stat)
        case "D" | "R":
            return Hex(stat.dev if letter == "D" else stat.rdev)
        case "X" | "Y" | "Z":
            return Time(_time_of(letter, stat))
        case "Hd" | "Ld":
            return _major(stat.dev) if letter == "Hd" else _minor(stat.dev)
        case "Hr" | "Lr":
            return _major(stat.rdev) if letter == "Hr" else _minor(stat.rdev)
        case "t" | "T":
            return Hex(_major(stat.rdev) if letter == "t" else _minor(stat.rdev))
        case "w":
            return "-"
        case "W":
            return Time(0)
        case "B":
            return 512
        case "o":
            return _BLOCK
    found: dict[str, Value] = {
        "b": stat.blocks,
        "d": stat.dev,
        "g": stat.gid,
        "h": stat.nlink,
        "i": stat.ino,
        "n": path,
        "r": stat.rdev,
        "s": stat.size,
        "u": stat.uid,
    }
    return found.get(letter, "?")


def _system_value(letter: str, path: str, figures: StatFs, identity: int) -> Value:
    found: dict[str, Value] = {
        "a": figures.blocks_free,
        "b": figures.blocks,
        "c": figures.files,
        "d": figures.files_free,
        "f": figures.blocks_free,
        "i": Hex(identity),
        "l": figures.name_max,
        "n": path,
        "s": figures.block_size,
        "S": figures.block_size,
        "t": Hex(_MAGIC),
        "T": figures.kind,
    }
    return found.get(letter, "?")


def _major(device: int) -> int:
    return device >> 8 & 0xFFF


def _minor(device: int) -> int:
    return device & 0xFF | device >> 12 & 0xFFF00


def format_value(value: Value, flags: str, width: str, precision: str | None) -> str:
    """As C's printf would, with the flags and widths between % and the letter."""
    size = int(width or 0)
    if isinstance(value, str):
        text = value if precision is None else value[: int(precision or 0)]
    elif isinstance(value, Time):
        text = _seconds(value.ns, precision)
    else:
        text = _digits(value, flags, precision)
    if "-" in flags:
        return text.ljust(size)
    if "0" in flags and not isinstance(value, str) and (precision is None or isinstance(value, Time)):
        return text.zfill(size)
    return text.rjust(size)


def _digits(value: int | Octal | Hex, flags: str, precision: str | None) -> str:
    if isinstance(value, Octal):
        text = f"{value.number:o}"
        text = "0" + text if "#" in flags and value.number else text
    elif isinstance(value, Hex):
        text = f"{value.number:x}"
        text = "0x" + text if "#" in flags and value.number else text
    else:
        sign = "+" if "+" in flags and value >= 0 else " " if " " in flags and value >= 0 else ""
        return sign + str(value).zfill(int(precision or 0))
    return text.zfill(int(precision or 0))


def _seconds(ns: int, precision: str | None) -> str:
    seconds, fraction = divmod(ns, NANO)
    if precision is None:
        return str(seconds)
    digits = int(precision) if precision else 9
    if digits == 0:
        return str(seconds)
    return f"{seconds}.{f'{fraction:09d}'[:digits].ljust(digits, '0')}"
