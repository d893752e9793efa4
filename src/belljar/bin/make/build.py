"""Brings targets up to date: what is older than what it needs is made anew by its recipe."""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errors import SysError
from belljar.abi.signals import Signal
from belljar.bin.make.implicit import Search
from belljar.bin.make.rules import Recipe, Target
from belljar.bin.make.state import State
from belljar.bin.make.variables import MakeError, Origin, Scope, Variable
from belljar.bin.make.words import stem_of, unique
from belljar.kernel.status import ExitStatus

_SIGNALS: dict[int, str] = {
    Signal.KILL: "Killed", Signal.TERM: "Terminated", Signal.INT: "Interrupt", Signal.HUP: "Hangup",
    Signal.SEGV: "Segmentation fault", Signal.ABRT: "Aborted", Signal.PIPE: "Broken pipe", Signal.QUIT: "Quit",
}  # fmt: skip
_SHELL_CHARS = re.compile(r"""[#;"*?\[\]&|<>(){}$`^~!\\'=\n]|^\s*(?:\.|:|alias|bg|break|case|cd|command|continue|eval|exec|exit|export|fc|fg|for|getopts|hash|if|jobs|login|logout|read|readonly|return|set|shift|test|times|trap|type|ulimit|umask|unalias|unset|wait|while)(?:\s|$)""")  # fmt: skip  # noqa: E501


class Failure(Exception):
    """A target could not be made. The message was already printed."""


@dataclass(slots=True)
class _Done:
    mtime: int | None
    """None: the file is not there (a phony target, or one never made)."""
    remade: bool
    failed: bool = False
    own: bool = False
    """Whether its own recipe failed."""


@dataclass(slots=True)
class _Plan:
    """A target with everything it needs, from its own rule and from an implicit one."""

    name: str
    normal: list[str]
    order_only: list[str]
    recipe: Recipe | None
    stem: str
    scope: Scope
    group: list[str] = field(default_factory=list)


