"""Member names: which are meant or excluded, how they are changed, and what makes one safe to use."""

from __future__ import annotations

import re
from functools import lru_cache

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError
from belljar.libc.pattern import Pattern, compile_pattern
from belljar.regex import compile as compile_regex


@dataclass(frozen=True, slots=True)
class NameRules:
    """How a pattern is compared with names."""

    wildcards: bool
    anchored: bool
    ignore_case: bool = False
    match_slash: bool = True


@dataclass(frozen=True, slots=True)
class Exclusion:
    pattern: str
    rules: NameRules

    def matches(self, name: str) -> bool:
        return matches(self.pattern, name, self.rules)


@lru_cache(maxsize=512)
def _compiled(pattern: str, nocase: bool) -> Pattern:
    return compile_pattern(pattern, extglob=False, nocase=nocase)


def matches(pattern: str, name: str, rules: NameRules) -> bool:
    """Whether a name, or a directory above it, is what the pattern means; unanchored, after any slash too."""
    pattern = pattern.rstrip("/") or pattern
    name = name.rstrip("/") or name
    starts = [0]
    if not rules.anchored:
        starts += [match.end() for match in re.finditer("/", name)]
    return any(_matches_at(pattern, name[start:], rules) for start in starts)


def _matches_at(pattern: str, name: str, rules: NameRules) -> bool:
    if not rules.wildcards:
        if rules.ignore_case:
            pattern, name = pattern.lower(), name.lower()
        return name == pattern or (name.startswith(pattern) and name[len(pattern) : len(pattern) + 1] == "/")
    compiled = _compiled(pattern, rules.ignore_case)
    ends = [match.start() for match in re.finditer("/", name)] + [len(name)]
    depth = pattern.count("/")
    for end in ends:
        part = name[:end]
        if not rules.match_slash and part.count("/") != depth:
            continue
        if compiled.matches(part):
            return True
    return False


def strip_components(name: str, count: int) -> str | None:
    """Remove that many leading directories; None if nothing is left."""
    slash = name.endswith("/")
    parts = [part for part in name.split("/") if part]
    left = parts[count:]
    if not left:
        return None
    return "/".join(left) + ("/" if slash else "")


def safe_prefix(name: str) -> str:
    """Return the prefix to remove so that a name can't leave its directory: up to the last `..`, and slashes."""
    cut = 0
    for match in re.finditer(r"(?:^|(?<=/))\.\.(?=/|$)/*", name):
        cut = match.end()
    while name[cut : cut + 1] == "/":
        cut += 1
    return name[:cut]


def climbs(link: str) -> bool:
    """Whether a link's target could lie outside: absolute, or with a `..` in it."""
    return link.startswith("/") or ".." in link.split("/")


@dataclass(frozen=True, slots=True)
class Transform:
    """One `s/from/to/flags` of --transform."""

    regex: object
    parts: tuple[str | int, ...]
    number: int
    all: bool
    scopes: frozenset[str]

    def apply(self, name: str, scope: str) -> str:
        if scope not in self.scopes:
            return name
        out: list[str] = []
        position = count = 0
        search = self.regex.search  # type: ignore[attr-defined]
        while position <= len(name):
            match = search(name, position)
            if match is None:
                break
            count += 1
            out.append(name[position : match.start()])
            if count >= self.number and (self.all or count == self.number):
                out += [part if isinstance(part, str) else match.group(part) or "" for part in self.parts]
            else:
                out.append(match.group(0))
            position = match.end()
            if match.start() == match.end():
                out.append(name[position : position + 1])
                position += 1
            if count >= self.number and not self.all:
                break
        out.append(name[position:])
        return "".join(out)


def parse_transform(text: str) -> list[Transform]:
    """Expressions of sed's s, separated by semicolons. Raises UsageError."""
    found: list[Transform] = []
    position = 0
    while position < len(text):
        if text[position] in "; \t":
            position += 1
            continue
        if text[position] != "s" or position + 1 >= len(text):
            raise UsageError("Invalid transform expression", hint=False)
        delimiter = text[position + 1]
        pieces: list[str] = []
        position += 2
        for _ in range(2):
            start = position
            while position < len(text) and text[position] != delimiter:
                position += 2 if text[position] == "\\" else 1
            if position >= len(text):
                raise UsageError("Invalid transform expression", hint=False)
            pieces.append(text[start:position].replace("\\" + delimiter, delimiter))
            position += 1
        start = position
        while position < len(text) and text[position] != ";":
            position += 1
        found.append(_transform(pieces[0], pieces[1], text[start:position]))
    return found


def _transform(pattern: str, replacement: str, flags: str) -> Transform:
    digits = re.search(r"\d+", flags)
    scopes = {"r", "s", "h"}
    for letter in flags:
        if letter in "rshRSH":
            scopes = scopes | {letter} if letter.islower() else scopes - {letter.lower()}
        elif letter not in "gixe0123456789":
            raise UsageError("Unknown flag in transform expression", hint=False)
    regex = compile_regex(pattern, syntax="sed-ere" if "x" in flags else "sed", ignore_case="i" in flags)
    parts: list[str | int] = []
    for match in re.finditer(r"\\(.)|(&)|([^\\&]+)", replacement, re.S):
        if match[2]:
            parts.append(0)
        elif match[3] is not None:
            parts.append(match[3])
        elif match[1].isdecimal():
            parts.append(int(match[1][:18]))
        else:
            parts.append({"n": "\n", "t": "\t"}.get(match[1], match[1]))
    return Transform(regex, tuple(parts), int(digits[0][:18]) if digits else 1, "g" in flags, frozenset(scopes))
