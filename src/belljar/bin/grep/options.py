"""The command line of grep, egrep and fgrep."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import choice, flag, many, value
from belljar.bin._kit.program import UsageError

USAGE = "Usage: {name} [OPTION]... PATTERNS [FILE]..."
UNLIMITED = 1 << 62
_MATCHERS = {
    "-E": "egrep",
    "--extended-regexp": "egrep",
    "-F": "fixed",
    "--fixed-strings": "fixed",
    "-G": "grep",
    "--basic-regexp": "grep",
    "-P": "perl",
    "--perl-regexp": "perl",
}


@dataclass(frozen=True, slots=True)
class Options:
    matchers: tuple[str, ...] = many("PATTERNS are extended, fixed, basic or Perl expressions", constants=_MATCHERS)
    patterns: tuple[str, ...] = many("-e", "--regexp", "use PATTERNS for matching", metavar="PATTERNS")
    files: tuple[str, ...] = many("-f", "--file", "take PATTERNS from FILE", metavar="FILE")
    ignore_case: bool | None = choice(
        {"-i": True, "-y": True, "--ignore-case": True, "--no-ignore-case": False}, "ignore case distinctions"
    )
    word: bool = flag("-w", "--word-regexp", "match only whole words")
    line: bool = flag("-x", "--line-regexp", "match only whole lines")
    null_data: bool = flag("-z", "--null-data", "a data line ends in 0 byte, not newline")
    no_messages: bool = flag("-s", "--no-messages", "suppress error messages")
    invert: bool = flag("-v", "--invert-match", "select non-matching lines")
    short_version: bool = flag("-V", "display version information and exit")
    max_count: str | None = value("-m", "--max-count", "stop after NUM selected lines", metavar="NUM")
    byte_offset: bool = flag("-b", "--byte-offset", "print the byte offset with output lines")
    line_number: bool = flag("-n", "--line-number", "print line number with output lines")
    line_buffered: bool = flag("--line-buffered", "flush output on every line")
    filenames: bool | None = choice(
        {"-H": True, "--with-filename": True, "-h": False, "--no-filename": False}, "print (or not) the file name"
    )
    label: str | None = value("--label", "use LABEL as the standard input file name", metavar="LABEL")
    only_matching: bool = flag("-o", "--only-matching", "show only nonempty parts of lines that match")
    quiet: bool = flag("-q", "--quiet", "--silent", "suppress all normal output")
    binary_files: str = value(
        "--binary-files",
        "assume that binary files are TYPE; 'binary', 'text', or 'without-match'",
        metavar="TYPE",
        default="binary",
    )
    text: bool = flag("-a", "--text", "equivalent to --binary-files=text")
    skip_binary: bool = flag("-I", "equivalent to --binary-files=without-match")
    directories: str | None = value(
        "-d", "--directories", "how to handle directories; 'read', 'recurse', or 'skip'", metavar="ACTION"
    )
    devices: str | None = value("-D", "--devices", "how to handle devices; 'read' or 'skip'", metavar="ACTION")
    recursive: str | None = choice(
        {"-r": "-r", "--recursive": "-r", "-R": "-R", "--dereference-recursive": "-R"}, "search directories"
    )
    include: tuple[str, ...] = many("--include", "search only files that match GLOB", metavar="GLOB")
    exclude: tuple[str, ...] = many("--exclude", "skip files that match GLOB", metavar="GLOB")
    exclude_from: tuple[str, ...] = many("--exclude-from", "skip files that match a pattern in FILE", metavar="FILE")
    exclude_dir: tuple[str, ...] = many("--exclude-dir", "skip directories that match GLOB", metavar="GLOB")
    list_files: bool | None = choice(
        {
            "-l": True,
            "--files-with-matches": True,
            "-L": False,
            "--files-without-match": False,
        },
        "print only names of files with (or without) selected lines",
    )
    count: bool = flag("-c", "--count", "print only a count of selected lines per FILE")
    initial_tab: bool = flag("-T", "--initial-tab", "make tabs line up (if needed)")
    null: bool = flag("-Z", "--null", "print 0 byte after FILE name")
    before: str | None = value("-B", "--before-context", "print NUM lines of leading context", metavar="NUM")
    after: str | None = value("-A", "--after-context", "print NUM lines of trailing context", metavar="NUM")
    context: str | None = value("-C", "--context", "print NUM lines of output context", metavar="NUM")
    group_separator: str | None = value(
        "--group-separator", "print SEP on line between matches with context", metavar="SEP", default="--"
    )
    no_group_separator: bool = flag("--no-group-separator", "do not print separator for matches with context")
    color: str | None = value(
        "--color", "--colour", "highlight the matching strings; WHEN is 'always', 'never', or 'auto'",
        metavar="WHEN", bare="auto",
    )  # fmt: skip
    binary: bool = flag("-U", "--binary", "do not strip CR characters at EOL (no effect)")
    unix_byte_offsets: bool = flag("-u", "--unix-byte-offsets", "(no effect)")


def context_length(text: str | None, fallback: int) -> int:
    """The value of -A, -B or -C; raises UsageError with GNU's message."""
    if text is None:
        return fallback
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"{text}: invalid context length argument", hint=False)
    return min(int(text[:18]), UNLIMITED)


def max_count(text: str | None) -> int:
    if text is None:
        return UNLIMITED
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        raise UsageError("invalid max count", hint=False)
    return UNLIMITED if text.startswith("-") else min(int(digits[:18]), UNLIMITED)