class Builder:
    def __init__(self, state: State) -> None:
        self.state = state
        self._process = state.process
        self._search = Search(state)
        self._done: dict[str, _Done] = {}
        self._open: list[str] = []
        self.ran = 0
        """How many recipes were started."""
        self.question = False
        """Whether, with -q, something has to be made."""
        self._intermediate: list[str] = []
        self._start = self._process.kernel.now()

    # Goals.

    def goal(self, name: str) -> bool:
        """Make one goal, and say so if there was nothing to do."""
        before = self.ran
        try:
            done = self.update(name, None, self.state.scope)
        except Failure:
            return False
        if done.failed:
            if not done.own:
                self._say(f"Target '{name}' not remade because of errors.")
            return False
        if self.ran == before and not self.state.switches.silent and not self.state.switches.question:
            target = self.state.targets.get(name)
            has_recipe = target is not None and target.recipe is not None and not target.phony
            if not has_recipe and target is not None and target.double and not target.phony:
                has_recipe = any(part.recipe is not None for part in target.double)
            if not has_recipe and (target is None or (not target.phony and target.recipe is None)):
                has_recipe = self._has_implicit(name)
            text = f"'{name}' is up to date." if has_recipe else f"Nothing to be done for '{name}'."
            self._process.print(f"{self.state.name}: {text}")
        return True

    def _has_implicit(self, name: str) -> bool:
        return self._search.find(name) is not None

    def finish(self) -> None:
        """Files that were only steps on the way are removed."""
        gone = [name for name in self._intermediate if self._stat(name) is not None]
        if gone and not self.state.switches.question:
            if not self.state.switches.silent:
                self._process.print("rm " + " ".join(gone))
            if not self.state.switches.dry_run:
                for name in gone:
                    self._process.fs.unlink(name)
            self._process.stdout.flush()

    def _say(self, text: str) -> None:
        self._process.stdout.flush()
        self._process.error(f"{self.state.name}: {text}\n")

    # Planning.

    def _plan(self, target: Target, outer: Scope) -> _Plan:
        scope = Scope(target.scope.variables, outer)
        for pattern, extra in self.state.pattern_scopes:
            if stem_of(pattern, target.name) is not None:
                scope = Scope({**extra.variables, **scope.variables}, scope.outer)
        normal, order_only = list(target.prerequisites), list(target.order_only)
        plan = _Plan(target.name, normal, order_only, target.recipe, target.stem, scope, list(target.group))
        if target.recipe is None and not target.phony:
            found = self._search.find(target.name)
            if found is not None:
                plan.recipe, plan.stem = found.pattern.recipe, found.stem
                plan.normal = found.prerequisites + normal
                plan.order_only = found.order_only + order_only
                plan.group += found.group
                for word in found.prerequisites:
                    if word not in self.state.targets and self._stat(word) is None and not self._search.exists(word):
                        self.state.target(word)
                        if not self.state.special(".SECONDARY", word) and not self.state.special(".PRECIOUS", word):
                            self._intermediate.append(word)
                if self.state.second_expansion:
                    plan.normal, plan.order_only = self._expand_again(plan, " ".join(plan.normal), plan.order_only)
        for text in target.later:
            before, _, behind = text.partition("|")
            more, extra_only = self._expand_again(plan, before, behind.split())
            plan.normal += more
            plan.order_only += extra_only
        return plan

    def _expand_again(self, plan: _Plan, text: str, order_only: list[str]) -> tuple[list[str], list[str]]:
        inner = Scope({}, plan.scope)
        for name, value in (("@", plan.name), ("*", plan.stem), ("<", (plan.normal or [""])[0])):
            inner.variables[name] = Variable(value, True, Origin.AUTOMATIC)
        expand = self.state.expander.expand
        return expand(text, inner).split(), expand(" ".join(order_only), inner).split()

    # Updating.

    def _stat(self, name: str) -> int | None:
        try:
            return self._process.fs.stat(name).mtime
        except SysError:
            return None

    def update(self, name: str, parent: str | None, outer: Scope) -> _Done:
        known = self._done.get(name)
        if known is not None:
            return known
        self._process.budget.charge(4)
        self._process.enter()
        self._open.append(name)
        try:
            done = self._update(name, parent, outer)
        finally:
            self._open.pop()
            self._process.leave()
        self._done[name] = done
        return done

    def _update(self, name: str, parent: str | None, outer: Scope) -> _Done:
        state = self.state
        target = state.targets.get(name) or Target(name, scope=Scope({}, state.scope))
        if target.double:
            parts = [self._one(part, parent, Scope(target.scope.variables, outer)) for part in target.double]
            remade = any(part.remade for part in parts)
            return _Done(self._stat(name), remade, any(part.failed for part in parts))
        return self._one(target, parent, outer)

    def _one(self, target: Target, parent: str | None, outer: Scope) -> _Done:
        state, switches = self.state, self.state.switches
        name = target.name
        plan = self._plan(target, outer)
        mtime = None if target.phony else self._stat(name)
        if mtime is None and not target.phony and plan.recipe is None and not target.is_target:
            found = self._search.by_vpath(name)
            if found is not None:
                mtime = self._stat(found)
        if plan.recipe is None and mtime is None and not target.is_target and not target.phony:
            if state.default is not None and state.default.recipe is not None:
                plan.recipe = state.default.recipe
            else:
                needed = f", needed by '{parent}'" if parent else ""
                text = f"*** No rule to make target '{name}'{needed}."
                if not switches.keep_going:
                    self._say(text + "  Stop.")
                    raise Failure
                self._say(text)
                return _Done(None, False, failed=True, own=parent is None)
        failed = False
        newer: list[str] = []
        latest = 0
        must = mtime is None or target.phony or switches.always or name in switches.new
        places: dict[str, str] = {}
        for prerequisite in plan.normal + plan.order_only:
            if prerequisite in self._open:
                self._say(f"Circular {name} <- {prerequisite} dependency dropped.")
                plan.normal = [word for word in plan.normal if word != prerequisite]
                plan.order_only = [word for word in plan.order_only if word != prerequisite]
                continue
            done = self.update(prerequisite, name, plan.scope)
            failed = failed or done.failed
            if prerequisite not in plan.normal:
                continue
            if self._stat(prerequisite) is None and (found := self._search.by_vpath(prerequisite)):
                places[prerequisite] = found
            if done.remade or (done.mtime is not None and mtime is not None and done.mtime > mtime):
                if prerequisite not in switches.old:
                    newer.append(prerequisite)
                    must = True
            elif mtime is None or (done.mtime is None and prerequisite not in self._intermediate):
                newer.append(prerequisite)
                must = must or done.mtime is None
            latest = max(latest, done.mtime or 0)
        if failed:
            if not switches.keep_going:
                raise Failure
            return _Done(mtime, False, failed=True)
        step = name in self._intermediate and mtime is None
        if step and not any(self._done[w].remade for w in plan.normal) and not self._wanted(parent, latest):
            # A step that is not there counts as old as what it is made of, until something needs it.
            return _Done(latest, False)
        if name in switches.old:
            return _Done(mtime, False)
        if not must:
            return _Done(mtime, False)
        if plan.recipe is None or not plan.recipe.lines:
            if name in switches.new:
                return _Done(mtime, True)
            if plan.recipe is None and mtime is not None and not target.phony:
                return _Done(mtime, False)  # nothing was done, so it is as old as before
            return _Done(mtime, True)
        return self._make(plan, target, [places.get(w, w) for w in newer], places, mtime)

    def _wanted(self, parent: str | None, latest: int) -> bool:
        if parent is None:
            return True
        mtime = self._stat(parent)
        above = self.state.targets.get(parent)
        return mtime is None or latest > mtime or (above is not None and above.phony)

    def _make(self, plan: _Plan, target: Target, newer: list[str], places: dict[str, str], mtime: int | None) -> _Done:
        state, switches = self.state, self.state.switches
        assert plan.recipe is not None
        if switches.question:
            self.question = True
            return _Done(mtime, True)
        scope = self._automatic(plan, newer, places)
        try:
            if switches.touch and not target.phony:
                self.ran += 1
                if not switches.silent:
                    self._process.print(f"touch {plan.name}")
                if not switches.dry_run:
                    self._touch(plan.name)
            else:
                self._run(plan, scope)
        except _RecipeFailed:
            if state.special(".DELETE_ON_ERROR", "") and not target.phony:
                now = self._stat(plan.name)
                if now is not None and now != mtime:
                    self._say(f"*** Deleting file '{plan.name}'")
                    self._process.fs.unlink(plan.name)
            if not switches.keep_going:
                raise Failure from None
            return _Done(mtime, False, failed=True, own=True)
        now = self._stat(plan.name)
        for other in plan.group:
            self._done[other] = _Done(self._stat(other), True)
        return _Done(now, target.phony or now is None or now != mtime or switches.dry_run)

    def _touch(self, name: str) -> None:
        if self._stat(name) is None:
            self._process.write_file(name, b"")
        else:
            self._process.fs.utimens(name, None, None, now=True)

    def _automatic(self, plan: _Plan, newer: list[str], places: dict[str, str]) -> Scope:
        normal = [places.get(word, word) for word in plan.normal]
        order_only = [word for word in unique(plan.order_only) if word not in plan.normal]
        stem = plan.stem
        if not stem:
            stem = next((plan.name[: -len(s)] for s in self.state.suffixes if plan.name.endswith(s)), "")
        values = {
            "@": plan.name,
            "<": normal[0] if normal else "",
            "^": " ".join(unique(normal)),
            "+": " ".join(normal),
            "?": " ".join(unique(newer)),
            "|": " ".join(order_only),
            "*": stem,
            "%": "",
        }
        return Scope({name: Variable(text, True, Origin.AUTOMATIC) for name, text in values.items()}, plan.scope)

    # Recipes.

    def _run(self, plan: _Plan, scope: Scope) -> None:
        state = self.state
        recipe = plan.recipe
        assert recipe is not None
        one_shell = ".ONESHELL" in state.specials
        lines = list(zip(recipe.lines, recipe.numbers, strict=True))
        if one_shell:
            lines = [("\n".join(recipe.lines), recipe.numbers[0])]
        environment: dict[str, str] | None = None
        started = False
        expanded: list[tuple[str, int, str]] = []  # all lines are expanded before the first one runs
        for raw, number in lines:
            state.where = f"{recipe.file}:{number}"
            expanded.append((raw, number, state.expander.expand(raw, scope)))
        for raw, number, text in expanded:
            state.where = f"{recipe.file}:{number}"
            for command in [text] if one_shell else _commands(text):
                silent, ignore, always, command = _prefixes(command)
                if not command.strip():
                    continue
                always = always or bool(re.search(r"\$[({]MAKE[)}]", raw))
                started = True
                silent = silent or state.switches.silent or state.special(".SILENT", plan.name)
                if state.switches.trace:
                    self._process.print(f"{state.where}: target '{plan.name}' does not exist")
                if not silent or state.switches.dry_run:
                    self._process.print(command)
                if state.switches.dry_run and not always:
                    continue
                self._process.stdout.flush()
                environment = environment or state.environment(scope)
                status = self._command(command, environment, scope)
                self._check(plan, recipe, number, status, ignore=ignore)
        if started:
            self.ran += 1
        state.where = ""

    def _command(self, command: str, environment: dict[str, str], scope: Scope) -> ExitStatus:
        process, state = self._process, self.state
        shell = state.expander.value("SHELL", scope) or "/bin/sh"
        flags = (state.expander.value(".SHELLFLAGS", scope) or "-c").split()
        if shell == "/bin/sh" and flags == ["-c"] and not _SHELL_CHARS.search(command):
            words = command.split()
            try:
                return process.run(words, env=environment)
            except SysError as error:
                self._say(f"{words[0]}: {error.reason}")
                return ExitStatus(127)
        try:
            return process.run([shell, *flags, command], env=environment)
        except SysError as error:
            self._say(f"{shell}: {error.reason}")
            return ExitStatus(127)

    def _check(self, plan: _Plan, recipe: Recipe, number: int, status: ExitStatus, *, ignore: bool) -> None:
        if not status.code and not status.signal:
            return
        what = _SIGNALS.get(status.signal, f"Signal {status.signal}") if status.signal else f"Error {status.code}"
        where = "<builtin>" if recipe.file == "<builtin>" else f"{recipe.file}:{number}"
        if ignore or self.state.switches.ignore_errors or self.state.special(".IGNORE", plan.name):
            self._say(f"[{where}: {plan.name}] {what} (ignored)")
            return
        self._say(f"*** [{where}: {plan.name}] {what}")
        raise _RecipeFailed


