"""Loops compiled, their commands being so already."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from belljar.shell.compile.arith import compile_arith, compile_test
from belljar.shell.compile.arith_values import Number
from belljar.shell.compile.expressions import is_exact
from belljar.shell.compile.fields import compile_words
from belljar.shell.compile.words import compile_scalar
from belljar.shell.control import ArithError, Break, Continue, ExitShell, ShellError
from belljar.shell.nodes import Arith, ArithCommand, ArithFor, ArithNumber, For, While
from belljar.shell.print import print_word
from belljar.shell.variables import NAMEREF, READONLY, Var

if TYPE_CHECKING:
    from belljar.shell.processes import Run
    from belljar.shell.shell import Shell


def ends_loop(shell: Shell, jump: Break | Continue) -> bool:
    """A `break` or `continue` reached a loop: whether it ends it. One that is meant for an outer loop is passed on."""
    if jump.levels > 1 and shell.loops > 1:
        raise jump.outward()
    return isinstance(jump, Break)


def compile_while(node: While, condition: Run, body: Run) -> Run:
    until = node.until

    def run(shell: Shell) -> int:
        shell.loops += 1
        status = 0
        budget = shell.budget
        try:
            while True:
                budget.steps += 1
                if budget.steps >= budget.checkpoint:
                    budget.check()
                try:
                    while (condition(shell) == 0) is not until:
                        status = body(shell)
                    break
                except (Break, Continue) as jump:
                    status = jump.status
                    if ends_loop(shell, jump):
                        break
        finally:
            shell.loops -= 1
        shell.status = status
        return status

    return run


def compile_for(node: For, body: Run) -> Run:
    words = compile_words(node.words)
    name, line = node.name, node.line

    def run(shell: Shell) -> int:
        shell.line = line
        try:
            values = words(shell)
        except ShellError as error:
            shell.abandon(error)
        shell.loops += 1
        status = 0
        budget = shell.budget
        table = shell.table
        try:
            for value in values:
                budget.steps += 1
                if budget.steps >= budget.checkpoint:
                    budget.check()
                if shell.attention:
                    shell.line = line
                    shell.before_compound(node)
                    if shell.xtrace:
                        shell.trace(f"for {name} in {' '.join([print_word(word) for word in node.words])}")
                kind = type(table.get(name))
                if kind is str or kind is int:
                    table[name] = value
                elif not bind_loop_variable(shell, name, value):
                    status = 1
                    break
                try:
                    status = body(shell)
                except (Break, Continue) as jump:
                    status = jump.status
                    if ends_loop(shell, jump):
                        break
        finally:
            shell.loops -= 1
        shell.status = status
        return status

    return run


def bind_loop_variable(shell: Shell, name: str, value: str) -> bool:
    """Set the variable of `for` or `select`: a nameref is made to refer to the value. False after an error."""
    entry = shell.table.get(name)
    try:
        if not name.isidentifier():
            raise ShellError(f"`{name}': not a valid identifier")
        if isinstance(entry, Var) and entry.attrs & NAMEREF and not entry.attrs & READONLY:
            shell.vars.check_nameref_target(name, value)
            shell.vars.own(name, entry).value = value
        else:
            shell.vars.set(name, value)
    except ShellError as error:
        shell.error(str(error))
        if shell.posix and not shell.interactive:
            raise ExitShell(127 if shell.from_argument and not shell.subshell_process else 1) from None
        return False
    return True


def compile_arith_for(node: ArithFor, body: Run) -> Run:
    init, step = compile_arith(node.init), compile_arith(node.step)
    test: Number | Callable[[Shell], bool | int] = compile_arith(node.test)
    if is_exact(node.test) and node.test.expr is not None:
        test = compile_test(node.test.expr)
    if isinstance(node.test.expr, ArithNumber) and node.test.expr.value:
        test = lambda _shell: 1  # noqa: E731
    line = node.line
    plain = init, test, step
    watched = tuple(
        _watched_arith(arith, value, line) for arith, value in ((node.init, init), (node.test, test), (node.step, step))
    )

    def run(shell: Shell) -> int:
        shell.loops += 1
        status = 0
        budget = shell.budget
        shell.line = line
        init, test, step = watched if shell.attention else plain
        try:
            init(shell)
            while test(shell):
                budget.steps += 1
                if budget.steps >= budget.checkpoint:
                    budget.check()
                try:
                    status = body(shell)
                except (Break, Continue) as jump:
                    status = jump.status
                    if ends_loop(shell, jump):
                        break
                step(shell)
        except ArithError as error:
            shell.line = line
            shell.error(f"((: {error}")
            status = 1
        except ShellError as error:
            shell.abandon(error)
        finally:
            shell.loops -= 1
        shell.status = status
        return status

    return run


def _watched_arith(arith: Arith, value: Callable[[Shell], bool | int], line: int) -> Callable[[Shell], bool | int]:
    """An expression of `for ((`, for which the DEBUG trap runs and which `set -x` shows."""
    shown = compile_scalar(arith.source)
    node = ArithCommand(arith, (), line)

    def run(shell: Shell) -> bool | int:
        if shell.attention:
            shell.line = line
            shell.before(node)
            if shell.xtrace:
                shell.trace(f"(( {shown(shell).strip()} ))")
        return value(shell)

    return run
