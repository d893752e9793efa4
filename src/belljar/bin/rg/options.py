"""The command line of rg."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import choice, count, flag, many, value


@dataclass(frozen=True, slots=True)
class Options:
    patterns: tuple[str, ...] = many("-e", "--regexp", "a pattern to search for", metavar="PATTERN")
    pattern_files: tuple[str, ...] = many("-f", "--file", "search for patterns from the given file", metavar="FILE")
    fixed: bool = flag("-F", "--fixed-strings", "treat the pattern as a literal string")
    pcre2: bool = flag("-P", "--pcre2", "enable look-around and backreferences")
    case: str | None = choice(
        {"-i": "i", "--ignore-case": "i", "-s": "s", "--case-sensitive": "s", "-S": "S", "--smart-case": "S"},
        "ignore case, mind it, or mind it only if the pattern has capitals",
    )
    word: bool = flag("-w", "--word-regexp", "only show matches surrounded by word boundaries")
    line: bool = flag("-x", "--line-regexp", "only show matches surrounded by line boundaries")
    invert: bool = flag("-v", "--invert-match", "invert matching")
    multiline: bool = flag("-U", "--multiline", "enable matching across multiple lines")
    dotall: bool = flag("--multiline-dotall", "make '.' match new lines when multiline is enabled")
    numbers: bool | None = choice(
        {"-n": True, "--line-number": True, "-N": False, "--no-line-number": False}, "show line numbers, or not"
    )
    column: bool = flag("--column", "show column numbers")
    vimgrep: bool = flag("--vimgrep", "show every match on its own line, with line and column numbers")
    byte_offset: bool = flag("-b", "--byte-offset", "print the byte offset of each line")
    names: bool | None = choice(
        {"-H": True, "--with-filename": True, "-I": False, "--no-filename": False}, "print the file path, or not"
    )
    heading: bool | None = choice({"--heading": True, "--no-heading": False}, "group matches by file, or not")
    only_matching: bool = flag("-o", "--only-matching", "print only matched parts of a line")
    replacement: str | None = value("-r", "--replace", "replace every match with the text given", metavar="TEXT")
    count_lines: bool = flag("-c", "--count", "show the number of matching lines for each file")
    count_matches: bool = flag("--count-matches", "show the number of individual matches for each file")
    with_matches: bool = flag("-l", "--files-with-matches", "only print the paths with at least one match")
    without_match: bool = flag("--files-without-match", "only print the paths that contain zero matches")
    list_files: bool = flag("--files", "print each file that would be searched")
    type_list: bool = flag("--type-list", "show all supported file types")
    quiet: bool = flag("-q", "--quiet", "do not print anything")
    max_count: str | None = value("-m", "--max-count", "limit the number of matching lines per file", metavar="NUM")
    after: str | None = value("-A", "--after-context", "show NUM lines after each match", metavar="NUM")
    before: str | None = value("-B", "--before-context", "show NUM lines before each match", metavar="NUM")
    context: str | None = value("-C", "--context", "show NUM lines before and after each match", metavar="NUM")
    separator: str | None = value(
        "--context-separator", "the line between groups of context", metavar="SEP", default="--"
    )
    no_separator: bool = flag("--no-context-separator", "no line between groups of context")
    passthru: bool = flag("--passthru", "--passthrough", "print both matching and non-matching lines")
    globs: tuple[str, ...] = many("-g", "--glob", "include or exclude (!GLOB) files", metavar="GLOB")
    iglobs: tuple[str, ...] = many("--iglob", "the same, ignoring case", metavar="GLOB")
    types: tuple[str, ...] = many("-t", "--type", "only search files matching TYPE", metavar="TYPE")
    not_types: tuple[str, ...] = many("-T", "--type-not", "do not search files matching TYPE", metavar="TYPE")
    unrestricted: int = count(
        "-u", "--unrestricted", "no ignore files; twice: and hidden files; thrice: and binary files"
    )
    hidden: bool = flag("-.", "--hidden", "search hidden files and directories")
    no_ignore: bool = flag("--no-ignore", "--no-ignore-vcs", "--no-ignore-parent", "don't respect ignore files")
    ignore_file: tuple[str, ...] = many("--ignore-file", "additional ignore rules", metavar="PATH")
    follow: bool = flag("-L", "--follow", "follow symbolic links")
    max_depth: str | None = value("-d", "--max-depth", "--maxdepth", "descend at most NUM directories", metavar="NUM")
    text: bool = flag("-a", "--text", "--binary", "search binary files as if they were text")
    null: bool = flag("-0", "--null", "follow file paths with a NUL byte")
    json: bool = flag("--json", "show search results in a JSON Lines format")
    trim: bool = flag("--trim", "trim leading whitespace of each line")
    max_columns: str | None = value("-M", "--max-columns", "omit lines longer than this", metavar="NUM")
    pretty: bool = flag("-p", "--pretty", "alias for --color always --heading --line-number")
    color: str | None = value("--color", "when to use colors: never, auto, always, ansi", metavar="WHEN")
    colors: tuple[str, ...] = many("--colors", "(ignored) color settings", metavar="SPEC")
    no_messages: bool = flag("--no-messages", "suppress some error messages")
    line_buffered: bool = flag("--line-buffered", "flush output on every line")
    sort: str | None = value("--sort", "--sortr", "(results are always sorted by path)", metavar="SORTBY")
    threads: str | None = value("-j", "--threads", "(no effect)", metavar="NUM")
    encoding: str | None = value("-E", "--encoding", "(no effect)", metavar="ENCODING")
    no_config: bool = flag("--no-config", "(no effect)")
    stats: bool = flag("--stats", "(no effect)")
    crlf: bool = flag("--crlf", "(no effect)")
    mmap: bool = flag("--mmap", "--no-mmap", "(no effect)")
    short_version: bool = flag("-V", "print version information")
