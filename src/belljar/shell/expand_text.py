"""Expansion of strings given at run time: globs, tildes, prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.abi.paths import fsdecode
from belljar.libc.pattern import is_pattern
from belljar.shell.control import ExpansionError
from belljar.shell.glob import GlobOptions, glob, split_ignored

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


class Expansion:
    """A shell's expansions."""

    def join(self: Shell, values: list[str], separator: str | None = None) -> str:  # type: ignore[misc]
        """The values of "$*" as one string."""
        size = sum(map(len, values))
        if size > 65536:
            self.budget.charge_size(size)
        return (self.ifs.joiner if separator is None else separator).join(values)

    def arith(self: Shell, expression: str) -> int:  # type: ignore[misc]
        """The value of an arithmetic expression given as text (no `$` expansion any more). ArithError."""
        from belljar.shell.compile.arith_values import evaluate

        return evaluate(self, expression)

    def expand_string(self: Shell, text: str) -> str:  # type: ignore[misc]
        """Parameter, command and arithmetic expansion as within double quotes (PS1, PS4, `@P`)."""
        from belljar.shell.compile.words import compile_quoted
        from belljar.shell.parse import parse_here_text

        return compile_quoted(parse_here_text(text).parts)(self)

    def expand_prompt(self: Shell, text: str) -> str:  # type: ignore[misc]
        """Prompt escapes, then the expansions of double quotes."""
        from belljar.shell.prompt import expand_prompt

        return expand_prompt(self, text)

    def expand_glob(self: Shell, pattern: str, text: str) -> list[str]:  # type: ignore[misc]
        """The files that match, or the word itself if there are none (unless nullglob or failglob)."""
        shopts = self.shopts
        ignore = self.vars.get("GLOBIGNORE")
        if not is_pattern(pattern, extglob=self.extglob):
            return [text]
        options = GlobOptions(
            dotglob=shopts["dotglob"],
            extglob=self.extglob,
            globstar=shopts["globstar"],
            nocase=shopts["nocaseglob"],
            bytewise=self.byte_locale,
            skip_dots=shopts["globskipdots"],
            ignore=split_ignored(ignore) if ignore else (),
        )
        found = glob(self.process, pattern, options)
        if found:
            return found
        if shopts["failglob"]:
            raise ExpansionError(f"no match: {text}")
        return [] if shopts["nullglob"] else [text]

    def expand_tilde(self: Shell, user: str) -> str:  # type: ignore[misc]
        """~user; what can't be resolved stays as it is."""
        if user == "":
            home = self.vars.get("HOME")
            return home if home is not None else self.home_of(None) or "~"
        if user == "+":
            return self.vars.get("PWD") or "~+"
        if user == "-":
            return self.vars.get("OLDPWD") or "~-"
        digits = user.lstrip("+-")
        if digits.isdecimal() and len(digits) < 10 and len(user) - len(digits) <= 1:
            stack = [self.vars.get("PWD") or "", *self.directories]
            place = int(digits) if user[0] != "-" else len(stack) - 1 - int(digits)
            return stack[place] if 0 <= place < len(stack) else f"~{user}"
        return self.home_of(user) or f"~{user}"

    def home_of(self: Shell, user: str | None) -> str | None:  # type: ignore[misc]
        data = fsdecode(self.process.try_read("/etc/passwd") or b"")
        for line in data.splitlines():
            fields = line.split(":")
            if len(fields) > 5 and (
                fields[0] == user if user is not None else fields[2] == str(self.process.fs.credentials.uid)
            ):
                return fields[5]
        return None
