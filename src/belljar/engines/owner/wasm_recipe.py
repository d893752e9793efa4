"""Build recipes: the WebAssembly commands to be built from a directory.

`Cargo.toml` makes it Rust's. Else it is C and C++: `belljar.toml` names the commands, and without one all sources
together are one command, called as the directory is.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

FILE: Final = "belljar.toml"
CARGO: Final = "Cargo.toml"
C: Final = (".c",)
CPLUSPLUS: Final = (".cc", ".cpp", ".cxx")
_NAME: Final = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9_.+-]*")


class BadRecipe(ValueError):
    """The directory does not say what to build; says what is wrong and what would be right."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program to build: its name in a sandbox, its source files and what else its compiler is told."""

    name: str
    sources: tuple[str, ...]
    flags: tuple[str, ...] = ()

    @property
    def is_cplusplus(self) -> bool:
        return any(source.endswith(CPLUSPLUS) for source in self.sources)


def is_rust(files: Sequence[str]) -> bool:
    """Whether cargo is to build it. Raises BadRecipe if it says two things."""
    if CARGO in files and FILE in files:
        raise BadRecipe(f"there are a {CARGO} and a {FILE}: keep the first for Rust, the second for C and C++")
    return CARGO in files


def parse_commands(directory: str, files: Sequence[str], text: str | None) -> list[Command]:
    """The commands of C and C++. `files` are paths below the directory, `text` is its `belljar.toml`. BadRecipe."""
    sources = sorted(name for name in files if name.endswith(C + CPLUSPLUS))
    if text is None:
        here = tuple(name for name in sources if "/" not in name)
        if not here:
            raise BadRecipe(f"nothing to build: it has no {CARGO}, no {FILE} and no C or C++ source")
        return [Command(_check_name(directory), here)]
    try:
        recipe = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadRecipe(f"{FILE}: {error}") from None
    _check_keys(recipe, {"flags", "commands"}, FILE)
    table = recipe.get("commands")
    if not isinstance(table, dict) or not table:
        raise BadRecipe(f'{FILE}: names no command; each is a table: [commands.NAME] with sources = ["*.c"]')
    shared = _strings(recipe, "flags", FILE)
    return [_parse_command(name, entry, shared, sources) for name, entry in table.items()]


def _parse_command(name: str, entry: object, shared: tuple[str, ...], sources: Sequence[str]) -> Command:
    where = f"{FILE}: commands.{name}"
    _check_name(name)
    if not isinstance(entry, dict):
        raise BadRecipe(f"{where}: is no table")
    _check_keys(entry, {"sources", "flags"}, where)
    patterns = _strings(entry, "sources", where)
    if not patterns:
        raise BadRecipe(f'{where}: needs sources, such as ["*.c"]')
    found: dict[str, None] = {}
    for pattern in patterns:
        matching = [source for source in sources if _matches(source, pattern)]
        if not matching:
            raise BadRecipe(f"{where}: no source here is called {pattern!r}")
        found.update(dict.fromkeys(matching))
    return Command(name, tuple(found), shared + _strings(entry, "flags", where))


def _matches(path: str, pattern: str) -> bool:
    """Match a path as a shell does: `*` does not match a slash."""
    names, patterns = path.split("/"), pattern.split("/")
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise BadRecipe(f"{name!r} can't be a command's name: use letters, digits and . _ + -")
    return name


def _check_keys(table: dict[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise BadRecipe(f"{where}: unknown: {', '.join(unknown)}; known: {', '.join(sorted(known))}")


def _strings(table: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    found = table.get(key, [])
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise BadRecipe(f"{where}: {key} must be a list of strings")
    return tuple(found)
