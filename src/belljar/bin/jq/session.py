"""One run of jq: its inputs, the compiled program, and the writing of its outputs."""

from collections.abc import Callable
from typing import Any

from belljar.abi.errors import SysError
from belljar.abi.paths import replace_undecodable
from belljar.bin.jq.builtins.world import Halt
from belljar.bin.jq.code import EMPTY, CompileProblem, as_many
from belljar.bin.jq.compile import Compiler
from belljar.bin.jq.errors import Break, JqError
from belljar.bin.jq.exact import ParseError
from belljar.bin.jq.inputs import Inputs
from belljar.bin.jq.lexer import SyntaxProblem
from belljar.bin.jq.measure import Measure
from belljar.bin.jq.modules import DEFAULT_SEARCH, ModuleProblem, Modules
from belljar.bin.jq.nodes import Identity
from belljar.bin.jq.options import Options
from belljar.bin.jq.parse import parse
from belljar.bin.jq.values import Value
from belljar.bin.jq.writer import COMPACT, DEFAULT_COLORS, Style, to_json, write
from belljar.kernel.process import Process

OK, NULL, SYSTEM, COMPILE, NOTHING, UNKNOWN = 0, 1, 2, 3, 4, 5


class Session:
    """A running program's `Runtime`, and the loop over inputs."""

    def __init__(self, process: Process, options: Options, style: Style) -> None:
        self.process = process
        self.options = options
        self.style = style
        self.charge = process.budget.charge
        self.charge_size = process.budget.charge_size
        self.inputs = Inputs(process, options.files or ["-"], options.flags)
        self.measure = Measure(process.budget.charge_size, style.indent or 0)
        self._environment: dict[str, str] | None = None
        self.status = NOTHING
        self.last = NOTHING
        self.emit = self.emitter()

    # What programs may use

    def next_input(self) -> Value:
        try:
            return self.inputs.next()
        except ParseError as error:
            raise JqError(str(error)) from None

    def environment(self) -> dict[str, str]:
        if self._environment is None:
            self._environment = {
                replace_undecodable(name): replace_undecodable(value) for name, value in self.process.env.items()
            }
        return self._environment

    def now(self) -> float:
        return self.process.kernel.hub.clock.time_ns() / 1e9

    def zone(self) -> str:
        return self.process.env.get("TZ", "UTC0")

    def debug(self, value: Value) -> None:
        self.measure(value)
        style = Style(indent=None, sort=self.style.sort, colors=self.style.colors)
        self.diagnose(write(["DEBUG:", value], style) + b"\n")

    def stderr(self, value: Value) -> None:
        self.measure(value)
        self.diagnose(value.encode("utf-8", "replace") if isinstance(value, str) else write(value, COMPACT))

    def input_filename(self) -> str | None:
        return self.inputs.filename

    def input_line_number(self) -> int:
        return self.inputs.lines

    def diagnose(self, data: bytes) -> None:
        self.process.stdout.flush()
        self.process.error(data.decode("utf-8", "surrogateescape"))

    # Compiling

    def compile(self, source: str, origin: str) -> Callable[[Value, Any], Any] | None:
        """The program as a function from an input to its outputs; None (after saying why) if it is wrong."""
        options = self.options
        named = {**options.named}
        named["ARGS"] = {"positional": options.positional, "named": options.named}
        compiler = Compiler(self, named)
        search = options.search if options.search is not None else DEFAULT_SEARCH
        modules = Modules(self.process, search)
        compiler.search_list = [modules.expand(place, self.process.fs.getcwd()) for place in search]
        compiler.describe_module = lambda name: modules.describe(name, compiler)
        try:
            program = parse(source)
            scope = modules.scope(program, origin, compiler.root)
            code = compiler.value(program.body if program.body is not None else Identity(), scope)
        except SyntaxProblem as problem:
            self.complain(source, problem.message, problem.at, problem.end)
            return None
        except CompileProblem as problem:
            self.complain(source, problem.message, problem.at, problem.at + problem.length)
            return None
        except ModuleProblem as problem:
            self.diagnose(f"{problem}\n".replace("\n\n", "\n").encode())
            return None
        except RecursionError:
            self.complain(source, "memory exhausted: the program is nested too deeply", 0, 1)
            return None
        return as_many(code)

    def complain(self, source: str, message: str, at: int, end: int) -> None:
        """A compile error, with the line it is in and what is wrong underlined."""
        at = min(at, len(source))
        start = source.rfind("\n", 0, at) + 1
        stop = source.find("\n", at)
        line = source[start : stop if stop >= 0 else len(source)]
        number, column = source.count("\n", 0, at) + 1, at - start
        marks = "^" * max(1, min(end, start + len(line)) - at)
        self.diagnose(
            f"jq: error: {message} at <top-level>, line {number}, column {column + 1}:\n"
            f"    {line}\n    {' ' * column}{marks}\njq: 1 compile error\n".encode("utf-8", "replace")
        )

    # Running

    def run(self, source: str, origin: str) -> int:
        program = self.compile(source, origin)
        if program is None:
            return COMPILE
        flags = self.options.flags
        try:
            if "null-input" in flags:
                self.process_input(program, None)
            else:
                self.loop(program)
        except Halt as halt:
            return self.halt(halt)
        if self.inputs.failed:
            self.status = SYSTEM
        return self.finish()

    def loop(self, program: Callable[[Value, Any], Any]) -> None:
        while not self.inputs.failed:
            try:
                value = self.inputs.next()
            except StopIteration:
                return
            except ParseError as error:
                self.diagnose(f"jq: parse error: {error}\n".encode("utf-8", "replace"))
                self.status = UNKNOWN
                return
            self.charge(1)
            self.process_input(program, value)

    def finish(self) -> int:
        if self.status in (SYSTEM, UNKNOWN):
            return self.status
        return self.last if "exit-status" in self.options.flags else OK

    def process_input(self, program: Callable[[Value, Any], Any], value: Value) -> None:
        self.status = OK
        emit = self.emit
        try:
            for output in program(value, None):
                emit(output)
        except JqError as error:
            self.report(error.value)
        except Break:
            self.report("break")
        except RecursionError:
            self.report("Function calls nested too deeply")

    def report(self, error: Value) -> None:
        self.status = UNKNOWN
        where = self.inputs.position()
        if isinstance(error, str):
            text = f"jq: error (at {where}): {error}\n"
        else:
            text = f"jq: error (at {where}) (not a string): {to_json(error)}\n"
        self.diagnose(text.encode("utf-8", "replace"))

    def emitter(self) -> Callable[[Value], None]:
        """Writes one output, as the options have it."""
        flags, style, stdout = self.options.flags, self.style, self.process.stdout
        raw = bool(flags & {"raw-output", "join-output", "raw-output0"})
        end = b"" if "join-output" in flags else b"\0" if "raw-output0" in flags else b"\n"
        start = b"\x1e" if "seq" in flags else b""
        nul = "raw-output0" in flags
        flush = "unbuffered" in flags
        measure = self.measure

        def emit(value: Value) -> None:
            if raw and value.__class__ is str:
                if style.ascii:
                    data = write(value, style)
                else:
                    if nul and "\0" in value:
                        raise JqError("Cannot dump a string containing NUL with --raw-output0 option")
                    data = value.encode("utf-8", "replace")
                self.last = OK
                stdout.write(data + end)
            else:
                self.last = NULL if value is None or value is False else OK
                stdout.write(start + write(value, style, measure(value)) + end)
            if flush:
                stdout.flush()

        return emit

    def halt(self, halt: Halt) -> int:
        message = halt.message
        if message is not EMPTY:
            if isinstance(message, str):
                self.diagnose(message.encode("utf-8", "replace"))
            else:
                self.diagnose(write(message, COMPACT) + b"\n")
        return halt.status & 0xFF


