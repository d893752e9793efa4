"""Simple commands compiled: assignments, builtins, functions and programs, with their redirections and environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from belljar.shell.capture import close_process_files
from belljar.shell.compile.assignments import compile_argument, compile_assignment
from belljar.shell.compile.conditionals import Fallback, compile_test_command
from belljar.shell.compile.fields import FieldList, compile_words
from belljar.shell.compile.redirects import Apply, compile_redirects
from belljar.shell.compile.words import compile_scalar, constant
from belljar.shell.control import Break, Continue, ShellError
from belljar.shell.invoke import Call, invoke, run_builtin
from belljar.shell.launch import start_subshell
from belljar.shell.nodes import (
    ArrayLiteral,
    Assignment,
    FdVariable,
    Literal,
    ProcSub,
    SimpleCommand,
    Subscript,
    Word,
    WordPart,
)
from belljar.shell.print import print_command
from belljar.shell.redirections import Saved
from belljar.shell.reporting import assignment_text
from belljar.shell.variables import Var, Variables

if TYPE_CHECKING:
    from belljar.shell.processes import Run
    from belljar.shell.shell import Shell

DECLARATIONS = frozenset({"declare", "typeset", "local", "export", "readonly"})


def compile_stage(node: SimpleCommand) -> Run:
    """A simple command that is a process of its own in a pipeline or the background: its parent checks its failure,
    while commands inside a function are checked here."""
    run = _compile_unchecked(node, checks=True, last=True)

    def stage(shell: Shell) -> int:
        shell.command = node
        shell.loops = shell.outer_loops
        return run(shell)

    return stage


def compile_simple(node: SimpleCommand, *, checks: bool, last: bool = False, inside: bool = False) -> Run:
    """`checks`: a failure may end the shell or run the ERR trap; `inside`: only that of a command in a function.

    `last`: the process has nothing else to do.
    """
    run = _compile_unchecked(node, checks=checks or (inside and bool(node.words)), last=last)
    if inside:
        return _noted(node, run)
    if not checks:
        return run

    def checked(shell: Shell) -> int:
        if not shell.in_trap:
            shell.command = node
        status = run(shell)
        if status and shell.watching:
            shell.failed(status, None)
        return status

    return checked


def _noted(node: SimpleCommand, run: Run) -> Run:
    """BASH_COMMAND is the command, as where it is checked."""

    def noted(shell: Shell) -> int:
        if not shell.in_trap:
            shell.command = node
        return run(shell)

    return noted


def _compile_unchecked(node: SimpleCommand, *, checks: bool, last: bool) -> Run:
    if not node.words:
        run = _compile_assignments(node, checks=checks)
        if any(isinstance(redirect.fd, FdVariable) for redirect in node.redirects):
            # Without a command `{fd}>file` leaves no trace.
            return lambda shell: start_subshell(shell, run)
        return run
    if not node.assignments and not node.redirects:
        quick = _compile_quick(node)
        if quick is not None:
            return quick
    return _compile_general(node, checks=checks, last=last)


# --- assignments only -----------------------------------------------------------------------------------------------


def _compile_assignments(node: SimpleCommand, *, checks: bool) -> Run:
    line = node.line
    assigns = [compile_assignment(assignment) for assignment in node.assignments]
    if len(assigns) == 1 and not node.redirects:
        assign = assigns[0]

        def one(shell: Shell) -> int:
            budget = shell.budget
            budget.steps += 1
            if budget.steps >= budget.checkpoint:
                budget.check()
            shell.line = line
            if shell.attention or (not checks and (shell.errexit or shell.err_traced)):
                return several(shell)
            shell.subst_status = 0
            try:
                assign(shell)
            except ShellError as error:
                shell.abandon(error)
            shell.status = status = shell.subst_status
            shell.pipestatus = None
            shell.last_argument = ""
            return status

        several = _assign_several(node, [assign], None, checks=checks)
        return one
    apply = compile_redirects(node.redirects) if node.redirects else None
    return _assign_several(node, assigns, apply, checks=checks)


def _assign_several(
    node: SimpleCommand, assigns: Sequence[Callable[[Shell], None]], apply: Apply | None, *, checks: bool
) -> Run:
    line = node.line
    arguments = [compile_argument(assignment) for assignment in node.assignments]

    def several(shell: Shell) -> int:
        budget = shell.budget
        budget.steps += 1
        if budget.steps >= budget.checkpoint:
            budget.check()
        shell.line = line
        if shell.attention and shell.before(node):
            return 0
        shell.subst_status = 0
        try:
            if shell.xtrace:
                for build, assignment in zip(arguments, node.assignments, strict=True):
                    if isinstance(assignment.value, ArrayLiteral):
                        shell.trace(print_command(SimpleCommand((assignment,), ())))
                        build(shell).assign(shell)
                        continue
                    argument = build(shell)
                    shell.trace(assignment_text(argument))
                    argument.assign(shell)
            elif not checks and (shell.errexit or shell.err_traced):
                shell.suppressed += 1
                try:
                    for assign in assigns:
                        assign(shell)
                finally:
                    shell.suppressed -= 1
            else:
                for assign in assigns:
                    assign(shell)
        except ShellError as error:
            shell.abandon(error)
        status = shell.subst_status
        if apply is not None:
            saved = Saved(shell)
            try:
                apply(shell, saved)
            except ShellError as error:
                shell.error(str(error))
                status = 1
            finally:
                saved.restore()
        shell.status = status
        shell.pipestatus = None
        shell.last_argument = ""
        return status

    return several


# --- the commonest builtins -----------------------------------------------------------------------------------------


def _compile_quick(node: SimpleCommand) -> Run | None:
    first = node.words[0]
    if not isinstance(first, Word) or first.braces is not None:
        return None
    name = constant(first)
    if name in ("[", "test") and all(isinstance(word, Word) and word.braces is None for word in node.words):
        words = [word for word in node.words if isinstance(word, Word)]
        if name == "[":
            if constant(words[-1]) != "]":
                return None
            words = words[:-1]
        test = compile_test_command(words[1:])
        if test is not None:
            return _compile_test(node, name, test)
    if name in (":", "true", "false") and len(node.words) == 1:
        return _compile_constant(node, name, 1 if name == "false" else 0)
    if name in ("break", "continue") and len(node.words) == 1:
        return _compile_jump(node, name)
    if name == "local":
        return _compile_local(node)
    return None


def _compile_jump(node: SimpleCommand, name: str) -> Run:
    general = _compile_general(node, checks=False, last=False)
    jump = Break if name == "break" else Continue

    def run(shell: Shell) -> int:
        if shell.attention or not shell.loops or name in shell.functions or shell.disabled:
            return general(shell)
        shell.status = 0
        raise jump(1)

    return run


def _compile_local(node: SimpleCommand) -> Run | None:
    """`local a=$1 b`: plain names and strings are bound directly."""
    general = _compile_general(node, checks=False, last=False)
    names: list[str] = []
    texts: list[Callable[[Shell], str]] = []
    for word in node.words[1:]:
        if not isinstance(word, Assignment) or not isinstance(word.value, Word):
            return None
        if word.index is not None or word.append or word.name in Variables.HOOKS:
            return None
        names.append(word.name)
        texts.append(compile_scalar(word.value))
    if not names:
        return None
    line = node.line
    pairs = list(zip(names, texts, strict=True))

    def run(shell: Shell) -> int:
        if (
            shell.attention
            or shell.allexport
            or "local" in shell.functions
            or shell.disabled
            or (not shell.vars.frames or not shell.vars.frames[-1].function)
        ):
            return general(shell)
        table = shell.table
        for name in names:
            if isinstance(table.get(name), Var):
                return general(shell)
        budget = shell.budget
        budget.steps += 1
        if budget.steps >= budget.checkpoint:
            budget.check()
        shell.line = line
        shell.subst_status = 0
        try:
            values = [text(shell) for _, text in pairs]
        except ShellError as error:
            shell.abandon(error)
        variables = shell.vars
        frame = variables.own_frame(len(variables.frames) - 1)
        saved = frame.saved
        for name, value in zip(names, values, strict=True):
            if name not in saved:
                saved[name] = table.get(name)
            table[name] = value
        shell.status = 0
        shell.pipestatus = None
        shell.last_argument = names[-1]
        return 0

    return run


def _compile_test(node: SimpleCommand, name: str, test: Callable[[Shell], bool]) -> Run:
    line = node.line
    general = _compile_general(node, checks=False, last=False)

    def run(shell: Shell) -> int:
        if shell.attention or name in shell.functions or shell.disabled:
            return general(shell)
        budget = shell.budget
        budget.steps += 1
        if budget.steps >= budget.checkpoint:
            budget.check()
        shell.line = line
        try:
            shell.status = status = 0 if test(shell) else 1
        except Fallback:
            return general(shell)
        except ShellError as error:
            shell.abandon(error)
        shell.pipestatus = None
        return status

    return run


def _compile_constant(node: SimpleCommand, name: str, status: int) -> Run:
    line = node.line
    general = _compile_general(node, checks=False, last=False)

    def run(shell: Shell) -> int:
        if shell.attention or name in shell.functions or shell.disabled:
            return general(shell)
        budget = shell.budget
        budget.steps += 1
        if budget.steps >= budget.checkpoint:
            budget.check()
        shell.line = line
        shell.status = status
        shell.pipestatus = None
        return status

    return run


# --- everything else ------------------------------------------------------------------------------------------------


def _as_word(word: Word | Assignment) -> Word | Assignment:
    """`name=value` behind something that isn't a declaration builtin itself (`command export x=$y`): a plain word."""
    if isinstance(word, Word) or not isinstance(word.value, Word):
        return word
    index: tuple[WordPart, ...] = ()
    if isinstance(word.index, Subscript):
        index = (Literal("["), *word.index.word.parts, Literal("]"))
    elif word.index is not None:
        index = (Literal("[*]" if word.index.joined else "[@]"),)
    equals = Literal("+=" if word.append else "=")
    return Word((Literal(word.name), *index, equals, *word.value.parts))


