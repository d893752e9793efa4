"""Reads makefiles: logical lines, conditionals, definitions, rules and includes."""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin.make.rules import Pattern, Recipe, Target
from belljar.bin.make.state import State
from belljar.bin.make.variables import MakeError, Origin, Scope
from belljar.bin.make.words import closing, fill, find_outside, find_percent, stem_of
from belljar.shell.glob import glob

_ASSIGN = re.compile(r"\s*(:{1,3}=|\?=|\+=|!=|=)[ \t]*(.*)\Z", re.S)
_SPECIAL = frozenset(
    ".PHONY .SUFFIXES .DEFAULT .PRECIOUS .INTERMEDIATE .SECONDARY .SECONDEXPANSION .DELETE_ON_ERROR .IGNORE .SILENT "
    ".EXPORT_ALL_VARIABLES .NOTPARALLEL .ONESHELL .POSIX .LOW_RESOLUTION_TIME".split()
)
_CONDITIONS = ("ifeq", "ifneq", "ifdef", "ifndef")


@dataclass(slots=True)
class _Condition:
    live: bool
    """Lines count now."""
    taken: bool
    """Some branch was."""
    outer: bool
    seen_else: bool = False


class Reader:
    def __init__(self, state: State, file: str) -> None:
        self.state = state
        self.file = file
        self._conditions: list[_Condition] = []
        self._rule: list[Target] | Pattern | None = None
        self._recipe: Recipe | None = None
        self._started = False
        self._fixed = ""

    # Files.

    def read_file(self, name: str) -> None:
        state = self.state
        text = fsdecode(state.process.read_file(name))
        state.makefiles.append(name)
        state.define(state.scope, "MAKEFILE_LIST", "+=", name, Origin.FILE)
        state.process.enter()
        try:
            self.read_text(text)
        finally:
            state.process.leave()

    def read_text(self, text: str, fixed_where: str = "") -> None:
        self._fixed = fixed_where
        saved = self.state.where
        lines = text.split("\n")
        if lines and not lines[-1]:
            lines.pop()
        index = 0
        while index < len(lines):
            self.state.process.budget.charge(2)
            number = index + 1
            self.state.where = fixed_where or f"{self.file}:{number}"
            line = lines[index].rstrip("\r")
            index += 1
            while _continues(line) and index < len(lines):
                line += "\n" + lines[index].rstrip("\r")
                index += 1
            prefix = self._prefix()
            if line.startswith(prefix) and self._recipe_line(line, number):
                continue
            logical = _strip_comment(_join_lines(line)).lstrip(" \t")
            if not logical.strip():
                continue
            if self._condition(logical):
                continue
            if self._conditions and not self._conditions[-1].live:
                if re.match(r"(override\s+|export\s+)*define\s", logical):
                    index = self._skip_define(lines, index)
                continue
            early = line.startswith(prefix) and not self._started and prefix == "\t"
            if early and not _is_assignment(logical):
                raise MakeError("recipe commences before first target", self.state.where)
            index = self._directive(logical, lines, index, line)
        if self._conditions:
            where = fixed_where or f"{self.file}:{len(lines) + 1}"
            raise MakeError("missing 'endif'", where)
        self.state.where = saved

    def _prefix(self) -> str:
        found = self.state.scope.variables.get(".RECIPEPREFIX")
        return found.value[:1] or "\t" if found is not None else "\t"

    def _recipe_line(self, line: str, number: int) -> bool:
        if self._rule is None:
            return False
        if self._conditions and not self._conditions[-1].live:
            return True
        self._add_recipe(line[1:].replace("\n" + self._prefix(), "\n"), number)
        return True

    def _add_recipe(self, text: str, number: int) -> None:
        recipe = self._recipe
        if recipe is None:
            recipe = self._recipe = Recipe(file=self.file or "-")
            self._attach(recipe)
        if not recipe.lines:
            recipe.where = self._fixed or f"{self.file}:{number}"
        recipe.lines.append(text)
        recipe.numbers.append(number)

    def _attach(self, recipe: Recipe) -> None:
        """The rule has a recipe: each of its targets takes it, an older one is overridden."""
        state = self.state
        if isinstance(self._rule, Pattern):
            self._rule.recipe = recipe
            return
        for target in self._rule or []:
            if target.recipe is not None and target.recipe.lines and not target.name.startswith("."):
                state.process.stdout.flush()
                state.process.error(
                    f"{state.where}: warning: overriding recipe for target '{target.name}'\n"
                    f"{target.recipe.where}: warning: ignoring old recipe for target '{target.name}'\n"
                )
            target.recipe = recipe

    # Conditionals.

    def _condition(self, line: str) -> bool:
        word = re.match(r"[a-z]*", line)[0]  # type: ignore[index]
        rest = line[len(word) :].strip()
        stack = self._conditions
        if word in _CONDITIONS and (not rest or line[len(word)] in " \t(\"'"):
            outer = stack[-1].live if stack else True
            truth = outer and self._test(word, rest)
            stack.append(_Condition(truth, truth, outer))
            return True
        if word == "else" and (not rest or rest.split()[0].rstrip("(") in _CONDITIONS or rest[:2] == "if"):
            if not stack:
                raise MakeError("extraneous 'else'", self.state.where)
            top = stack[-1]
            if top.seen_else:
                raise MakeError("only one 'else' per conditional", self.state.where)
            if not rest:
                top.seen_else = True
                top.live = top.outer and not top.taken
            else:
                kind = re.match(r"[a-z]*", rest)[0]  # type: ignore[index]
                top.live = top.outer and not top.taken and self._test(kind, rest[len(kind) :].strip())
            top.taken = top.taken or top.live
            return True
        if word == "endif" and not rest:
            if not stack:
                raise MakeError("extraneous 'endif'", self.state.where)
            stack.pop()
            return True
        return False

    def _test(self, kind: str, text: str) -> bool:
        state = self.state
        if kind in ("ifdef", "ifndef"):
            name = state.expand(text).strip()
            found = state.scope.find(name)
            return (found is not None and bool(found.value)) is (kind == "ifdef")
        if text.startswith("("):
            end = closing(text, 0)
            comma = find_outside(text, ",", 1)
            if end == -1 or comma == -1 or comma > end:
                raise MakeError("invalid syntax in conditional", state.where)
            left, right = text[1:comma], text[comma + 1 : end]
            equal = state.expand(left).strip() == state.expand(right.strip())
        else:
            match = re.fullmatch(r"""(["'])(.*?)\1\s*(["'])(.*?)\3""", text, re.S)
            if match is None:
                raise MakeError("invalid syntax in conditional", state.where)
            equal = state.expand(match[2]) == state.expand(match[4])
        return equal is (kind == "ifeq")

    # Directives.

    def _directive(self, line: str, lines: list[str], index: int, raw: str) -> int:
        state = self.state
        modifiers: set[str] = set()
        rest = line
        while True:
            word = rest.split(None, 1)[0] if rest.split() else ""
            if word in ("override", "export", "private", "unexport") and not _ASSIGN.match(rest[len(word) :]):
                modifiers.add(word)
                rest = rest[len(word) :].strip()
                continue
            break
        word = rest.split(None, 1)[0] if rest else ""
        tail = rest[len(word) :].strip()
        origin = Origin.OVERRIDE if "override" in modifiers else Origin.FILE
        if word == "define" and not _ASSIGN.match(rest[len(word) :]):
            return self._define(tail, lines, index, origin, modifiers)
        if word == "undefine" and not _ASSIGN.match(rest[len(word) :]):
            state.scope.variables.pop(state.expand(tail).strip(), None)
            self._rule = None
            return index
        assignment = parse_assignment(rest)
        if assignment is not None:
            name, operator, text = assignment
            name = state.expand(name).strip()
            state.define(state.scope, name, operator, text, origin)
            if "export" in modifiers:
                state.exported[name] = True
            self._rule = None
            return index
        if "export" in modifiers or "unexport" in modifiers:
            wanted = "export" in modifiers
            names = state.expand(rest).split()
            for name in names:
                state.exported[name] = wanted
            if not names:
                state.export_all = wanted
            self._rule = None
            return index
        if word in ("include", "-include", "sinclude"):
            self._rule = None
            self._include(state.expand(tail).split(), optional=word != "include")
            return index
        if word == "vpath":
            self._vpath(state.expand(tail).split())
            self._rule = None
            return index
        self._rule_line(line, raw)
        return index

    def _define(self, head: str, lines: list[str], index: int, origin: Origin, modifiers: set[str]) -> int:
        state = self.state
        self._rule = None
        match = re.fullmatch(r"(.*?)\s*(:{1,3}=|\?=|\+=|!=|=)?", head, re.S)
        assert match is not None
        name, operator = state.expand(match[1]).strip(), match[2] or "="
        if not name:
            raise MakeError("empty variable name", state.where)
        end = self._skip_define(lines, index)
        body = "\n".join(lines[index : end - 1])
        state.define(state.scope, name, operator, body, origin)
        if "export" in modifiers:
            state.exported[name] = True
        return end

    def _skip_define(self, lines: list[str], index: int) -> int:
        depth = 1
        start = self.state.where
        while index < len(lines):
            text = lines[index].strip()
            index += 1
            if re.match(r"define(\s|$)", text):
                depth += 1
            elif re.match(r"endef(\s|#|$)", text):
                depth -= 1
                if depth == 0:
                    return index
        raise MakeError("missing 'endef', unterminated 'define'", start)

    def _include(self, names: list[str], *, optional: bool) -> None:
        state = self.state
        where = state.where
        for pattern in names:
            found = glob(state.process, pattern) if any(c in pattern for c in "*?[") else [pattern]
            for name in found or [pattern]:
                for directory in ["", *[d.rstrip("/") + "/" for d in state.switches.includes]]:
                    path = name if name.startswith("/") else directory + name
                    try:
                        state.process.fs.stat(path)
                    except SysError as error:
                        reason = error.reason
                        continue
                    Reader(state, path).read_file(path)
                    state.where = where
                    break
                else:
                    state.missing.append((name, where if not optional else "", reason))

    def _vpath(self, words: list[str]) -> None:
        if not words:
            self.state.vpaths.clear()
        elif len(words) == 1:
            self.state.vpaths = [entry for entry in self.state.vpaths if entry[0] != words[0]]
        else:
            directories = [d for word in words[1:] for d in word.split(":") if d]
            self.state.vpaths.append((words[0], directories))

    # Rules.

    def _rule_line(self, line: str, raw: str) -> None:
        state = self.state
        semicolon = find_outside(line, ";")
        head, inline = (line, None) if semicolon == -1 else (line[:semicolon], line[semicolon + 1 :].lstrip())
        # A target's own variable: its text must not be expanded yet.
        colon = _rule_colon(head)
        if colon != -1:
            behind = head[colon + 1 :].lstrip(":")
            own = re.match(r"\s*((?:override|export|private)\s+)*", behind)
            assignment = parse_assignment(behind[own.end() :] if own else behind)
            if assignment is not None:
                whole = line[colon + 1 :].lstrip(":")
                assignment = parse_assignment(whole[own.end() :] if own else whole)
                assert assignment is not None
                self._target_variable(state.expand(line[:colon]).split(), assignment, own[0] if own else "")
                self._rule = None
                return
        text = state.expand(head)
        if inline is None and colon == -1 and ";" in text and ":" in text.partition(";")[0]:
            # What it expands to holds the colon, and a recipe behind a semicolon.
            text, _, inline = text.partition(";")
            inline = inline.lstrip()
        if not text.strip():
            self._rule = None
            return
        colon = _rule_colon(text)
        if colon == -1:
            if raw.startswith(" " * 8):
                raise MakeError("missing separator (did you mean TAB instead of 8 spaces?)", state.where)
            raise MakeError("missing separator", state.where)
        grouped = colon > 0 and text[colon - 1] == "&"
        names = _expand_names(self, text[: colon - 1 if grouped else colon])
        behind = text[colon + 1 :]
        double = behind.startswith(":")
        behind = behind[1:] if double else behind
        self._started = True
        static = _rule_colon(behind)
        self._recipe = None
        if static != -1:
            self._static(names, behind[:static].split(), behind[static + 1 :], double=double)
        elif names and all(find_percent(name) != -1 for name in names):
            self._pattern(names, behind, double=double)
        elif any(find_percent(name) != -1 for name in names):
            raise MakeError("mixed implicit and normal rules", state.where)
        else:
            self._explicit(names, behind, double=double, grouped=grouped)
        if inline is not None:
            self._add_recipe(inline, int(state.where.rpartition(":")[2] or 0) if not self._fixed else 0)

    def _target_variable(self, names: list[str], assignment: tuple[str, str, str], modifiers: str) -> None:
        state = self.state
        name, operator, text = assignment
        origin = Origin.OVERRIDE if "override" in modifiers else Origin.FILE
        for target in names:
            if find_percent(target) != -1:
                scope = Scope({}, state.scope)
                state.pattern_scopes.append((target, scope))
            else:
                scope = state.target(target).scope
            state.define(scope, state.expand(name).strip(), operator, text, origin, local=True)
            if "export" in modifiers:
                state.exported[name.strip()] = True

    def _split(self, text: str) -> tuple[list[str], list[str]]:
        normal, _, order_only = text.partition("|")
        return _expand_names(self, normal), _expand_names(self, order_only)

    def _explicit(self, names: list[str], behind: str, *, double: bool, grouped: bool) -> None:
        state = self.state
        normal, order_only = self._split(behind)
        rule: list[Target] = []
        for name in names:
            if name in _SPECIAL and self._special(name, normal):
                if name == ".DEFAULT":
                    state.default = Target(name)
                    rule.append(state.default)
                continue
            if self._suffix_rule(name, normal):
                return
            target = state.target(name)
            target.is_target = True
            if double:
                part = Target(name, list(normal), list(order_only), is_target=True)
                target.double.append(part)
                rule.append(part)
            else:
                rule.append(target)
                self._add_prerequisites(target, normal, order_only)
            if grouped:
                target.group = [other for other in names if other != name]
            self._first(name)
        self._rule = rule

    def _add_prerequisites(self, target: Target, normal: list[str], order_only: list[str]) -> None:
        if self.state.second_expansion and any("$" in word for word in normal + order_only):
            target.later.append(" ".join(normal) + (" | " + " ".join(order_only) if order_only else ""))
            return
        target.prerequisites += normal
        target.order_only += order_only

    def _first(self, name: str) -> None:
        state = self.state
        if not state.goal and (not name.startswith(".") or "/" in name):
            state.goal = name
            state.define(state.scope, ".DEFAULT_GOAL", ":=", name.replace("$", "$$"), Origin.FILE)

    def _special(self, name: str, names: list[str]) -> bool:
        state = self.state
        match name:
            case ".PHONY":
                for target in names:
                    state.target(target).phony = True
            case ".SUFFIXES":
                state.suffixes = state.suffixes + names if names else []
            case ".SECONDEXPANSION":
                state.second_expansion = True
            case ".EXPORT_ALL_VARIABLES":
                state.export_all = True
        if name != ".PHONY":
            known = state.specials.setdefault(name, set(names))
            if known and not names:
                known.clear()
            known.update(names if known or name not in state.specials else ())
        return True

    def _suffix_rule(self, name: str, normal: list[str]) -> bool:
        """`.c.o:` is `%.o: %.c`, and `.c:` is `%: %.c`."""
        suffixes = self.state.suffixes
        if not name.startswith(".") or normal:
            return False
        if name in suffixes:
            pattern = Pattern(["%"], ["%" + name], [], None)
        else:
            pairs = [(a, name[len(a) :]) for a in suffixes if name.startswith(a) and name[len(a) :] in suffixes]
            if not pairs:
                return False
            pattern = Pattern(["%" + pairs[0][1]], ["%" + pairs[0][0]], [], None)
        self.state.patterns.append(pattern)
        self._rule = pattern
        return True

    def _pattern(self, names: list[str], behind: str, *, double: bool) -> None:
        normal, order_only = self._split(behind)
        pattern = Pattern(names, normal, order_only, None, terminal=double)
        for old in self.state.patterns:
            if old.targets == names and old.prerequisites == normal:
                self.state.patterns.remove(old)
                break
        self.state.patterns.append(pattern)
        self._rule = pattern

    def _static(self, names: list[str], patterns: list[str], behind: str, *, double: bool) -> None:
        state = self.state
        normal, order_only = self._split(behind)
        rule: list[Target] = []
        if not patterns:
            raise MakeError("missing target pattern", state.where)
        if len(patterns) > 1:
            raise MakeError("multiple target patterns", state.where)
        if find_percent(patterns[0]) == -1:
            raise MakeError("target pattern contains no '%'", state.where)
        for name in names:
            stem = stem_of(patterns[0], name)
            if stem is None:
                state.process.error(f"{state.where}: target '{name}' doesn't match the target pattern\n")
                continue
            target = state.target(name)
            target.is_target = True
            filled = [fill(word, stem) for word in normal]
            extra = [fill(word, stem) for word in order_only]
            if double:
                target.double.append(Target(name, filled, extra, is_target=True, stem=stem))
                rule.append(target.double[-1])
            else:
                self._add_prerequisites(target, filled, extra)
                target.stem = stem
                rule.append(target)
            self._first(name)
        self._rule = rule


