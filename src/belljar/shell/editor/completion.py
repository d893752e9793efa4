"""Completion by Tab: the word before the cursor, its candidates, and how they are quoted and listed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from belljar.abi.errors import SysError
from belljar.libc.width import display_width
from belljar.shell.complete import Specification, generate

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

_BEFORE_COMMANDS: Final = frozenset("if then else elif while until do ! { time coproc exec command builtin".split())
_SEPARATORS: Final = "|&;(){}\n`"
_SPECIAL: Final = re.compile(r"([ \t\n\\'\"`$&|;<>(){}*?\[\]!#~=:])")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_VARIABLE: Final = re.compile(r"\$(\{?)(\w*)$")


class Word(Struct):
    """The word at the cursor: where it starts, what it means without its quotes, and what is around it."""

    start: int
    value: str = ""
    quote: str = ""
    words: list[str] = field(default_factory=list)
    """The words of the command before it."""
    redirected: bool = False

    @property
    def is_command(self) -> bool:
        return not self.words and not self.redirected


class Completion(Struct):
    """The replacement of the text from `start` to the cursor, and the candidates."""

    start: int
    replacement: str
    choices: list[str]


def find_word(line: str) -> Word:
    """The word that ends where the line does."""
    word = Word(0)
    place = 0
    fresh = True
    while place < len(line):
        char = line[place]
        after = line[place + 1 : place + 2]
        if word.quote == "'":
            if char == "'":
                word.quote = ""
            else:
                word.value += char
        elif line.startswith("$(", place):
            word, fresh, place = Word(place + 2), True, place + 1
        elif char == "\\" and (not word.quote or after in '"\\$`'):
            word.value += after
            fresh = False
            place += 1
        elif word.quote:
            if char == '"':
                word.quote = ""
            else:
                word.value += char
        elif char in "'\"":
            word.quote = char
            fresh = False
        elif char in " \t":
            word, fresh = _next_word(word, place + 1, ended=not fresh), True
        elif (
            char in _SEPARATORS and not (char == "{" and word.value.endswith("$")) and not (char in "{}" and not fresh)
        ):
            word, fresh = Word(place + 1), True
        elif char in "<>":
            word = _next_word(word, place + 1, ended=not fresh)
            word.redirected, fresh = True, True
        else:
            word.value += char
            fresh = False
        place += 1
    return word


def _next_word(word: Word, start: int, *, ended: bool) -> Word:
    if not ended:
        word.start = start
        return word
    if word.redirected:
        return Word(start, words=word.words)
    skipped = not word.words and (word.value in _BEFORE_COMMANDS or _ASSIGNMENT.match(word.value))
    return Word(start, words=word.words if skipped else [*word.words, word.value])


def complete(shell: Shell, line: str, rest: str = "") -> Completion:
    """The completions of the word at the end of `line`; `rest` is what follows the cursor."""
    word = find_word(line)
    variable = _VARIABLE.search(word.value) if word.quote != "'" else None
    if variable is not None:
        return _variables(shell, line, variable)
    spec = _specification(shell, word)
    if spec is not None:
        names = _specified(shell, spec, word, line, rest)
        if names or not spec.options & {"default", "bashdefault"}:
            is_path = "filenames" in spec.options or bool({"file", "directory"} & set(spec.actions))
            return _choose(shell, line, word, names, is_path=is_path, space="nospace" not in spec.options)
    if word.is_command and "/" not in word.value and not _ASSIGNMENT.match(word.value):
        names = generate(shell, Specification(actions=["command"]), word.value)
        return _choose(shell, line, word, names or _paths(shell, word.value), is_path=not names, space=True)
    if not word.quote and (cut := max(word.value.rfind("="), word.value.rfind(":")) + 1):
        word = Word(len(line) - len(word.value) + cut, word.value[cut:], "", word.words, redirected=True)
    if word.value.startswith("~") and "/" not in word.value and not word.quote:
        users = generate(shell, Specification(actions=["user"]), word.value[1:])
        return _choose(shell, line, word, [f"~{name}/" for name in users], is_path=False, space=False, literal=True)
    names = _paths(shell, word.value)
    if word.is_command:
        names = [name for name in names if _is_directory(shell, name) or _is_program(shell, name)]
    return _choose(shell, line, word, names, is_path=True, space=True)


def _variables(shell: Shell, line: str, found: re.Match[str]) -> Completion:
    brace, prefix = found.groups()
    names = sorted(name for name in shell.vars.names() if name.startswith(prefix))
    start = len(line) - len(prefix)
    common = common_prefix(names) if names else prefix
    if len(names) == 1:
        common += "}" if brace else " "
    return Completion(start, common, [f"${{{name}}}" if brace else f"${name}" for name in names])


def _specification(shell: Shell, word: Word) -> Specification | None:
    table = shell.completions
    if word.is_command:
        return table.get("-I") if word.value else table.get("-E")
    if word.redirected or not word.words:
        return None
    name = word.words[0]
    return table.get(name) or table.get(name.rpartition("/")[2]) or table.get("-D")


def _specified(shell: Shell, spec: Specification, word: Word, line: str, rest: str) -> list[str]:
    variables = shell.vars
    words = [*word.words, word.value]
    variables.set("COMP_LINE", line + rest)
    variables.set("COMP_POINT", str(len(line)))
    variables.set_array("COMP_WORDS", words)
    variables.set("COMP_CWORD", str(len(words) - 1))
    try:
        names = generate(shell, spec, word.value, command=words[0], previous=words[-2] if len(words) > 1 else "")
    finally:
        for name in ("COMP_LINE", "COMP_POINT", "COMP_WORDS", "COMP_CWORD"):
            variables.unset(name)
    return names if "nosort" in spec.options else sorted(set(names))


def _choose(
    shell: Shell, line: str, word: Word, names: list[str], *, is_path: bool, space: bool, literal: bool = False
) -> Completion:
    names = list(dict.fromkeys(names)) if is_path else sorted(set(names))
    choices = [name.rstrip("/").rpartition("/")[2] if is_path else name for name in names]
    common = common_prefix(names) if names else word.value
    ending = ""
    if len(names) == 1:
        ending = word.quote
        if is_path and _is_directory(shell, names[0]):
            ending = "/"
        elif space and not literal:
            ending += " "
    if len(common) < len(word.value):
        return Completion(len(line), "", choices)
    quoted = common if literal else word.quote + _quote(common, word.quote)
    if is_path and quoted.startswith("\\~"):
        quoted = quoted[1:]
    return Completion(word.start, quoted + ending, choices)


def common_prefix(names: list[str]) -> str:
    """The longest common prefix."""
    low, high = min(names), max(names)
    for place, char in enumerate(low):
        if high[place : place + 1] != char:
            return low[:place]
    return low


def _quote(text: str, quote: str) -> str:
    if quote == "'":
        return text.replace("'", "'\\''")
    if quote == '"':
        return re.sub(r'(["\\$`])', r"\\\1", text)
    return _SPECIAL.sub(r"\\\1", text)


def _paths(shell: Shell, word: str) -> list[str]:
    """The files that begin so, as they are written."""
    looked = _real(shell, word)
    found = generate(shell, Specification(actions=["file"]), looked)
    return [word + path[len(looked) :] for path in found]


def _real(shell: Shell, word: str) -> str:
    """`~/` means the home directory."""
    if word.startswith("~/"):
        return (shell.vars.get("HOME") or "") + word[1:]
    return word


def _is_directory(shell: Shell, path: str) -> bool:
    return shell.process.fs.is_dir(_real(shell, path))


def _is_program(shell: Shell, path: str) -> bool:
    try:
        return bool(shell.process.fs.stat(_real(shell, path)).mode & 0o111)
    except SysError:
        return False


def in_columns(choices: list[str], columns: int) -> str:
    """The choices down the columns of a table that fits, as `ls` has it."""
    widths = [display_width(choice) for choice in choices]
    width = max(widths) + 2
    across = max(1, columns // width)
    rows = -(-len(choices) // across)
    lines: list[str] = []
    for row in range(rows):
        line = ""
        for place in range(row, len(choices), rows):
            line += choices[place]
            if place + rows < len(choices):
                line += " " * (width - widths[place])
        lines.append(line)
    return "\n".join(lines) + "\n"
