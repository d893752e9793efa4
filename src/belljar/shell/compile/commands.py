"""Compound commands compiled: lists, loops, branches, groups, subshells, functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from belljar.shell.compile.arith import compile_arith, compile_test
from belljar.shell.compile.arith_shape import cannot_fail, substitutions_of
from belljar.shell.compile.arith_values import Number
from belljar.shell.compile.conditionals import compile_conditional
from belljar.shell.compile.redirects import compile_redirects
from belljar.shell.compile.simple import compile_simple
from belljar.shell.compile.traced import compile_traced
from belljar.shell.compile.words import (
    compile_pattern_text,
    compile_scalar,
    compile_words,
    constant_pattern,
)
from belljar.shell.control import ArithError, Break, Continue, ExitShell, ReadonlyError, ShellError
from belljar.shell.functions import FunctionDef
from belljar.shell.nodes import (
    AndOr,
    Arith,
    ArithCommand,
    ArithFor,
    ArithNumber,
    Case,
    CaseClause,
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
    Word,
)
from belljar.shell.pattern import compile_pattern
from belljar.shell.print import print_word
from belljar.shell.redirections import Saved

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

Run: TypeAlias = "Callable[[Shell], int]"


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
            return _redirected(node.redirects, _compile_for(node, checks=checks), checks=checks)
        case Select():
            from belljar.shell.compile.select import compile_select

            return _redirected(node.redirects, compile_select(node, checks=checks), checks=checks)
        case ArithFor():
            return _redirected(node.redirects, _compile_arith_for(node, checks=checks), checks=checks)
        case Case():
            return _redirected(node.redirects, _compile_case(node, checks=checks), checks=checks)
        case ArithCommand():
            return _redirected(node.redirects, _compile_arith_command(node, checks=checks), checks=checks)
        case Conditional():
            return _redirected(node.redirects, _compile_conditional(node, checks=checks), checks=checks)


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


# --- lists ----------------------------------------------------------------------------------------------------------


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


# --- branches -------------------------------------------------------------------------------------------------------


def _compile_if(node: If, *, checks: bool) -> Run:
    clauses = [
        (compile_command(clause.condition, checks=False), compile_command(clause.body, checks=checks))
        for clause in node.clauses
    ]
    otherwise = compile_command(node.otherwise, checks=checks) if node.otherwise is not None else None
    if len(clauses) == 1:
        condition, body = clauses[0]

        def single(shell: Shell) -> int:
            if condition(shell) == 0:
                return body(shell)
            if otherwise is not None:
                return otherwise(shell)
            shell.status = 0
            return 0

        return single

    def several(shell: Shell) -> int:
        for test, then in clauses:
            if test(shell) == 0:
                return then(shell)
        if otherwise is not None:
            return otherwise(shell)
        shell.status = 0
        return 0

    return several


def _compile_case(node: Case, *, checks: bool) -> Run:
    subject, line = compile_scalar(node.subject), node.line
    clauses = [_compile_clause(clause, checks=checks) for clause in node.clauses]
    table = _literal_table(node, clauses)

    def run(shell: Shell) -> int:
        budget = shell.budget
        budget.steps += 1
        if budget.steps >= budget.checkpoint:
            budget.check()
        shell.line = line
        if shell.attention:
            shell.before_compound(node)
            if shell.xtrace:
                shell.trace(f"case {print_word(node.subject)} in")
        shell.subst_status = -1
        try:
            text = subject(shell)
        except ShellError as error:
            shell.abandon(error)
        if shell.subst_status >= 0:
            shell.status = shell.subst_status
        if table is not None and not shell.nocasematch:
            body = table.get(text)
            if body is not None:
                return body(shell)
        status = 0
        falling = False
        for tests, body, terminator in clauses:
            if not falling:
                try:
                    matched = any([test(shell, text) for test in tests[:1]]) or any(
                        test(shell, text) for test in tests[1:]
                    )
                except ShellError as error:
                    shell.abandon(error)
                if not matched:
                    continue
            status = body(shell) if body is not None else 0
            if terminator == ";;":
                break
            falling = terminator == ";&"
        if status == 0:
            shell.status = 0
        return status

    return run


def _literal_table(
    node: Case, clauses: list[tuple[list[Callable[[Shell, str], bool]], Run | None, str]]
) -> dict[str, Run] | None:
    """The leading clauses whose patterns are plain text, as a dict: dispatch in one step."""
    table: dict[str, Run] = {}
    for clause, (_, body, _) in zip(node.clauses, clauses, strict=True):
        if clause.terminator != ";;":
            break
        literals = []
        for word in clause.patterns:
            fixed = constant_pattern(word)
            literal = compile_pattern(fixed).literal if fixed is not None else None
            if fixed == "":
                literal = ""
            if literal is None:
                return table or None
            literals.append(literal)
        for literal in literals:
            table.setdefault(literal, body if body is not None else _succeed)
    return table or None


def _succeed(shell: Shell) -> int:
    shell.status = 0
    return 0


def _compile_clause(clause: CaseClause, *, checks: bool) -> tuple[list[Callable[[Shell, str], bool]], Run | None, str]:
    tests = [_compile_case_pattern(word) for word in clause.patterns]
    body = compile_command(clause.body, checks=checks) if clause.body is not None else None
    return tests, body, clause.terminator


def _compile_case_pattern(word: Word) -> Callable[[Shell, str], bool]:
    fixed = constant_pattern(word)
    if fixed is not None:
        with_groups = compile_pattern(fixed).matches
        return lambda shell, text: (
            with_groups(text) if not shell.nocasematch else compile_pattern(fixed, nocase=True).matches(text)
        )
    pattern = compile_pattern_text(word)
    return lambda shell, text: compile_pattern(pattern(shell), extglob=shell.extglob, nocase=shell.nocasematch).matches(
        text
    )


def _compile_arith_command(node: ArithCommand, *, checks: bool) -> Run:
    expr, line = node.arith.expr, node.line
    value: Callable[[Shell], int | bool]
    tree = compile_arith(node.arith)
    value = compile_test(expr) if expr is not None and _is_exact(node.arith) else tree
    shown = compile_scalar(node.arith.source)

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


def _is_exact(arith: Arith) -> bool:
    """Whether the tree alone may be evaluated: nothing to substitute, no error that must show the expression."""
    return arith.expr is not None and not substitutions_of(arith.expr) and cannot_fail(arith.expr)


def _compile_conditional(node: Conditional, *, checks: bool) -> Run:
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


# --- loops ----------------------------------------------------------------------------------------------------------


def _compile_while(node: While, *, checks: bool) -> Run:
    condition = compile_command(node.condition, checks=False)
    body = compile_command(node.body, checks=checks)
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
                except Continue as jump:
                    status = 0
                    if jump.levels > 1 and shell.loops > 1:
                        raise Continue(jump.levels - 1) from None
                except Break as jump:
                    status = jump.status
                    if jump.levels > 1 and shell.loops > 1:
                        raise Break(jump.levels - 1, status) from None
                    break
        finally:
            shell.loops -= 1
        shell.status = status
        return status

    return run


def _compile_for(node: For, *, checks: bool) -> Run:
    words, body = compile_words(node.words), compile_command(node.body, checks=checks)
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
                except Continue as jump:
                    status = 0
                    if jump.levels > 1 and shell.loops > 1:
                        raise Continue(jump.levels - 1) from None
                except Break as jump:
                    status = jump.status
                    if jump.levels > 1 and shell.loops > 1:
                        raise Break(jump.levels - 1, status) from None
                    break
        finally:
            shell.loops -= 1
        shell.status = status
        return status

    return run


def bind_loop_variable(shell: Shell, name: str, value: str) -> bool:
    """Set the variable of `for` or `select`: a nameref is made to refer to the value. False after an error."""
    from belljar.shell.variables import NAMEREF, READONLY, Var

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


def _compile_arith_for(node: ArithFor, *, checks: bool) -> Run:
    init, step = compile_arith(node.init), compile_arith(node.step)
    test: Number | Callable[[Shell], bool | int] = compile_arith(node.test)
    if _is_exact(node.test) and node.test.expr is not None:
        test = compile_test(node.test.expr)
    if isinstance(node.test.expr, ArithNumber) and node.test.expr.value:
        test = lambda _shell: 1  # noqa: E731
    body, line = compile_command(node.body, checks=checks), node.line
    plain = init, test, step
    traced = tuple(
        _traced_arith(arith, value) for arith, value in ((node.init, init), (node.test, test), (node.step, step))
    )

    def run(shell: Shell) -> int:
        shell.loops += 1
        status = 0
        budget = shell.budget
        shell.line = line
        if shell.attention:
            shell.before_compound(node)
        init, test, step = traced if shell.xtrace else plain
        try:
            init(shell)
            while test(shell):
                budget.steps += 1
                if budget.steps >= budget.checkpoint:
                    budget.check()
                try:
                    status = body(shell)
                except Continue as jump:
                    status = 0
                    if jump.levels > 1 and shell.loops > 1:
                        raise Continue(jump.levels - 1) from None
                except Break as jump:
                    status = jump.status
                    if jump.levels > 1 and shell.loops > 1:
                        raise Break(jump.levels - 1, status) from None
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


def _traced_arith(arith: Arith, value: Callable[[Shell], bool | int]) -> Callable[[Shell], bool | int]:
    shown = compile_scalar(arith.source)

    def run(shell: Shell) -> bool | int:
        if shell.xtrace:
            shell.trace(f"(( {shown(shell).strip()} ))")
        return value(shell)

    return run


# --- functions ------------------------------------------------------------------------------------------------------


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