def style_of(process: Process, options: Options) -> Style:
    flags = options.flags
    compact = "compact-output" in flags or (options.indent == 0 and "tab" not in flags)
    colored = "color-output" in flags or (process.isatty(1) and not process.env.get("NO_COLOR"))
    colors = None
    if colored and "monochrome-output" not in flags:
        colors = chosen_colors(process)
    return Style(
        indent=None if compact else max(options.indent, 0),
        tab="tab" in flags and not compact,
        sort="sort-keys" in flags,
        ascii="ascii-output" in flags,
        colors=colors,
    )


def chosen_colors(process: Process) -> tuple[str, ...]:
    """$JQ_COLORS over the defaults."""
    setting = process.env.get("JQ_COLORS")
    if setting is None:
        return DEFAULT_COLORS
    parts = setting.split(":")[: len(DEFAULT_COLORS)]
    if any(set(part) - set("0123456789;") for part in parts):
        process.error("Failed to set $JQ_COLORS\n")
        return DEFAULT_COLORS
    return (*parts, *DEFAULT_COLORS[len(parts) :])


def run_session(process: Process, options: Options) -> int:
    source, origin = options.program, "."
    if "from-file" in options.flags:
        if source is None:
            source = ""
        try:
            text = process.read_file(source).decode("utf-8", "replace")
        except SysError as error:
            process.error(f"jq: error: Could not open {source}: {error.reason}\n")
            return SYSTEM
        origin, source = source.rpartition("/")[0] or ".", text
    assert source is not None
    return Session(process, options, style_of(process, options)).run(
        replace_undecodable(source), process.absolute(origin)
    )
