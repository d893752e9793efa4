"""Compiles awk's statements."""

from __future__ import annotations

from collections.abc import Callable

from belljar.bin.awk import nodes as n
from belljar.bin.awk.comparison import COMPARISONS
from belljar.bin.awk.errors import AwkFatal, ExitProgram, NextFile, NextRecord
from belljar.bin.awk.scope import BATCH, BREAK, CONTINUE, NEXT, RETURN, Code, Frame
from belljar.bin.awk.shapes import Shapes
from belljar.bin.awk.values import Value


def nothing(_frame: Frame) -> int | None:
    return None


class Statements(Shapes):
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
        return self.loop(self.test(node.test), self.statement(node.body), None)

    def loop(self, test: Callable[[Frame], object] | None, body: Code, step: Code | None) -> Code:
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
        loop = counted or self.loop(
            None if node.test is None else self.test(node.test), self.statement(node.body), step
        )
        if node.start is None:
            return loop

        def run(frame: Frame) -> int | None:
            start(frame)
            return loop(frame)

        return run

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
