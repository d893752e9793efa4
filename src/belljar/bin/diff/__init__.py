"""diff - compare files line by line

Usage: diff [OPTION]... FILES

FILES are FILE1 FILE2, DIR1 DIR2, DIR FILE or FILE DIR. If a FILE is -, read standard input.
Exit status is 0 if inputs are the same, 1 if different, 2 if trouble.
"""

from __future__ import annotations

import re
from functools import partial

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._kit import UsageError, choice, count, flag, many, utility, value
from belljar.bin._kit.clock import zone_of
from belljar.bin.diff import formats
from belljar.bin.diff.columns import Columns, side_by_side
from belljar.bin.diff.compare import Comparer, Plan, Renderer
from belljar.bin.diff.sides import Ignoring
from belljar.bin.diff.templates import complete, formatted, ifdef
from belljar.kernel.process import Process
from belljar.libc.quotearg import shell_escape
from belljar.regex import Regex, RegexError, compile_any

_C_FUNCTION = "^[[:alpha:]$_]"


@dataclass(frozen=True, slots=True)
class Options:
    normal: bool = flag("--normal", "output a normal diff (the default)")
    brief: bool = flag("-q", "--brief", "report only when files differ")
    identical: bool = flag("-s", "--report-identical-files", "report when two files are the same")
    c: bool = flag("-c", "output 3 lines of copied context")
    context: str | None = value("--context", "output NUM (default 3) lines of copied context", metavar="NUM", bare="3")
    c_lines: str | None = value("-C", "output NUM lines of copied context", metavar="NUM")
    u: bool = flag("-u", "output 3 lines of unified context")
    unified: str | None = value("--unified", "output NUM (default 3) lines of unified context", metavar="NUM", bare="3")
    u_lines: str | None = value("-U", "output NUM lines of unified context", metavar="NUM")
    ed: bool = flag("-e", "--ed", "output an ed script")
    forward_ed: bool = flag("-f", "--forward-ed", "output something like an ed script in forward order")
    rcs: bool = flag("-n", "--rcs", "output an RCS format diff")
    side_by_side: bool = flag("-y", "--side-by-side", "output in two columns")
    width: str | None = value("-W", "--width", "output at most NUM (default 130) print columns", metavar="NUM")
    left_column: bool = flag("--left-column", "output only the left column of common lines")
    suppress_common: bool = flag("--suppress-common-lines", "do not output common lines")
    show_c: bool = flag("-p", "--show-c-function", "show which C function each change is in")
    function: tuple[str, ...] = many(
        "-F", "--show-function-line", "show the most recent line matching RE", metavar="RE"
    )
    labels: tuple[str, ...] = many("-L", "--label", "use LABEL instead of file name and timestamp", metavar="LABEL")
    expand_tabs: bool = flag("-t", "--expand-tabs", "expand tabs to spaces in output")
    initial_tab: bool = flag("-T", "--initial-tab", "make tabs line up by prepending a tab")
    tabsize: str | None = value("--tabsize", "tab stops every NUM (default 8) print columns", metavar="NUM")
    bare_blank: bool = flag("--suppress-blank-empty", "suppress space or tab before empty output lines")
    paginate: bool = flag("-l", "--paginate", "pass output through 'pr' to paginate it")
    recursive: bool = flag("-r", "--recursive", "recursively compare any subdirectories found")
    no_dereference: bool = flag("--no-dereference", "don't follow symbolic links")
    new_file: bool = flag("-N", "--new-file", "treat absent files as empty")
    new_file_first: bool = flag("-P", "--unidirectional-new-file", "treat absent first files as empty")
    fold_names: bool = flag("--ignore-file-name-case", "ignore case when comparing file names")
    keep_names: bool = flag("--no-ignore-file-name-case", "consider case when comparing file names")
    exclude: tuple[str, ...] = many("-x", "--exclude", "exclude files that match PAT", metavar="PAT")
    exclude_from: tuple[str, ...] = many(
        "-X", "--exclude-from", "exclude files that match a pattern in FILE", metavar="FILE"
    )
    start: str | None = value("-S", "--starting-file", "start with FILE when comparing directories", metavar="FILE")
    from_file: str | None = value("--from-file", "compare FILE1 to all operands", metavar="FILE1")
    to_file: str | None = value("--to-file", "compare all operands to FILE2", metavar="FILE2")
    ignore_case: bool = flag("-i", "--ignore-case", "ignore case differences in file contents")
    ignore_tabs: bool = flag("-E", "--ignore-tab-expansion", "ignore changes due to tab expansion")
    ignore_trailing: bool = flag("-Z", "--ignore-trailing-space", "ignore white space at line end")
    ignore_change: bool = flag("-b", "--ignore-space-change", "ignore changes in the amount of white space")
    ignore_space: bool = flag("-w", "--ignore-all-space", "ignore all white space")
    ignore_blank: bool = flag("-B", "--ignore-blank-lines", "ignore changes where lines are all blank")
    ignore_matching: tuple[str, ...] = many(
        "-I", "--ignore-matching-lines", "ignore changes where all lines match RE", metavar="RE"
    )
    text: bool = flag("-a", "--text", "treat all files as text")
    strip_cr: bool = flag("--strip-trailing-cr", "strip trailing carriage return on input")
    binary: bool = flag("--binary", "read and write data in binary mode (no effect)")
    ifdef: str | None = value("-D", "--ifdef", "output merged file with '#ifdef NAME' diffs", metavar="NAME")
    old_group: str | None = value("--old-group-format", "format of groups of lines of FILE1", metavar="GFMT")
    new_group: str | None = value("--new-group-format", "format of groups of lines of FILE2", metavar="GFMT")
    changed_group: str | None = value("--changed-group-format", "format of changed groups", metavar="GFMT")
    unchanged_group: str | None = value("--unchanged-group-format", "format of common groups", metavar="GFMT")
    line: str | None = value("--line-format", "format of all input lines", metavar="LFMT")
    old_line: str | None = value("--old-line-format", "format of lines of FILE1", metavar="LFMT")
    new_line: str | None = value("--new-line-format", "format of lines of FILE2", metavar="LFMT")
    unchanged_line: str | None = value("--unchanged-line-format", "format of common lines", metavar="LFMT")
    minimal: bool = flag("-d", "--minimal", "try hard to find a smaller set of changes")
    horizon: str | None = value("--horizon-lines", "keep NUM lines of the common prefix and suffix", metavar="NUM")
    speed: bool = flag("-H", "--speed-large-files", "assume large files and many scattered small changes")
    colour: str = value("--color", "color output; WHEN is 'never', 'always', or 'auto'", metavar="WHEN",
                        default="never", bare="auto")  # fmt: skip
    palette: str | None = value("--palette", "the colors to use when --color is active", metavar="PALETTE")
    digits: str | None = value("--digits-of-context", "(the NUM of -NUM)", metavar="NUM")
    version: int = count("-v", "output version information and exit")
    order: str = choice({"--sdiff-merge-assist": "yes"}, "(for sdiff)", "")


