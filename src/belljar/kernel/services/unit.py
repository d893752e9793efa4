"""The description of a service: a TOML file in /etc/init, whose name without `.toml` is the service's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, Literal

from msgspec import Struct

from belljar.libc.toml import TomlError, parse_toml

UNITS: Final = "/etc/init"
SUFFIX: Final = ".toml"
RESTARTS: Final = ("always", "on-failure", "never")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}", re.ASCII)
_SECONDS_MAX: Final = 3600.0
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}

Restart = Literal["always", "on-failure", "never"]


class UnitError(ValueError):
    """What is wrong with a description, and what it should be."""


class Ready(Struct, frozen=True):
    """When a service is ready: a port is listened on, a file is there, a command succeeds, or it has done its work."""

    kind: Literal["port", "file", "command", "done"]
    port: int = 0
    text: str = ""

    def __str__(self) -> str:
        return "done" if self.kind == "done" else f"{self.kind}:{self.port or self.text}"


class Unit(Struct, frozen=True):
    name: str
    argv: tuple[str, ...]
    description: str = ""
    needs: tuple[str, ...] = ()
    """Services that are to be ready before this one is started."""
    restart: Restart = "on-failure"
    env: tuple[tuple[str, str], ...] = ()
    user: str | None = None
    """None: the user that commands run as."""
    cwd: str = "/"
    ready: Ready | None = None
    """None: as soon as it was started."""
    enabled: bool = True
    """Whether it is started with the sandbox."""
    ready_seconds: float = 60.0
    """How long it may take to be ready; then it is stopped, and counts as failed."""
    stop_seconds: float = 5.0
    """How long it may take to end after SIGTERM; then it is killed."""

    @property
    def command(self) -> str:
        """The command as one line."""
        from shlex import join

        return self.argv[2] if self.argv[:2] == ("bash", "-c") else join(self.argv)


def check_service_name(name: object) -> str:
    """UnitError."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UnitError(f"{name!r} is no name of a service: use letters, digits, _ . @ and - (at most 64)")
    return name


def parse_unit(name: str, text: str) -> Unit:
    """UnitError, which names the file and the key."""
    try:
        return make_unit(name, parse_toml(text))
    except (TomlError, UnitError) as error:
        raise UnitError(f"{UNITS}/{name}{SUFFIX}: {error}") from None


def make_unit(name: str, given: Mapping[str, Any]) -> Unit:
    """Check the keys of a description. UnitError."""
    known = {"command", "ready", "env", *Unit.__struct_fields__} - {"name", "argv"}
    if unknown := sorted(set(given) - known):
        close = get_close_matches(unknown[0], known, 1)
        advice = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sorted(known))}"
        raise UnitError(f"{unknown[0]!r} is no key of a service: {advice}")
    if "command" not in given:
        raise UnitError("`command` is missing: a text for bash, or a list of words")
    values: dict[str, Any] = {"argv": _argv(given["command"])}
    for key in ("description", "user", "cwd"):
        if key in given:
            values[key] = _text(key, given[key])
    if "needs" in given:
        values["needs"] = tuple(map(check_service_name, _texts("needs", given["needs"])))
    if "restart" in given:
        if given["restart"] not in RESTARTS:
            raise UnitError(f"restart = {given['restart']!r}: choose from {', '.join(RESTARTS)}")
        values["restart"] = given["restart"]
    if "env" in given:
        values["env"] = _environment(given["env"])
    if given.get("ready") is not None:
        values["ready"] = parse_ready(given["ready"])
    if "enabled" in given:
        if not isinstance(given["enabled"], bool):
            raise UnitError(f"enabled = {given['enabled']!r}: it is true or false")
        values["enabled"] = given["enabled"]
    for key in ("ready_seconds", "stop_seconds"):
        if key in given:
            values[key] = _seconds(key, given[key])
    if not values.get("cwd", "/").startswith("/"):
        raise UnitError(f"cwd = {values['cwd']!r}: it must be an absolute path")
    return Unit(check_service_name(name), **values)


def render_unit(unit: Unit) -> str:
    """The description as TOML: `parse_unit` gives the same unit again."""
    command = list(unit.argv) if unit.argv[:2] != ("bash", "-c") or len(unit.argv) != 3 else unit.argv[2]
    values: dict[str, Any] = {"command": command}
    for name in ("description", "needs", "restart", "user", "cwd", "ready", "enabled", "ready_seconds", "stop_seconds"):
        value = getattr(unit, name)
        if value != Unit.__struct_defaults__[Unit.__struct_fields__.index(name) - 2]:
            values[name] = str(value) if name == "ready" else value
    lines = [f"{name} = {_toml(value)}\n" for name, value in values.items()]
    if unit.env:
        lines += ["[env]\n", *(f"{_toml(name)} = {_toml(value)}\n" for name, value in unit.env)]
    return "".join(lines)


def _toml(value: object) -> str:
    if isinstance(value, str):
        escaped = "".join(_ESCAPES.get(c, c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}") for c in value)
        return f'"{escaped}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_ready(text: object) -> Ready:
    """`port:8000`, `file:/run/db.sock`, `command:curl -fs localhost:8000` or `done`. UnitError."""
    if text == "done":
        return Ready("done")
    kind, _, rest = text.partition(":") if isinstance(text, str) else ("", "", "")
    rest = rest.strip()
    if kind == "port" and rest.isascii() and rest.isdigit() and len(rest) < 6 and 0 < int(rest) < 65536:
        return Ready("port", int(rest))
    if (kind == "file" and rest.startswith("/")) or (kind == "command" and rest):
        return Ready("file" if kind == "file" else "command", 0, _text("ready", rest))
    raise UnitError(f"ready = {text!r}: write 'port:8000', 'file:/run/name', 'command:...' or 'done'")


def start_order(units: Mapping[str, Unit], wanted: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """The services to start, each after those it needs, else by name; and why the others can't be started."""
    order: list[str] = []
    refused: dict[str, str] = {}
    path: list[str] = []

    def visit(name: str) -> None:
        if name in order or name in refused:
            return
        if name not in units:
            refused[name] = "there is no such service"
            return
        if name in path:
            circle = " -> ".join([*path[path.index(name) :], name])
            for each in path[path.index(name) :]:
                refused[each] = f"needs go round in a circle: {circle}"
            return
        path.append(name)
        for need in sorted(units[name].needs):
            visit(need)
            if need in refused and name not in refused:
                refused[name] = f"it needs {need}: {refused[need]}"
        path.pop()
        if name not in refused:
            order.append(name)

    for name in sorted(wanted):
        visit(name)
    return order, refused


def _argv(command: object) -> tuple[str, ...]:
    if isinstance(command, str):
        return "bash", "-c", _text("command", command)
    return tuple(_texts("command", command, empty=False))


def _texts(key: str, value: object, *, empty: bool = True) -> list[str]:
    if not isinstance(value, list | tuple) or not (value or empty):
        raise UnitError(f"{key} = {value!r}: it must be a list of texts")
    return [_text(key, each) for each in value]


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise UnitError(f"{key} = {value!r}: it must be a text that is not empty")
    return value


def _environment(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping):
        raise UnitError(f"env = {value!r}: it must be a table of names and texts")
    for name, text in value.items():
        if not isinstance(text, str) or not name or "=" in name or "\0" in name + text:
            raise UnitError(f"env: {name} = {text!r}: a variable is a name and a text")
    return tuple(sorted(value.items()))


def _seconds(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _SECONDS_MAX:
        raise UnitError(f"{key} = {value!r}: it must be a number of seconds, at most {_SECONDS_MAX:g}")
    return float(value)
