"""dircolors - color setup for ls

Usage: dircolors [OPTION]... [FILE]

Output commands to set the LS_COLORS environment variable. If FILE is specified, read it to determine which colors to
use for which file types and extensions; otherwise, a precompiled database is used.
"""

import re
from collections.abc import Iterator, Mapping

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin._kit import UsageError, choice, flag, utility
from belljar.bin._kit.quoting import quote, quote_if_odd
from belljar.bin._ls.colors import COLOR_TERMS
from belljar.kernel.process import Process
from belljar.libc.pattern import compile_pattern

_CODES = {
    "NORMAL": "no", "NORM": "no", "FILE": "fi", "RESET": "rs", "DIR": "di", "LNK": "ln", "LINK": "ln",
    "SYMLINK": "ln", "ORPHAN": "or", "MISSING": "mi", "FIFO": "pi", "PIPE": "pi", "SOCK": "so", "BLK": "bd",
    "BLOCK": "bd", "CHR": "cd", "CHAR": "cd", "DOOR": "do", "EXEC": "ex", "LEFT": "lc", "LEFTCODE": "lc",
    "RIGHT": "rc", "RIGHTCODE": "rc", "END": "ec", "ENDCODE": "ec", "SUID": "su", "SETUID": "su", "SGID": "sg",
    "SETGID": "sg", "STICKY": "st", "OTHER_WRITABLE": "ow", "OWR": "ow", "STICKY_OTHER_WRITABLE": "tw", "OWT": "tw",
    "CAPABILITY": "ca", "MULTIHARDLINK": "mh", "CLRTOEOL": "cl",
}  # fmt: skip
_IGNORED = ("OPTIONS", "COLOR", "EIGHTBIT")
_KINDS = """\
RESET 0 # back to the normal colour
DIR 01;34
LINK 01;36 # 'target' here means: as the file it leads to
MULTIHARDLINK 00
FIFO 40;33
SOCK 01;35
DOOR 01;35
BLK 40;33;01
CHR 40;33;01
ORPHAN 40;31;01 # a symlink that leads nowhere
MISSING 00 # where it would lead
SETUID 37;41
SETGID 30;43
CAPABILITY 00
STICKY_OTHER_WRITABLE 30;42
OTHER_WRITABLE 34;42
STICKY 37;44
EXEC 01;32
"""
_EXTENSIONS = (
    (
        "archives and compressed files",
        "01;31",
        ".tar .tgz .arc .arj .taz .lha .lz4 .lzh .lzma .tlz .txz .tzo .t7z .zip .z .dz .gz .lrz .lz .lzo .xz .zst "
        ".tzst .bz2 .bz .tbz .tbz2 .tz .deb .rpm .jar .war .ear .sar .rar .alz .ace .zoo .cpio .7z .rz .cab .wim .swm "
        ".dwm .esd",
    ),
    (
        "images and films",
        "01;35",
        ".avif .jpg .jpeg .mjpg .mjpeg .gif .bmp .pbm .pgm .ppm .tga .xbm .xpm .tif .tiff .png .svg .svgz .mng .pcx "
        ".mov .mpg .mpeg .m2v .mkv .webm .webp .ogm .mp4 .m4v .mp4v .vob .qt .nuv .wmv .asf .rm .rmvb .flc .avi .fli "
        ".flv .gl .dl .xcf .xwd .yuv .cgm .emf .ogv .ogx",
    ),
    ("sound", "00;36", ".aac .au .flac .m4a .mid .midi .mka .mp3 .mpc .ogg .ra .wav .oga .opus .spx .xspf"),
    (
        "backups",
        "00;90",
        "*~ *# .bak .old .orig .part .rej .swp .tmp .dpkg-dist .dpkg-old .ucf-dist .ucf-new .ucf-old .rpmnew "
        ".rpmorig .rpmsave",
    ),
)


