"""ulimit, umask and times."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from belljar.kernel.rlimits import BY_LETTER, getrlimit, setrlimit
from belljar.shell.builtins.registry import Options, Usage, builtin

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


class Shown(NamedTuple):
    """A resource limit as ulimit shows it; `value` for what is a constant."""

    letter: str
    text: str
    unit: str = ""
    value: int | None = None


_SHOWN: Final = [
    Shown("R", "real-time non-blocking time ", "microseconds"),
    Shown("c", "core file size", "blocks"),
    Shown("d", "data seg size", "kbytes"),
    Shown("e", "scheduling priority"),
    Shown("f", "file size", "blocks"),
    Shown("i", "pending signals"),
    Shown("l", "max locked memory", "kbytes"),
    Shown("m", "max memory size", "kbytes"),
    Shown("n", "open files"),
    Shown("p", "pipe size", "512 bytes", 8),
    Shown("q", "POSIX message queues", "bytes"),
    Shown("r", "real-time priority"),
    Shown("s", "stack size", "kbytes"),
    Shown("t", "cpu time", "seconds"),
    Shown("u", "max user processes"),
    Shown("v", "virtual memory", "kbytes"),
    Shown("x", "file locks"),
]
_BY_LETTER: Final = {shown.letter: shown for shown in _SHOWN}


def _value(shell: Shell, shown: Shown) -> tuple[int | None, int | None]:
    """The soft and the hard limit, in ulimit's units."""
    resource = BY_LETTER.get(shown.letter)
    if resource is None:
        return shown.value, shown.value
    soft, hard = getrlimit(shell.process, resource)
    return soft and soft // resource.unit, hard and hard // resource.unit


def _text(value: int | None) -> str:
    return "unlimited" if value is None else str(value)


def _labelled(resource: Shown, value: int | None) -> str:
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
    wanted: list[tuple[Shown, str | None]] = []
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
        for resource in _SHOWN:
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


def _set(shell: Shell, shown: Shown, text: str, sides: set[str]) -> bool:
    soft, hard = _value(shell, shown)
    resource = BY_LETTER.get(shown.letter)
    if text in ("unlimited", "hard", "soft"):
        value = {"unlimited": None, "hard": hard, "soft": soft}[text]
    elif text.isascii() and text.isdecimal() and len(text) < 19:
        value = int(text)
    else:
        shell.error(f"ulimit: {text}: invalid number")
        return False
    if resource is None or (hard is not None and (value is None or value > hard)):
        shell.error(f"ulimit: {shown.text}: cannot modify limit: Operation not permitted")
        return False
    soft = value if "S" in sides else soft
    if "H" in sides:
        hard = value
        if hard is not None and (soft is None or soft > hard):
            soft = hard
    setrlimit(shell.process, resource, soft and soft * resource.unit, hard and hard * resource.unit)
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