def compile_arguments(words: Sequence[Word | Assignment]) -> FieldList:
    """The expanded words of a command; assignments (of declaration builtins) come as AssignmentArg."""
    first = words[0] if words else None
    if not (isinstance(first, Word) and constant(first) in DECLARATIONS):
        words = [_as_word(word) for word in words]
    if all(isinstance(word, Word) for word in words):
        return compile_words([word for word in words if isinstance(word, Word)])
    pieces: list[tuple[bool, Callable[[Shell], Any]]] = []
    for word in words:
        if isinstance(word, Word):
            pieces.append((True, compile_words([word])))
        else:
            pieces.append((False, compile_argument(word)))

    def build(shell: Shell) -> list[str]:
        out: list[str] = []
        for is_fields, piece in pieces:
            if is_fields:
                out += piece(shell)
            else:
                out.append(piece(shell))
        return out

    return build


def _compile_general(node: SimpleCommand, *, checks: bool, last: bool) -> Run:
    arguments = compile_arguments(node.words)
    line = node.line
    apply = compile_redirects(node.redirects) if node.redirects else None
    assignments = node.assignments
    call = Call(node, assignments, [compile_argument(item) for item in assignments], apply, checks=checks, last=last)
    substitutes = any(
        isinstance(part, ProcSub)
        for word in [*node.words, *[r.target for r in node.redirects if hasattr(r, "target")]]
        if isinstance(word, Word)
        for part in word.parts
    )
    plain = apply is None and not assignments and not last
    from belljar.shell.builtins import BUILTINS

    first = node.words[0]
    name = constant(first) if isinstance(first, Word) and first.braces is None else None
    builtin = BUILTINS.get(name) if name is not None and plain else None

    def run(shell: Shell) -> int:
        budget = shell.budget
        budget.steps += 1
        if budget.steps >= budget.checkpoint:
            budget.check()
        shell.line = line
        if shell.attention:
            if shell.before(node):
                return 0
        elif not checks and not shell.in_trap:
            shell.command = node
        shell.subst_status = 0
        try:
            if checks or not shell.errexit:
                argv = arguments(shell)
            else:
                shell.suppressed += 1
                try:
                    argv = arguments(shell)
                finally:
                    shell.suppressed -= 1
        except ShellError as error:
            shell.abandon(error)
        if plain and not shell.xtrace:
            if builtin is not None:
                if name not in shell.functions and not shell.disabled:
                    status = run_builtin(shell, builtin, argv, checks)
                    shell.last_argument = argv[-1]
                    shell.status = status
                    shell.pipestatus = None
                    return status
            elif argv:
                function = shell.functions.get(argv[0])
                if function is not None and argv[0] not in shell.special_names:
                    shell.status = status = shell.call(function, argv, checks)
                    shell.last_argument = argv[-1]
                    shell.pipestatus = None
                    return status
        status = invoke(shell, call, argv)
        shell.status = status
        shell.pipestatus = None
        if argv:
            shell.last_argument = argv[-1]
        return status

    if not substitutes:
        return run

    def closing(shell: Shell) -> int:
        mark = len(shell.process_files)
        try:
            return run(shell)
        finally:
            close_process_files(shell, mark)

    return closing
