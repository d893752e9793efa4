"""rg - recursively search the current directory for lines matching a pattern

Usage: rg [OPTIONS] PATTERN [PATH ...]
       rg [OPTIONS] -e PATTERN ... [PATH ...]
       rg [OPTIONS] --files [PATH ...]

Skips hidden files, binary files and what .gitignore, .ignore and .rgignore name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from belljar import regex
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_RDONLY, S_IFIFO, S_IFREG
from belljar.abi.paths import fsencode
from belljar.bin._kit import Program, UsageError
from belljar.bin._kit.options import parse
from belljar.bin._kit.program import version
from belljar.bin.grep.options import UNLIMITED
from belljar.bin.grep.output import Style
from belljar.bin.grep.search import Plan, Search
from belljar.bin.rg.filetypes import TYPES
from belljar.bin.rg.ignore import Rules
from belljar.bin.rg.options import Options
from belljar.bin.rg.show import Layout, Shower
from belljar.bin.rg.walk import Filter, Walker
from belljar.kernel.process import Process

_PROBE = 1 << 16
_WORDS = {
    "missing closing parenthesis": "unclosed group",
    "unmatched closing parenthesis": "unopened group",
    "missing terminating ] for character class": "unclosed character class",
    "quantifier does not follow a repeatable item": "repetition operator missing expression",
    "numbers out of order in {} quantifier": "invalid repetition count range, the start must be <= the end",
    "unrecognized character follows \\": "unrecognized escape sequence",
    "\\ at end of pattern": "incomplete escape sequence, reached end of pattern prematurely",
}


def run(process: Process, args: list[str]) -> int:
    try:
        parsed = parse(Options, args)
    except UsageError as error:
        process.error(
            f"error: {error}\n\nUSAGE:\n    rg [OPTIONS] PATTERN [PATH ...]\n\nFor more information try --help\n"
        )
        return 2
    if parsed.asked == "help":
        process.stdout.write(main.help().encode())
        return 0
    options = Options(**parsed.values)
    if parsed.asked == "version" or options.short_version:
        process.print(version("rg"))
        return 0
    if options.type_list:
        for name, globs in TYPES.items():
            process.print(f"{name}: {', '.join(globs.split())}")
        return 0
    try:
        return Ripgrep(process, options, parsed.operands).run()
    except (UsageError, regex.RegexError) as error:
        process.stdout.flush()
        process.error(f"{error}\n")
        return 2


class Ripgrep:
    """One run of the utility."""

    def __init__(self, process: Process, options: Options, operands: list[str]) -> None:
        self.process = process
        self.options = options
        self.failed = False
        self.started = False
        self.patterns = [] if options.list_files else self.collect(operands)
        self.paths = operands
        self.walker = Walker(process, self.make_filter())
        self.layout = self.make_layout()

    def collect(self, operands: list[str]) -> list[str]:
        options = self.options
        patterns = list(options.patterns)
        for name in options.pattern_files:
            patterns += self.process.read_file(name).decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")
        if patterns or options.pattern_files:
            return patterns
        if not operands:
            raise UsageError(
                "error: The following required arguments were not provided:\n    <PATTERN>\n\n"
                "USAGE:\n    rg [OPTIONS] PATTERN [PATH ...]\n\nFor more information try --help"
            )
        return [operands.pop(0)]

    def number(self, text: str | None, default: int) -> int:
        if text is None:
            return default
        if not (text.isascii() and text.isdecimal()):
            raise UsageError(f"error: Invalid value for a number: {text}")
        return min(int(text[:18]), UNLIMITED)

    def make_filter(self) -> Filter:
        options = self.options
        for name in (*options.types, *options.not_types):
            if name not in TYPES and name != "all":
                raise UsageError(f"unrecognized file type: {name}")
        globs = [glob[1:] if glob.startswith("!") else f"!{glob}" for glob in options.globs]
        globs += [glob[1:] if glob.startswith("!") else f"!{glob}" for glob in options.iglobs]
        read = self.process.read_file
        extra = [Rules(read(name).decode("utf-8", "surrogateescape").split("\n")) for name in options.ignore_file]
        return Filter(
            hidden=options.hidden or options.unrestricted >= 2,
            use_ignore=not options.no_ignore and not options.unrestricted,
            follow=options.follow,
            max_depth=self.number(options.max_depth, 0) if options.max_depth is not None else None,
            overrides=Rules(globs, ignore_case=bool(options.iglobs)) if globs else None,
            only_overrides=any(glob.startswith("!") for glob in globs),
            types=_type_rules(options.types),
            not_types=_type_rules(options.not_types),
            extra=extra,
        )

    def make_layout(self) -> Layout:
        options = self.options
        around = self.number(options.context, 0)
        color = options.pretty or options.color in ("always", "ansi")
        names = options.names
        if names is None:
            names = options.vimgrep or self.many_files()
        return Layout(
            names=names,
            numbers=(options.numbers is None and (options.column or options.vimgrep or options.pretty))
            or options.numbers is True,
            columns=options.column or options.vimgrep,
            offsets=options.byte_offset,
            each_match=options.vimgrep,
            heading=options.heading is True or (options.pretty and options.heading is None),
            only_matching=options.only_matching,
            invert=options.invert,
            multiline=options.multiline,
            replacement=options.replacement,
            trim=options.trim,
            max_columns=self.number(options.max_columns, 0),
            before=self.number(options.before, around),
            after=self.number(options.after, around),
            passthru=options.passthru,
            limit=self.number(options.max_count, 0) if options.max_count is not None else None,
            separator=None if options.no_separator else fsencode(options.separator or ""),
            null=options.null,
            color=color,
        )

    def many_files(self) -> bool:
        if len(self.paths) > 1:
            return True
        if not self.paths:
            return not self.reads_stdin()
        try:
            return self.paths[0] != "-" and self.process.fs.stat(self.paths[0]).is_dir
        except SysError:
            return False

    def reads_stdin(self) -> bool:
        """Whether standard input is something to search where no path is given.

        Not a terminal or /dev/null, and not a socket, which is an owner's `spawn` that may never write to it.
        """
        try:
            stat = self.process.fstat(0)
        except SysError:
            return False
        return stat.kind in (S_IFIFO, S_IFREG)

    def files(self) -> Iterator[tuple[str, bool]]:
        """Each file, and whether it was named on the command line."""
        if not self.paths:
            if not self.options.list_files and self.reads_stdin():
                yield "-", True
            else:
                for name in self.walker.walk(".", ""):
                    yield name, False
            return
        for path in self.paths:
            try:
                directory = path != "-" and self.process.fs.stat(path).is_dir
            except SysError as error:
                self.report(path, error)
                continue
            if directory:
                for name in self.walker.walk(path, path if path.endswith("/") else path + "/"):
                    yield name, False
            else:
                yield path, True

    def report(self, name: str, error: SysError) -> None:
        self.failed = True
        if not self.options.no_messages:
            self.process.stdout.flush()
            self.process.error(f"{name}: {error.reason} (os error {error.errno})\n")

    def run(self) -> int:
        process, options = self.process, self.options
        if options.line_buffered:
            process.stdout.line_buffered()
        found = False
        end = b"\0" if options.null else b"\n"
        compiled = None if options.list_files else self.compile()
        shower = Shower(compiled, self.layout, process.stdout.write) if compiled is not None else None
        for name, named in self.files():
            if compiled is None or shower is None:
                process.stdout.write(name.encode("utf-8", "surrogateescape") + end)
                found = True
                continue
            try:
                selected = self.search(compiled, shower, name, named)
            except SysError as error:
                self.report(name, error)
                continue
            found = found or selected
            if found and options.quiet:
                return 0
        return 2 if self.failed or self.walker.failed else 0 if found else 1

    def compile(self) -> regex.Regex:
        options = self.options
        ignore_case = options.case == "i" or (options.case == "S" and not any(_has_capital(p) for p in self.patterns))
        if options.fixed:
            syntax = "fixed"
        else:
            syntax = "perl" if options.pcre2 else "rust"
            patterns = self.patterns
            if options.dotall and options.multiline:
                patterns = [f"(?s){pattern}" for pattern in patterns]
            self.patterns = patterns
        try:
            return regex.compile_any(
                self.patterns,
                syntax=syntax,
                ignore_case=ignore_case,
                newline=True,
                whole_line=options.line,
                whole_word=options.word,
            )
        except regex.RegexError as error:
            shown = "|".join(self.patterns)
            look = re.search(r"\(\?<?[=!]", shown)
            caret = f"\n    {' ' * look.start()}{'^' * len(look[0])}" if look and "look-around" in str(error) else ""
            message = _WORDS.get(str(error), str(error))
            raise UsageError(f"regex parse error:\n    {shown}{caret}\nerror: {message}") from error

    def search(self, compiled: regex.Regex, shower: Shower, name: str, named: bool) -> bool:
        """Search one file and print what is asked for; True if it counts as found."""
        process, options = self.process, self.options
        shown = "<stdin>" if name == "-" else name
        fd = 0 if name == "-" else process.open(name, O_RDONLY | O_CLOEXEC)
        try:
            summary = options.count_lines or options.with_matches or options.without_match or options.quiet
            plain = not self.is_special()
            if not (options.text or options.unrestricted >= 3) and name != "-":
                offset = self.binary_offset(fd)
                if offset >= 0:
                    return self.search_binary(compiled, fd, shown, offset) if named else False
            if summary and not options.count_matches and not options.multiline:
                selected = self.count(compiled, fd, shown, stop=not options.count_lines)
                return self.summarize(shown, selected)
            if plain:
                return self.stream(compiled, fd, shown)
            data = b"".join(self.read(fd))
        finally:
            if fd:
                process.close(fd)
        encoded = shown.encode("utf-8", "surrogateescape")
        if options.count_matches:
            total = sum(1 for _ in (compiled.finditer(data) if options.multiline else compiled.line_matches(data)))
            return self.summarize(shown, total)
        if summary:
            return self.summarize(shown, sum(1 for _ in shower.selected(data)))
        return bool(shower.events(encoded, data) if options.json else shower.show(encoded, data))

    def read(self, fd: int) -> Iterator[bytes]:
        total = 0
        while data := self.process.read(fd):
            total += len(data)
            self.process.budget.charge_size(total)
            yield data

    def is_special(self) -> bool:
        layout, options = self.layout, self.options
        return bool(
            layout.columns
            or layout.heading
            or layout.multiline
            or layout.replacement is not None
            or layout.trim
            or layout.max_columns
            or layout.passthru
            or layout.color
            or options.json
            or options.count_matches
        )

    def binary_offset(self, fd: int) -> int:
        """Return where the first NUL byte is, if the file begins like a binary one."""
        head = self.process.read(fd, _PROBE)
        try:
            self.process.seek(fd, 0)
        except SysError:
            return -1
        return head.find(b"\0")

    def search_binary(self, compiled: regex.Regex, fd: int, shown: str, offset: int) -> bool:
        options = self.options
        selected = self.count(compiled, fd, shown, stop=not options.count_lines)
        if not selected or options.quiet or options.count_lines or options.with_matches or options.without_match:
            return self.summarize(shown, selected)
        name = f"{shown}: " if self.layout.names else ""
        self.process.print(f'{name}binary file matches (found "\\0" byte around offset {offset})')
        return True

    def plan(self, *, printing: bool, stop: bool) -> Plan:
        layout = self.layout
        style = Style(
            filenames=layout.names,
            numbers=layout.numbers,
            offsets=layout.offsets,
            null=layout.null,
            only_matching=layout.only_matching,
            invert=layout.invert,
            before=layout.before,
            after=layout.after,
            context=bool(layout.before or layout.after),
            group_separator=layout.separator,
        )
        limit = UNLIMITED if layout.limit is None else layout.limit
        return Plan(style, limit, printing=printing, stop_at_first=stop, binary="text")

    def count(self, compiled: regex.Regex, fd: int, shown: str, *, stop: bool) -> int:
        stat = self.process.fstat(fd)
        return Search(self.process, self.plan(printing=False, stop=stop), compiled, fd, shown, stat, False).run()

    def stream(self, compiled: regex.Regex, fd: int, shown: str) -> bool:
        stat = self.process.fstat(fd)
        search = Search(self.process, self.plan(printing=True, stop=False), compiled, fd, shown, stat, self.started)
        selected = search.run()
        self.started = self.started or search.output.started
        return selected > 0

    def summarize(self, shown: str, selected: int) -> bool:
        options = self.options
        end = b"\0" if options.null else b"\n"
        name = shown.encode("utf-8", "surrogateescape")
        write = self.process.stdout.write
        if options.without_match:
            if not selected and not options.quiet:
                write(name + end)
            return not selected
        if selected and not options.quiet:
            if options.with_matches:
                write(name + end)
            elif options.count_lines or options.count_matches:
                head = name + (b"\0" if options.null else b":") if self.layout.names else b""
                write(head + b"%d\n" % selected)
        return selected > 0


def _type_rules(names: tuple[str, ...]) -> Rules | None:
    if not names:
        return None
    globs = [
        glob for name in names for glob in (TYPES[name].split() if name != "all" else " ".join(TYPES.values()).split())
    ]
    return Rules(globs)


def _has_capital(pattern: str) -> bool:
    escaped = False
    for char in pattern:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char.isupper():
            return True
    return False


main = Program("rg", __doc__, Options, run, usage_status=2)
