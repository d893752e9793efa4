"""ulimit, umask and times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from belljar.shell.builtins.registry import Options, builtin

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


@dataclass(frozen=True, slots=True)
class Resource:
    """One thing that can be limited: `unit` as shown, `scale` bytes (or the like) to it."""

    letter: str
    text: str
    unit: str
    field: str = ""
    scale: int = 1
    default: int | None = None


_RESOURCES: Final = [
    Resource("R", "real-time non-blocking time", "microseconds"),
    Resource("c", "core file size", "blocks", default=0),
    Resource("d", "data seg size", "kbytes", "memory_bytes", 1024),
    Resource("e", "scheduling priority", "", default=0),
    Resource("f", "file size", "blocks", "file_bytes", 1024),
    Resource("i", "pending signals", "", default=1024),
    Resource("l", "max locked memory", "kbytes", default=0),
    Resource("m", "max memory size", "kbytes", "memory_bytes", 1024),
    Resource("n", "open files", "", "open_files"),
    Resource("p", "pipe size", "512 bytes", default=8),
    Resource("q", "POSIX message queues", "bytes", default=0),
    Resource("r", "real-time priority", "", default=0),
    Resource("s", "stack size", "kbytes", default=8192),
    Resource("t", "cpu time", "seconds", "cpu_seconds"),
    Resource("u", "max user processes", "", "processes"),
    Resource("v", "virtual memory", "kbytes", "memory_bytes", 1024),
    Resource("x", "file locks", ""),
]
_BY_LETTER: Final = {resource.letter: resource for resource in _RESOURCES}


def _value(shell: Shell, resource: Resource) -> int | None:
    """The limit in its unit; None is unlimited."""
    chosen = shell.ulimits.get(resource.letter)
    if chosen is not None:
        return chosen
    if not resource.field:
        return resource.default
    limit = getattr(shell.process.budget.limits, resource.field)
    return int(limit) // resource.scale


def _text(value: int | None) -> str:
    return "unlimited" if value is None else str(value)


@builtin("ulimit")
def ulimit(shell: Shell, args: list[str]) -> int:
    """ulimit [-SHabcdefiklmnpqrstuvxPRT] [limit]
    Show or lower what processes may use.

    Options:
      -S, -H  the soft or the hard limit    -a  all of them
      -c core files  -d data  -e priority  -f file size  -i signals  -l locked memory  -m memory  -n open files
      -p pipe buffer  -q message queues  -r real-time priority  -s stack  -t CPU seconds  -u processes
      -v virtual memory  -x file locks
    """
    from belljar.shell.builtins.registry import Usage

    letters: list[str] = []
    everything = False
    value = ""
    settings: list[tuple[Resource, str]] = []
    position = 0
    while position < len(args):
        arg = args[position]
        position += 1
        if arg.startswith("-") and len(arg) > 1 and arg != "--":
            for letter in arg[1:]:
                if letter == "a":
                    everything = True
                elif letter in _BY_LETTER:
                    letters.append(letter)
                elif letter not in "SH":
                    raise Usage(f"-{letter}: invalid option")
        elif arg != "--":
            value = arg
            settings.append((_BY_LETTER[letters[-1] if letters else "f"], value))
    if everything:
        for resource in _RESOURCES:
            unit = f"({resource.unit}, -{resource.letter})" if resource.unit else f"(-{resource.letter})"
            gap = 40 - len(resource.text) - len(unit)
            shell.write(f"{resource.text}{' ' * max(1, gap - 1)}{unit} {_text(_value(shell, resource))}\n")
        return 0
    if settings:
        for resource, text in settings:
            if not _set(shell, resource, text):
                return 1
        return 0
    chosen = [_BY_LETTER[letter] for letter in letters or ["f"]]
    for resource in chosen:
        shown = _text(_value(shell, resource))
        if len(chosen) > 1:
            unit = f"({resource.unit}, -{resource.letter})" if resource.unit else f"(-{resource.letter})"
            gap = 40 - len(resource.text) - len(unit)
            shown = f"{resource.text}{' ' * max(1, gap - 1)}{unit} {shown}"
        shell.write(shown + "\n")
    return 0


def _set(shell: Shell, resource: Resource, text: str) -> bool:
    current = _value(shell, resource)
    if text in ("unlimited",):
        wanted: int | None = None
    elif text in ("hard", "soft"):
        wanted = current
    elif text.isascii() and text.isdigit() and len(text) < 19:
        wanted = int(text)
    else:
        shell.error(f"ulimit: {text}: invalid number")
        return False
    if current is not None and (wanted is None or wanted > current):
        shell.error(f"ulimit: {resource.text}: cannot modify limit: Operation not permitted")
        return False
    if wanted is not None:
        shell.ulimits = {**shell.ulimits, resource.letter: wanted}
        if resource.letter == "n":
            shell.process.fds.set_limit(wanted)
    return True


_SYMBOLIC: Final = re.compile(r"([ugoa]*)([-+=])([rwx]*)")


@builtin("umask", "pS")
def umask(shell: Shell, options: Options, args: list[str]) -> int:
    """umask [-p] [-S] [mode]
    Set or show the permissions new files don't get.

    Options:
      -p  show as a command    -S  show symbolically, what they do get
    """
    fs = shell.process.fs
    if args:
        mode = _parse_mode(shell, args[0], fs.umask)
        if mode is None:
            return 1
        fs.umask = mode
        if "S" in options:
            shell.write(_symbolic(mode) + "\n")
        return 0
    text = _symbolic(fs.umask) if "S" in options else f"{fs.umask:04o}"
    start = ("umask -S " if "S" in options else "umask ") if "p" in options else ""
    shell.write(f"{start}{text}\n")
    return 0


def _symbolic(mask: int) -> str:
    parts = []
    for who, shift in (("u", 6), ("g", 3), ("o", 0)):
        bits = ~mask >> shift & 7
        parts.append(f"{who}=" + "".join(letter for letter, bit in (("r", 4), ("w", 2), ("x", 1)) if bits & bit))
    return ",".join(parts)


def _parse_mode(shell: Shell, text: str, mask: int) -> int | None:
    if text[:1].isdigit():
        if not re.fullmatch(r"[0-7]{1,9}", text) or int(text, 8) > 0o777:
            shell.error(f"umask: {text}: octal number out of range")
            return None
        return int(text, 8)
    allowed = ~mask & 0o777
    for clause in text.split(","):
        match = _SYMBOLIC.match(clause)
        if match is None:
            bad = clause.lstrip("ugoa")[:1]
            shell.error(f"umask: `{bad}': invalid symbolic mode operator")
            return None
        if match.end() < len(clause):
            shell.error(f"umask: `{clause[match.end()]}': invalid symbolic mode character")
            return None
        who, operator, permissions = match.groups()
        bits = sum({"r": 4, "w": 2, "x": 1}[letter] for letter in set(permissions))
        classes = [{"u": 6, "g": 3, "o": 0}[c] for c in (who.replace("a", "ugo") or "ugo")]
        for shift in set(classes):
            if operator == "=":
                allowed = allowed & ~(7 << shift) | bits << shift
            elif operator == "+":
                allowed |= bits << shift
            else:
                allowed &= ~(bits << shift)
    return ~allowed & 0o777


@builtin("times", "", special=True)
def times(shell: Shell, _options: Options, _args: list[str]) -> int:
    """times
    Show the processor time used by the shell and by what it ran.
    """
    seconds = shell.process.budget.cpu
    shown = f"{int(seconds // 60)}m{seconds % 60:.3f}s 0m0.000s\n"
    shell.write(shown + "0m0.000s 0m0.000s\n")
    return 0
