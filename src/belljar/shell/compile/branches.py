"""`if` and `case` compiled, their commands being so already."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from belljar.libc.pattern import compile_pattern
from belljar.shell.compile.words import compile_pattern_text, compile_scalar, constant_pattern
from belljar.shell.control import ShellError
from belljar.shell.expand.operators import matches
from belljar.shell.nodes import Case, Word
from belljar.shell.print import print_word

if TYPE_CHECKING:
    from belljar.shell.processes import Run
    from belljar.shell.shell import Shell


def compile_if(clauses: list[tuple[Run, Run]], otherwise: Run | None) -> Run:
    """`clauses` are conditions with what follows `then`."""
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


def compile_case(node: Case, bodies: list[Run | None]) -> Run:
    """`bodies` are the commands of the clauses."""
    subject, line = compile_scalar(node.subject), node.line
    clauses = [
        ([_compile_case_pattern(word) for word in clause.patterns], body, clause.terminator)
        for clause, body in zip(node.clauses, bodies, strict=True)
    ]
    table = _literal_table(node, bodies)

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


def _literal_table(node: Case, bodies: list[Run | None]) -> dict[str, Run] | None:
    """The leading clauses whose patterns are plain text, as a dict: dispatch in one step."""
    table: dict[str, Run] = {}
    for clause, body in zip(node.clauses, bodies, strict=True):
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


def _compile_case_pattern(word: Word) -> Callable[[Shell, str], bool]:
    fixed = constant_pattern(word)
    if fixed is not None:
        with_groups = compile_pattern(fixed).matches
        return lambda shell, text: (
            matches(shell, text, fixed) if shell.nocasematch or shell.byte_locale else with_groups(text)
        )
    pattern = compile_pattern_text(word)
    return lambda shell, text: matches(shell, text, pattern(shell), extglob=shell.extglob)
