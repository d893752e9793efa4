"""file - determine file type

Usage: file [OPTION]... FILE...

Determine the type of each FILE: first whether it is a regular file at all, then by the first bytes of its contents,
then by the language and character set of its text.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFCHR, S_IFIFO, S_IFSOCK
from belljar.abi.paths import fsdecode
from belljar.abi.records import Stat
from belljar.bin._kit import UsageError, choice, flag, many, utility, value
from belljar.bin.file.magic import recognize
from belljar.bin.file.texts import describe_text
from belljar.bin.file.verdict import Verdict
from belljar.kernel.process import Process
from belljar.libc.width import display_width

_LOOK = 1 << 20
"""How much of a file is looked at."""


@dataclass(frozen=True, slots=True)
class Options:
    brief: bool = flag("-b", "--brief", "do not prepend filenames to output lines")
    error_exit: bool = flag("-E", "on filesystem errors, issue an error message and exit")
    exclude: tuple[str, ...] = many("-e", "--exclude", "(accepted, ignored)", metavar="TEST")
    separator: str = value("-F", "--separator", "use string as separator", metavar="STRING", default=":")
    names: tuple[str, ...] = many("-f", "--files-from", "read the filenames to be examined from FILE", metavar="FILE")
    follow: bool = choice(
        {"-L": True, "--dereference": True, "-h": False, "--no-dereference": False},
        "-L: follow symlinks; -h: don't follow symlinks (default)",
        default=False,
    )
    mime: str = choice(
        {"-i": "both", "--mime": "both", "--mime-type": "type", "--mime-encoding": "encoding"},
        "-i: output MIME type strings; --mime-type: only the type; --mime-encoding: only the encoding",
        default="",
    )
    keep_going: bool = flag("-k", "--keep-going", "(accepted, ignored)")
    no_pad: bool = flag("-N", "--no-pad", "do not pad output")
    no_buffer: bool = flag("-n", "--no-buffer", "do not buffer output")
    raw: bool = flag("-r", "--raw", "don't translate unprintable chars to \\ooo")
    special: bool = flag("-s", "--special-files", "treat special (block/char devices) files as ordinary ones")
    uncompress: bool = flag("-z", "--uncompress", "(accepted, ignored)")
    zero: bool = flag("-0", "--print0", "terminate filenames with ASCII NUL")


@utility("file", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    names = list(operands)
    for source in options.names:
        names = [*fsdecode(process.read_file(source)).splitlines(), *names]
    if not names:
        raise UsageError("no file given")
    widest = max(display_width(_shown(name)) for name in names)
    status = 0
    for name in names:
        process.budget.charge()
        try:
            text = _describe(process, options, name)
        except SysError as error:
            if options.error_exit:
                process.print(f"{name}: ERROR: cannot stat `{name}' ({error.reason})")
                return 1
            text = f"cannot open `{name}' ({error.reason})"
        if options.brief:
            process.print(text)
            continue
        shown = _shown(name)
        pad = "" if options.no_pad else " " * (widest - display_width(shown))
        process.print(f"{shown}{chr(0) if options.zero else ''}{options.separator}{'' if options.zero else pad} {text}")
    return status


def _shown(name: str) -> str:
    return "/dev/stdin" if name == "-" else name


def _describe(process: Process, options: Options, name: str) -> str:
    stat = process.fstat(0) if name == "-" else process.fs.stat(name, follow=options.follow)
    verdict = None if name == "-" else _special(process, name, stat)
    if verdict is None or (options.special and stat.kind == S_IFCHR):
        verdict = classify(_head(process, name))
    match options.mime:
        case "type":
            return verdict.mime
        case "encoding":
            return verdict.encoding
        case "both":
            broken = verdict.text.startswith("broken ")
            return verdict.mime if broken else f"{verdict.mime}; charset={verdict.encoding}"
    return verdict.text


def _head(process: Process, name: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    for chunk in process.chunks(name):
        parts.append(chunk)
        size += len(chunk)
        if size >= _LOOK:
            break
    return b"".join(parts)[:_LOOK]


def _special(process: Process, name: str, stat: Stat) -> Verdict | None:
    """Describe a file that is not regular, or is empty; None for others."""
    if stat.is_regular:
        return Verdict("empty", "inode/x-empty") if stat.size == 0 else None
    if stat.is_dir:
        prefix = "sticky, " if stat.mode & 0o1000 else ""
        return Verdict(prefix + "directory", "inode/directory")
    if stat.is_symlink:
        target = process.fs.readlink(name)
        if not process.fs.exists(name):
            return Verdict(f"broken symbolic link to {target}", "inode/symlink")
        return Verdict(f"symbolic link to {target}", "inode/symlink")
    if stat.kind == S_IFIFO:
        return Verdict("fifo (named pipe)", "inode/fifo")
    if stat.kind == S_IFSOCK:
        return Verdict("socket", "inode/socket")
    numbers = f"{stat.rdev >> 8 & 0xFFF}/{stat.rdev & 0xFF}"
    kind = "character" if stat.kind == S_IFCHR else "block"
    return Verdict(f"{kind} special ({numbers})", f"inode/{'char' if kind == 'character' else 'block'}device")


def classify(data: bytes) -> Verdict:
    """Classify a file by its contents alone."""
    if not data:
        return Verdict("empty", "inode/x-empty")
    if len(data) == 1:
        return Verdict("very short file (no magic)", "application/octet-stream")
    return recognize(data) or describe_text(data) or Verdict("data", "application/octet-stream")
