"""Compiles a whole awk program: its functions and rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from belljar.bin.awk import builtins, calls, comparison, lvalues, operators, statements
from belljar.bin.awk import nodes as n
from belljar.bin.awk.lexer import BUILTINS
from belljar.bin.awk.runtime import Runtime
from belljar.bin.awk.scope import Code, Frame, Scope, UserFunction
from belljar.bin.awk.statements import sequence_code
from belljar.bin.awk.values import UNINIT
from belljar.bin.awk.walk import Names, walk

EXPRESSIONS = {
    **lvalues.EXPRESSIONS,
    **comparison.EXPRESSIONS,
    **operators.EXPRESSIONS,
    **builtins.EXPRESSIONS,
    **calls.EXPRESSIONS,
}


class Program(NamedTuple):
    """A compiled program; its BEGINFILE and ENDFILE rules are the input's hooks."""

    begin: list[Code]
    main: Code | None
    """All rules as one piece of code to run for every record."""
    end: list[Code]
    counts: bool
    """Whether somebody looks at NR, so that each record must be counted as it is read."""
    eager: bool
    """Whether every record will be split."""
    names: Names


def compile_program(tree: n.Program, runtime: Runtime, ignores_case: bool) -> Program:
    """Compile every part of a program. `ignores_case`: IGNORECASE is assigned outside of it."""
    scope = Scope(tree, runtime, EXPRESSIONS, statements.STATEMENTS)
    runtime.cases_matter = ignores_case or "IGNORECASE" in scope.names.mentioned
    for name, function in tree.functions.items():
        scope.functions[name] = runtime.functions[name] = UserFunction(function.parameters)
    runtime.array("FUNCTAB").update((name, name) for name in (*BUILTINS, *tree.functions))
    for name, function in tree.functions.items():
        scope.function = function
        scope.locals = {parameter: index for index, parameter in enumerate(function.parameters)}
        scope.functions[name].code = scope.statement(function.body)
    scope.function, scope.locals = None, {}
    begin = [scope.statement(block) for block in tree.begin]
    rules = [_rule(scope, rule) for rule in tree.rules]
    end = [scope.statement(block) for block in tree.end]
    runtime.input.begin_file = _hook(scope, tree.begin_file, "BEGINFILE")
    runtime.input.end_file = _hook(scope, tree.end_file, "ENDFILE")
    return Program(begin, sequence_code(rules) if rules else None, end, *_survey(tree), scope.names)


def _hook(scope: Scope, blocks: list[n.Block], section: str) -> Callable[[], None] | None:
    if not blocks:
        return None
    code, runtime = sequence_code([scope.statement(block) for block in blocks]), scope.runtime

    def run() -> None:
        before, runtime.section = runtime.section, section
        code([UNINIT])
        runtime.section = before

    return run


def _rule(scope: Scope, rule: n.Rule) -> Code:
    body = scope.statement(rule.body if rule.body is not None else n.Print([], "", None, False, 0))
    if rule.pattern is None:
        return body
    test = scope.test(rule.pattern)
    if rule.end is None:
        return lambda frame: body(frame) if test(frame) else None
    end = scope.test(rule.end)
    inside = False

    def run_range(frame: Frame) -> object:
        nonlocal inside
        if not inside:
            if not test(frame):
                return None
            inside = True
        if end(frame):
            inside = False
        return body(frame)

    return run_range


def _survey(tree: n.Program) -> tuple[bool, bool]:
    """Whether records must be counted one by one, and whether every one will be split."""
    found = list(walk([tree.rules, list(tree.functions.values()), tree.begin_file, tree.end_file]))
    names = {node.name for node in found if isinstance(node, n.Var)}
    counts = bool(names & {"NR", "FNR"}) or any(isinstance(node, n.Getline) for node in found)
    assigned = names & {"FS", "RS", "FPAT", "FIELDWIDTHS", "IGNORECASE"}
    return counts, not counts and not assigned and any(_always_splits(rule) for rule in tree.rules)


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
