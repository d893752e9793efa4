"""The command line of ls, and what it settles."""

from __future__ import annotations

from typing import Final, Literal

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, choice, flag, many, value
from belljar.bin._kit.choices import BadChoice, pick
from belljar.bin._kit.human import HUMAN, SI, BlockSize, bad_block_size, default_block_size, parse_block_size
from belljar.bin._kit.locale import is_utf8
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process

Format = Literal["long", "one", "many", "across", "commas"]

_WHEN: Final = {"always": ("yes", "force"), "never": ("no", "none"), "auto": ("tty", "if-tty")}
_FORMATS: Final = {
    "verbose": ("long",),
    "commas": (),
    "horizontal": ("across",),
    "vertical": (),
    "single-column": (),
}
_FORMAT_NAMES: Final[dict[str, Format]] = {
    "verbose": "long",
    "commas": "commas",
    "horizontal": "across",
    "vertical": "many",
    "single-column": "one",
}
_SORTS: Final = {"none": (), "time": (), "size": (), "extension": (), "version": (), "width": ()}
_TIMES: Final = {"atime": ("access", "use"), "ctime": ("status",), "birth": ("creation",)}
_STYLES: Final = {
    "literal": (), "shell": (), "shell-always": (), "shell-escape": (), "shell-escape-always": (), "c": (),
    "c-maybe": (), "escape": (), "locale": (), "clocale": (),
}  # fmt: skip
_INDICATORS: Final = {"none": (), "slash": (), "file-type": (), "classify": ()}


