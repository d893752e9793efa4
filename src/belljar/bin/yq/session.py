"""One run of yq: documents in, the expression over each, results out as YAML, JSON or rows."""

from collections.abc import Callable, Iterator
from typing import Any

from belljar.abi.errors import SysError
from belljar.bin.jq.builtins.world import Halt
from belljar.bin.jq.code import CompileProblem, as_many
from belljar.bin.jq.compile import Compiler
from belljar.bin.jq.errors import Break, JqError
from belljar.bin.jq.exact import ParseError
from belljar.bin.jq.formats import as_csv, as_tsv
from belljar.bin.jq.lexer import SyntaxProblem
from belljar.bin.jq.measure import Measure
from belljar.bin.jq.nodes import Identity
from belljar.bin.jq.parse import parse
from belljar.bin.jq.reader import Decoder
from belljar.bin.jq.values import Value, to_text
from belljar.bin.jq.writer import DEFAULT_COLORS, Style, to_json, write
from belljar.bin.yq.dialect import Dialect, over_all
from belljar.bin.yq.nodes import Document, Node, YamlError
from belljar.bin.yq.options import Options
from belljar.bin.yq.reader import read_documents
from belljar.bin.yq.writer import Writer
from belljar.kernel.process import Process


class Failure(Exception):
    """The run ends here, with this message."""


class Session:
    """A `Runtime` for the expression, and the loop around it."""

    def __init__(self, process: Process, options: Options) -> None:
        self.process = process
        self.options = options
        self.charge = process.budget.charge
        self.charge_size = process.budget.charge_size
        self.measure = Measure(process.budget.charge_size)
        self.state: dict[str, Any] = {"file": 0, "document": 0, "filename": "-"}
        self.output: list[bytes] = []
        self.found = False
        self.previous: tuple[int, int] | None = None

    # What expressions may use

    def next_input(self) -> Value:
        raise StopIteration

    def environment(self) -> dict[str, str]:
        return dict(self.process.env)

    def now(self) -> float:
        return self.process.kernel.hub.clock.time_ns() / 1e9

    def zone(self) -> str:
        return self.process.env.get("TZ", "UTC0")

    def debug(self, value: Value) -> None:
        self.process.error(f"{to_json(value)}\n")

    def stderr(self, value: Value) -> None:
        self.process.error(to_text(value))

    def input_filename(self) -> str | None:
        return str(self.state["filename"])

    def input_line_number(self) -> int:
        return 0

    # Documents

    def documents(self) -> Iterator[Document]:
        if "n" in self.options.flags:
            yield Document(Node(None))
            return
        for place, name in enumerate(self.options.files or ["-"]):
            try:
                data = self.process.read_file(name)
            except SysError as error:
                raise Failure(f"open {name}: {error.reason.lower()}") from None
            self.state.update(file=place, filename=name)
            for number, document in enumerate(self.parse(name, data)):
                self.state["document"] = number
                yield document

    def parse(self, name: str, data: bytes) -> list[Document]:
        try:
            if self.options.input == "json":
                decoder = Decoder()
                return [Document(Node(value)) for value in (*decoder.whole(data), *decoder.close())]
            return read_documents(data.decode("utf-8", "replace"), self.charge)
        except (YamlError, ParseError) as error:
            raise Failure(f"bad file '{name}': {error}") from None

    # Running

    def compile(self) -> Callable[[Value, Any], Any]:
        compiler = Compiler(self)
        Dialect(compiler, self.state)
        try:
            program = parse(self.options.expression or ".", ireduce=True)
            if self.options.all:
                program = over_all(program)
            scope = compiler.root
            for function in program.functions:
                scope = scope.define(function)
            return as_many(compiler.value(program.body if program.body is not None else Identity(), scope))
        except (SyntaxProblem, CompileProblem) as problem:
            raise Failure(f"1:{problem.at + 1}: {problem.message}") from None
        except RecursionError:
            raise Failure("1:1: the expression is nested too deeply") from None

    def run(self) -> int:
        program = self.compile()
        last: Value = None
        for document, value in self.inputs():
            try:
                for result in program(value, None):
                    self.emit(result, document)
                    last = result
            except JqError as error:
                self.flush()
                raise Failure(error.value if isinstance(error.value, str) else to_json(error.value)) from None
            except Break:
                continue
            except RecursionError:
                raise Failure("function calls nested too deeply") from None
        self.finish()
        if "e" in self.options.flags and (not self.found or last is None or last is False):
            raise Failure("no matches found")
        return 0

    def inputs(self) -> Iterator[tuple[Document, Value]]:
        if not self.options.all:
            for document in self.documents():
                yield document, document.root.value
            return
        documents = list(self.documents())
        if documents:
            self.state.update(file=0, document=0)
            yield documents[0], [document.root.value for document in documents]

    # Output

    def emit(self, value: Value, document: Document) -> None:
        self.found = True
        self.measure(value)
        text = self.render(value, document)
        where = (self.state["file"], self.state["document"])
        if self.options.output == "yaml" and "N" not in self.options.flags:
            new = self.previous is not None and self.previous != where
            if new or (self.previous is None and document.explicit and value is document.root.value):
                text = "---\n" + text
        self.previous = where
        if "i" in self.options.flags:
            self.charge_size(sum(map(len, self.output)) + len(text))
            self.output.append(text.encode("utf-8", "replace"))
        else:
            self.process.stdout.write(text.encode("utf-8", "replace"))

    def render(self, value: Value, document: Document) -> str:
        options = self.options
        scalar = value.__class__ not in (dict, list)
        unwrap = options.unwrap if options.unwrap is not None else options.output != "json"
        if scalar and unwrap and value.__class__ is str and options.output in ("yaml", "json"):
            return value + "\n"
        if options.output == "json":
            colors = DEFAULT_COLORS if "C" in options.flags else None
            style = Style(indent=options.indent or None, colors=colors)
            return write(value, style).decode() + "\n"
        if options.output in ("csv", "tsv"):
            return rows(value, as_csv if options.output == "csv" else as_tsv)
        if options.output == "props":
            return "".join(f"{name} = {text}\n" for name, text in properties(value, ""))
        try:
            return Writer(options.indent, document, "P" in options.flags).write(value)
        except YamlError as error:
            raise JqError(str(error)) from None

    def flush(self) -> None:
        self.process.stdout.flush()

    def finish(self) -> None:
        if "i" in self.options.flags:
            self.process.write_file(self.options.files[0], b"".join(self.output))


