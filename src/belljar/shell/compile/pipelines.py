"""Commands in child processes: pipelines, subshells, background commands, coprocesses; and `!` and `time`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from belljar.shell.compile.commands import compile_command, compile_subshell_body
from belljar.shell.compile.direct import direct_program, pure_builtin
from belljar.shell.compile.simple import compile_simple, compile_stage
from belljar.shell.compile.words import constant
from belljar.shell.launch import QuickStage, Stage, run_coproc, run_pipeline, start_background, start_subshell, timed
from belljar.shell.nodes import (
    ArithCommand,
    Command,
    Conditional,
    Coproc,
    Group,
    Pipeline,
    SimpleCommand,
    Subshell,
    Word,
)
from belljar.shell.print import print_command

if TYPE_CHECKING:
    from belljar.shell.processes import Run
    from belljar.shell.shell import Shell


def compile_pipeline(node: Pipeline, *, checks: bool) -> Run:
    if node.negated and checks and node.commands:
        return _compile_negated(node)
    if not node.commands:
        run: Run = _succeed
    elif len(node.commands) == 1:
        run = compile_command(node.commands[0], checks=checks)
    else:
        run = _compile_stages(node, checks=checks)
        if checks:
            run = _checked(run, node)
    if node.timed:
        run = timed(run, posix=node.posix_time)
    return _negated(run) if node.negated else run


def _negated(run: Run) -> Run:
    def negated(shell: Shell) -> int:
        shell.status = status = 0 if run(shell) else 1
        return status

    return negated


def _compile_negated(node: Pipeline) -> Run:
    """`! command` outside of conditions: `set -e` acts inside only if it is set there, as bash looks at it before."""
    made: dict[bool, Run] = {}

    def run(shell: Shell) -> int:
        inside = not shell.errexit
        found = made.get(inside)
        if found is None:
            found = made[inside] = _compile_inverted(node, inside=inside)
        return found(shell)

    return _negated(timed(run, posix=node.posix_time) if node.timed else run)


def _compile_inverted(node: Pipeline, *, inside: bool) -> Run:
    """The command of `! command`, whose own failure is none; `inside`: that of what it runs is."""
    if len(node.commands) > 1:
        return _compile_stages(node, checks=inside)
    command = node.commands[0]
    if isinstance(command, SimpleCommand):
        return compile_simple(command, checks=False, inside=inside)
    if isinstance(command, Subshell) and not command.redirects:
        return compile_subshell(command, checks=False, inside=inside)
    return compile_command(command, checks=inside and not isinstance(command, Subshell | ArithCommand | Conditional))


def _succeed(shell: Shell) -> int:
    shell.status = 0
    return 0


def _checked(run: Run, node: Pipeline) -> Run:
    def checked(shell: Shell) -> int:
        status = run(shell)
        if status and shell.watching:
            shell.failed(status, node.commands[-1])
        return status

    return checked


def _compile_stages(node: Pipeline, *, checks: bool) -> Run:
    runs = [_compile_stage(command, checks=checks) for command in node.commands]
    stages = [Stage(run, direct_program(command, run)) for run, command in zip(runs, node.commands, strict=True)]
    first = node.commands[0]
    name = pure_builtin(first)
    quick = None
    if name is not None and isinstance(first, SimpleCommand):
        quick = QuickStage(name, compile_simple(first, checks=False))
    made: list[Run] = []
    line = node.line

    def last_here(shell: Shell) -> int:
        if not made:  # only with `lastpipe`
            made.append(compile_command(node.commands[-1]))
        return made[0](shell)

    def run(shell: Shell) -> int:
        budget = shell.budget
        budget.steps += 1
        if budget.steps >= budget.checkpoint:
            budget.check()
        shell.line = line
        if shell.attention and shell.traps.pending:
            shell.run_pending_traps()
        return run_pipeline(shell, stages, last_here, node, quick)

    return run


def _compile_stage(command: Command, *, checks: bool = True) -> Run:
    """`checks` False: the pipeline is a condition, so that `set -e` doesn't act in its stages."""
    if isinstance(command, SimpleCommand):
        return compile_stage(command) if checks else compile_simple(command, checks=False, last=True)
    body = _stage_body(command)
    return compile_subshell_body(body) if checks else compile_command(body, checks=False)


def _stage_body(command: Command) -> Command:
    """A stage is a process already: `(...)` needs no second one."""
    if isinstance(command, Subshell):
        return Group(command.body, command.redirects, command.line)
    return command


def compile_subshell(node: Subshell, *, checks: bool, inside: bool = False) -> Run:
    """`inside`: failures in it count, though its own does not."""
    body = compile_subshell_body(node.body) if checks or inside else compile_command(node.body, checks=False)
    line = node.line

    def run(shell: Shell) -> int:
        budget = shell.budget
        budget.steps += 1
        if budget.steps >= budget.checkpoint:
            budget.check()
        shell.line = line
        if shell.attention and shell.traps.pending:
            shell.run_pending_traps()
        status = start_subshell(shell, body, node)
        shell.status = status
        shell.pipestatus = None
        if status and checks and shell.watching:
            shell.failed(status, node)
        return status

    return run


def compile_background(command: Command) -> Run:
    stages: Sequence[Command] = (command,)
    if isinstance(command, Pipeline) and not command.negated and not command.timed:
        stages = command.commands
    bodies = [_compile_stage(stage) for stage in stages]
    cached: list[str] = []
    first = command.words[0] if isinstance(command, SimpleCommand) and len(command.words) == 1 else None
    named = constant(first) if isinstance(first, Word) else None
    job = named if named is not None and named.startswith("%") else ""

    def text() -> str:
        if not cached:
            cached.append(print_command(command))
        return cached[0]

    def run(shell: Shell) -> int:
        budget = shell.budget
        budget.steps += 1
        if budget.steps >= budget.checkpoint:
            budget.check()
        shell.line = getattr(command, "line", shell.line)
        if job and shell.monitor:
            return shell.run_command(["bg", job])
        start_background(shell, bodies, text)
        shell.status = 0
        return 0

    return run


def compile_coproc(node: Coproc) -> Run:
    body = compile_subshell_body(_stage_body(node.command))

    def run(shell: Shell) -> int:
        shell.line = node.line
        run_coproc(shell, node.name, body, lambda: print_command(node.command))
        shell.status = 0
        return 0

    return run
