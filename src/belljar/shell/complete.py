"""Programmable completion: the specifications `complete` keeps, and the words one generates."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.abi.signals import RTMAX, RTMIN, signal_name
from belljar.libc.pattern import compile_pattern
from belljar.libc.quote import single
from belljar.shell.arrays import Array, Assoc
from belljar.shell.glob import GlobOptions, glob, sort_paths
from belljar.shell.options import SET_OPTIONS, SHOPT_DEFAULTS
from belljar.shell.variables import EXPORT

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

LETTERS: Final = {
    "a": "alias", "b": "builtin", "c": "command", "d": "directory", "e": "export", "f": "file", "g": "group",
    "j": "job", "k": "keyword", "s": "service", "u": "user", "v": "variable",
}  # fmt: skip
ACTIONS: Final = (
    *LETTERS.values(), "arrayvar", "binding", "disabled", "enabled", "function", "helptopic", "hostname", "running",
    "setopt", "shopt", "signal", "stopped",
)  # fmt: skip
OPTIONS: Final = ("bashdefault", "default", "dirnames", "filenames", "noquote", "nosort", "nospace", "plusdirs")


class Specification(Struct):
    """A completion specification (compspec) of a command."""

    actions: list[str] = field(default_factory=list)
    options: set[str] = field(default_factory=set)
    globs: str | None = None
    words: str | None = None
    prefix: str | None = None
    suffix: str | None = None
    filter: str | None = None
    command: str | None = None
    function: str | None = None

    def describe(self, name: str) -> str:
        """The `complete` command that makes it again."""
        parts = ["complete"]
        parts += [f"-o {option}" for option in OPTIONS if option in self.options]
        letters = {action: letter for letter, action in LETTERS.items()}
        for action in ACTIONS:
            if action in self.actions:
                parts.append(f"-{letters[action]}" if action in letters else f"-A {action}")
        for letter, value in (("G", self.globs), ("W", self.words), ("P", self.prefix), ("S", self.suffix)):
            if value is not None:
                parts.append(f"-{letter} {single(value)}")
        if self.filter is not None:
            parts.append(f"-X {single(self.filter)}")
        if self.command is not None:
            parts.append(f"-C {single(self.command)}")
        if self.function is not None:
            parts.append(f"-F {self.function}")
        return " ".join([*parts, name])


def generate(
    shell: Shell, spec: Specification, word: str, *, command: str = "compgen", previous: str = ""
) -> list[str]:
    """The words a specification offers for what was typed so far."""
    found: list[str] = []
    for action in ACTIONS:
        if action in spec.actions:
            found += [name for name in _candidates(shell, action, word) if name.startswith(word)]
    if spec.globs is not None:
        found += glob(shell.process, spec.globs, GlobOptions(extglob=True))
    if spec.words is not None:
        found += [text for text in _split_words(shell, spec.words) if text.startswith(word)]
    if spec.function is not None:
        found += _by_function(shell, spec.function, command, word, previous)
    if spec.command is not None:
        found += shell.expand_string(
            f"$({spec.command} {single(command)} {single(word)} {single(previous)})"
        ).splitlines()
    if spec.filter:
        negated = spec.filter.startswith("!")
        pattern = compile_pattern((spec.filter[1:] if negated else spec.filter).replace("&", word))
        found = [text for text in found if pattern.matches(text) is negated]
    if not found and "dirnames" in spec.options:
        found = _files(shell, word, directories=True)
    if "plusdirs" in spec.options:
        found += _files(shell, word, directories=True)
    if not found and spec.options & {"default", "bashdefault"}:
        found = _files(shell, word, directories=False)
    if spec.prefix or spec.suffix:
        found = [f"{spec.prefix or ''}{text}{spec.suffix or ''}" for text in found]
    shell.process.budget.charge(len(found))
    return found


_BETWEEN_WORDS: Final = " \t\n;&|<>()#"
"""Characters that mean something to the parser between words, and nothing in a word list."""
_WORD_LIST: Final = re.compile(
    r"\\.|'[^']*+'|\"(?:[^\"\\]|\\.)*+\"|`(?:[^`\\]|\\.)*+`|\$\((?:[^()]|\([^()]*+\))*+\)|\$\{[^}]*+\}|.", re.DOTALL
)


def _split_words(shell: Shell, text: str) -> list[str]:
    """-W: split by IFS with quotes respected, then expanded as arguments are, without globbing."""
    ifs = shell.vars.get("IFS")
    separators = " \t\n" if ifs is None else ifs
    pieces: list[str] = []
    for piece in _WORD_LIST.findall(text):
        if len(piece) > 1 or piece not in _BETWEEN_WORDS + separators:
            pieces.append(piece)
        else:
            pieces.append(" " if piece in separators else f"\\{piece}" if piece != "\n" else "'\n'")
    parsed = shell.parse_assignment(f"x=({''.join(pieces)})")
    items = parsed.value if parsed is not None else []
    return [item.value for item in items] if isinstance(items, list) else []


def _by_function(shell: Shell, name: str, command: str, word: str, previous: str) -> list[str]:
    """-F: call it with the command, the word and the one before; its answer is COMPREPLY."""
    shell.vars.unset("COMPREPLY")
    if name not in shell.functions:
        shell.error(f"compgen: warning: {name}: function not found")
        return []
    shell.call_function(name, [command, word, previous])
    contents = shell.vars.contents("COMPREPLY")
    shell.vars.unset("COMPREPLY")
    if isinstance(contents, Array | Assoc):
        return contents.values()
    return [contents] if contents else []


def _candidates(shell: Shell, action: str, word: str) -> list[str]:
    from belljar.shell.builtins.commands import KEYWORDS
    from belljar.shell.builtins.registry import BUILTINS

    variables = shell.vars
    match action:
        case "alias":
            return sorted(shell.aliases)
        case "builtin":
            return sorted(BUILTINS)
        case "helptopic":
            from belljar.shell.builtins.topics import topics

            return list(topics())
        case "enabled":
            return sorted(name for name in BUILTINS if name not in shell.disabled)
        case "disabled":
            return sorted(shell.disabled)
        case "command":
            inner = [*sorted(shell.aliases), *KEYWORDS, *sorted(shell.functions), *sorted(BUILTINS)]
            return inner + _programs(shell, word)
        case "directory" | "file":
            return _files(shell, word, directories=action == "directory")
        case "export":
            return [name for name in variables.names() if variables.attrs(name) & EXPORT]
        case "variable":
            return variables.names()
        case "arrayvar":
            return [name for name in variables.names() if isinstance(variables.contents(name), Array | Assoc)]
        case "function":
            return sorted(shell.functions)
        case "keyword":
            return list(KEYWORDS)
        case "group" | "user" | "hostname":
            return _names_in(shell, {"group": "/etc/group", "user": "/etc/passwd", "hostname": "/etc/hosts"}[action])
        case "job" | "running" | "stopped":
            jobs = shell.jobs.jobs.values()
            kept = [job for job in jobs if action == "job" or job.stopped is (action == "stopped")]
            return [job.text.split(" ", 1)[0] for job in kept]
        case "setopt":
            return sorted(SET_OPTIONS)
        case "shopt":
            return sorted(SHOPT_DEFAULTS)
        case "signal":
            return [f"SIG{signal_name(number)}" for number in [*range(1, 32), *range(RTMIN, RTMAX + 1)]]
    return []


def _names_in(shell: Shell, path: str) -> list[str]:
    lines = fsdecode(shell.process.try_read(path) or b"").splitlines()
    if path == "/etc/hosts":
        return [name for line in lines for name in line.partition("#")[0].split()[1:]]
    return [line.partition(":")[0] for line in lines if line]


def _files(shell: Shell, word: str, *, directories: bool) -> list[str]:
    head, slash, _ = word.rpartition("/")
    base = head + slash
    try:
        entries = shell.process.fs.readdir(base or ".")
    except SysError:
        return []
    found: list[str] = []
    for entry in entries:
        path = base + entry.name
        if not path.startswith(word):
            continue
        if entry.name.startswith(".") and not word[len(base) :].startswith("."):
            continue
        if directories and not shell.process.fs.is_dir(path):
            continue
        found.append(path)
    return sort_paths(found)


def _programs(shell: Shell, word: str) -> list[str]:
    """The executables of PATH that begin so."""
    if "/" in word:
        return _files(shell, word, directories=False)
    found: list[str] = []
    for directory in (shell.vars.get("PATH") or "").split(":"):
        try:
            entries = shell.process.fs.readdir(directory or ".")
        except SysError:
            continue
        found += sorted(entry.name for entry in entries if entry.name.startswith(word))
    return found
