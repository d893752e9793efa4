"""grep - print lines that match patterns

Usage: grep [OPTION]... PATTERNS [FILE]...

Search for PATTERNS in each FILE. With no FILE, read '.' if recursive, '-' otherwise. PATTERNS can contain
several patterns separated by newlines. Exit status is 0 if any line is selected, 1 otherwise; if any error
occurs and -q is not given, it is 2.
"""

from __future__ import annotations

from collections.abc import Iterator

from belljar import regex
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_RDONLY
from belljar.abi.paths import fsencode
from belljar.bin._kit import Program, UsageError
from belljar.bin._kit.locale import is_utf8
from belljar.bin._kit.options import parse
from belljar.bin._kit.program import version
from belljar.bin.grep.files import Selection, walk
from belljar.bin.grep.options import UNLIMITED, USAGE, Options, context_length, max_count
from belljar.bin.grep.output import Style, parse_colors
from belljar.bin.grep.patterns import Matcher, collect, compile_patterns
from belljar.bin.grep.search import Plan, Search
from belljar.kernel.process import Process


def program(name: str, doc: str, syntax: str) -> Program:
    """The utility grep under one of its names."""

    def run(process: Process, args: list[str]) -> int:
        # egrep and fgrep are scripts that run grep, which then speaks under its own name.
        process.argv = ["grep", *process.argv[1:]]
        try:
            parsed = parse(Options, args, digits="context")
        except UsageError as error:
            raise UsageError(f"{error}\n{USAGE.format(name=process.name)}") from error
        if parsed.asked == "help":
            process.stdout.write(itself.help().encode())
            return 0
        options = Options(**parsed.values)
        if parsed.asked == "version" or options.short_version:
            process.print(version(name))
            return 0
        if not options.patterns and not options.files and not parsed.operands:
            process.error(f"{USAGE.format(name=process.name)}\nTry '{process.name} --help' for more information.\n")
            return 2
        if len(set(options.matchers)) > 1:
            raise UsageError("conflicting matchers specified", hint=False)
        return Grep(process, options, parsed.operands, options.matchers[0] if options.matchers else syntax).run()

    itself = Program(name, doc, Options, run, usage_status=2)
    return itself


