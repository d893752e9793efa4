"""`[[ ]]` under `set -x`: the same tests, each shown with its expanded operands before it is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from belljar.abi.paths import fsencode
from belljar.shell.compile.arith_source import compile_arith_source
from belljar.shell.compile.arith_values import evaluate
from belljar.shell.compile.conditionals import COMPARE, compile_regex, unary_test
from belljar.shell.compile.words import compile_pattern_text, compile_scalar
from belljar.shell.expand.operators import matches
from belljar.shell.filetest import compare_files
from belljar.shell.nodes import CondAnd, CondBinary, CondGroup, CondNode, CondNot, CondOr, CondUnary
from belljar.shell.regexes import match_regex

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

Test: TypeAlias = "Callable[[Shell], bool]"


def compile_traced(node: CondNode, mark: str = "") -> Test:
    match node:
        case CondGroup(operand):
            return compile_traced(operand, mark)
        case CondNot(operand):
            negated = compile_traced(operand, "! ")
            return lambda shell: not negated(shell)
        case CondAnd(operands):
            every = [compile_traced(operand, mark) for operand in operands]
            return lambda shell: all(operand(shell) for operand in every)
        case CondOr(operands):
            some = [compile_traced(operand, mark) for operand in operands]
            return lambda shell: any(operand(shell) for operand in some)
        case CondUnary(op, word):
            text = compile_arith_source(word.parts) if op == "-v" else compile_scalar(word)
            test = unary_test(op)

            def unary(shell: Shell) -> bool:
                value = text(shell)
                shown = value or "''"
                shell.trace(f"[[ {mark}{op} {shown} ]]")
                return test(shell, value)

            return unary
        case CondBinary():
            return _compile_binary(node, mark)


def _compile_binary(node: CondBinary, mark: str) -> Test:
    op = node.op
    left = compile_scalar(node.left)
    is_match = op in ("=", "==", "!=")
    if op == "=~":
        right = compile_regex(node.right)
    else:
        right = compile_pattern_text(node.right) if is_match else compile_scalar(node.right)

    def binary(shell: Shell) -> bool:
        first, second = left(shell), right(shell)
        left_shown, right_shown = first or "''", second or "''"
        shell.trace(f"[[ {mark}{left_shown} {op} {right_shown} ]]")
        if is_match:
            return matches(shell, first, second) != (op == "!=")
        if op == "=~":
            return match_regex(shell, first, second)
        if op in COMPARE:
            return COMPARE[op](evaluate(shell, first), evaluate(shell, second))
        if op == "<":
            return fsencode(first) < fsencode(second)
        if op == ">":
            return fsencode(first) > fsencode(second)
        return compare_files(shell.process, first, op, second)

    return binary