class _RecipeFailed(Exception):
    """A command of a recipe failed."""


def _commands(text: str) -> list[str]:
    """A recipe line that expanded to several lines is several commands; a backslash keeps two together."""
    if "\n" not in text:
        return [text]
    commands: list[str] = []
    current = ""
    for line in text.split("\n"):
        current = f"{current}\n{line}" if current else line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            continue
        commands.append(current)
        current = ""
    if current:
        commands.append(current)
    return commands


def _prefixes(command: str) -> tuple[bool, bool, bool, str]:
    silent = ignore = always = False
    command = command.lstrip(" \t")
    while command[:1] and command[0] in "@-+ \t":
        silent = silent or command[0] == "@"
        ignore = ignore or command[0] == "-"
        always = always or command[0] == "+"
        command = command[1:]
    return silent, ignore, always, command


def check_missing(state: State, builder: Builder) -> bool:
    """Makefiles that have rules are made first; True if any changed, and all must be read again."""
    changed = False
    for name, where, reason in list(state.missing):
        target = state.targets.get(name)
        known = (target is not None and target.recipe is not None) or Search(state).find(name) is not None
        if not known:
            if where:
                state.process.stdout.flush()
                state.process.error(f"{where}: {name}: {reason}\n")
                raise MakeError(f"No rule to make target '{name}'")
            continue
        if builder.update(name, None, state.scope).remade:
            changed = True
    for name in state.makefiles:
        target = state.targets.get(name)
        if target is not None and target.recipe is not None and not target.phony and not target.double:
            changed = builder.update(name, None, state.scope).remade or changed
    return changed
