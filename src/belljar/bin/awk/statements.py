"""Compiles awk's statements."""

from __future__ import annotations

from collections.abc import Callable

from belljar.bin.awk import nodes as n
from belljar.bin.awk.comparison import COMPARISONS
from belljar.bin.awk.errors import AwkFatal, ExitProgram, NextFile, NextRecord
from belljar.bin.awk.loops import for_in_loop, for_loop, while_loop
from belljar.bin.awk.lvalues import array_code, key_code
from belljar.bin.awk.operators import LARGE, pattern_code
from belljar.bin.awk.printing import stmt_print
from belljar.bin.awk.scope import BREAK, CONTINUE, NEXT, RETURN, Code, Frame, Scope, StatementCompiler
from belljar.bin.awk.values import Value
from belljar.bin.awk.walk import walk

_CHANGING = (n.Call, n.IndirectCall, n.Assign, n.AugAssign, n.Incr, n.Getline, n.Builtin)
"""Expressions with side effects."""


def nothing(_frame: Frame) -> object:
    return None


def _stmt_block(scope: Scope, node: n.Block) -> Code:
    return sequence_code([scope.statement(item) for item in node.statements])


def sequence_code(codes: list[Code]) -> Code:
    if not codes:
        return nothing
    if len(codes) == 1:
        return codes[0]
    if len(codes) == 2:
        first, second = codes

        def both(frame: Frame) -> object:
            signal = first(frame)
            return signal if signal.__class__ is int else second(frame)

        return both
    every = tuple(codes)

    def run(frame: Frame) -> object:
        for code in every:
            signal = code(frame)
            if signal.__class__ is int:
                return signal
        return None

    return run


def _stmt_expression(scope: Scope, node: n.ExprStatement) -> Code:
    appended = _append(scope, node.expression) if isinstance(node.expression, n.Assign) else None
    return appended or scope.value(node.expression)


def _append(scope: Scope, node: n.Assign) -> Code | None:
    """`text = text more`: grown in place, else building a long text would take quadratic time."""
    target, value = node.target, n.ungroup(node.value)
    where = scope.variable_place(target)
    if where is None or not isinstance(value, n.Concat) or n.named(value.parts[0]) != n.named(target):
        return None
    rest = value.parts[1:]
    if any(isinstance(part, _CHANGING) for part in walk(rest)):
        return None
    more = scope.string(rest[0] if len(rest) == 1 else n.Concat(rest))
    cell, index = where
    convert, charge_size, charge = scope.conversion.string, scope.runtime.charge_size, scope.runtime.charge

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


# -- branches and loops -------------------------------------------------------------------------------------


def _stmt_if(scope: Scope, node: n.If) -> Code:
    test = scope.test(node.test)
    yes = scope.statement(node.yes)
    if node.no is None:

        def branch(frame: Frame) -> object:
            return yes(frame) if test(frame) else None

        return branch
    no = scope.statement(node.no)

    def choose(frame: Frame) -> object:
        return yes(frame) if test(frame) else no(frame)

    return choose


def _stmt_for(scope: Scope, node: n.For) -> Code:
    loop = for_loop(scope, node)
    return loop if node.start is None else sequence_code([scope.statement(node.start), loop])


def _stmt_switch(scope: Scope, node: n.Switch) -> Code:
    subject = scope.value(node.subject)
    bodies = [sequence_code([scope.statement(item) for item in case.body]) for case in node.cases]
    tests = [_case_test(scope, case.value) for case in node.cases]
    default = next((index for index, case in enumerate(node.cases) if case.value is None), -1)

    def select(frame: Frame) -> object:
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
            if signal.__class__ is int:
                return None if signal == BREAK else signal
        return None

    return select


def _case_test(scope: Scope, value: n.Expr | None) -> Callable[[Frame, Value], object] | None:
    if value is None:
        return None
    text = scope.conversion.string
    if isinstance(value, (n.Regex, n.TypedRegex)):
        pattern = pattern_code(scope, value, value.line)
        return lambda frame, subject: pattern(frame).test(text(subject))
    constant = scope.value(value)
    compare, equal = scope.runtime.compare, COMPARISONS["=="]
    return lambda frame, subject: compare(equal, subject, constant(frame))


# -- transfers ----------------------------------------------------------------------------------------------


def _stmt_break(scope: Scope, node: n.Break) -> Code:
    return lambda frame: BREAK


def _stmt_continue(scope: Scope, node: n.Continue) -> Code:
    return lambda frame: CONTINUE


def _stmt_next(scope: Scope, node: n.Next) -> Code:
    if scope.function is None:
        return lambda frame: NEXT
    runtime = scope.runtime
    line = node.line

    def leave(_frame: Frame) -> object:
        if runtime.section:
            raise AwkFatal(f"`next' cannot be called from a `{runtime.section}' rule", line)
        raise NextRecord

    return leave


def _stmt_nextfile(scope: Scope, node: n.NextFile) -> Code:
    runtime = scope.runtime
    line = node.line

    def leave(_frame: Frame) -> object:
        if runtime.section in ("BEGIN", "END"):
            raise AwkFatal(f"`nextfile' cannot be called from a `{runtime.section}' rule", line)
        raise NextFile

    return leave


def _stmt_exit(scope: Scope, node: n.Exit) -> Code:
    runtime = scope.runtime
    status = None if node.status is None else scope.num(node.status)

    def leave(frame: Frame) -> object:
        if status is not None:
            code = status(frame)
            runtime.exit_status = int(code) & 0xFF if code - code == 0.0 else 1
        raise ExitProgram

    return leave


def _stmt_return(scope: Scope, node: n.Return) -> Code:
    if node.value is None:
        return lambda frame: RETURN
    value = scope.value(node.value)

    def leave(frame: Frame) -> int:
        frame[-1] = value(frame)
        return RETURN

    return leave


def _stmt_delete(scope: Scope, node: n.Delete) -> Code:
    array = array_code(scope, node.array)
    if node.subscripts is None:

        def clear(frame: Frame) -> None:
            array(frame).clear()

        return clear
    key = key_code(scope, node.subscripts)

    def remove(frame: Frame) -> None:
        array(frame).pop(key(frame), None)

    return remove


STATEMENTS: dict[type, StatementCompiler] = {
    n.Block: _stmt_block,
    n.ExprStatement: _stmt_expression,
    n.If: _stmt_if,
    n.While: while_loop,
    n.Do: while_loop,
    n.For: _stmt_for,
    n.ForIn: for_in_loop,
    n.Switch: _stmt_switch,
    n.Break: _stmt_break,
    n.Continue: _stmt_continue,
    n.Next: _stmt_next,
    n.NextFile: _stmt_nextfile,
    n.Exit: _stmt_exit,
    n.Return: _stmt_return,
    n.Delete: _stmt_delete,
    n.Print: stmt_print,
}
