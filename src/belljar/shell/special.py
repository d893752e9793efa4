"""Special variables: those computed when read, and those whose change has an effect."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from belljar.abi.base import DEFAULT_PATH
from belljar.shell import history_file
from belljar.shell.arrays import Array, Assoc
from belljar.shell.expand.ifs import prepare
from belljar.shell.variables import ARRAY, ASSOC, EXPORT, INTEGER, READONLY, DynamicVar, Entry, Var, Variables, is_name

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

VERSION = "5.2.15(1)-release"
VERSINFO = ("5", "2", "15", "1", "release", "x86_64-pc-linux-gnu")


# --- effects of a change -------------------------------------------------------------------------------------------


def _ifs_changed(shell: Shell) -> None:
    value = shell.vars.get("IFS")
    shell.ifs = prepare(value)
    shell.plain_ifs = value is None or not any(char in "-0123456789" for char in value)


def _path_changed(shell: Shell) -> None:
    shell.hash = {}
    shell.located = {}


def _optind_changed(shell: Shell) -> None:
    shell.getopts = (0, 1)


def _posix_changed(shell: Shell) -> None:
    shell.set_option("posix", shell.vars.get("POSIXLY_CORRECT") is not None)


def _trace_fd_changed(shell: Shell) -> None:
    text = shell.vars.get("BASH_XTRACEFD")
    if text and not (text.isdecimal() and int(text[:9]) in shell.process.fds):
        shell.error(f"BASH_XTRACEFD: {text}: invalid value for trace file descriptor")


def _locale_changed(shell: Shell) -> None:
    """Set whether a character is a byte. An unknown locale is C; a shell that starts with one says so."""
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    name, value = next(((name, value) for name in names if (value := shell.vars.get(name))), ("LANG", "C"))
    shell.byte_locale = "utf" not in value.lower()
    if shell.byte_locale and not shell.started and name != "LANG" and value not in ("C", "POSIX"):
        shell.process.error(f"{shell.name}: warning: setlocale: {name}: cannot change locale ({value})\n")


def _ignored_names_changed(shell: Shell) -> None:
    value = shell.vars.get("GLOBIGNORE")
    if value != "":
        shell.set_shopt("dotglob", value is not None)


HOOKS = {
    "HISTSIZE": history_file.size_changed,
    "HISTFILESIZE": history_file.file_size_changed,
    "LC_ALL": _locale_changed,
    "LC_CTYPE": _locale_changed,
    "LANG": _locale_changed,
    "GLOBIGNORE": _ignored_names_changed,
    "IFS": _ifs_changed,
    "PATH": _path_changed,
    "OPTIND": _optind_changed,
    "POSIXLY_CORRECT": _posix_changed,
    "BASH_XTRACEFD": _trace_fd_changed,
}


# --- values computed when read -------------------------------------------------------------------------------------


def _now_ns(shell: Shell) -> int:
    return shell.process.kernel.machine.clock.time_ns()


def _seconds(shell: Shell) -> str:
    return str(int(shell.process.kernel.hub.clock.monotonic() - shell.seconds_base))


def _set_seconds(shell: Shell, value: str) -> None:
    offset = int(value[:18]) if value.lstrip("-").isdecimal() else 0
    shell.seconds_base = shell.process.kernel.hub.clock.monotonic() - offset


SEEDED: Final = -1
"""The branch of a shell whose seed was set by an assignment to RANDOM."""


def _random(shell: Shell) -> str:
    """Bash's generator: Park and Miller's, folded to 15 bits, never the same twice in a row."""
    kernel = shell.process.kernel
    if shell.random_branch not in (SEEDED, kernel.branched):
        # The first number; or the sandbox was forked, and the other branches would draw the same.
        shell.random_branch = kernel.branched
        shell.random_seed = int.from_bytes(kernel.machine.entropy.random_bytes(4), "little") & 0x7FFFFFFF
    while True:
        seed = shell.random_seed or 123459876
        high, low = divmod(seed, 127773)
        seed = 16807 * low - 2836 * high
        if seed < 0:
            seed += 0x7FFFFFFF
        shell.random_seed = seed
        value = (seed >> 16) ^ (seed & 0xFFFF)
        value &= 0x7FFF
        if value != shell.random_last:
            shell.random_last = value
            return str(value)


def _set_random(shell: Shell, value: str) -> None:
    shell.random_seed = shell.arith(value) & 0xFFFFFFFF
    shell.random_branch = SEEDED
    shell.random_last = 0


def _srandom(shell: Shell) -> str:
    return str(int.from_bytes(shell.process.kernel.machine.entropy.random_bytes(4), "little"))


def function_names(shell: Shell) -> list[str]:
    """FUNCNAME: innermost first, `main` last when a script runs."""
    names = [frame.name for frame in reversed(shell.vars.frames) if frame.name]
    if not any(frame.function for frame in shell.vars.frames):
        return []
    if shell.script is not None:
        names.append("main")
    return names


def _funcname(shell: Shell) -> Array | None:
    names = function_names(shell)
    return Array.of(names) if names else None


def _sources(shell: Shell) -> Array | None:
    names = [frame.source for frame in reversed(shell.vars.frames) if frame.name]
    if shell.script is not None:
        names.append(shell.script)
    return Array.of(names)


def _linenos(shell: Shell) -> Array | None:
    lines = [str(frame.line) for frame in reversed(shell.vars.frames) if frame.name]
    if shell.script is not None:
        lines.append("0")
    return Array.of(lines)


def _pipestatus(shell: Shell) -> Array:
    statuses = shell.pipestatus
    return Array.of([str(shell.status)] if statuses is None else [str(status) for status in statuses])


def _dirstack(shell: Shell) -> Array:
    return Array.of([shell.vars.get("PWD") or "", *shell.directories])


def _groups(shell: Shell) -> Array:
    return Array.of([str(shell.process.fs.credentials.gid)])


def _aliases(shell: Shell) -> Assoc:
    contents = Assoc()
    for name, text in shell.aliases.items():
        contents.set(name, text)
    return contents


def _commands(shell: Shell) -> Assoc:
    contents = Assoc()
    for name, (path, _) in shell.hash.items():
        contents.set(name, path)
    return contents


def _set_alias(shell: Shell, name: str, text: str) -> None:
    shell.aliases[name] = text


def _set_command(shell: Shell, name: str, path: str) -> None:
    shell.hash = {**shell.hash, name: (path, 0)}


def _set_directory(shell: Shell, index: str, path: str) -> None:
    place = int(index) - 1
    if 0 <= place < len(shell.directories):
        shell.directories[place] = path


PARTS = {"BASH_ALIASES": _set_alias, "BASH_CMDS": _set_command, "DIRSTACK": _set_directory}


def _shellopts(shell: Shell) -> str:
    return ":".join(sorted(name for name, on in shell.options.items() if on))


def _bashopts(shell: Shell) -> str:
    return ":".join(sorted(name for name, on in shell.shopts.items() if on))


def _argument_lists(shell: Shell) -> list[list[str]]:
    """The arguments of each call, innermost first, and the script's own: those of calls only for a debugger."""
    lists = [f.args if f.function or f.args else [f.source] for f in reversed(shell.vars.frames)]
    return [*(lists if shell.shopts["extdebug"] else []), shell.script_args]


