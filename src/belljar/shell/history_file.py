"""The history of a session: read from HISTFILE when an interactive shell starts, saved there when it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_TRUNC, O_WRONLY
from belljar.abi.paths import fsdecode, fsencode
from belljar.shell.history import HistoryError, expand, join_lines

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

_DEFAULT_SIZE: Final = "500"


def begin(shell: Shell) -> None:
    """Give an interactive shell its history variables, and the lines of HISTFILE."""
    home = shell.vars.get("HOME") or ""
    for name, value in (
        ("HISTFILE", f"{home}/.bash_history"),
        ("HISTSIZE", _DEFAULT_SIZE),
        ("HISTFILESIZE", _DEFAULT_SIZE),
    ):
        if shell.vars.get(name) is None:
            shell.vars.set(name, value)
    lines = _read(shell)
    shell.history.lines = lines
    shell.history.saved = len(lines)
    size_changed(shell)


def _read(shell: Shell) -> list[str]:
    path = shell.vars.get("HISTFILE")
    if not path:
        return []
    return fsdecode(shell.process.try_read(path) or b"").splitlines()


def limit(shell: Shell, name: str) -> int | None:
    """HISTSIZE or HISTFILESIZE; None where there is no limit."""
    text = shell.vars.get(name)
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > 9:
        return None
    return int(text)


def size_changed(shell: Shell) -> None:
    """HISTSIZE was set: drop the oldest lines."""
    size = limit(shell, "HISTSIZE")
    past = shell.history
    if size is not None and len(past.lines) > size:
        drop = len(past.lines) - size
        del past.lines[:drop]
        past.base += drop
        past.saved = max(0, past.saved - drop)


def file_size_changed(shell: Shell) -> None:
    """HISTFILESIZE was set: cut the file at once, as bash does."""
    size = limit(shell, "HISTFILESIZE")
    lines = _read(shell)
    if size is not None and len(lines) > size:
        _write(shell, lines[len(lines) - size :], append=False)


def _write(shell: Shell, lines: list[str], *, append: bool) -> None:
    path = shell.vars.get("HISTFILE")
    if not path:
        return
    flags = O_WRONLY | O_CREAT | (O_APPEND if append else O_TRUNC)
    try:
        shell.process.write_file(path, fsencode("".join(f"{line}\n" for line in lines)), 0o600, flags)
    except SysError:
        return


def note(shell: Shell, text: str) -> None:
    """Remember a command just read."""
    text = text.strip("\n")
    if not shell.options["history"] or not text.strip():
        return
    if "\n" in text and shell.shopts["cmdhist"] and not shell.shopts["lithist"]:
        text = join_lines(text)
    shell.history.add(
        text,
        control=shell.vars.get("HISTCONTROL") or "",
        ignore=shell.vars.get("HISTIGNORE") or "",
        size=limit(shell, "HISTSIZE"),
    )


def substitute(shell: Shell, line: str) -> str | None:
    """The line with its `!` references replaced, and shown if any were; None if it isn't to be run."""
    if not shell.options["histexpand"] or ("!" not in line and not line.startswith("^")):
        return line
    body = line.rstrip("\n")
    try:
        text, only_shown = expand(body, shell.history)
    except HistoryError as error:
        shell.process.error(f"{shell.name}: {error}\n")
        return None
    if text != body:
        shell.process.error(text + "\n")
    if only_shown:
        note(shell, text)
        return None
    return text + line[len(body) :]


def end(shell: Shell) -> None:
    """Save the history as the shell ends."""
    if not shell.options["history"]:
        return
    past = shell.history
    if shell.shopts["histappend"]:
        _write(shell, past.lines[past.saved :], append=True)
    elif past.lines:
        _write(shell, past.lines, append=False)
    file_size_changed(shell)