@utility("diff", Options, digits="digits", usage_status=2, named_hint=True)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.version:
        process.print("diff (GNU diffutils) 3.8, as belljar has it")
        return 0
    plan = make_plan(process, options)
    comparer = Comparer(process, plan)
    if options.from_file is not None and options.to_file is not None:
        raise UsageError("--from-file and --to-file both specified")
    if options.from_file is not None:
        return max((comparer.compare(options.from_file, name) for name in operands), default=0)
    if options.to_file is not None:
        return max((comparer.compare(name, options.to_file) for name in operands), default=0)
    if len(operands) < 2:
        raise UsageError(f"missing operand after '{operands[-1] if operands else process.argv[-1]}'")
    if len(operands) > 2:
        raise UsageError(f"extra operand '{operands[2]}'")
    return comparer.compare(*operands)


def make_plan(process: Process, options: Options) -> Plan:
    excluded = list(options.exclude)
    for name in options.exclude_from:
        try:
            excluded += fsdecode(process.read_file(name)).splitlines()
        except SysError as error:
            raise UsageError(f"{name}: {error.reason}", hint=False) from error
    render, shows_equal, horizon = choose_output(process, options)
    return Plan(
        render,
        Ignoring(
            options.ignore_case,
            options.ignore_tabs,
            options.ignore_trailing,
            options.ignore_change,
            options.ignore_space,
            options.ignore_blank,
            _pattern(options.ignore_matching),
            options.strip_cr,
        ),
        brief=options.brief,
        report_identical=options.identical,
        recursive=options.recursive,
        new_file=options.new_file,
        new_file_first=options.new_file_first,
        text=options.text,
        follow=not options.no_dereference,
        excluded=tuple(excluded),
        start=options.start or "",
        fold_names=options.fold_names and not options.keep_names,
        labels=options.labels[:2],
        tabsize=_number(options.tabsize, "tabsize", 8, least=1),
        switches="".join(f" {shell_escape(arg)}" for arg in _switches(process.argv[1:])),
        shows_equal=shows_equal and not options.brief,
        needs_newline=options.ed or options.forward_ed,
        horizon=max(horizon, _number(options.horizon, "horizon length", 0)),
    )


