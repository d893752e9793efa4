"""Compiles awk's statements. A statement's code gives None, or a signal that ends the statements around it."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from belljar.bin.awk import nodes as n
from belljar.bin.awk.builtins import Builtins
from belljar.bin.awk.errors import AwkFatal, ExitProgram, NextFile, NextRecord
from belljar.bin.awk.format import plan_format, sprintf
from belljar.bin.awk.operators import COMPARISONS, LARGE
from belljar.bin.awk.scope import NUM, STR, Frame, StringCode
from belljar.bin.awk.values import UNINIT, Array, Value, to_number
from belljar.bin.awk.walk import walk

BREAK, CONTINUE, NEXT, RETURN = 1, 2, 3, 4
"""The signals."""

Code = Callable[[Frame], int | None]

BATCH = 512
"""Loop turns are charged in batches of this many."""


def _field_place(node: n.Expr) -> int:
    """The place of a field given by a constant, else -1."""
    if isinstance(node, n.Field) and isinstance(node.index, n.Num) and 1 <= node.index.value < 1e9:
        return int(node.index.value) - 1
    return -1


_CHANGING = (n.Call, n.IndirectCall, n.Assign, n.AugAssign, n.Incr, n.Getline, n.Builtin)
"""What may change a variable, or be anything else than a look at the state, while an expression is evaluated."""


def _names(node: n.Expr, name: str) -> bool:
    return isinstance(node, n.Var) and node.name == name


def nothing(_frame: Frame) -> int | None:
    return None


class Statements(Builtins):
    """Statements to closures."""

    def statement(self, node: n.Statement) -> Code:
        method = getattr(self, "stmt_" + type(node).__name__.lower())
        code: Code = method(node)
        return code

    def stmt_block(self, node: n.Block) -> Code:
        return self.sequence([self.statement(item) for item in node.statements])

    def sequence(self, codes: list[Code]) -> Code:
        if not codes:
            return nothing
        if len(codes) == 1:
            return codes[0]
        if len(codes) == 2:
            first, second = codes

            def both(frame: Frame) -> int | None:
                signal = first(frame)
                return second(frame) if signal is None else signal

            return both
        every = tuple(codes)

        def run(frame: Frame) -> int | None:
            for code in every:
                signal = code(frame)
                if signal is not None:
                    return signal
            return None

        return run

    def stmt_exprstatement(self, node: n.ExprStatement) -> Code:
        expression = node.expression
        code = self.effect(expression)
        if code is not None:
            return code
        value = self.value(expression)

        def evaluate(frame: Frame) -> None:
            value(frame)

        return evaluate

    def effect(self, node: n.Expr) -> Code | None:
        """Code for the commonest expressions whose value nobody wants."""
        if isinstance(node, n.Incr):
            target, delta = node.target, node.delta
            if isinstance(target, n.Index) and (array := self.constant_array(target.array)) is not None:
                key = self.subscript_key(target.subscripts)

                def step_element(frame: Frame) -> None:
                    subscript = key(frame)
                    try:
                        array[subscript] += delta  # type: ignore[operator]
                    except (KeyError, TypeError):
                        array[subscript] = to_number(array.get(subscript, UNINIT)) + delta

                return step_element
            if isinstance(target, n.Var) and self._plain_global(target.name):
                cell = self.runtime.cell(target.name)

                def step(_frame: Frame) -> None:
                    value = cell[0]
                    cell[0] = (value if type(value) is float else to_number(value)) + delta

                return step
        if isinstance(node, n.Assign) and (appended := self._append(node)) is not None:
            return appended
        if isinstance(node, n.Assign) and isinstance(node.target, n.Var) and self._plain_global(node.target.name):
            cell = self.runtime.cell(node.target.name)
            kind = self.kind(node.value)
            code = (
                self.num(node.value)
                if kind == NUM
                else self.string(node.value)
                if kind == STR
                else self.value(node.value)
            )

            def assign(frame: Frame) -> None:
                cell[0] = code(frame)

            return assign
        if isinstance(node, n.AugAssign) and node.operator == "+" and self.global_cell(node.target) is not None:
            return self._add_to_global(node)
        return None

    def _add_to_global(self, node: n.AugAssign) -> Code:
        assert isinstance(node.target, n.Var)
        cell = self.runtime.cell(node.target.name)
        place = _field_place(node.value)
        if place >= 0:
            return self._add_field(cell, place)
        amount = self.num(node.value)

        def add(frame: Frame) -> None:
            more = amount(frame)
            value = cell[0]
            cell[0] = (value if type(value) is float else to_number(value)) + more

        return add

    def _append(self, node: n.Assign) -> Code | None:
        """`text = text more`: grown in place, else building a long text would take quadratic time."""
        target, value = node.target, node.value
        while isinstance(value, n.Group):
            value = value.inner
        if not (isinstance(target, n.Var) and isinstance(value, n.Concat) and _names(value.parts[0], target.name)):
            return None
        if any(isinstance(part, _CHANGING) for part in walk(value.parts[1:])):
            return None
        rest = value.parts[1:]
        more = self.string(rest[0]) if len(rest) == 1 else self.string(n.Concat(rest))
        where = self.variable_place(target)
        if where is None:
            return None
        cell, index = where
        convert, charge_size, charge = self.conversion.string, self.runtime.charge_size, self.runtime.charge

        def append(frame: Frame) -> None:
            added = more(frame)
            place = frame if cell is None else cell
            held = place[index]
            text = held if type(held) is str else convert(held)
            # The only reference to the text must be ours for it to grow in place.
            place[index] = held = ""
            text += added
            place[index] = text
            if len(text) > LARGE:
                charge_size(len(text))
                charge(len(added) >> 10)

        return append

    def variable_place(self, node: n.Expr) -> tuple[list[Value] | None, int] | None:
        """Where a plain variable is held: its cell, or (None) the frame, and the index there."""
        if not isinstance(node, n.Var) or self.is_array(node.name):
            return None
        if node.name in self.locals:
            return None, self.locals[node.name]
        cell = self.global_cell(node)
        return None if cell is None else (cell, 0)

    def _add_field(self, cell: list[Value], place: int) -> Code:
        """`total += $2`: the sum of a column."""
        record = self.record

        def add(_frame: Frame) -> None:
            fields = record.fields
            if fields is None:
                fields = record.split()
            total = cell[0]
            if type(total) is not float:
                total = to_number(total)
            try:
                text = fields[place]
                number = float(text)  # type: ignore[arg-type]
                if number - number != 0.0 or not text.isascii() or "_" in text:  # type: ignore[union-attr, operator]
                    number = to_number(text)
            except IndexError:
                number = 0.0
            except (AttributeError, TypeError, ValueError):
                number = to_number(fields[place])
            cell[0] = total + number

        return add

    # -- branches and loops -------------------------------------------------------------------------------------

    def stmt_if(self, node: n.If) -> Code:
        test = self.test(node.test)
        yes = self.statement(node.yes)
        if node.no is None:

            def branch(frame: Frame) -> int | None:
                return yes(frame) if test(frame) else None

            return branch
        no = self.statement(node.no)

        def choose(frame: Frame) -> int | None:
            return yes(frame) if test(frame) else no(frame)

        return choose

    def stmt_while(self, node: n.While) -> Code:
        return self._loop(self.test(node.test), self.statement(node.body), None)

    def _loop(self, test: Callable[[Frame], object] | None, body: Code, step: Code | None) -> Code:
        charge = self.runtime.charge
        check = test if test is not None else (lambda frame: True)

        def loop(frame: Frame) -> int | None:
            turns = 0
            while check(frame):
                turns += 1
                if turns >= BATCH:
                    charge(turns)
                    turns = 0
                signal = body(frame)
                if signal is not None and signal != CONTINUE:
                    if signal == BREAK:
                        break
                    return signal
            charge(turns)
            return None

        if step is None:
            return loop
        advance = step

        def loop_with_step(frame: Frame) -> int | None:
            turns = 0
            while check(frame):
                turns += 1
                if turns >= BATCH:
                    charge(turns)
                    turns = 0
                signal = body(frame)
                if signal is not None and signal != CONTINUE:
                    if signal == BREAK:
                        break
                    return signal
                advance(frame)
            charge(turns)
            return None

        return loop_with_step

    def stmt_do(self, node: n.Do) -> Code:
        body = self.statement(node.body)
        test = self.test(node.test)
        charge = self.runtime.charge

        def loop(frame: Frame) -> int | None:
            while True:
                charge(1)
                signal = body(frame)
                if signal is not None and signal != CONTINUE:
                    return None if signal == BREAK else signal
                if not test(frame):
                    return None

        return loop

    def stmt_for(self, node: n.For) -> Code:
        counted = self._counted_fields(node) or self._counted(node)
        start = nothing if node.start is None else self.statement(node.start)
        step = None if node.step is None else self.statement(node.step)
        loop = counted or self._loop(
            None if node.test is None else self.test(node.test), self.statement(node.body), step
        )
        if node.start is None:
            return loop

        def run(frame: Frame) -> int | None:
            start(frame)
            return loop(frame)

        return run

    def _counted(self, node: n.For) -> Code | None:
        """`for (...; i < n; i++)` with a variable or a constant for n: test and step without calls."""
        test, step = node.test, node.step
        if not (isinstance(test, n.Compare) and test.operator in ("<", "<=", ">", ">=")):
            return None
        if not (isinstance(step, n.ExprStatement) and isinstance(step.expression, n.Incr)):
            return None
        counter = self.variable_place(test.left)
        constant = isinstance(test.right, n.Num)
        limit = ([test.right.value], 0) if isinstance(test.right, n.Num) else self.variable_place(test.right)
        if counter is None or limit is None or self.variable_place(step.expression.target) != counter:
            return None
        if self.runtime.cases_matter and not constant:
            return None
        cell, index = counter
        limit_cell, limit_index = limit
        delta = step.expression.delta
        below, within = test.operator == "<", test.operator == "<="
        body = self.statement(node.body)
        charge, slow, compare = self.runtime.charge, self.compare_values, COMPARISONS[test.operator]

        def loop(frame: Frame) -> int | None:
            turns = 0
            place = frame if cell is None else cell
            bounds = frame if limit_cell is None else limit_cell
            while True:
                value = place[index]
                bound = bounds[limit_index]
                if type(value) is float and type(bound) is float:
                    if not (value < bound if below else value <= bound if within else compare(value, bound)):
                        break
                elif not slow(compare, value, bound):
                    break
                turns += 1
                if turns >= BATCH:
                    charge(turns)
                    turns = 0
                signal = body(frame)
                if signal is not None and signal != CONTINUE:
                    if signal == BREAK:
                        break
                    return signal
                value = place[index]
                place[index] = (value if type(value) is float else to_number(value)) + delta
            charge(turns)
            return None

        return loop

    def _counted_fields(self, node: n.For) -> Code | None:
        """`for (i = ...; i <= NF; i++)` over a body that changes neither i nor the record: count in Python."""
        test, step = node.test, node.step
        if not (isinstance(test, n.Compare) and test.operator in ("<=", "<") and isinstance(test.left, n.Var)):
            return None
        name = test.left.name
        if not (isinstance(test.right, n.Var) and test.right.name == "NF" and "NF" not in self.locals):
            return None
        if not (isinstance(step, n.ExprStatement) and isinstance(step.expression, n.Incr)):
            return None
        if not (isinstance(step.expression.target, n.Var) and step.expression.target.name == name):
            return None
        if step.expression.delta != 1.0 or name in self.walking or not self._leaves_alone(node.body, name):
            return None
        if name in self.locals:
            if self.is_array(name):
                return None
            index = self.locals[name]
        elif self._plain_global(name):
            index = -1
        else:
            return None
        cell: list[Value] = [] if index >= 0 else self.runtime.cell(name)
        counting = self._counted_array(node.body, name)
        holder: list[Value] = [""]
        self.walking[name] = holder
        try:
            body = self.statement(node.body)
        finally:
            del self.walking[name]
        charge, record, convert = self.runtime.charge, self.record, self.conversion.string
        last = 0 if test.operator == "<=" else -1

        def count(frame: Frame) -> int | None:
            place = frame if index >= 0 else cell
            where = index if index >= 0 else 0
            first = to_number(place[where])
            fields = record.fields
            if fields is None:
                fields = record.split()
            end = len(fields) + last
            if not 1.0 <= first <= end or first != int(first):
                return general(frame)
            charge(end - int(first) + 1)
            walked = fields if first == 1.0 and not last else fields[int(first) - 1 : end]
            if counting is not None:
                for value in walked:
                    try:
                        counting[value] += 1.0  # type: ignore[index, operator]
                    except (KeyError, TypeError):
                        key = convert(value)
                        counting[key] = to_number(counting.get(key, UNINIT)) + 1.0
                place[where] = end + 1.0
                return None
            number = first
            for holder[0] in walked:
                place[where] = number
                signal = body(frame)
                if signal is not None and signal != CONTINUE:
                    return None if signal == BREAK else signal
                number += 1.0
            place[where] = number
            return None

        general = self._loop(self.test(test), self.statement(node.body), self.statement(step))
        return count

    def _counted_array(self, body: n.Statement, name: str) -> Array | None:
        """The array of a body that only says `array[$i]++`."""
        while isinstance(body, n.Block) and len(body.statements) == 1:
            body = body.statements[0]
        if not (isinstance(body, n.ExprStatement) and isinstance(body.expression, n.Incr)):
            return None
        target = body.expression.target
        if body.expression.delta != 1.0 or not isinstance(target, n.Index) or len(target.subscripts) != 1:
            return None
        key = target.subscripts[0]
        if not (isinstance(key, n.Field) and isinstance(key.index, n.Var) and key.index.name == name):
            return None
        return self.constant_array(target.array)

    def _leaves_alone(self, body: n.Statement, name: str) -> bool:
        for node in walk(body):
            if isinstance(node, (n.Call, n.IndirectCall, n.Getline)):
                return False
            if isinstance(node, (n.Assign, n.AugAssign, n.Incr, n.ForIn)):
                target = node.target
                if isinstance(target, n.Field) or (isinstance(target, n.Var) and target.name in (name, "NF", "FS")):
                    return False
            if isinstance(node, n.Builtin) and node.name in ("sub", "gsub", "split", "match", "asort", "asorti"):
                return False
        return True

    def stmt_forin(self, node: n.ForIn) -> Code:
        array = self.array(node.array)
        store = self.store(node.target)
        body = self.statement(node.body)
        runtime = self.runtime
        line = node.line

        def loop(frame: Frame) -> int | None:
            held = array(frame)
            keys = runtime.traversal(held, line)
            runtime.charge(len(keys))
            for key in keys:
                store(frame, key)
                signal = body(frame)
                if signal is not None and signal != CONTINUE:
                    return None if signal == BREAK else signal
            return None

        return loop

    def stmt_switch(self, node: n.Switch) -> Code:
        subject = self.value(node.subject)
        bodies = [self.sequence([self.statement(item) for item in case.body]) for case in node.cases]
        tests = [self._case_test(case.value) for case in node.cases]
        default = next((index for index, case in enumerate(node.cases) if case.value is None), -1)

        def select(frame: Frame) -> int | None:
            value = subject(frame)
            chosen = default
            for index, test in enumerate(tests):
                if test is not None and test(frame, value):
                    chosen = index
                    break
            if chosen < 0:
                return None
            for body in bodies[chosen:]:
                signal = body(frame)
                if signal is not None:
                    return None if signal == BREAK else signal
            return None

        return select

    def _case_test(self, value: n.Expr | None) -> Callable[[Frame, Value], object] | None:
        if value is None:
            return None
        text = self.conversion.string
        if isinstance(value, (n.Regex, n.TypedRegex)):
            pattern = self.pattern(value, value.line)
            return lambda frame, subject: pattern(frame).test(text(subject))
        constant = self.value(value)
        compare, equal = self.compare_values, COMPARISONS["=="]
        return lambda frame, subject: compare(equal, subject, constant(frame))

    # -- transfers ----------------------------------------------------------------------------------------------

    def stmt_break(self, node: n.Break) -> Code:
        return lambda frame: BREAK

    def stmt_continue(self, node: n.Continue) -> Code:
        return lambda frame: CONTINUE

    def stmt_next(self, node: n.Next) -> Code:
        if self.function is None:
            return lambda frame: NEXT
        runtime = self.runtime
        line = node.line

        def leave(_frame: Frame) -> int | None:
            if runtime.section:
                raise AwkFatal(f"`next' cannot be called from a `{runtime.section}' rule", line)
            raise NextRecord

        return leave

    def stmt_nextfile(self, node: n.NextFile) -> Code:
        runtime = self.runtime
        line = node.line

        def leave(_frame: Frame) -> int | None:
            if runtime.section in ("BEGIN", "END"):
                raise AwkFatal(f"`nextfile' cannot be called from a `{runtime.section}' rule", line)
            raise NextFile

        return leave

    def stmt_exit(self, node: n.Exit) -> Code:
        runtime = self.runtime
        status = None if node.status is None else self.num(node.status)

        def leave(frame: Frame) -> int | None:
            if status is not None:
                code = status(frame)
                runtime.exit_status = int(code) & 0xFF if code - code == 0.0 else 1
            raise ExitProgram

        return leave

    def stmt_return(self, node: n.Return) -> Code:
        if node.value is None:
            return lambda frame: RETURN
        value = self.value(node.value)

        def leave(frame: Frame) -> int:
            frame[-1] = value(frame)
            return RETURN

        return leave

    def stmt_delete(self, node: n.Delete) -> Code:
        array = self.array(node.array)
        if node.subscripts is None:

            def clear(frame: Frame) -> None:
                array(frame).clear()

            return clear
        key = self.subscript_key(node.subscripts)

        def remove(frame: Frame) -> None:
            array(frame).pop(key(frame), None)

        return remove

    # -- output -------------------------------------------------------------------------------------------------

    def stmt_print(self, node: n.Print) -> Code:
        text = self._formatted(node) if node.formatted else self._printed(node)
        runtime = self.runtime
        if node.redirect == "":
            write = runtime.streams.stdout.write
            return lambda frame: write(text(frame))
        assert node.destination is not None
        destination = self.string(node.destination)
        redirect, line = node.redirect, node.line
        streams = runtime.streams

        def send(frame: Frame) -> None:
            data = text(frame)
            streams.output(redirect, destination(frame), line).write(data)

        return send

    def _printed(self, node: n.Print) -> StringCode:
        separators = self.runtime.separators
        if not node.arguments:
            record = self.record

            def whole(_frame: Frame) -> str:
                text = record.text
                if text is None:
                    text = record.rebuild()
                return text + separators.ors

            return whole
        parts = [self._output_text(argument) for argument in node.arguments]
        places = [_field_place(argument) for argument in node.arguments]
        if len(parts) > 1 and all(place >= 0 for place in places):
            return self._printed_fields(places, parts)
        if len(parts) == 1:
            only = parts[0]
            return lambda frame: only(frame) + separators.ors
        if len(parts) == 2:
            first, second = parts
            return lambda frame: f"{first(frame)}{separators.ofs}{second(frame)}{separators.ors}"
        return lambda frame: separators.ofs.join([part(frame) for part in parts]) + separators.ors

    def _printed_fields(self, places: list[int], parts: list[StringCode]) -> StringCode:
        """`print $1, $3`: taken from the record at once, unless one is missing or not plain text."""
        separators, record = self.runtime.separators, self.record
        wanted = itemgetter(*places)

        def fields_text(frame: Frame) -> str:
            fields = record.fields
            if fields is None:
                fields = record.split()
            try:
                return separators.ofs.join(wanted(fields)) + separators.ors
            except (IndexError, TypeError):
                return separators.ofs.join([part(frame) for part in parts]) + separators.ors

        return fields_text

    def _output_text(self, node: n.Expr) -> StringCode:
        """A value as print shows it: numbers by OFMT."""
        kind, code = self.compile(node, "print")
        if kind == STR:
            return code
        if kind == "test":
            return lambda frame: "1" if code(frame) else "0"
        separators = self.runtime.separators
        slow = self.conversion.slow
        get = self.conversion.cache.get
        string = self.conversion.string

        def shown(frame: Frame) -> str:
            value = code(frame)
            if type(value) is str:
                return value
            if type(value) is float:
                return get(value) or slow(value, separators.ofmt)
            return string(value)

        return shown

    def _formatted(self, node: n.Print) -> StringCode:
        return self.format_code(node.arguments, node.line)

    def format_code(self, arguments: list[n.Expr], line: int) -> StringCode:
        """sprintf() and printf: the format first, then the values."""
        if not arguments:

            def nothing_to_print(_frame: Frame) -> str:
                raise AwkFatal("printf: no arguments", line)

            return nothing_to_print
        if isinstance(arguments[0], n.Str):
            quick = self._constant_format(arguments[0].value, arguments[1:], line)
            if quick is not None:
                return quick
        form = self.string(arguments[0])
        values = [self.value(argument) for argument in arguments[1:]]
        conversion = self.conversion
        charge_size = self.runtime.charge_size
        if len(values) == 1:
            single = values[0]
            return lambda frame: sprintf(form(frame), [single(frame)], conversion, line, charge_size)

        def formatted(frame: Frame) -> str:
            text = form(frame)
            return sprintf(text, [value(frame) for value in values], conversion, line, charge_size)

        return formatted

    def _constant_format(self, form: str, arguments: list[n.Expr], line: int) -> StringCode | None:
        """A format known now whose conversions Python's % has too; None when it needs the general way."""
        plan = plan_format(form)
        if plan is None or len(plan.kinds) != len(arguments):
            return None
        template = plan.template
        codes = [
            self.string(argument) if kind == "s" else self.num(argument)
            for kind, argument in zip(plan.kinds, arguments, strict=True)
        ]
        conversion, charge_size = self.conversion, self.runtime.charge_size
        if not codes:
            literal = template % ()
            return lambda frame: literal
        whole = [place for place, kind in enumerate(plan.kinds) if kind == "d"]
        floats = [place for place, kind in enumerate(plan.kinds) if kind == "f"]

        def formatted(frame: Frame) -> str:
            values: list[Any] = [code(frame) for code in codes]
            raw = values
            try:
                if whole:
                    raw = values.copy()
                    for place in whole:
                        values[place] = int(values[place])
                for place in floats:
                    if values[place] - values[place] != 0.0:
                        raise OverflowError
                return template % tuple(values)
            except (OverflowError, ValueError):
                return sprintf(form, raw, conversion, line, charge_size)

        return formatted
