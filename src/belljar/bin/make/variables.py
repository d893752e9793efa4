"""make's variables: flavours, where they come from, who overrides whom, and $(references) expanded."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from belljar.abi.dataclass import dataclass, field
from belljar.bin.make.words import closing, directory, find_percent, not_directory, patsubst

if TYPE_CHECKING:
    from belljar.bin.make.state import State


class MakeError(Exception):
    """make stops: `where` is `Makefile:3`, or empty for make itself."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where


class Origin(IntEnum):
    """Later ones win."""

    DEFAULT = 0
    ENVIRONMENT = 1
    FILE = 2
    ENVIRONMENT_OVERRIDE = 3
    COMMAND_LINE = 4
    OVERRIDE = 5
    AUTOMATIC = 6


ORIGIN_NAMES = {
    Origin.DEFAULT: "default",
    Origin.ENVIRONMENT: "environment",
    Origin.FILE: "file",
    Origin.ENVIRONMENT_OVERRIDE: "environment override",
    Origin.COMMAND_LINE: "command line",
    Origin.OVERRIDE: "override",
    Origin.AUTOMATIC: "automatic",
}


@dataclass(slots=True)
class Variable:
    value: str
    simple: bool
    origin: Origin
    where: str = ""
    append: bool = False
    """A target's `+=`, which adds to what is outside when it is looked at."""


@dataclass(slots=True)
class Scope:
    """Variables of one target, then those of the target it is made for, ... then the global ones."""

    variables: dict[str, Variable] = field(default_factory=dict)
    outer: Scope | None = None

    def find(self, name: str) -> Variable | None:
        scope: Scope | None = self
        while scope is not None:
            found = scope.variables.get(name)
            if found is not None:
                return found
            scope = scope.outer
        return None


class Expander:
    """Expands text in a scope; functions are `state.functions`."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._open: list[str] = []

    def expand(self, text: str, scope: Scope) -> str:
        at = text.find("$")
        if at == -1:
            return text
        process = self._state.process
        parts: list[str] = []
        start = total = 0
        while at != -1:
            process.budget.charge()
            parts.append(text[start:at])
            total += at - start
            follower = text[at + 1 : at + 2]
            if not follower:
                start = at
                break
            if follower in "({":
                end = closing(text, at + 1)
                if end == -1:
                    raise MakeError("unterminated variable reference", self._state.where)
                value = self._reference(text[at + 2 : end], scope)
                start = end + 1
            elif follower == "$":
                value = "$"
                start = at + 2
            else:
                value = self.value(follower, scope)
                start = at + 2
            parts.append(value)
            total += len(value)
            process.budget.charge_size(total)
            at = text.find("$", start)
        parts.append(text[start:])
        return "".join(parts)

    def _reference(self, inside: str, scope: Scope) -> str:
        state = self._state
        function = state.functions.find(inside)
        if function is not None:
            state.process.enter()
            try:
                return function(scope)
            finally:
                state.process.leave()
        if "$" in inside:
            inside = self.expand(inside, scope)
        # $(name:a=b)
        colon = inside.find(":")
        equals = inside.find("=", colon + 1) if colon > 0 else -1
        if equals != -1:
            name, old, new = inside[:colon], inside[colon + 1 : equals], inside[equals + 1 :]
            if find_percent(old) == -1:
                old, new = "%" + old, "%" + new
            return " ".join(patsubst(old, new, self.value(name.strip(), scope).split()))
        return self.value(inside, scope)

    def value(self, name: str, scope: Scope) -> str:
        found = scope.find(name)
        if found is None:
            return self._part(name, scope)
        if found.append:
            holder: Scope | None = scope
            while holder is not None and holder.variables.get(name) is not found:
                holder = holder.outer
            before = self.value(name, holder.outer) if holder is not None and holder.outer is not None else ""
            mine = found.value if found.simple else self.expand(found.value, scope)
            return f"{before} {mine}" if before else mine
        if found.simple or "$" not in found.value:
            return found.value
        if name in self._open:
            raise MakeError(
                f"Recursive variable '{name}' references itself (eventually)", found.where or self._state.where
            )
        self._open.append(name)
        self._state.process.enter()
        try:
            return self.expand(found.value, scope)
        finally:
            self._open.pop()
            self._state.process.leave()

    def calling(self, name: str, value: str, scope: Scope) -> str:
        """A function made of a variable may call itself, unlike a variable."""
        saved = self._open
        self._open = [entry for entry in saved if entry != name]
        self._state.process.enter()
        try:
            return self.expand(value, scope)
        finally:
            self._open = saved
            self._state.process.leave()

    def _part(self, name: str, scope: Scope) -> str:
        """$(@D) and $(<F): directories and names of automatic variables."""
        if len(name) == 2 and name[1] in "DF" and name[0] in "@<^+?*%|":
            whole = scope.find(name[0])
            if whole is not None:
                if name[1] == "F":
                    return " ".join(not_directory(word) for word in whole.value.split())
                return " ".join(directory(word).rstrip("/") or "/" for word in whole.value.split())
        return ""