def _switches(args: list[str]) -> list[str]:
    """The command line without its operands, which are the last two."""
    found: list[str] = []
    for index, arg in enumerate(args):
        if arg == "--":
            break
        if (arg.startswith("-") and arg != "-") or (
            index and args[index - 1] in _TAKES_VALUE and index < len(args) - 2
        ):
            found.append(arg)
    return found


_TAKES_VALUE = frozenset(
    ["-C", "-U", "-W", "-F", "-L", "-x", "-X", "-S", "-I", "-D", "--exclude", "--exclude-from", "--label", "--width"]
)


def choose_output(process: Process, options: Options) -> tuple[Renderer, bool, int]:
    """Return how changes are shown, whether equal files are shown too, and how much context there is."""
    templates = _templates(options)
    unified = options.u or options.unified is not None or options.u_lines is not None
    context = options.c or options.context is not None or options.c_lines is not None
    styles = [unified, context, options.ed, options.forward_ed, options.rcs, options.side_by_side, options.normal]
    if sum(styles) + (templates is not None) > 1:
        raise UsageError("conflicting output style options")
    lines = [text for text in (options.unified, options.u_lines, options.context, options.c_lines) if text is not None]
    if options.digits is not None:
        lines.append(options.digits)
    amount = max((_number(text, "context length", 3) for text in lines), default=3)
    if (options.show_c or options.function) and not any(styles) and templates is None:
        context = True
    tabsize = _number(options.tabsize, "tabsize", 8, least=1)
    if options.colour not in ("never", "auto", "always"):
        raise UsageError(f"invalid color '{options.colour}'")
    colour = options.colour == "always" or (options.colour == "auto" and process.isatty(1))
    style = formats.Style(
        amount,
        zone_of(process.env),
        colour,
        _palette(options.palette),
        options.expand_tabs,
        tabsize,
        options.initial_tab,
        options.bare_blank,
        _pattern((*options.function, *([_C_FUNCTION] if options.show_c else []))),
    )
    width = _number(options.width, "width", 130, least=1)
    if templates is not None:
        return templates, True, 0
    if options.side_by_side:
        columns = Columns(width, tabsize, options.expand_tabs, options.left_column, options.suppress_common)
        return partial(side_by_side, columns=columns), True, 0
    chosen = formats.normal
    if unified:
        chosen = formats.unified
    elif context:
        chosen = formats.context
    elif options.rcs:
        chosen = formats.rcs
    elif options.ed:
        chosen = formats.ed
    elif options.forward_ed:
        chosen = formats.forward_ed
    return partial(chosen, style=style), False, amount if unified or context else 0


def _templates(options: Options) -> Renderer | None:
    if options.ifdef is not None:
        return partial(formatted, formats=ifdef(options.ifdef))
    groups = {
        kind: fsencode(text)
        for kind in ("old", "new", "changed", "unchanged")
        if (text := getattr(options, f"{kind}_group")) is not None
    }
    lines = {
        kind: fsencode(text)
        for kind in ("old", "new", "unchanged")
        if (text := getattr(options, f"{kind}_line") if getattr(options, f"{kind}_line") is not None else options.line)
        is not None
    }
    if not groups and not lines:
        return None
    return partial(formatted, formats=complete(groups, lines))


def _pattern(sources: tuple[str, ...]) -> Regex | None:
    if not sources:
        return None
    try:
        return compile_any([fsencode(source) for source in sources], syntax="grep")
    except RegexError as error:
        raise UsageError(f"{sources[0]}: {error}", hint=False) from error


def _number(text: str | None, what: str, default: int, least: int = 0) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or int(text[:20]) < least:
        raise UsageError(f"invalid {what} '{text}'")
    return min(int(text[:20]), 1 << 30)


def _palette(text: str | None) -> tuple[tuple[str, bytes], ...]:
    found: list[tuple[str, bytes]] = []
    for item in (text or "").split(":"):
        name, _, codes = item.partition("=")
        if name in ("rs", "hd", "ad", "de", "ln") and re.fullmatch(r"[0-9;]*", codes):
            found.append((name, codes.encode()))
    return tuple(found)
