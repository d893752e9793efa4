"""`(( ))` and `[[ ]]` as commands, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from belljar.shell.compile.arith import compile_arith, compile_test
from belljar.shell.compile.arith_shape import cannot_fail, expanded_subscripts, substitutions_of
from belljar.shell.compile.arith_source import compile_arith_source
from belljar.shell.compile.conditionals import compile_conditional
from belljar.shell.compile.traced import compile_traced
from belljar.shell.control import ArithError, ReadonlyError, ShellError
from belljar.shell.nodes import Arith, ArithCommand, Conditional

if TYPE_CHECKING:
    from belljar.shell.processes import Run
    from belljar.shell.shell import Shell


def compile_arith_command(node: ArithCommand, *, checks: bool) -> Run:
    expr, line = node.arith.expr, node.line
    value: Callable[[Shell], int | bool]
    tree = compile_arith(node.arith)
    value = compile_test(expr) if expr is not None and is_exact(node.arith) else tree
    shown = compile_arith_source(node.arith.source.parts)

    def run(shell: Shell) -> int:
        budget = shell.budget
        budget.steps += 1
        if budget.steps >= budget.checkpoint:
            budget.check()
        shell.line = line
        if shell.attention:
            if shell.before(node):
                return 0
            if shell.xtrace:
                shell.trace(f"(( {shown(shell)} ))")
        try:
            shell.status = status = 0 if value(shell) else 1
        except ArithError as error:
            shell.error(f"((: {error}")
            shell.status = status = 1
        except ReadonlyError as error:
            shell.error(str(error))
            shell.status = status = 1
        except ShellError as error:
            shell.abandon(error)
        shell.pipestatus = None
        if status and checks and shell.watching:
            shell.failed(status, node)
        return status

    return run


def is_exact(arith: Arith) -> bool:
    """Whether the tree alone may be evaluated: nothing to substitute, no error that must show the expression."""
    expr = arith.expr
    return expr is not None and not substitutions_of(expr) and not expanded_subscripts(expr) and cannot_fail(expr)


def compile_conditional_command(node: Conditional, *, checks: bool) -> Run:
    test, line = compile_conditional(node.expr), node.line

    def run(shell: Shell) -> int:
        budget = shell.budget
        budget.steps += 1
        if budget.steps >= budget.checkpoint:
            budget.check()
        shell.line = line
        if shell.attention and shell.before(node):
            return 0
        try:
            holds = compile_traced(node.expr)(shell) if shell.xtrace else test(shell)
            shell.status = status = 0 if holds else 1
        except ArithError as error:
            shell.error(f"[[: {error}")
            shell.status = status = 1
        except ShellError as error:
            if str(error):
                shell.abandon(error)
            shell.status = status = error.status
        shell.pipestatus = None
        if status and checks and shell.watching:
            shell.failed(status, node)
        return status

    return run
