"""Compiles loops. What makes the turns of a loop is a generator of its own; what a turn may end in is here once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from belljar.bin.awk import nodes as n
from belljar.bin.awk.comparison import COMPARISONS
from belljar.bin.awk.lvalues import array_code, store_code
from belljar.bin.awk.scope import BATCH, BREAK, CONTINUE, Code, Frame, Scope
from belljar.bin.awk.values import UNINIT, Array, Value, to_number
from belljar.bin.awk.walk import walk

Turns = Callable[[Frame], Iterator[None]]
"""Yields for every turn of a loop; what is done after that is the loop's step."""


def loop_code(scope: Scope, turns: Turns, body: Code) -> Code:
    """Run `body` in each turn, charging for them."""
    charge = scope.runtime.charge

    def loop(frame: Frame) -> object:
        count = 0
        for _ in turns(frame):
            count += 1
            if count >= BATCH:
                charge(count)
                count = 0
            signal = body(frame)
            if signal.__class__ is int and signal != CONTINUE:
                if signal == BREAK:
                    break
                return signal
        charge(count)
        return None

    return loop


def while_loop(scope: Scope, node: n.While | n.Do) -> Code:
    test, at_once = scope.test(node.test), isinstance(node, n.Do)

    def turns(frame: Frame) -> Iterator[None]:
        if at_once:
            yield
        while test(frame):
            yield

    return loop_code(scope, turns, scope.statement(node.body))


def for_loop(scope: Scope, node: n.For) -> Code:
    return _walk_fields(scope, node) or loop_code(
        scope, _counted(scope, node) or _general(scope, node), scope.statement(node.body)
    )


def for_in_loop(scope: Scope, node: n.ForIn) -> Code:
    array, store = array_code(scope, node.array), store_code(scope, node.target)
    traversal, line = scope.runtime.traversal, node.line

    def turns(frame: Frame) -> Iterator[None]:
        for key in traversal(array(frame), line):
            store(frame, key)
            yield

    return loop_code(scope, turns, scope.statement(node.body))


def _general(scope: Scope, node: n.For) -> Turns:
    test = scope.test(node.test) if node.test is not None else (lambda frame: True)
    step = scope.statement(node.step) if node.step is not None else (lambda frame: None)

    def turns(frame: Frame) -> Iterator[None]:
        while test(frame):
            yield
            step(frame)

    return turns


def _counted(scope: Scope, node: n.For) -> Turns | None:
    """`for (...; i < n; i++)` with a variable or a constant for n: test and step without calls."""
    test, step = node.test, node.step
    if not (isinstance(test, n.Compare) and test.operator in ("<", "<=", ">", ">=")):
        return None
    if not (isinstance(step, n.ExprStatement) and isinstance(step.expression, n.Incr)):
        return None
    counter = scope.variable_place(test.left)
    limit = ([test.right.value], 0) if isinstance(test.right, n.Num) else scope.variable_place(test.right)
    if counter is None or limit is None or scope.variable_place(step.expression.target) != counter:
        return None
    if scope.runtime.cases_matter and not isinstance(test.right, n.Num):
        return None
    cell, index = counter
    limit_cell, limit_index = limit
    delta = step.expression.delta
    below, within = test.operator == "<", test.operator == "<="
    slow, compare = scope.runtime.compare, COMPARISONS[test.operator]

    def turns(frame: Frame) -> Iterator[None]:
        place = frame if cell is None else cell
        bounds = frame if limit_cell is None else limit_cell
        while True:
            value = place[index]
            bound = bounds[limit_index]
            if type(value) is float and type(bound) is float:
                if not (value < bound if below else value <= bound if within else compare(value, bound)):
                    return
            elif not slow(compare, value, bound):
                return
            yield
            value = place[index]
            place[index] = (value if type(value) is float else to_number(value)) + delta

    return turns


def _walk_fields(scope: Scope, node: n.For) -> Code | None:
    """`for (i = ...; i <= NF; i++)` over a body that changes neither i nor the record: $i is held by the loop."""
    test, step = node.test, node.step
    if not (isinstance(test, n.Compare) and test.operator in ("<=", "<") and isinstance(test.left, n.Var)):
        return None
    if not (isinstance(step, n.ExprStatement) and isinstance(step.expression, n.Incr)):
        return None
    name, counter = test.left.name, scope.variable_place(test.left)
    if counter is None or n.named(test.right) != "NF" or "NF" in scope.locals or name in scope.walking:
        return None
    if n.named(step.expression.target) != name or step.expression.delta != 1.0 or not _leaves_alone(node.body, name):
        return None
    cell, index = counter
    general = loop_code(scope, _general(scope, node), scope.statement(node.body))
    counting = _counted_array(scope, node.body, name)
    holder: list[Value] = [""]
    scope.walking[name] = holder
    try:
        body = scope.statement(node.body)
    finally:
        del scope.walking[name]
    charge, record, convert = scope.runtime.charge, scope.record, scope.conversion.string
    last = 0 if test.operator == "<=" else -1

    def turns(frame: Frame) -> Iterator[None]:
        place = frame if cell is None else cell
        number = to_number(place[index])
        assert record.fields is not None
        for holder[0] in record.fields[int(number) - 1 : len(record.fields) + last]:
            place[index] = number
            yield
            number += 1.0
        place[index] = number

    walk_body = loop_code(scope, turns, body)

    def choose(frame: Frame) -> object:
        place = frame if cell is None else cell
        first = to_number(place[index])
        fields = record.fields
        if fields is None:
            fields = record.split()
        end = len(fields) + last
        if not 1.0 <= first <= end or first != int(first):
            return general(frame)
        if counting is None:
            return walk_body(frame)
        charge(end - int(first) + 1)
        for value in fields if first == 1.0 and not last else fields[int(first) - 1 : end]:
            try:
                counting[value] += 1.0  # type: ignore[index, operator]
            except (KeyError, TypeError):
                key = convert(value)
                counting[key] = to_number(counting.get(key, UNINIT)) + 1.0
        place[index] = end + 1.0
        return None

    return choose


def _counted_array(scope: Scope, body: n.Statement, name: str) -> Array | None:
    """The array of a body that only says `array[$i]++`."""
    while isinstance(body, n.Block) and len(body.statements) == 1:
        body = body.statements[0]
    if not (isinstance(body, n.ExprStatement) and isinstance(body.expression, n.Incr)):
        return None
    target = body.expression.target
    if body.expression.delta != 1.0 or not isinstance(target, n.Index) or len(target.subscripts) != 1:
        return None
    key = target.subscripts[0]
    return scope.global_array(target.array) if isinstance(key, n.Field) and n.named(key.index) == name else None


def _leaves_alone(body: n.Statement, name: str) -> bool:
    for node in walk(body):
        if isinstance(node, (n.Call, n.IndirectCall, n.Getline)):
            return False
        if isinstance(node, (n.Assign, n.AugAssign, n.Incr, n.ForIn)):
            target = node.target
            if isinstance(target, n.Field) or n.named(target) in (name, "NF", "FS"):
                return False
        if isinstance(node, n.Builtin) and node.name in ("sub", "gsub", "split", "match", "asort", "asorti"):
            return False
    return True
