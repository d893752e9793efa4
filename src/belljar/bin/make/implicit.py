"""The search for a rule to make a target that none was given for: patterns, shortest stem first, chained if need be."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin.make.rules import Pattern
from belljar.bin.make.state import State
from belljar.bin.make.words import fill, split_percent, stem_of


@dataclass(slots=True)
class Found:
    """A rule that fits: the stem, and the prerequisites it then has."""

    pattern: Pattern
    stem: str
    prerequisites: list[str]
    order_only: list[str]
    group: list[str]


class Search:
    def __init__(self, state: State) -> None:
        self._state = state
        self._builtin = state.builtin

    def exists(self, name: str) -> bool:
        if not self._state.process.fs.exists(name):
            return self.by_vpath(name) is not None
        return True

    def by_vpath(self, name: str) -> str | None:
        """Return where VPATH and vpath find a file that is not here."""
        state = self._state
        if name.startswith("/"):
            return None
        directories = [d for pattern, ds in state.vpaths if stem_of(pattern, name) is not None for d in ds]
        everywhere = state.expander.value("VPATH", state.scope)
        directories += [d for word in everywhere.split() for d in word.split(":") if d]
        for directory in directories:
            path = f"{directory.rstrip('/')}/{name}"
            if not state.process.fs.exists(path):
                continue
            return path
        return None

    def find(self, name: str, using: tuple[int, ...] = (), depth: int = 0) -> Found | None:
        """Rules whose prerequisites all exist or are mentioned come first; then those that other rules can make."""
        state = self._state
        candidates: list[tuple[int, int, Pattern, str, str]] = []
        for order, pattern in enumerate([*state.patterns, *self._builtin]):
            state.process.budget.charge()
            if pattern.recipe is None or id(pattern) in using:
                continue
            for target in pattern.targets:
                match = _match(target, name)
                if match is None:
                    continue
                directory, stem = match
                if target == "%" and not pattern.terminal and depth and pattern.builtin:
                    continue
                candidates.append((len(stem), order, pattern, directory, stem))
        candidates.sort(key=lambda entry: entry[:2])
        for chained in (False, True):
            for _, _, pattern, directory, stem in candidates:
                if chained and (pattern.terminal or depth > 8):
                    continue
                normal = [_place(word, directory, stem) for word in pattern.prerequisites]
                fits = all(
                    self._possible(word, (*using, id(pattern)), depth, chained=chained and not pattern.terminal)
                    for word in normal
                )
                if fits:
                    return Found(
                        pattern,
                        directory + stem,
                        normal,
                        [_place(word, directory, stem) for word in pattern.order_only],
                        [g for t in pattern.targets if (g := _place(t, directory, stem)) != name],
                    )
        return None

    def _possible(self, name: str, using: tuple[int, ...], depth: int, *, chained: bool) -> bool:
        target = self._state.targets.get(name)
        if target is not None and (target.is_target or target.phony or target.double):
            return True
        if self.exists(name):
            return True
        return chained and self.find(name, using, depth + 1) is not None


def _match(pattern: str, name: str) -> tuple[str, str] | None:
    """The directory and stem; a pattern without a slash is compared with the name behind the last one."""
    stem = stem_of(pattern, name)
    if "/" in pattern or "/" not in name:
        return ("", stem) if stem else None
    at = name.rfind("/") + 1
    stem = stem_of(pattern, name[at:])
    return (name[:at], stem) if stem else None


def _place(word: str, directory: str, stem: str) -> str:
    if split_percent(word) is None:
        return word
    if directory and not word.startswith("/"):
        return directory + fill(word, stem) if "/" not in word else fill(word, directory + stem)
    return fill(word, stem)
