"""make's functions: text, names of files, conditions, and those that reach outside."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_TRUNC, O_WRONLY
from belljar.abi.paths import fsdecode, fsencode, normalise
from belljar.bin._kit.realpath import real_path
from belljar.bin.make.variables import ORIGIN_NAMES, MakeError, Origin, Scope, Variable
from belljar.bin.make.words import directory, not_directory, patsubst, split_arguments, stem_of, suffix, without_suffix
from belljar.shell.glob import glob

if TYPE_CHECKING:
    from belljar.bin.make.state import State

Function = Callable[[Scope], str]
_NAME = re.compile(r"([a-z-]+)(?:[ \t\n]+|$)", re.S)
_UNLIMITED = 0


class Functions:
    """Finds the function a reference calls. Most take their arguments expanded; a few expand them as they need."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._plain: dict[str, tuple[int, int, Callable[..., str]]] = {
            "subst": (3, 3, lambda a, b, text: text.replace(a, b) if a else text + b),
            "patsubst": (3, 3, lambda a, b, text: _join(patsubst(a.strip(), b.strip(), text.split()))),
            "strip": (1, 1, lambda text: _join(text.split())),
            "findstring": (2, 2, lambda a, text: a if a in text else ""),
            "filter": (2, 2, lambda patterns, text: self._filter(patterns, text, True)),
            "filter-out": (2, 2, lambda patterns, text: self._filter(patterns, text, False)),
            "sort": (1, 1, lambda text: _join(sorted(set(text.split()), key=fsencode))),
            "word": (2, 2, self._word),
            "words": (1, 1, lambda text: str(len(text.split()))),
            "wordlist": (3, 3, self._wordlist),
            "firstword": (1, 1, lambda text: _join(text.split()[:1])),
            "lastword": (1, 1, lambda text: _join(text.split()[-1:])),
            "dir": (1, 1, lambda text: _join([directory(word) for word in text.split()])),
            "notdir": (1, 1, lambda text: _join([not_directory(word) for word in text.split()])),
            "suffix": (1, 1, lambda text: _join([s for word in text.split() if (s := suffix(word))])),
            "basename": (1, 1, lambda text: _join([without_suffix(word) for word in text.split()])),
            "addsuffix": (2, 2, lambda a, text: _join([word + a for word in text.split()])),
            "addprefix": (2, 2, lambda a, text: _join([a + word for word in text.split()])),
            "join": (2, 2, _pairwise),
            "wildcard": (1, 1, self._wildcard),
            "realpath": (1, 1, self._realpath),
            "abspath": (1, 1, lambda text: _join([normalise(state.process.absolute(w)) for w in text.split()])),
            "shell": (1, 1, state.shell),
            "error": (1, 1, self._error),
            "warning": (1, 1, self._warning),
            "info": (1, 1, self._info),
            "origin": (1, 1, self._origin),
            "flavor": (1, 1, self._flavor),
            "file": (1, 2, self._file),
        }
        self._lazy: dict[str, tuple[int, Callable[[Scope, list[str]], str]]] = {
            "if": (3, self._if),
            "or": (_UNLIMITED, self._or),
            "and": (_UNLIMITED, self._and),
            "foreach": (3, self._foreach),
            "call": (_UNLIMITED, self._call),
            "value": (1, self._value),
            "eval": (1, self._eval),
        }

    def find(self, inside: str) -> Function | None:
        """The call that a reference is; None if it names a variable."""
        match = _NAME.match(inside)
        if match is None:
            return None
        name = match[1]
        rest = inside[match.end() :]
        if name in self._plain:
            least, most, function = self._plain[name]
            if not rest and match.end() == len(inside) and not inside.endswith((" ", "\t")) and name not in ("info",):
                return None
            arguments = split_arguments(rest, most)
            if len(arguments) < least:
                raise MakeError(
                    f"insufficient number of arguments ({len(arguments)}) to function '{name}'", self._state.where
                )
            expand = self._state.expander.expand
            return lambda scope: self._paid(function(*[expand(argument, scope) for argument in arguments]))
        if name in self._lazy and rest:
            most, lazy = self._lazy[name]
            arguments = split_arguments(rest, most)
            return lambda scope: lazy(scope, arguments)
        return None

    def _paid(self, text: str) -> str:
        self._state.process.budget.charge_size(len(text))
        self._state.process.budget.charge(len(text) >> 8)
        return text

    # Text.

    def _filter(self, patterns: str, text: str, wanted: bool) -> str:
        choices = patterns.split()
        words = text.split()
        self._state.process.budget.charge(len(choices) * len(words) >> 3)
        plain = {choice for choice in choices if "%" not in choice}
        wild = [choice for choice in choices if "%" in choice]
        return _join([w for w in words if (w in plain or any(stem_of(p, w) is not None for p in wild)) is wanted])

    def _number(self, text: str, function: str, place: str) -> int:
        if not text.strip().isdecimal():
            raise MakeError(f"non-numeric {place} argument to '{function}' function: '{text}'", self._state.where)
        return int(text.strip()[:18])

    def _word(self, index: str, text: str) -> str:
        at = self._number(index, "word", "first")
        if at == 0:
            raise MakeError("first argument to 'word' function must be greater than 0", self._state.where)
        return _join(text.split()[at - 1 : at])

    def _wordlist(self, first: str, last: str, text: str) -> str:
        start, end = self._number(first, "wordlist", "first"), self._number(last, "wordlist", "second")
        if start == 0:
            raise MakeError("invalid first argument to 'wordlist' function: '0'", self._state.where)
        return _join(text.split()[start - 1 : end])

    # Files.

    def _wildcard(self, text: str) -> str:
        found: list[str] = []
        for pattern in text.split():
            if any(char in pattern for char in "*?["):
                found += glob(self._state.process, pattern)
            else:
                if not self._state.process.fs.exists(pattern):
                    continue
                found.append(pattern)
        return _join(found)

    def _realpath(self, text: str) -> str:
        found = []
        for word in text.split():
            try:
                found.append(real_path(self._state.process, word))
            except SysError:
                continue
        return _join(found)

    def _file(self, target: str, text: str | None = None) -> str:
        process = self._state.process
        target = target.strip()
        operator = ">>" if target.startswith(">>") else target[:1]
        name = target[len(operator) :].strip() if operator in (">", ">>", "<") else target
        try:
            if operator == "<":
                return fsdecode(process.read_file(name)).removesuffix("\n")
            if operator not in (">", ">>"):
                raise MakeError(f"file: invalid file operation: {target}", self._state.where)
            flags = O_WRONLY | O_CREAT | (O_APPEND if operator == ">>" else O_TRUNC)
            data = "" if text is None else text if text.endswith("\n") else text + "\n"
            process.write_file(name, fsencode(data), flags=flags)
        except SysError as error:
            if operator == "<":
                return ""
            raise MakeError(f"open: {name}: {error.reason}", self._state.where) from None
        return ""

    # Messages.

    def _error(self, text: str) -> str:
        raise MakeError(text, self._state.where)

    def _warning(self, text: str) -> str:
        self._state.process.stdout.flush()
        self._state.process.error(f"{self._state.where}: {text}\n" if self._state.where else f"{text}\n")
        return ""

    def _info(self, text: str) -> str:
        self._state.process.print(text)
        return ""

    # Variables.

    def _origin(self, name: str) -> str:
        found = self._state.scope.find(name.strip())
        return "undefined" if found is None else ORIGIN_NAMES[found.origin]

    def _flavor(self, name: str) -> str:
        found = self._state.scope.find(name.strip())
        return "undefined" if found is None else "simple" if found.simple else "recursive"

    # Those that expand their arguments themselves.

    def _if(self, scope: Scope, arguments: list[str]) -> str:
        expand = self._state.expander.expand
        if expand(arguments[0].strip(), scope):
            return expand(arguments[1], scope) if len(arguments) > 1 else ""
        return expand(arguments[2], scope) if len(arguments) > 2 else ""

    def _or(self, scope: Scope, arguments: list[str]) -> str:
        for argument in arguments:
            if found := self._state.expander.expand(argument.strip(), scope):
                return found
        return ""

    def _and(self, scope: Scope, arguments: list[str]) -> str:
        found = ""
        for argument in arguments:
            found = self._state.expander.expand(argument.strip(), scope)
            if not found:
                return ""
        return found

    def _foreach(self, scope: Scope, arguments: list[str]) -> str:
        if len(arguments) < 3:
            raise MakeError(
                f"insufficient number of arguments ({len(arguments)}) to function 'foreach'", self._state.where
            )
        expand = self._state.expander.expand
        name = expand(arguments[0].strip(), scope)
        inner = Scope({}, scope)
        out: list[str] = []
        size = 0
        for word in expand(arguments[1], scope).split():
            self._state.process.budget.charge()
            inner.variables[name] = Variable(word, True, Origin.AUTOMATIC)
            out.append(expand(arguments[2], inner))
            size += len(out[-1]) + 1
            self._state.process.budget.charge_size(size)
        return _join(out)

    def _call(self, scope: Scope, arguments: list[str]) -> str:
        state = self._state
        expand = state.expander.expand
        name = expand(arguments[0], scope).strip()
        values = [name, *[expand(argument, scope) for argument in arguments[1:]]]
        builtin = self._plain.get(name)
        if builtin is not None:
            return self._paid(builtin[2](*values[1:]))
        if name in self._lazy:
            return self._lazy[name][1](scope, values[1:])
        found = scope.find(name)
        if found is None:
            return ""
        inner = Scope({str(i): Variable(text, True, Origin.AUTOMATIC) for i, text in enumerate(values)}, scope)
        for index in range(len(values), 10):
            inner.variables[str(index)] = Variable("", True, Origin.AUTOMATIC)
        return found.value if found.simple else state.expander.calling(name, found.value, inner)

    def _value(self, scope: Scope, arguments: list[str]) -> str:
        found = scope.find(self._state.expander.expand(arguments[0], scope).strip())
        return "" if found is None else found.value

    def _eval(self, scope: Scope, arguments: list[str]) -> str:
        self._state.evaluate(self._state.expander.expand(arguments[0], scope))
        return ""


def _pairwise(first: str, second: str) -> str:
    left, right = first.split(), second.split()
    size = max(len(left), len(right))
    left += [""] * (size - len(left))
    right += [""] * (size - len(right))
    return _join([a + b for a, b in zip(left, right, strict=True)])


def _join(words: list[str]) -> str:
    return " ".join(words)
