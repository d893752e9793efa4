"""gitignore rules: which paths a list of globs excludes, the last rule that matches deciding."""

from __future__ import annotations

import re
from functools import lru_cache

from belljar.abi.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    matches: re.Pattern[str]
    negated: bool
    only_directories: bool


class Rules:
    """The globs of one file, relative to the directory it is in."""

    def __init__(self, lines: list[str], *, ignore_case: bool = False) -> None:
        self.rules = [rule for line in lines if (rule := parse_rule(line, ignore_case)) is not None]

    def decide(self, path: str, *, directory: bool) -> bool | None:
        """True: excluded, False: included by a negated rule, None: no rule is about it."""
        for rule in reversed(self.rules):
            if rule.only_directories and not directory:
                continue
            if rule.matches.fullmatch(path):
                return not rule.negated
        return None


@lru_cache(maxsize=512)
def parse_rule(line: str, ignore_case: bool = False) -> Rule | None:
    """One line of a .gitignore; None for blank lines and comments."""
    line = line.rstrip("\r\n")
    if not line.endswith("\\ "):
        line = line.rstrip(" ")
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    if negated:
        line = line[1:]
    only_directories = line.endswith("/")
    line = line.rstrip("/") if only_directories else line
    if not line:
        return None
    anchored = "/" in line
    line = line.removeprefix("/")
    text = glob_to_regex(line)
    if not anchored:
        text = f"(?:.*/)?{text}"
    return Rule(re.compile(text, re.DOTALL | (re.IGNORECASE if ignore_case else 0)), negated, only_directories)


def glob_to_regex(glob: str) -> str:
    """A path glob: * and ? stay within a component, ** crosses them, {a,b} is a choice."""
    out: list[str] = []
    pos = depth = 0
    while pos < len(glob):
        char = glob[pos]
        if glob.startswith("**/", pos) and (pos == 0 or glob[pos - 1] == "/"):
            out.append("(?:.*/)?")
            pos += 3
            continue
        if glob.startswith("**", pos):
            # runs of stars collapse: nested quantifiers would backtrack without end
            while pos < len(glob) and glob[pos] == "*":
                pos += 1
            out.append(".*")
            continue
        pos += 1
        if char == "*":
            out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[":
            end = glob.find("]", pos + (glob[pos : pos + 1] in ("!", "^", "]")) + 1)
            if end < 0:
                out.append("\\[")
                continue
            body = glob[pos:end]
            negated = body[:1] in ("!", "^")
            members = re.sub(r"([\[\\&~|^])", r"\\\1", body[1:] if negated else body)
            out.append(f"[{'^/' if negated else ''}{members}]")
            pos = end + 1
        elif char == "\\" and pos < len(glob):
            out.append(re.escape(glob[pos]))
            pos += 1
        elif char == "{" and "}" in glob[pos:]:
            out.append("(?:")
            depth += 1
        elif char == "}" and depth:
            out.append(")")
            depth -= 1
        elif char == "," and depth:
            out.append("|")
        else:
            out.append(re.escape(char))
    return "".join(out) + ")" * depth
