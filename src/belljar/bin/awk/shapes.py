"""Compiles the commonest shapes of statements and loops to code that does them without the general way's calls."""

from __future__ import annotations

from collections.abc import Callable

from belljar.bin.awk import nodes as n
from belljar.bin.awk.comparison import COMPARISONS
from belljar.bin.awk.operators import LARGE
from belljar.bin.awk.printing import Printing, field_place
from belljar.bin.awk.scope import BATCH, BREAK, CONTINUE, NUM, STR, Code, Frame
from belljar.bin.awk.values import UNINIT, Array, Value, to_number
from belljar.bin.awk.walk import walk

_CHANGING = (n.Call, n.IndirectCall, n.Assign, n.AugAssign, n.Incr, n.Getline, n.Builtin)
"""What may change a variable, or be anything else than a look at the state, while an expression is evaluated."""


def _names(node: n.Expr, name: str) -> bool:
    return isinstance(node, n.Var) and node.name == name


class Shapes(Printing):
    """Each method gives code for what it recognises, else None."""

    def statement(self, node: n.Statement) -> Code:
        raise NotImplementedError

    def loop(self, test: Callable[[Frame], object] | None, body: Code, step: Code | None) -> Code:
        raise NotImplementedError

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
        place = field_place(node.value)
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

        general = self.loop(self.test(test), self.statement(node.body), self.statement(step))
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