def rows(value: Value, line: Callable[[Value], str]) -> str:
    """A table: of arrays, or of objects under their keys."""
    if not isinstance(value, list):
        raise JqError("csv encoding only works for arrays")
    if value and all(isinstance(item, dict) for item in value):
        names = list(dict.fromkeys(name for item in value for name in item))
        value = [names, *([item.get(name) for name in names] for item in value)]
    elif not any(isinstance(item, list) for item in value):
        value = [value]
    return "".join(plain_row(row, line) + "\n" for row in value)


def plain_row(row: Value, line: Callable[[Value], str]) -> str:
    """A row with quotes only where they are needed."""
    if line is as_tsv:
        return as_tsv(row)
    cells = [to_text(cell) if cell is not None else "" for cell in row]
    return ",".join(
        as_csv([cell]) if any(ch in cell for ch in ',"\n') or cell != cell.strip() else cell for cell in cells
    )


def properties(value: Value, prefix: str) -> Iterator[tuple[str, str]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if members is None:
        yield prefix, to_text(value) if value is not None else ""
        return
    for name, item in members:
        yield from properties(item, f"{prefix}.{name}" if prefix else str(name))


def run_session(process: Process, options: Options) -> int:
    if "i" in options.flags and not options.files:
        process.error("Error: write in place flag only applicable when giving an expression and at least one file\n")
        return 1
    try:
        return Session(process, options).run()
    except Halt as halt:
        return halt.status & 0xFF
    except Failure as failure:
        process.stdout.flush()
        process.error(f"Error: {failure}\n")
        return 1
