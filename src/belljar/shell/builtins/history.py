"""history and fc."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_TRUNC, O_WRONLY
from belljar.abi.paths import fsdecode, fsencode
from belljar.libc.numbers import parse_integer
from belljar.shell.builtins.registry import Options, Usage, builtin
from belljar.shell.history import HistoryError, expand

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


@builtin("history", "acd:npswr")
def history(shell: Shell, options: Options, args: list[str]) -> int:
    """history [-c] [-d offset] [n] or history -anrw [filename] or history -ps arg [arg...]
    Show the history (its last N lines), or change it.

    Options:
      -c  clear it              -d N  forget line N (or N-M)
      -a  append the new lines to the history file
      -n  read the lines of the file not read yet    -r  read the file    -w  write the file
      -p  show the arguments with their ! expanded   -s  the arguments become a line
    """
    past = shell.history
    if "c" in options:
        past.clear()
        if not options.keys() - {"c"}:
            return 0
    if "s" in options:
        if args:
            _forget_this_command(shell)
            past.add(" ".join(args))
        return 0
    if "p" in options:
        return _expand(shell, args)
    if "d" in options:
        return _delete(shell, options["d"])
    if options.keys() & {"a", "n", "r", "w"}:
        return _file(shell, options, args)
    if len(args) > 1:
        shell.error("history: too many arguments")
        return 1
    lines = past.lines
    count = len(lines)
    if args:
        number = parse_integer(args[0])
        if number is None:
            shell.error(f"history: {args[0]}: numeric argument required")
            return 1
        count = min(abs(number), count)
    start = len(lines) - count
    shell.write("".join(f"{past.base + start + place:5d}  {line}\n" for place, line in enumerate(lines[start:])))
    return 0


def _forget_this_command(shell: Shell) -> None:
    """`history -s` replaces the command that runs it."""
    past = shell.history
    if past.lines and shell.options["history"] and past.lines[-1].lstrip().startswith(("history", "fc")):
        past.lines.pop()


def _expand(shell: Shell, args: list[str]) -> int:
    _forget_this_command(shell)
    status = 0
    for arg in args:
        try:
            shell.write(expand(arg, shell.history)[0] + "\n")
        except HistoryError:
            shell.error(f"history: {arg}: history expansion failed")
            status = 1
    return status


def _delete(shell: Shell, text: str) -> int:
    past = shell.history
    first, dash, last = text[1:].partition("-") if text.startswith("-") else text.partition("-")
    first = "-" + first if text.startswith("-") else first
    numbers = [parse_integer(part) for part in ([first, last] if dash else [first])]
    if any(number is None for number in numbers):
        shell.error(f"history: {text}: numeric argument required")
        return 1
    places = [past.next_number + n if n < 0 else n for n in numbers if n is not None]
    if not past.delete(places[0], places[-1]):
        shell.error(f"history: {text}: history position out of range")
        return 1
    return 0


def _file(shell: Shell, options: Options, args: list[str]) -> int:
    past = shell.history
    path = args[0] if args else shell.vars.get("HISTFILE") or ""
    if not path:
        return 0
    try:
        if "r" in options or "n" in options:
            lines = fsdecode(shell.process.read_file(path)).splitlines()
            for line in lines[past.saved if "n" in options else 0 :]:
                past.lines.append(line)
            past.saved = len(past.lines)
            return 0
        lines = past.lines[past.saved :] if "a" in options else past.lines
        flags = O_WRONLY | O_CREAT | (O_APPEND if "a" in options else O_TRUNC)
        shell.process.write_file(path, fsencode("".join(f"{line}\n" for line in lines)), 0o600, flags)
        past.saved = len(past.lines)
    except SysError as error:
        shell.error(f"history: {path}: cannot {'read' if options.keys() & {'r', 'n'} else 'create'}: {error.reason}")
        return 1
    return 0


@builtin("fc")
def fc(shell: Shell, args: list[str]) -> int:
    """fc [-e ename] [-lnr] [first] [last] or fc -s [pat=rep] [command]
    List lines of the history, or edit and run them again.

    Options:
      -l  list    -n  without numbers    -r  the latest first
      -e EDITOR   edit with it (or $FCEDIT, $EDITOR, vi); `-` runs without editing
      -s          run COMMAND again after replacing PAT with REP
    """
    options: Options = {}
    position = 0
    while position < len(args) and args[position][:1] == "-" and len(args[position]) > 1:
        arg = args[position]
        if arg[1].isdecimal():
            break
        position += 1
        if arg == "--":
            break
        letters = arg[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter == "e":
                if not letters:
                    if position >= len(args):
                        raise Usage("-e: option requires an argument")
                    letters = args[position]
                    position += 1
                options["e"], letters = letters, ""
            elif letter in "lnrs":
                options[letter] = ""
            else:
                raise Usage(f"-{letter}: invalid option")
    rest = args[position:]
    lines = list(shell.history.lines)
    current = lines.pop() if shell.options["history"] and lines and lines[-1].lstrip().startswith("fc") else ""
    if "s" in options or options.get("e") == "-":
        return _again(shell, rest, lines)
    return _range(shell, options, rest, lines, current)


def _again(shell: Shell, args: list[str], lines: list[str]) -> int:
    changes: list[tuple[str, str]] = []
    while args and "=" in args[0]:
        old, _, new = args[0].partition("=")
        changes.append((old, new))
        args = args[1:]
    place = _locate(shell, args[0] if args else "-1", lines)
    if place is None or not lines:
        shell.error("fc: no command found")
        return 1
    line = lines[place]
    for old, new in changes:
        line = line.replace(old, new)
    return _run(shell, line)


def _run(shell: Shell, text: str) -> int:
    shell.process.error(text + "\n")
    shell.history.replace_last(text)
    return shell.run_text(text + "\n", line=shell.line, what="")


def _locate(shell: Shell, spec: str, lines: list[str]) -> int | None:
    """The place of a line named by its number, by how far back it is, or by its beginning."""
    number = parse_integer(spec)
    if number is not None:
        place = len(lines) + number if number <= 0 else number - shell.history.base
        return min(max(place, 0), len(lines) - 1)
    for place in range(len(lines) - 1, -1, -1):
        if lines[place].startswith(spec):
            return place
    return None


def _range(shell: Shell, options: Options, args: list[str], lines: list[str], current: str) -> int:
    if not lines:
        if "l" not in options:
            shell.error("fc: no command found")
        return 0 if "l" in options else 1
    listing = "l" in options
    default_first = str(-16 if listing else -1)
    first = _locate(shell, args[0] if args else default_first, lines)
    last = _locate(shell, args[1], lines) if len(args) > 1 else len(lines) - 1 if listing else first
    if first is None or last is None:
        shell.error("fc: no command found")
        return 1
    backwards = "r" in options
    if first > last:
        first, last, backwards = last, first, True
    places = list(range(first, last + 1))
    if backwards:
        places.reverse()
    if listing:
        for place in places:
            number = "" if "n" in options else str(shell.history.base + place)
            shell.write(f"{number}\t {lines[place]}\n")
        return 0
    return _edit(shell, options, [lines[place] for place in places])


def _edit(shell: Shell, options: Options, chosen: list[str]) -> int:
    editor = options.get("e") or shell.vars.get("FCEDIT") or shell.vars.get("EDITOR") or "vi"
    path = f"/tmp/bash-fc.{shell.process.pid}"
    process = shell.process
    try:
        process.write_file(path, fsencode("".join(f"{line}\n" for line in chosen)), 0o600)
        status = shell.run_text(f"{editor} {path}", line=shell.line)
        text = fsdecode(process.read_file(path)) if status == 0 else None
        process.fs.unlink(path)
    except SysError as error:
        shell.error(f"fc: {path}: {error.reason}")
        return 1
    if text is None:
        return 1
    return _run(shell, text.rstrip("\n"))
