"""fd - find entries in the filesystem

Usage: fd [OPTIONS] [pattern] [path]...

Search for a regular expression (a glob with -g) in the names of files below the current directory or the given paths.
Hidden files and those that .gitignore, .ignore or .fdignore exclude are left out; a pattern without capital letters
ignores case.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from belljar import regex
from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import Program, UsageError, choice, flag, many, utility, value
from belljar.bin._kit.options import parse
from belljar.bin.fd.command import Command
from belljar.bin.fd.filters import parse_filters
from belljar.bin.fd.walk import Finder
from belljar.bin.rg.ignore import glob_to_regex
from belljar.kernel.process import Process

_COMMANDS = {"-x", "--exec", "-X", "--exec-batch"}
_REGEX_NOTE = (
    "Note: You can use the '--fixed-strings' option to search for a literal string instead of a regular expression. "
    "Alternatively, you can also use the '--glob' option to match on a glob pattern."
)


@dataclass(frozen=True, slots=True)
class Options:
    hidden: bool = flag("-H", "--hidden", "search hidden files and directories")
    no_ignore: bool = flag("-I", "--no-ignore", "do not respect .(git|fd)ignore files")
    no_ignore_vcs: bool = flag("--no-ignore-vcs", "do not respect .gitignore files")
    unrestricted: bool = flag("-u", "--unrestricted", "unrestricted search, alias for '--no-ignore --hidden'")
    case: bool | None = choice(
        {"-s": True, "--case-sensitive": True, "-i": False, "--ignore-case": False},
        "-s: case-sensitive search; -i: case-insensitive search (default: smart case)",
    )
    form: str = choice(
        {"-g": "glob", "--glob": "glob", "--regex": "regex", "-F": "fixed", "--fixed-strings": "fixed"},
        "-g: glob-based search; -F: treat pattern as literal string",
        default="regex",
    )
    absolute: bool = flag("-a", "--absolute-path", "show absolute instead of relative paths")
    details: bool = flag("-l", "--list-details", "use a long listing format with file metadata")
    follow: bool = flag("-L", "--follow", "follow symbolic links")
    full_path: bool = flag("-p", "--full-path", "search full abs. path (default: filename only)")
    null: bool = flag("-0", "--print0", "separate results by the null character")
    max_depth: str | None = value("-d", "--max-depth", "--maxdepth", "set maximum search depth", metavar="depth")
    min_depth: str | None = value("--min-depth", "only show results at this depth or deeper", metavar="depth")
    exact_depth: str | None = value("--exact-depth", "only show results at this depth", metavar="depth")
    exclude: tuple[str, ...] = many("-E", "--exclude", "exclude entries that match the given glob", metavar="pattern")
    prune: bool = flag("--prune", "do not descend into directories that match")
    types: tuple[str, ...] = many("-t", "--type", "filter by type: f, d, l, x, e, s, p", metavar="filetype")
    extensions: tuple[str, ...] = many("-e", "--extension", "filter by file extension", metavar="ext")
    sizes: tuple[str, ...] = many("-S", "--size", "limit results based on the size of files", metavar="size")
    within: str | None = value(
        "--changed-within", "--newer", "filter by file modification time (newer than)", metavar="date|dur"
    )
    before: str | None = value(
        "--changed-before", "--older", "filter by file modification time (older than)", metavar="date|dur"
    )
    owner: str | None = value("-o", "--owner", "filter by owning user and/or group", metavar="user:group")
    execute: str | None = value("-x", "--exec", "execute a command for each search result", metavar="cmd")
    execute_batch: str | None = value(
        "-X", "--exec-batch", "execute a command with all search results at once", metavar="cmd"
    )
    color: str = value("-c", "--color", "when to use colors: never, auto, always", metavar="when", default="auto")
    max_results: str | None = value("--max-results", "limit number of search results", metavar="count")
    single: bool = flag("-1", "limit search to a single result")
    quiet: bool = flag("-q", "--quiet", "--has-results", "print nothing, exit code 0 if match found, 1 otherwise")
    strip: bool = flag("--strip-cwd-prefix", "strip './' prefix from -0/--print0 output")
    base: str | None = value("--base-directory", "change current working directory", metavar="path")
    search_paths: tuple[str, ...] = many("--search-path", "provide paths to search", metavar="search-path")
    one_file_system: bool = flag("--one-file-system", "do not descend into other file systems")
    threads: str | None = value("-j", "--threads", "(ignored)", metavar="num")
    show_errors: bool = flag("--show-errors", "show filesystem errors")


@utility("fd", Options)
def _search(process: Process, options: Options, operands: list[str]) -> int:
    return search(process, options, operands, None)


def _run(process: Process, args: list[str]) -> int:
    """A command takes all that follows it up to a `;`, so it is taken out before the options are parsed."""
    for index, arg in enumerate(args):
        if arg == "--":
            break
        if arg in _COMMANDS:
            rest = args[index + 1 :]
            end = rest.index(";") if ";" in rest else len(rest)
            parsed = parse(Options, [*args[:index], *rest[end + 1 :]])
            command = Command(process, rest[:end], batch=arg in ("-X", "--exec-batch"))
            return search(process, Options(**parsed.values), parsed.operands, command)
    return _search.run(process, args)


main = Program("fd", _search.doc, Options, _run)


def search(process: Process, options: Options, operands: list[str], command: Command | None) -> int:
    if options.base is not None:
        process.fs.chdir(options.base)
    pattern = operands[0] if operands else ""
    try:
        matches = _matcher(options, pattern)
    except (regex.RegexError, re.error) as error:
        process.error(f"[fd error]: regex parse error:\n    {pattern}\nerror: {error}\n\n{_REGEX_NOTE}\n")
        return 1
    roots = _roots(process, [*operands[1:], *options.search_paths])
    if roots is None:
        return 1
    given = len(operands) > 1 or bool(options.search_paths)
    finder = Finder(process, options, parse_filters(process, options), matches)
    most = 1 if options.single else _count(options.max_results) if options.max_results else 0
    prefix = "" if given or (command is None and not options.null) or options.strip else "./"
    found = 0
    end = b"\0" if options.null else b"\n"
    if options.details:
        command = Command(process, ["ls", "-lhd", "--color=never"], batch=True)
        prefix = "" if given else "./"
    for root in roots:
        for path in finder.find(root, "" if not given else root):
            if options.quiet:
                return 0
            found += 1
            shown = process.absolute(path.path) if options.absolute else prefix + path.path
            if command is not None:
                command.add(shown)
            else:
                slash = "/" if path.is_dir else ""
                process.stdout.write(fsencode(shown + slash) + end)
            if most and found >= most:
                return command.finish() if command is not None else 0
    if options.quiet:
        return 1
    return command.finish() if command is not None else finder.status


def _matcher(options: Options, pattern: str) -> Callable[[str], bool]:
    sensitive = options.case if options.case is not None else any(char.isupper() for char in pattern)
    if not pattern or pattern == ".":
        return lambda _text: True
    if options.form == "glob":
        compiled = re.compile(glob_to_regex(pattern), re.DOTALL | (0 if sensitive else re.IGNORECASE))
        return lambda text: compiled.fullmatch(text) is not None
    if options.form == "fixed":
        wanted = pattern if sensitive else pattern.lower()
        return lambda text: wanted in (text if sensitive else text.lower())
    return regex.compile(pattern, syntax="perl", ignore_case=not sensitive).test


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(
            f"invalid value '{text}' for '--max-results <count>': invalid digit found in string", hint=False
        )
    return int(text[:18])


def _roots(process: Process, paths: list[str]) -> list[str] | None:
    if not paths:
        return ["."]
    good: list[str] = []
    for path in paths:
        try:
            if process.fs.stat(path).is_dir:
                good.append(path)
                continue
        except SysError:
            pass
        process.error(f"[fd error]: Search path '{path}' is not a directory.\n")
    if not good:
        process.error("[fd error]: No valid search paths given.\n")
        return None
    return good