def _argc(shell: Shell) -> Array:
    return Array.of([str(len(args)) for args in _argument_lists(shell)])


def _argv(shell: Shell) -> Array:
    return Array.of([arg for args in _argument_lists(shell) for arg in reversed(args)])


def _epoch_real(shell: Shell) -> str:
    now = _now_ns(shell)
    return f"{now // 1_000_000_000}.{now % 1_000_000_000 // 1000:06d}"


def _last_argument(shell: Shell) -> str:
    last: object = shell.last_argument
    if isinstance(last, str):
        return last
    return str(last) if isinstance(getattr(last, "value", None), str) else str(getattr(last, "name", ""))


def _set_argv0(shell: Shell, value: str) -> None:
    shell.name = value


@cache
def _dynamic() -> dict[str, DynamicVar]:
    """The special variables: all shells share these, each makes a copy of its own when it changes one."""
    return {
        "RANDOM": DynamicVar(_random, _set_random, INTEGER),
        "SRANDOM": DynamicVar(_srandom, None, INTEGER),
        "SECONDS": DynamicVar(_seconds, _set_seconds),
        "LINENO": DynamicVar(lambda sh: str(sh.line), lambda sh, value: None),
        "EPOCHSECONDS": DynamicVar(lambda sh: str(_now_ns(sh) // 1_000_000_000)),
        "EPOCHREALTIME": DynamicVar(_epoch_real),
        "BASHPID": DynamicVar(lambda sh: str(sh.process.pid), None, INTEGER),
        "BASH_SUBSHELL": DynamicVar(lambda sh: str(sh.subshell)),
        "BASH_COMMAND": DynamicVar(lambda sh: sh.command_text()),
        "BASH_ARGV0": DynamicVar(lambda sh: sh.name, _set_argv0),
        "FUNCNAME": DynamicVar(_funcname, None, ARRAY),
        "BASH_SOURCE": DynamicVar(_sources, None, ARRAY),
        "BASH_LINENO": DynamicVar(_linenos, None, ARRAY),
        "BASH_ARGC": DynamicVar(_argc, None, ARRAY),
        "BASH_ARGV": DynamicVar(_argv, None, ARRAY),
        "PIPESTATUS": DynamicVar(_pipestatus, None, ARRAY),
        "DIRSTACK": DynamicVar(_dirstack, None, ARRAY),
        "GROUPS": DynamicVar(_groups, None, ARRAY),
        "BASH_ALIASES": DynamicVar(_aliases, None, ASSOC),
        "BASH_CMDS": DynamicVar(_commands, None, ASSOC),
        "SHELLOPTS": DynamicVar(_shellopts, None, READONLY),
        "BASHOPTS": DynamicVar(_bashopts, None, READONLY),
        "HISTCMD": DynamicVar(lambda sh: str(sh.history.next_number - 1), None, INTEGER),
        "_": DynamicVar(_last_argument, lambda sh, value: None),
    }


def _first_table(env: Mapping[str, str], uid: int, hostname: str, *, posix: bool) -> dict[str, Entry]:
    """Initial variables of a shell with this environment, except those of its process."""
    table: dict[str, Entry] = {name: Var(value, EXPORT) for name, value in env.items() if is_name(name)}
    level = env.get("SHLVL", "0")
    number = int(level) + 1 if level.isdecimal() and len(level) < 9 else 1
    table["SHLVL"] = Var(str(number), EXPORT)
    table.setdefault("OLDPWD", Var(None, EXPORT))
    for name, var in _dynamic().items():
        if name in ("SHELLOPTS", "BASHOPTS") and name in table:
            var = DynamicVar(var.reader, var.writer, var.attrs | EXPORT)
        table[name] = var
    table["UID"] = table["EUID"] = Var(str(uid), INTEGER | READONLY)
    table["PPID"] = Var("0", INTEGER | READONLY)
    table["BASH_VERSINFO"] = Var(Array.of(VERSINFO), ARRAY | READONLY)
    for name, value in (
        ("BASH", f"/bin/{'sh' if posix else 'bash'}"),
        ("BASH_VERSION", VERSION),
        ("HOSTNAME", hostname),
        ("HOSTTYPE", "x86_64"),
        ("MACHTYPE", "x86_64-pc-linux-gnu"),
        ("OSTYPE", "linux-gnu"),
        ("IFS", " \t\n"),
        ("OPTIND", "1"),
        ("OPTERR", "1"),
        ("PS4", "+ "),
        ("SHELL", "/bin/bash"),
        ("PATH", DEFAULT_PATH),
    ):
        if name not in table or name in ("IFS", "OPTIND", "OPTERR"):
            table[name] = Var(value, INTEGER if name == "OPTIND" else 0) if name in HOOKS else value
    return table


class _Remembered(Struct):
    """The table of the last shell's start: the next one most often has the same environment."""

    env: Mapping[str, str]
    key: tuple[int, str, bool]
    table: dict[str, Entry]


_last: list[_Remembered] = []


def install(shell: Shell) -> None:
    """Set the variables of a new shell for its first command."""
    Variables.HOOKS.update(HOOKS)
    Variables.PARTS.update(PARTS)
    bind(shell)
    _locale_changed(shell)


def bind(shell: Shell) -> None:
    """Bind the variables of a new shell: its environment, the special ones, and the defaults."""
    process = shell.process
    env = process.env
    key = (process.fs.credentials.uid, process.kernel.hostname, shell.posix)
    if not _last or _last[0].env != env or _last[0].key != key:
        _last[:] = [_Remembered(dict(env), key, _first_table(env, key[0], key[1], posix=key[2]))]
    table = shell.table
    table.update(_last[0].table)
    if process.parent is not None:
        table["PPID"] = Var(str(process.parent.pid), INTEGER | READONLY)