@dataclass(frozen=True, slots=True)
class Options:
    syntax: str | None = choice(
        {
            "-b": "sh",
            "--sh": "sh",
            "--bourne-shell": "sh",
            "-c": "csh",
            "--csh": "csh",
            "--c-shell": "csh",
        },
        "output Bourne shell (-b) or C shell (-c) code to set LS_COLORS",
    )
    database: bool = flag("-p", "--print-database", "output defaults")
    colors: bool = flag("--print-ls-colors", "output fully escaped colors for display")


@utility("dircolors", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    env = process.env
    if (options.database or options.colors) and options.syntax is not None:
        raise UsageError("the options to output non shell syntax,\nand to select a shell syntax are mutually exclusive")
    if options.database and options.colors:
        raise UsageError("options --print-database and --print-ls-colors are mutually exclusive")
    if len(operands) > (0 if options.database else 1):
        shown = quote(operands[0 if options.database else 1], env)
        more = "\nfile operands cannot be combined with --print-database (-p)" if options.database else ""
        raise UsageError(f"extra operand {shown}{more}")
    if options.database:
        process.print(database(), end="")
        return 0
    syntax = options.syntax or ("" if options.colors else _guess(env.get("SHELL")))
    name, text = "<internal>", database()
    if operands:
        name = operands[0]
        try:
            text = fsdecode(process.read_file(name))
        except SysError as error:
            process.warn(f"{quote_if_odd(name)}: {error.reason}")
            return 1
    items: list[tuple[str, str]] = []
    status = 0
    for item in parse(name, text, env):
        if isinstance(item, str):
            process.warn(item)
            status = 1
        else:
            items.append(item)
    if status:
        return status
    if options.colors:
        for key, code in items:
            process.print(f"\x1b[{code}m{key}\t{code}\x1b[0m")
        return 0
    value = "".join(f"{key}={_escape(code)}:" for key, code in items)
    value = value.replace("'", "'\\''")
    process.print(f"setenv LS_COLORS '{value}'" if syntax == "csh" else f"LS_COLORS='{value}';\nexport LS_COLORS")
    return 0


def _guess(shell: str | None) -> str:
    if not shell:
        raise UsageError("no SHELL environment variable, and no shell type option given", hint=False)
    return "csh" if shell.rpartition("/")[2] in ("csh", "tcsh") else "sh"


def database() -> str:
    """The colours used when no file says otherwise."""
    lines = ["# Colours of ls: a kind of file or an end of a name, and the code it is shown in.", "COLORTERM ?*"]
    lines += [f"TERM {term}" for term in COLOR_TERMS]
    lines.append(_KINDS.rstrip())
    for title, code, names in _EXTENSIONS:
        lines += [f"# {title}", *(f"{name} {code}" for name in names.split())]
    return "\n".join(lines) + "\n"


def parse(name: str, text: str, env: Mapping[str, str]) -> Iterator[tuple[str, str] | str]:
    """Keys and codes of LS_COLORS, or messages about wrong lines."""
    state = "global"
    term, color_term = env.get("TERM") or "none", env.get("COLORTERM", "")
    for number, line in enumerate(text.splitlines(), 1):
        words = re.sub(r"(?:^|\s)#.*", "", line).split(None, 1)
        if not words:
            continue
        if len(words) < 2:
            yield f"{quote_if_odd(name)}:{number}: invalid line;  missing second token"
            continue
        keyword, argument = words[0], words[1].strip()
        upper = keyword.upper()
        if upper in ("TERM", "COLORTERM"):
            if state != "sure":
                subject = term if upper == "TERM" else color_term
                state = "sure" if compile_pattern(argument, extglob=False).matches(subject) else "no"
            continue
        if state == "sure":
            state = "yes"
        if state == "no":
            continue
        if keyword.startswith("."):
            yield "*" + keyword, argument
        elif keyword.startswith("*"):
            yield keyword, argument
        elif upper in _CODES:
            yield _CODES[upper], argument
        elif upper not in _IGNORED and state == "yes":
            yield f"{quote_if_odd(name)}:{number}: unrecognized keyword {keyword}"


def _escape(code: str) -> str:
    return code.replace(":", "\\:").replace("=", "\\=")
