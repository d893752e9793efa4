"""Compiles a whole awk program: functions, getline, rules, and the loop that runs them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from belljar.abi.errors import SysError
from belljar.bin.awk import nodes as n
from belljar.bin.awk.errors import AwkFatal, ExitProgram, NextFile, NextRecord
from belljar.bin.awk.expressions import ARITY
from belljar.bin.awk.lexer import BUILTINS
from belljar.bin.awk.reader import Reader
from belljar.bin.awk.record import split_blanks
from belljar.bin.awk.scope import NUM, VAL, Code, Compiled, Frame
from belljar.bin.awk.statements import Statements
from belljar.bin.awk.values import UNINIT, Array, Untyped, Value, strnum
from belljar.bin.awk.walk import walk

MAX_DEPTH = 20_000
"""Calls of functions nested deeper than this are refused."""


class UserFunction:
    """A function of the program. `code` is set once its body is compiled."""

    __slots__ = ("arrays", "code", "name", "parameters")

    def __init__(self, name: str, parameters: list[str]) -> None:
        self.name = name
        self.parameters = parameters
        self.code: Code = lambda frame: None
        self.arrays: tuple[int, ...] = ()

    def invoke(self, arguments: list[Value]) -> Value:
        """Call with values already evaluated, as a sort comparison is."""
        frame: Frame = [*arguments, *([UNINIT] * (len(self.parameters) - len(arguments) + 1))]
        self.code(frame)
        return frame[-1]


class Compiler(Statements):
    """The top of the compiler."""

    def program(self) -> None:
        """Compile every part of the program; afterwards `begin`, `main`, `end` and the file hooks are ready."""
        runtime = self.runtime
        for name, function in self.tree.functions.items():
            self.functions[name] = runtime.functions[name] = UserFunction(name, function.parameters)
        table = runtime.array("FUNCTAB")
        for name in (*BUILTINS, *self.tree.functions):
            table[name] = name
        for name, function in self.tree.functions.items():
            self.function = function
            self.locals = {parameter: index for index, parameter in enumerate(function.parameters)}
            self.functions[name].code = self.statement(function.body)
        self.function = None
        self.locals = {}
        self._survey()
        self.begin = [self.statement(block) for block in self.tree.begin]
        self.main = self.rules()
        self.end = [self.statement(block) for block in self.tree.end]
        runtime.input.begin_file = self._hook(self.tree.begin_file, "BEGINFILE")
        runtime.input.end_file = self._hook(self.tree.end_file, "ENDFILE")

    def _hook(self, blocks: list[n.Block], section: str) -> Callable[[], None] | None:
        if not blocks:
            return None
        codes = [self.statement(block) for block in blocks]
        runtime = self.runtime

        def run() -> None:
            before, runtime.section = runtime.section, section
            for code in codes:
                code([UNINIT])
            runtime.section = before

        return run

    # -- rules --------------------------------------------------------------------------------------------------

    def rules(self) -> Code | None:
        """All rules as one piece of code to run for every record; None when there are none."""
        codes = [self._rule(rule) for rule in self.tree.rules]
        if not codes:
            return None
        if len(codes) == 1:
            return codes[0]
        every = tuple(codes)

        def run(frame: Frame) -> int | None:
            for code in every:
                signal = code(frame)
                if signal is not None:
                    return signal
            return None

        return run

    def _rule(self, rule: n.Rule) -> Code:
        body = self.statement(rule.body if rule.body is not None else n.Print([], "", None, False, 0))
        if rule.pattern is None:
            return body
        test = self.test(rule.pattern)
        if rule.end is None:
            return lambda frame: body(frame) if test(frame) else None
        end = self.test(rule.end)
        inside = False

        def run_range(frame: Frame) -> int | None:
            nonlocal inside
            if not inside:
                if not test(frame):
                    return None
                inside = True
            if end(frame):
                inside = False
            return body(frame)

        return run_range

    def run(self) -> None:
        """Run the program to its end. The exit status is then in the runtime; AwkFatal passes through."""
        runtime = self.runtime
        try:
            runtime.section = "BEGIN"
            for code in self.begin:
                code([UNINIT])
            runtime.section = ""
            if self.main is not None or self.end or runtime.input.begin_file or runtime.input.end_file:
                self._read_all()
        except ExitProgram:
            pass
        runtime.section = "END"
        try:
            for code in self.end:
                code([UNINIT])
        except ExitProgram:
            pass
        runtime.streams.close_all()

    def _read_all(self) -> None:
        source = self.runtime.input
        body = self.main
        if "RT" in self.names.mentioned:
            body = self._with_terminator(body)
        while True:
            if source.reader is None and source.advance() is None:
                return
            with suppress(NextFile):
                self._read_file(body)
            source.finish_file()

    def _with_terminator(self, body: Code | None) -> Code:
        source, cell = self.runtime.input, self.runtime.cell("RT")

        def run(frame: Frame) -> int | None:
            if source.reader is not None:
                cell[0] = source.reader.remaining_terminator()
            return None if body is None else body(frame)

        return run

    def _read_file(self, body: Code | None) -> None:
        record = self.record
        source = self.runtime.input
        frame: Frame = [UNINIT]
        reader = source.reader
        if body is None:
            body = _ignore
        while reader is not None:
            with suppress(NextRecord):
                self._run_records(reader, body, frame)
            if source.reader is not reader:
                # A getline inside the rules went on to another file.
                reader = source.reader
                if reader is None and (source.ended or (reader := source.advance()) is None):
                    return
                continue
            if reader.records.__length_hint__():  # type: ignore[attr-defined]
                continue
            if not reader.refill():
                return
            # A chunk without odd blanks can be split by Python's own split().
            record.splitter = record.general
            if reader.plain and record.general is split_blanks:
                record.splitter = str.split  # type: ignore[assignment]

    def _run_records(self, reader: Reader, body: Code, frame: Frame) -> None:
        """Run the rules over the records already read."""
        record = self.record
        records = reader.records
        if self.counts:
            for record.text in records:
                record.fields = None
                record.nr += 1
                body(frame)
            return
        left = records.__length_hint__()  # type: ignore[attr-defined]
        try:
            if self.eager:
                split = record.splitter
                for text in records:
                    record.text = text
                    record.fields = split(text)
                    body(frame)
            else:
                for record.text in records:
                    record.fields = None
                    body(frame)
        finally:
            record.nr += left - records.__length_hint__()  # type: ignore[attr-defined]

    def _survey(self) -> None:
        """What the loop over records may spare: counting each (nobody looks at NR), asking before it splits."""
        rules = [self.tree.rules, list(self.tree.functions.values()), self.tree.begin_file, self.tree.end_file]
        found = list(walk(rules))
        names = {node.name for node in found if isinstance(node, n.Var)}
        self.counts = bool(names & {"NR", "FNR"}) or any(isinstance(node, n.Getline) for node in found)
        assigned = names & {"FS", "RS", "FPAT", "FIELDWIDTHS", "IGNORECASE"}
        self.eager = not self.counts and not assigned and any(_always_splits(rule) for rule in self.tree.rules)

    # -- calls --------------------------------------------------------------------------------------------------

    def expr_call(self, node: n.Call, want: str) -> Compiled:
        function: UserFunction = self.functions[node.name]
        if len(node.arguments) > len(function.parameters):
            raise AwkFatal(f"function `{node.name}' called with more arguments than declared", node.line)
        arguments = [
            self._argument(argument, node.name, parameter)
            for argument, parameter in zip(node.arguments, function.parameters, strict=False)
        ]
        padding: list[Value] = [UNINIT] * (len(function.parameters) - len(arguments) + 1)
        runtime = self.runtime
        charge = runtime.charge
        line = node.line

        def too_deep() -> AwkFatal:
            return AwkFatal(f"function `{node.name}': calls nested too deeply", line)

        if len(arguments) == 1:
            only = arguments[0]

            def call_one(frame: Frame) -> Value:
                inner = [only(frame), *padding]
                charge(1)
                runtime.depth += 1
                if runtime.depth > MAX_DEPTH:
                    raise too_deep()
                function.code(inner)
                runtime.depth -= 1
                return inner[-1]

            return VAL, call_one

        def call(frame: Frame) -> Value:
            inner = [argument(frame) for argument in arguments]
            inner += padding
            charge(1)
            runtime.depth += 1
            if runtime.depth > MAX_DEPTH:
                raise too_deep()
            function.code(inner)
            runtime.depth -= 1
            return inner[-1]

        return VAL, call

    def _argument(self, node: n.Expr, function: str | None, parameter: str) -> Callable[[Frame], Value]:
        """An argument's code: arrays by reference, names nobody has typed yet as something that may become one."""
        if function is not None and parameter in self.names.scalar_parameters[function]:
            if isinstance(node, n.Var) and self.is_array(node.name):
                return self.scalar_misuse(f"{parameter} (from {node.name})", node.line)
            return self.value(node)
        if isinstance(node, n.Var) and node.name not in ("NR", "NF", "FNR"):
            if self.is_array(node.name):
                return self.array(node)
            if node.name in self.tree.functions:
                return self.value(node)
            if node.name in self.locals:
                index = self.locals[node.name]

                def pass_local(frame: Frame) -> Value:
                    value = frame[index]
                    return Untyped(frame, index) if value is UNINIT else value

                return pass_local
            cell = self.runtime.cell(node.name)
            name = node.name
            arrays = self.runtime.arrays

            def pass_global(_frame: Frame) -> Value:
                value = cell[0]
                if value is UNINIT:
                    return arrays[name] if name in arrays else Untyped(cell, 0)
                return value

            return pass_global
        if isinstance(node, n.Index):
            container = self.array(node.array)
            key = self.subscript_key(node.subscripts)

            def pass_element(frame: Frame) -> Value:
                held: Array = container(frame)
                subscript = key(frame)
                value = held.setdefault(subscript, UNINIT)
                return Untyped(held, subscript) if value is UNINIT else value

            return pass_element
        return self.value(node)

    def expr_indirectcall(self, node: n.IndirectCall, want: str) -> Compiled:
        name_of = self.string(n.Var(node.name, node.line))
        arguments = [self._argument(argument, None, "") for argument in node.arguments]
        builtins = {
            name: self.value(n.Builtin(name, node.arguments, node.line))
            for name in _INDIRECT
            if _fits(name, len(node.arguments))
        }
        functions, runtime, line = self.functions, self.runtime, node.line

        def call(frame: Frame) -> Value:
            name = name_of(frame)
            function = functions.get(name)
            if function is None:
                if name in builtins:
                    return builtins[name](frame)
                raise AwkFatal(f"`{name}' is not a function, so it cannot be called indirectly", line)
            if len(arguments) > len(function.parameters):
                raise AwkFatal(f"function `{name}' called with more arguments than declared", line)
            runtime.charge(1)
            result: Value = function.invoke([argument(frame) for argument in arguments])
            return result

        return VAL, call

    # -- getline ------------------------------------------------------------------------------------------------

    def expr_getline(self, node: n.Getline, want: str) -> Compiled:
        if node.kind == "":
            return self._plain_getline(node)
        assert node.source is not None
        name = self.string(node.source)
        place = None if node.target is None else self.place(node.target)
        runtime, record, kind, line = self.runtime, self.record, node.kind, node.line
        streams = runtime.streams
        terminator = runtime.cell("RT") if "RT" in self.names.mentioned else None
        errno = runtime.cell("ERRNO")

        def read(frame: Frame) -> float:
            source = name(frame)
            # The target's subscripts are evaluated even when nothing can be read.
            where = None if place is None else place[0](frame)
            reader = streams.input(kind, source, line)
            if reader is None:
                errno[0] = streams.error
                return -1.0
            try:
                text = reader.next()
            except SysError as error:
                errno[0] = error.reason
                return -1.0
            if text is None:
                return 0.0
            if terminator is not None:
                terminator[0] = reader.remaining_terminator()
            if place is None:
                record.set_text(text)
            else:
                place[2](frame, where, strnum(text))
            return 1.0

        return NUM, read

    def _plain_getline(self, node: n.Getline) -> Compiled:
        store = None if node.target is None else self.store(node.target)
        runtime, record, line = self.runtime, self.record, node.line
        terminator = runtime.cell("RT") if "RT" in self.names.mentioned else None

        def read(frame: Frame) -> float:
            if runtime.input.in_hook:
                raise AwkFatal(f"non-redirected `getline' invalid inside `{runtime.section}' rule", line)
            text = runtime.input.next_record()
            if text is None:
                return 0.0
            if terminator is not None and runtime.input.reader is not None:
                terminator[0] = runtime.input.reader.remaining_terminator()
            record.nr += 1
            if store is None:
                record.set_text(text)
            else:
                store(frame, strnum(text))
            return 1.0

        return NUM, read


def _always_splits(rule: n.Rule) -> bool:
    """Does this rule look at a field, or NF, of every record?"""
    looked: object = rule.body if rule.pattern is None else rule.pattern
    if isinstance(looked, (n.And, n.Or)):
        looked = looked.left
    if rule.pattern is None and isinstance(looked, n.Block):
        looked = looked.statements[:1]
    for node in walk(looked):
        if isinstance(node, n.Field) and not (isinstance(node.index, n.Num) and node.index.value == 0.0):
            return True
        if isinstance(node, n.Var) and node.name == "NF":
            return True
    return False


def _ignore(_frame: Frame) -> int | None:
    return None


_INDIRECT = (
    "length",
    "tolower",
    "toupper",
    "substr",
    "index",
    "sprintf",
    "sin",
    "cos",
    "exp",
    "log",
    "sqrt",
    "int",
    "atan2",
    "strtonum",
    "systime",
    "strftime",
    "mktime",
    "and",
    "or",
    "xor",
    "compl",
    "lshift",
    "rshift",
    "gensub",
)


def _fits(name: str, count: int) -> bool:
    low, high = ARITY[name]
    return low <= count <= high