@dataclass(frozen=True, slots=True)
class Options:
    all: str | None = choice(
        {"-a": "all", "--all": "all", "-A": "almost", "--almost-all": "almost"},
        "do not ignore entries starting with .; -A: do not list implied . and ..",
    )
    author: bool = flag("--author", "with -l, print the author of each file")
    block_size: str | None = value("--block-size", "scale sizes by SIZE when printing them", metavar="SIZE")
    ignore_backups: bool = flag("-B", "--ignore-backups", "do not list implied entries ending with ~")
    time: str | None = choice(
        {"-c": "ctime", "-u": "atime"}, "show and sort by: -c: time of last status change; -u: time of last access"
    )
    format: str | None = choice(
        {"-C": "many", "-x": "across", "-m": "commas", "-1": "one"},
        "-C: list entries by columns; -x: by lines; -m: a comma separated list; -1: one file per line",
    )
    color: str | None = value("--color", "colorize the output WHEN", metavar="WHEN", bare="always")
    directory: bool = flag("-d", "--directory", "list directories themselves, not their contents")
    dired: bool = flag("-D", "--dired", "(ignored)")
    unsorted_all: bool = flag("-f", "list all entries in directory order")
    classify_always: bool = flag("-F", "append indicator (one of */=>@|) to entries")
    classify: str | None = value(
        "--classify", "append indicator (one of */=>@|) to entries WHEN", metavar="WHEN", bare="always"
    )
    indicators: str | None = choice(
        {"-p": "slash", "--file-type": "file-type"},
        "-p: append / indicator to directories; --file-type: likewise, except do not append '*'",
    )
    format_word: str | None = value(
        "--format", "across, commas, horizontal, long, single-column, verbose, vertical", metavar="WORD"
    )
    full_time: bool = flag("--full-time", "like -l --time-style=full-iso")
    no_owner: bool = flag("-g", "like -l, but do not list owner")
    directories_first: bool = flag("--group-directories-first", "group directories before files")
    no_group: bool = flag("-G", "--no-group", "in a long listing, don't print group names")
    human: str | None = choice(
        {"-h": "human", "--human-readable": "human", "--si": "si", "-k": "k", "--kibibytes": "k"},
        "with -l and -s, print sizes like 1K 234M 2G; --si: use powers of 1000; -k: 1024-byte blocks",
    )
    follow: str | None = choice(
        {
            "-H": "operands",
            "--dereference-command-line": "operands",
            "--dereference-command-line-symlink-to-dir": "directories",
            "-L": "always",
            "--dereference": "always",
        },
        "-H: follow symbolic links listed on the command line; -L: show information for the file the link references",
    )
    hide: tuple[str, ...] = many("--hide", "do not list implied entries matching shell PATTERN", metavar="PATTERN")
    hyperlink: str | None = value(
        "--hyperlink", "hyperlink file names: always, auto or never", metavar="WHEN", bare="always"
    )
    indicator_style: str | None = value(
        "--indicator-style", "append indicator with style WORD to entry names", metavar="WORD"
    )
    inode: bool = flag("-i", "--inode", "print the index number of each file")
    ignore: tuple[str, ...] = many("-I", "--ignore", "do not list implied entries matching PATTERN", metavar="PATTERN")
    long: bool = flag("-l", "use a long listing format")
    numeric: bool = flag("-n", "--numeric-uid-gid", "like -l, but list numeric user and group IDs")
    quoting: str | None = choice(
        {
            "-N": "literal",
            "--literal": "literal",
            "-Q": "c",
            "--quote-name": "c",
            "-b": "escape",
            "--escape": "escape",
        },
        "-N: print entry names without quoting; -Q: in double quotes; -b: C-style escapes for nongraphic characters",
    )
    long_no_group: bool = flag("-o", "like -l, but do not list group information")
    control: bool | None = choice(
        {"-q": True, "--hide-control-chars": True, "--show-control-chars": False},
        "print ? instead of nongraphic characters, or show them as they are",
    )
    quoting_style: str | None = value("--quoting-style", "use quoting style WORD for entry names", metavar="WORD")
    reverse: bool = flag("-r", "--reverse", "reverse order while sorting")
    recursive: bool = flag("-R", "--recursive", "list subdirectories recursively")
    blocks: bool = flag("-s", "--size", "print the allocated size of each file, in blocks")
    sort: str | None = choice(
        {"-t": "time", "-S": "size", "-X": "extension", "-v": "version", "-U": "none"},
        "-t: sort by time, newest first; -S: by file size, largest first; -X: by extension; -v: by version; -U: not",
    )
    sort_word: str | None = value("--sort", "none, size, time, version, extension, width", metavar="WORD")
    time_word: str | None = value("--time", "atime, access, use, ctime, status, birth, creation", metavar="WORD")
    time_style: str | None = value("--time-style", "time/date format with -l", metavar="TIME_STYLE")
    tab_size: str | None = value("-T", "--tabsize", "assume tab stops at each COLS instead of 8", metavar="COLS")
    width: str | None = value("-w", "--width", "set output width to COLS; 0 means no limit", metavar="COLS")
    context: bool = flag("-Z", "--context", "(ignored)")
    zero: bool = flag("--zero", "end each output line with NUL, not newline")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings made from the options, the environment and the terminal."""

    format: Format
    all: str | None
    ignore: tuple[str, ...]
    hide: tuple[str, ...]
    sort: str
    time: str
    time_styles: tuple[str, str]
    """For old or future times, and for recent ones."""
    reverse: bool
    directories_first: bool
    directory: bool
    recursive: bool
    follow: str | None
    color: bool
    indicators: str
    quoting: str
    hide_control: bool
    width: int
    tab: int
    blocks: BlockSize
    sizes: BlockSize
    show_blocks: bool
    inode: bool
    owner: bool
    group: bool
    author: bool
    numeric: bool
    end: str
    utf8: bool

    @property
    def needs_stat(self) -> bool:
        return (
            self.format == "long"
            or self.show_blocks
            or self.color
            or self.sort in ("time", "size")
            or self.indicators == "classify"
        )


def make_settings(process: Process, options: Options, program: str) -> Settings:
    env = process.env
    tty = process.isatty(1)
    format = _format(process, options, program, tty)
    blocks, sizes = _block_sizes(process, options)
    quoting, utf8 = _quoting(process, options, program, tty), is_utf8(env)
    sort = options.sort or "name"
    if options.sort_word is not None:
        sort = pick(process, "--sort", options.sort_word, _SORTS)
    time = options.time
    if options.time_word is not None:
        newer = ("mtime", "modification")
        time = "mtime" if options.time_word in newer else pick(process, "--time", options.time_word, _TIMES)
    if time is not None and sort == "name" and format != "long" and options.sort is None and options.sort_word is None:
        sort = "time"
    color = not options.unsorted_all and _when(process, "--color", options.color, tty)
    shown, width = options.all, _width(process, options, tty)
    if options.unsorted_all:
        sort, shown = options.sort or "none", "all"
    end = "\0" if options.zero else "\n"
    return Settings(
        format=format,
        all=shown,
        ignore=options.ignore + (("*~", ".*~") if options.ignore_backups else ()),
        hide=options.hide,
        sort=sort,
        time=time or "mtime",
        time_styles=_time_styles(process, options) if format == "long" else ("", ""),
        reverse=options.reverse,
        directories_first=options.directories_first,
        directory=options.directory,
        recursive=options.recursive,
        follow=options.follow,
        color=color,
        indicators=_indicators(process, options, tty),
        quoting=quoting,
        hide_control=options.control
        if options.control is not None
        else tty and quoting == "literal" and not options.zero,
        width=width,
        tab=0 if color else _number(process, "tab size", options.tab_size, 8),
        blocks=blocks,
        sizes=sizes,
        show_blocks=options.blocks and not options.unsorted_all,
        inode=options.inode,
        owner=not options.no_owner,
        group=not (options.no_group or options.long_no_group),
        author=options.author,
        numeric=options.numeric,
        end=end,
        utf8=utf8,
    )


def _format(process: Process, options: Options, program: str, tty: bool) -> Format:
    if options.format_word is not None:
        return _FORMAT_NAMES[pick(process, "--format", options.format_word, _FORMATS)]
    wants_long = (
        options.long or options.numeric or options.no_owner or options.long_no_group or options.full_time
    ) and not options.unsorted_all
    if wants_long:
        return "long"
    if options.format is not None:
        return options.format  # type: ignore[return-value]
    if program == "vdir":
        return "long"
    if options.zero:
        return "one"
    return "many" if tty or program == "dir" else "one"


def _block_sizes(process: Process, options: Options) -> tuple[BlockSize, BlockSize]:
    """Return the units of block counts and of file sizes."""
    if options.human == "human":
        return HUMAN, HUMAN
    if options.human == "si":
        return SI, SI
    text = options.block_size
    if text is not None:
        found = parse_block_size(text)
        if found is None:
            raise UsageError(bad_block_size("--block-size", text), hint=False)
        return found, found
    if options.human == "k":
        return BlockSize(1024), BlockSize(1)
    env = process.env
    sizes = default_block_size(env, "LS_BLOCK_SIZE") if {"LS_BLOCK_SIZE", "BLOCK_SIZE"} & env.keys() else BlockSize(1)
    return default_block_size(env, "LS_BLOCK_SIZE"), sizes


def _quoting(process: Process, options: Options, program: str, tty: bool) -> str:
    if options.quoting_style is not None:
        return pick(process, "--quoting-style", options.quoting_style, _STYLES)
    if options.quoting is not None:
        return options.quoting
    if options.zero:
        return "literal"
    style = process.env.get("QUOTING_STYLE")
    if style is not None:
        if style in _STYLES:
            return style
        process.warn(f"ignoring invalid value of environment variable QUOTING_STYLE: {quote(style, process.env)}")
    if program in ("dir", "vdir"):
        return "escape"
    return "shell-escape" if tty else "literal"


def _when(process: Process, option: str, text: str | None, tty: bool) -> bool:
    if text is None:
        return False
    word = pick(process, option, text, _WHEN)
    return word == "always" or (word == "auto" and tty)


def _indicators(process: Process, options: Options, tty: bool) -> str:
    if options.indicator_style is not None:
        return pick(process, "--indicator-style", options.indicator_style, _INDICATORS)
    if options.classify_always:
        return "classify"
    if options.classify is not None and _when(process, "--classify", options.classify, tty):
        return "classify"
    return options.indicators or "none"


def _time_styles(process: Process, options: Options) -> tuple[str, str]:
    style = options.time_style
    if style is None:
        style = "full-iso" if options.full_time else process.env.get("TIME_STYLE", "locale")
    style = style.removeprefix("posix-")
    if style.startswith("+"):
        old, newline, recent = style[1:].partition("\n")
        return old, recent if newline else old
    known = {"full-iso": (), "long-iso": (), "iso": (), "locale": ()}
    try:
        word = pick(process, "time style", style, known)
    except BadChoice as error:
        lines = [str(error).partition("\n")[0], "Valid arguments are:"]
        lines += [f"  - [posix-]{name}" for name in known] + ["  - +FORMAT (e.g., +%H:%M) for a 'date'-style format"]
        raise UsageError("\n".join(lines)) from None
    return {
        "full-iso": ("%Y-%m-%d %H:%M:%S.%N %z", "%Y-%m-%d %H:%M:%S.%N %z"),
        "long-iso": ("%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M"),
        "iso": ("%Y-%m-%d ", "%m-%d %H:%M"),
        "locale": ("%b %e  %Y", "%b %e %H:%M"),
    }[word]


def _width(process: Process, options: Options, tty: bool) -> int:
    if options.width is not None:
        return _number(process, "line width", options.width, 80)
    columns = process.env.get("COLUMNS", "")
    if columns.isascii() and columns.isdecimal():
        return int(columns)
    if tty:
        size = process.ioctl(1, "winsize")
        if isinstance(size, tuple) and len(size) > 1 and isinstance(size[1], int) and size[1] > 0:
            return size[1]
    return 80


def _number(process: Process, what: str, text: str | None, default: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"invalid {what}: {quote(text, process.env)}", hint=False)
    return min(int(text[:18]), 1 << 30)
