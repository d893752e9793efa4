"""Commands compiled: each kind by its own module; here are lists, groups and functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from belljar.shell.compile.branches import compile_case, compile_if
from belljar.shell.compile.expressions import compile_arith_command, compile_conditional_command
from belljar.shell.compile.loops import compile_arith_for, compile_for, compile_while
from belljar.shell.compile.redirects import compile_redirects
from belljar.shell.compile.simple import compile_simple
from belljar.shell.control import ShellError
from belljar.shell.functions import FunctionDef
from belljar.shell.nodes import (
    AndOr,
    ArithCommand,
    ArithFor,
    Case,
    Command,
    CommandList,
    Conditional,
    Coproc,
    For,
    Function,
    Group,
    If,
    Pipeline,
    Redirect,
    Select,
    SimpleCommand,
    Subshell,
    While,
)
from belljar.shell.redirections import Saved

if TYPE_CHECKING:
    from belljar.shell.processes import Run
    from belljar.shell.shell import Shell


def compile_command(node: Command, *, checks: bool = True) -> Run:
    """`checks` False: in a condition, where a failure neither ends the shell nor runs the ERR trap."""
    match node:
        case SimpleCommand():
            return compile_simple(node, checks=checks)
        case CommandList():
            return _compile_list(node, checks=checks)
        case AndOr():
            return _compile_and_or(node, checks=checks)
        case Pipeline():
            from belljar.shell.compile.pipelines import compile_pipeline

            return compile_pipeline(node, checks=checks)
        case Function():
            return _compile_function(node)
        case Coproc():
            from belljar.shell.compile.pipelines import compile_coproc

            return compile_coproc(node)
        case Subshell():
            from belljar.shell.compile.pipelines import compile_subshell

            return _redirected(node.redirects, compile_subshell(node, checks=checks), checks=checks)
        case Group():
            return _redirected(node.redirects, compile_command(node.body, checks=checks), checks=checks)
        case If():
            return _redirected(node.redirects, _compile_if(node, checks=checks), checks=checks)
        case While():
            return _redirected(node.redirects, _compile_while(node, checks=checks), checks=checks)
        case For():
            run = compile_for(node, compile_command(node.body, checks=checks))
            return _redirected(node.redirects, run, checks=checks)
        case Select():
            from belljar.shell.compile.select import compile_select

            run = compile_select(node, compile_command(node.body, checks=checks))
            return _redirected(node.redirects, run, checks=checks)
        case ArithFor():
            run = compile_arith_for(node, compile_command(node.body, checks=checks))
            return _redirected(node.redirects, run, checks=checks)
        case Case():
            return _redirected(node.redirects, _compile_case(node, checks=checks), checks=checks)
        case ArithCommand():
            return _redirected(node.redirects, compile_arith_command(node, checks=checks), checks=checks)
        case Conditional():
            return _redirected(node.redirects, compile_conditional_command(node, checks=checks), checks=checks)


def compile_subshell_body(node: Command) -> Run:
    """A command that is all a process will do: a program takes the process over."""
    if isinstance(node, SimpleCommand):
        return compile_simple(node, checks=True, last=True)
    return compile_command(node)


def _redirected(redirects: Sequence[Redirect], run: Run, *, checks: bool) -> Run:
    if not redirects:
        return run
    apply = compile_redirects(redirects)
    gives_stdin = any(redirect.fd == 0 for redirect in redirects)

    def redirected(shell: Shell) -> int:
        saved = Saved(shell)
        mark = len(shell.process_files)
        outer = shell.stdin_given
        shell.stdin_given = outer or gives_stdin
        try:
            try:
                apply(shell, saved)
            except ShellError as error:
                shell.error(str(error))
                shell.status = 1
                if checks and shell.watching:
                    shell.failed(1, None)
                return 1
            return run(shell)
        finally:
            shell.stdin_given = outer
            saved.restore()
            if len(shell.process_files) > mark:
                shell.close_process_files(mark)

    return redirected


def _compile_list(node: CommandList, *, checks: bool) -> Run:
    from belljar.shell.compile.pipelines import compile_background

    runs = [
        compile_background(item.command) if item.background else compile_command(item.command, checks=checks)
        for item in node.items
    ]
    if len(runs) == 1:
        return runs[0]
    if len(runs) == 2:
        first, second = runs

        def two(shell: Shell) -> int:
            first(shell)
            return second(shell)

        return two
    if len(runs) == 3:
        one, other, third = runs

        def three(shell: Shell) -> int:
            one(shell)
            other(shell)
            return third(shell)

        return three
    *before, last = runs

    def several(shell: Shell) -> int:
        for run in before:
            run(shell)
        return last(shell)

    return several


def _compile_and_or(node: AndOr, *, checks: bool) -> Run:
    if len(node.rest) == 1:
        first = compile_command(node.first, checks=False)
        second = compile_command(node.rest[0].command, checks=checks)
        if node.rest[0].op == "&&":

            def both(shell: Shell) -> int:
                status = first(shell)
                return second(shell) if status == 0 else status

            return both

        def either(shell: Shell) -> int:
            status = first(shell)
            return second(shell) if status else status

        return either
    start = compile_command(node.first, checks=False)
    last = len(node.rest) - 1
    steps = [
        (item.op == "&&", compile_command(item.command, checks=checks and place == last))
        for place, item in enumerate(node.rest)
    ]

    def chain(shell: Shell) -> int:
        status = start(shell)
        for wants_success, run in steps:
            if (status == 0) is wants_success:
                status = run(shell)
        return status

    return chain


def _compile_if(node: If, *, checks: bool) -> Run:
    clauses = [
        (compile_command(clause.condition, checks=False), compile_command(clause.body, checks=checks))
        for clause in node.clauses
    ]
    return compile_if(clauses, compile_command(node.otherwise, checks=checks) if node.otherwise is not None else None)


def _compile_case(node: Case, *, checks: bool) -> Run:
    return compile_case(
        node,
        [compile_command(clause.body, checks=checks) if clause.body is not None else None for clause in node.clauses],
    )


def _compile_while(node: While, *, checks: bool) -> Run:
    return compile_while(node, compile_command(node.condition, checks=False), compile_command(node.body, checks=checks))


def _compile_function(node: Function) -> Run:
    name = node.name
    compiled: Run | None = None

    def body(shell: Shell) -> int:
        """Compiles itself at the first call: most functions of a library are never called."""
        nonlocal compiled
        if compiled is None:
            compiled = compile_command(node.body)
        return compiled(shell)

    def define(shell: Shell) -> int:
        budget = shell.budget
        budget.steps += 1
        if budget.steps >= budget.checkpoint:
            budget.check()
        shell.line = node.line
        shell.define_function(FunctionDef(name, node, compiled or body, shell.source_name(), node.line))
        return shell.status

    return define
