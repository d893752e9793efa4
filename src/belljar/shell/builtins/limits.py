"""ulimit, umask and times."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from belljar.shell.builtins.registry import Options, Usage, builtin

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


class Resource(Struct, frozen=True):
    """A resource limit: its unit as shown, and its default (None: unlimited)."""

    letter: str
    text: str
    unit: str = ""
    default: int | None = None
    limit: str = ""
    """The field of the sandbox's limits that it shows."""


_RESOURCES: Final = [
    Resource("R", "real-time non-blocking time ", "microseconds"),
    Resource("c", "core file size", "blocks", 0),
    Resource("d", "data seg size", "kbytes"),
    Resource("e", "scheduling priority", default=0),
    Resource("f", "file size", "blocks"),
    Resource("i", "pending signals", default=1024),
    Resource("l", "max locked memory", "kbytes", 8192),
    Resource("m", "max memory size", "kbytes"),
    Resource("n", "open files", limit="open_files"),
    Resource("p", "pipe size", "512 bytes", 8),
    Resource("q", "POSIX message queues", "bytes", 819200),
    Resource("r", "real-time priority", default=0),
    Resource("s", "stack size", "kbytes", 8192),
    Resource("t", "cpu time", "seconds"),
    Resource("u", "max user processes", limit="processes"),
    Resource("v", "virtual memory", "kbytes"),
    Resource("x", "file locks"),
]
_BY_LETTER: Final = {resource.letter: resource for resource in _RESOURCES}


def _value(shell: Shell, resource: Resource) -> tuple[int | None, int | None]:
    """The soft and the hard limit."""
    default = getattr(shell.process.budget.limits, resource.limit) if resource.limit else resource.default
    return shell.process.rlimits.get(resource.letter, (default, default))


def _text(value: int | None) -> str:
    return "unlimited" if value is None else str(value)


def _labelled(resource: Resource, value: int | None) -> str:
    unit = f"({resource.unit}, -{resource.letter})" if resource.unit else f"(-{resource.letter})"
    return f"{resource.text:<{max(20, 39 - len(unit))}} {unit} {_text(value)}"


@builtin("ulimit")
def ulimit(shell: Shell, args: list[str]) -> int:
    """ulimit [-SHabcdefiklmnpqrstuvxPRT] [limit]
    Show or set what processes may use.

    Options:
      -S, -H  the soft or the hard limit (both, if neither is given)    -a  all of them
      -c core files  -d data  -e priority  -f file size  -i signals  -l locked memory  -m memory  -n open files
      -p pipe buffer  -q message queues  -r real-time priority  -s stack  -t CPU seconds  -u processes
      -v virtual memory  -x file locks
    Only file size and open files are enforced; the sandbox has its own limits for the rest.
    """
    sides: set[str] = set()
    everything = False
    wanted: list[tuple[Resource, str | None]] = []
    for position, arg in enumerate(args):
        if arg.startswith("-") and len(arg) > 1 and not arg[1].isdecimal():
            for letter in arg[1:]:
                if letter == "a":
                    everything = True
                elif letter in "SH":
                    sides.add(letter)
                elif letter in _BY_LETTER:
                    wanted.append((_BY_LETTER[letter], None))
                elif letter != "-" or position:
                    raise Usage(f"-{letter}: invalid option")
        elif wanted:
            wanted[-1] = (wanted[-1][0], arg)
        else:
            wanted.append((_BY_LETTER["f"], arg))
    side = 1 if sides == {"H"} else 0
    if everything:
        for resource in _RESOURCES:
            shell.write(_labelled(resource, _value(shell, resource)[side]) + "\n")
        return 0
    wanted = wanted or [(_BY_LETTER["f"], None)]
    for resource, text in wanted:
        if text is not None:
            if not _set(shell, resource, text, sides or {"S", "H"}):
                return 1
        else:
            value = _value(shell, resource)[side]
            shell.write((_labelled(resource, value) if len(wanted) > 1 else _text(value)) + "\n")
    return 0


def _set(shell: Shell, resource: Resource, text: str, sides: set[str]) -> bool:
    soft, hard = _value(shell, resource)
    if text in ("unlimited", "hard", "soft"):
        value = {"unlimited": None, "hard": hard, "soft": soft}[text]
    elif text.isascii() and text.isdecimal() and len(text) < 19:
        value = int(text)
    else:
        shell.error(f"ulimit: {text}: invalid number")
        return False
    if hard is not None and (value is None or value > hard):
        shell.error(f"ulimit: {resource.text}: cannot modify limit: Operation not permitted")
        return False
    soft = value if "S" in sides else soft
    if "H" in sides:
        hard = value
        if hard is not None and soft is not None and soft > hard:
            soft = hard
    shell.process.rlimits = {**shell.process.rlimits, resource.letter: (soft, hard)}
    if resource.letter == "n" and soft is not None:
        shell.process.fds.set_limit(soft)
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
    if text[:1].isdecimal():
        if not re.fullmatch(r"[0-7]{1,9}", text) or int(text, 8) > 0o7777:
            shell.error(f"umask: {text}: octal number out of range")
            return None
        return int(text, 8) & 0o777
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
