"""trap: commands to run when signals arrive and when the shell, functions or commands end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.abi.signals import RTMAX, RTMIN, parse_signal, signal_name
from belljar.libc.quote import single
from belljar.shell.builtins.registry import Options, Usage, builtin
from belljar.shell.traps import PSEUDO, trap_name

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

_ORDER = {"EXIT": 0, "DEBUG": 65, "ERR": 66, "RETURN": 67}


def _numbers() -> list[int]:
    return [*range(1, 32), *range(RTMIN, RTMAX + 1)]


def signal_names() -> list[str]:
    """The names listed by POSIX's `kill -l`."""
    return [signal_name(number) for number in _numbers()]


def signal_table() -> str:
    """Output of `trap -l` and `kill -l`: five signals a line."""
    cells = [f"{number:2d}) SIG{signal_name(number)}" for number in _numbers()]
    lines = ["\t".join(cells[start : start + 5]) for start in range(0, len(cells), 5)]
    return "".join(f"{line}{'' if index < len(lines) - 1 else chr(9)}\n" for index, line in enumerate(lines))


def _rank(name: str) -> int:
    return _ORDER.get(name, parse_signal(name) or 0)


def _show(shell: Shell, name: str, command: str | None) -> None:
    shown = name if name in PSEUDO or name.isdecimal() or shell.posix else f"SIG{name}"
    shell.write(f"trap -- {single(command) if command is not None else '-'} {shown}\n")


@builtin("trap", "lp", special=True)
def trap(shell: Shell, options: Options, args: list[str]) -> int:
    """trap [-lp] [[arg] signal_spec ...]
    Run ARG when one of the signals arrives; `-` or no ARG restores the default, an empty ARG ignores the signal.

    EXIT (0) is the shell's end, DEBUG comes before each command, ERR after one that fails, RETURN after a function or
    sourced file. Without arguments, or with -p, the traps are shown; -l lists the signals.
    """
    if "l" in options:
        shell.write(signal_table())
        return 0
    listing = shell.traps.listing()
    if "p" in options and not args and shell.posix:
        return _print_all(shell, listing)
    if "p" in options or not args:
        return _print(shell, listing, args)
    command: str | None = None
    if len(args) == 1 or (args[0].isdecimal() and parse_signal(args[0]) is not None):
        # One signal, or a signal's number first: all are signals to be reset.
        if len(args) == 1 and trap_name(args[0]) is None:
            raise Usage
        names = args
    elif args[0] == "-":
        names = args[1:]
    else:
        command, names = args[0], args[1:]
    status = 0
    for spec in names:
        target = trap_name(spec)
        if target is None:
            shell.error(f"trap: {spec}: invalid signal specification")
            status = 1
        else:
            shell.traps.set(target, command)
    return status


def _print_all(shell: Shell, listing: dict[str, str]) -> int:
    """`trap -p` in POSIX mode: those that are as they were at the start, too."""
    names = ["EXIT", *(signal_name(number) for number in range(1, RTMAX + 1)), "DEBUG", "ERR", "RETURN"]
    for name in names:
        _show(shell, name, listing.get(name))
    return 0


def _print(shell: Shell, listing: dict[str, str], args: list[str]) -> int:
    if not args:
        for name in sorted(listing, key=_rank):
            _show(shell, name, listing[name])
        return 0
    status = 0
    for spec in args:
        found = trap_name(spec)
        if found is None:
            shell.error(f"trap: {spec}: invalid signal specification")
            status = 1
        elif found in listing or shell.posix:
            _show(shell, found, listing.get(found))
    return status
