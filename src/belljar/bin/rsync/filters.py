"""rsync's include and exclude rules, in the order they were given: the first that matches decides."""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.kernel.process import Process

_OPTIONS = ("--exclude", "--include", "--exclude-from", "--include-from", "--filter", "-f")


@dataclass(frozen=True, slots=True)
class Rule:
    pattern: re.Pattern[str]
    excludes: bool
    only_directories: bool


class Rules:
    def __init__(self, rules: list[Rule]) -> None:
        self._rules = rules

    def excludes(self, path: str, *, directory: bool) -> bool:
        """`path` is relative to the root of the transfer."""
        for rule in self._rules:
            if (directory or not rule.only_directories) and rule.pattern.fullmatch(path):
                return rule.excludes
        return False


def parse_rules(process: Process, args: list[str]) -> Rules:
    """Parse the rules from the command line itself: the order of different options matters. SysError for a list."""
    rules: list[Rule] = []
    index = 0
    while index < len(args) and args[index] != "--":
        name, equals, text = args[index].partition("=")
        index += 1
        if name not in _OPTIONS:
            continue
        if not equals:
            if index >= len(args):
                break
            text = args[index]
            index += 1
        match name:
            case "--exclude" | "--include":
                rules.append(_rule(text, excludes=name == "--exclude"))
            case "--filter" | "-f":
                rules += _filter(text)
            case _:
                rules += _listed(process, text, excludes=name == "--exclude-from")
    return Rules(rules)


def _filter(text: str) -> list[Rule]:
    words = text.split(None, 1)
    if len(words) == 2 and words[0] in ("-", "+", "exclude", "include"):
        return [_rule(words[1], excludes=words[0] in ("-", "exclude"))]
    return []


def _listed(process: Process, name: str, *, excludes: bool) -> list[Rule]:
    try:
        text = fsdecode(process.read_file(name))
    except SysError as error:
        raise SysError(error.errno, name) from None
    lines = [line.strip() for line in text.splitlines()]
    return [_rule(line, excludes=excludes) for line in lines if line and line[0] not in "#;"]


def _rule(text: str, *, excludes: bool) -> Rule:
    if text[:2] in ("- ", "+ "):
        excludes, text = text[0] == "-", text[2:]
    anchored = text.startswith("/")
    text = text.removeprefix("/")
    inside = text.endswith("/***")
    text = text.removesuffix("/***")
    only_directories = text.endswith("/")
    pattern = _translate(text.rstrip("/"))
    if not anchored:
        pattern = f"(?:.*/)?{pattern}"
    if inside:
        pattern += "(?:/.*)?"
    return Rule(re.compile(pattern, re.DOTALL), excludes, only_directories)


def _translate(glob: str) -> str:
    out: list[str] = []
    index = 0
    while index < len(glob):
        char = glob[index]
        index += 1
        if char == "*":
            if glob[index : index + 1] == "*":
                index += 1
                out.append(".*")
            else:
                out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[" and (end := glob.find("]", index + 1)) > 0:
            inner = glob[index:end].replace("\\", "\\\\")
            out.append("[" + ("^" + inner[1:] if inner[:1] in "!^" else inner) + "]")
            index = end + 1
        elif char == "\\" and index < len(glob):
            out.append(re.escape(glob[index]))
            index += 1
        else:
            out.append(re.escape(char))
    return "".join(out)