def _expand_names(reader: Reader, text: str) -> list[str]:
    """Words, with wildcards that match something replaced."""
    names: list[str] = []
    for word in text.split():
        if any(char in word for char in "*?["):
            names += glob(reader.state.process, word) or [word]
        else:
            names.append(word[2:].lstrip("/") if word.startswith("./") and len(word) > 2 else word)
    return names


def _rule_colon(text: str) -> int:
    """The colon that ends the targets; -1 if there is none, or it is part of an assignment."""
    at = find_outside(text, ":")
    while at != -1 and at > 0 and text[at - 1] == "\\":
        at = find_outside(text, ":", at + 1)
    return at


def parse_assignment(text: str) -> tuple[str, str, str] | None:
    """`NAME OP TEXT`; None if it is none: a colon of a rule comes first, or there are several words before."""
    at = find_outside(text, "=:?+!")
    while at != -1:
        match = _ASSIGN.match(text, at)
        if match is not None and match.start(1) == at:
            name = text[:at].rstrip()
            if not name or find_outside(name, " \t") != -1:
                return None
            return name, match[1], match[2]
        if text[at] == ":":
            return None
        at = find_outside(text, "=:?+!", at + 1)
    return None


def _is_assignment(text: str) -> bool:
    return parse_assignment(text) is not None or text.split(None, 1)[0] in ("include", "-include", "export", "define")


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _join_lines(line: str) -> str:
    """Continued lines as one: the break and the space around it are one space."""
    if "\n" not in line:
        return line
    return re.sub(r"[ \t]*\\\n[ \t]*", " ", line)


def _strip_comment(line: str) -> str:
    at = line.find("#")
    while at != -1:
        slashes = at - len(line[:at].rstrip("\\"))
        if slashes % 2 == 0:
            return line[: at - slashes // 2]
        line = line[: at - (slashes + 1) // 2] + line[at:]
        at = line.find("#", at)
    return line
