r"""Prompts: the backslash escapes of PS1 and of ${x@P}, and then the expansions of double quotes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from belljar.abi.paths import fsdecode
from belljar.libc.strftime import strftime
from belljar.libc.zones import localtime, parse_zone
from belljar.shell.builtins.directory import current

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

VERSION: Final = "5.2"
RELEASE: Final = "5.2.15"
_ESCAPE: Final = re.compile(r"\\(D\{([^}]*)\}|[0-7]{1,3}|.)", re.DOTALL)
_SPECIAL: Final = re.compile(r"[\\$`]")
_TIMES: Final = {"d": "%a %b %d", "t": "%H:%M:%S", "T": "%I:%M:%S", "@": "%I:%M %p", "A": "%H:%M"}


def expand_prompt(shell: Shell, text: str) -> str:
    """Expand a prompt string such as PS1."""
    expands = shell.shopts["promptvars"]
    decoded = _ESCAPE.sub(lambda match: _decode(shell, match, protect=expands), text)
    return shell.expand_string(decoded) if expands else decoded


def _decode(shell: Shell, match: re.Match[str], *, protect: bool) -> str:
    code = match.group(1)
    value = _value(shell, code, match.group(2), match.string[match.end() :])
    if value is None:
        return match.group()
    return _SPECIAL.sub(r"\\\g<0>", value) if protect else value


def _value(shell: Shell, code: str, time_format: str | None, rest: str) -> str | None:
    """The text of one escape; None if there is no such escape."""
    if code[0] in "01234567":
        if len(code) < 3 and rest:
            return None
        number = int(code, 8) & 0xFF
        return fsdecode(bytes([number])) if number else ""
    if time_format is not None:
        return _now(shell, time_format or "%X")
    if code in _TIMES:
        return _now(shell, _TIMES[code])
    maker = _MAKERS.get(code)
    return maker(shell) if maker is not None else None


def _now(shell: Shell, template: str) -> str:
    seconds = shell.process.kernel.now() // 1_000_000_000
    return strftime(template, localtime(seconds, parse_zone(shell.vars.exported().get("TZ") or "UTC0")))


def _directory(shell: Shell) -> str:
    """The working directory with `~` for home, shortened as PROMPT_DIRTRIM says."""
    path = current(shell)
    home = shell.vars.get("HOME")
    if home and home != "/" and (path == home or path.startswith(home + "/")):
        path = "~" + path[len(home) :]
    trim = shell.vars.get("PROMPT_DIRTRIM") or ""
    if trim.isascii() and trim.isdecimal() and len(trim) < 6 and int(trim) > 0:
        start = "~/" if path.startswith("~/") else "/" if path.startswith("/") else ""
        parts = path[len(start) :].split("/")
        left_out = "/".join(parts[: -int(trim)])
        if start and len(left_out) > len("..."):
            return ("~/" if start == "~/" else "") + ".../" + "/".join(parts[-int(trim) :])
    return path


def _last_directory(shell: Shell) -> str:
    path = current(shell)
    if path == shell.vars.get("HOME"):
        return "~"
    return path.rstrip("/").rpartition("/")[2] or "/"


def user_name(shell: Shell) -> str:
    """The login name of who runs the shell."""
    uid = str(shell.process.fs.credentials.uid)
    lines = fsdecode(shell.process.try_read("/etc/passwd") or b"").splitlines()
    for line in lines:
        fields = line.split(":")
        if len(fields) > 2 and fields[2] == uid:
            return fields[0]
    return "I have no name!"


def _host(shell: Shell) -> str:
    return shell.process.kernel.hostname


_MAKERS: Final[dict[str, Callable[[Shell], str]]] = {
    "a": lambda _: "\a",
    "e": lambda _: "\x1b",
    "n": lambda _: "\n",
    "r": lambda _: "\r",
    "\\": lambda _: "\\",
    "[": lambda _: "",
    "]": lambda _: "",
    "h": lambda shell: _host(shell).partition(".")[0],
    "H": _host,
    "j": lambda shell: str(len(shell.jobs.jobs)),
    "l": lambda _: "tty",
    "s": lambda shell: shell.name.rpartition("/")[2],
    "u": user_name,
    "v": lambda _: VERSION,
    "V": lambda _: RELEASE,
    "w": _directory,
    "W": _last_directory,
    "!": lambda shell: str(shell.history.next_number),
    "#": lambda shell: str(shell.command_number),
    "$": lambda shell: "#" if shell.process.fs.credentials.uid == 0 else "$",
}
