"""Attributes of paths: .gitattributes files and .git/info/attributes."""

from __future__ import annotations

from dulwich.ignore import IgnoreFilter

from belljar.abi.paths import fsencode
from belljar.bin.git.repository.pathspec import folders_above
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import text_of

_BINARY = {"diff": "unset", "merge": "unset", "text": "unset"}
Line = tuple[IgnoreFilter, list[str]]


class Attributes:
    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._lines: dict[str, list[Line]] = {}
        self._macros: dict[str, dict[str, str]] = {"binary": _BINARY}
        self._info = self._load(f"{repo.common}/info/attributes")

    def _load(self, path: str) -> list[Line]:
        text = text_of(self._repo.process.try_read(path) or b"")
        found: list[Line] = []
        for line in text.split("\n"):
            pattern, *states = line.split() or [""]
            if not pattern or pattern.startswith(("#", "!")):
                continue
            self._repo.process.budget.charge()
            if pattern.startswith("[attr]"):
                self._macros[pattern[6:]] = dict(map(_state, states))
                continue
            found.append((IgnoreFilter([fsencode(pattern)]), states))
        return found

    def of(self, path: str) -> dict[str, str]:
        """Attributes to `set`, `unset`, or their values; the nearest file wins."""
        found: dict[str, str] = {}
        for folder in ("", *folders_above(path)):
            if folder not in self._lines:
                name = f"{folder}/.gitattributes" if folder else ".gitattributes"
                self._lines[folder] = self._load(self._repo.path(name))
            self._take(found, self._lines[folder], path[len(folder) + 1 :] if folder else path)
        self._take(found, self._info, path)
        return found

    def _take(self, found: dict[str, str], lines: list[Line], path: str) -> None:
        for pattern, states in lines:
            if not pattern.is_ignored(path):
                continue
            for name, state in map(_state, states):
                if name in self._macros and state == "set":
                    found.update(self._macros[name])
                found[name] = state


def _state(word: str) -> tuple[str, str]:
    if word.startswith("-"):
        return word[1:], "unset"
    if word.startswith("!"):
        return word[1:], "unspecified"
    name, equals, value = word.partition("=")
    return name, value if equals else "set"