class Grep:
    """One run of the utility."""

    def __init__(self, process: Process, options: Options, operands: list[str], syntax: str) -> None:
        self.process = process
        self.options = options
        self.syntax = syntax
        self.recursive = options.recursive or ("-r" if options.directories == "recurse" else None)
        self.failed = False
        self.matched = False
        self.started = False
        self.dense = False  # did most lines of the last file match?
        self.check_choices()
        self.limit = max_count(options.max_count)
        self.patterns = collect(process, options, operands)
        self.operands = operands
        self.plan = self.make_plan()
        out = process.fds.get(1)
        self.sink = None
        if out is not None and self.plan.printing and self.limit > 1:
            stat = process.fstat(1)
            if stat.is_regular:
                self.sink = (stat.dev, stat.ino)

    def check_choices(self) -> None:
        options = self.options
        if options.binary_files not in ("binary", "text", "without-match"):
            raise UsageError("unknown binary-files type", hint=False)
        for given, name, known in (
            (options.directories, "directories", ("read", "recurse", "skip")),
            (options.devices, "devices", ("read", "skip")),
        ):
            if given is not None and given not in known:
                if name == "devices":
                    raise UsageError("unknown devices method", hint=False)
                valid = "".join(f"\n  - \u2018{one}\u2019" for one in known)
                usage = USAGE.format(name=self.process.name)
                problem = f"invalid argument \u2018{given}\u2019 for \u2018--{name}\u2019"
                raise UsageError(f"{problem}\nValid arguments are:{valid}\n{usage}")
        if options.color not in (None, "always", "yes", "force", "never", "no", "none", "auto", "tty", "if-tty"):
            raise UsageError(USAGE.format(name=self.process.name))

    def make_plan(self) -> Plan:
        options = self.options
        around = context_length(options.context, 0)
        quiet = options.quiet or options.list_files is not None
        names = options.filenames
        if names is None:
            names = len(self.operands) > 1 or (self.recursive is not None and self.searches_tree())
        colored = options.color in ("always", "yes", "force") or (
            options.color in ("auto", "tty", "if-tty") and self.process.isatty(1)
        )
        style = Style(
            filenames=names,
            numbers=options.line_number,
            offsets=options.byte_offset,
            null=options.null,
            initial_tab=options.initial_tab,
            only_matching=options.only_matching,
            invert=options.invert,
            before=context_length(options.before, around),
            after=context_length(options.after, around),
            context=not (options.context is options.before is options.after is None),
            group_separator=None if options.no_group_separator else fsencode(options.group_separator or ""),
            separator=b"\0" if options.null_data else b"\n",
            colors=parse_colors(self.process.env.get("GREP_COLORS", "")) if colored else None,
        )
        binary = "text" if options.text else "without-match" if options.skip_binary else options.binary_files
        return Plan(
            style=style,
            limit=self.limit,
            printing=not quiet and not options.count,
            stop_at_first=quiet,
            binary=binary,
            utf8=is_utf8(self.process.env),
        )

    def searches_tree(self) -> bool:
        """Whether -r has a directory among the operands, or no operands."""
        for name in self.operands:
            try:
                if name != "-" and self.process.fs.stat(name).is_dir:
                    return True
            except SysError:
                continue
        return not self.operands

    def run(self) -> int:
        process, options = self.process, self.options
        everything = self.patterns == [""] and not options.line and not options.word
        impossible = not self.patterns and not options.invert
        if (self.limit == 0 or impossible or (everything and options.invert)) and options.list_files is not False:
            return 1
        try:
            matcher = compile_patterns(process, options, self.patterns, self.syntax)
        except regex.RegexError as error:
            process.warn(str(error))
            return 2
        if options.line_buffered:
            process.stdout.line_buffered()
        for name in self.files():
            if name is None:
                self.failed = True
                continue
            try:
                self.search(matcher, name)
            except SysError as error:
                self.report(name, error.reason)
            if options.quiet and self.matched:
                return 0
        return 2 if self.failed else 0 if self.matched else 1

    def report(self, name: str, reason: str) -> None:
        self.failed = True
        if not self.options.no_messages:
            self.process.stdout.flush()
            self.process.warn(f"{self.shown(name)}: {reason}")

    def shown(self, name: str) -> str:
        return (self.options.label or "(standard input)") if name == "-" else name

    def files(self) -> Iterator[str | None]:
        options, process = self.options, self.process
        selection = Selection(process, options)
        if not self.operands:
            if self.recursive is None:
                yield "-"
            else:
                yield from walk(process, ".", "", selection, self.recursive == "-R", options.no_messages)
            return
        as_they_are = self.recursive is None and options.directories != "skip" and selection.takes_all
        for name in self.operands:
            if name == "-" or as_they_are:
                yield name
                continue
            is_dir = process.fs.is_dir(name)
            if is_dir and self.recursive is not None:
                if selection.accepts_directory(name, operand=True):
                    prefix = name if name.endswith("/") else name + "/"
                    yield from walk(process, name, prefix, selection, self.recursive == "-R", options.no_messages)
            elif is_dir and options.directories == "skip":
                continue
            elif is_dir or selection.accepts_file(name, operand=True):
                yield name

    def search(self, matcher: Matcher, name: str) -> None:
        process, options = self.process, self.options
        fd = 0 if name == "-" else process.open(name, O_RDONLY | O_CLOEXEC)
        try:
            stat = process.fstat(fd)
            if stat.is_dir:
                self.report(name, "Is a directory")
                if not options.count:
                    return
            if self.sink == (stat.dev, stat.ino) and stat.is_regular:
                self.report(name, "input file is also the output")
                return
            search = Search(process, self.plan, matcher, fd, self.shown(name), stat, self.started)
            search.dense = self.dense
            selected = 0 if stat.is_dir else search.run()
            self.dense = search.dense
        finally:
            if fd:
                process.close(fd)
        self.started = self.started or search.output.started
        self.matched = self.matched or selected > 0
        self.summarize(name, selected)

    def summarize(self, name: str, selected: int) -> None:
        """The line -c, -l or -L prints for a file."""
        options, style = self.options, self.plan.style
        if options.quiet:
            return
        if options.list_files is None and not options.count:
            return
        shown = self.shown(name).encode("utf-8", "surrogateescape")
        colors = style.colors or {}
        if "fn" in colors:
            shown = colors["fn"] + shown + b"\33[m\33[K"
        write = self.process.stdout.write
        if options.list_files is not None:
            if options.list_files == (selected > 0):
                write(shown + (b"\0" if style.null else b"\n"))
        elif options.count:
            mark = b"\0" if style.null else colors["se"] + b":\33[m\33[K" if "se" in colors else b":"
            write((shown + mark if style.filenames else b"") + b"%d\n" % min(selected, UNLIMITED))


main = program("grep", __doc__, "grep")
