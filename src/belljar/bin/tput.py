"""tput - query the terminal's capabilities

Usage: tput [-T TYPE] CAPABILITY [PARAMETER]...
       tput [-T TYPE] -S

With -S, capabilities are read from standard input, one a line. The exit status is 1 if the terminal has no such
capability, 3 if it is not known, and 4 if there is no capability of that name.
"""

import re

from belljar.abi.errors import SysError
from belljar.abi.termios import WinSize
from belljar.bin._kit import UsageError, utility
from belljar.kernel.process import Process

_TEXT = {
    "clear": "\x1b[H\x1b[2J\x1b[3J", "bold": "\x1b[1m", "dim": "\x1b[2m", "smul": "\x1b[4m", "rmul": "\x1b[24m",
    "rev": "\x1b[7m",
    "smso": "\x1b[7m", "rmso": "\x1b[27m", "sgr0": "\x1b(B\x1b[m", "blink": "\x1b[5m", "civis": "\x1b[?25l",
    "cnorm": "\x1b[?12l\x1b[?25h",
    "el": "\x1b[K", "el1": "\x1b[1K", "ed": "\x1b[J", "home": "\x1b[H", "sc": "\x1b7", "rc": "\x1b8",
    "smcup": "\x1b[?1049h",
    "rmcup": "\x1b[?1049l", "cuu1": "\x1b[A", "cud1": "\n", "cuf1": "\x1b[C", "cub1": "\b", "op": "\x1b[39;49m",
    "bel": "\a",
    "sitm": "\x1b[3m", "ritm": "\x1b[23m", "reset": "\x1bc",
}  # fmt: skip


_KNOWN = re.compile(
    r"(xterm|screen|tmux|rxvt|linux|vt100|vt102|vt220|ansi|konsole|gnome|alacritty|kitty|foot|st)(-.*)?"
)
_DUMB = frozenset({"bel", "cud1", "cols", "lines", "init", "reset"})


@utility("tput", usage_status=2)
def main(process: Process, args: list[str]) -> int:
    terminal = process.env.get("TERM", "")
    while args[:1] and args[0].startswith("-T"):
        terminal = args[0][2:] or (args[1] if len(args) > 1 else "")
        args = args[1:] if args[0] != "-T" else args[2:]
    if args[:1] == ["-V"]:
        process.print("ncurses 6.4.20221231")
        return 0
    if not args:
        raise UsageError("usage: tput [-T TYPE] CAPABILITY", hint=False)
    if not terminal:
        raise UsageError("No value for $TERM and no -T specified", hint=False)
    if terminal != "dumb" and not _KNOWN.fullmatch(terminal):
        process.warn(f'unknown terminal "{terminal}"')
        return 3
    if args == ["-S"]:
        lines = [line.split() for line in process.read_file("-").decode("utf-8", "replace").splitlines()]
        return max((_show(process, terminal, words) for words in lines if words), default=0)
    return _show(process, terminal, args)


def _show(process: Process, terminal: str, words: list[str]) -> int:
    name, *parameters = words
    if terminal == "dumb" and name not in _DUMB and name != "colors":
        known = name in _TEXT or name in ("setaf", "setab", "cup", "cuu", "cud", "cuf", "cub")
        if not known:
            process.warn(f"unknown terminfo capability '{name}'")
        return 1 if known else 4
    numbers = [int(text[:9]) for text in parameters if text.isdecimal()]
    if name in ("cols", "lines"):
        size = _size(process)
        process.print(str((size.columns or 80) if name == "cols" else (size.rows or 24)))
    elif name == "colors":
        process.print("256" if "256" in terminal else "8" if terminal != "dumb" else "-1")
    elif name in ("setaf", "setab") and numbers:
        base = 30 if name == "setaf" else 40
        code = f"{base + numbers[0]}" if numbers[0] < 8 else f"{base + 8};5;{numbers[0]}"
        process.print(f"\x1b[{code}m", end="")
    elif name == "cup" and len(numbers) == 2:
        process.print(f"\x1b[{numbers[0] + 1};{numbers[1] + 1}H", end="")
    elif name in ("cuu", "cud", "cuf", "cub") and numbers:
        process.print(f"\x1b[{numbers[0]}{'ABCD'['cuu cud cuf cub'.split().index(name)]}", end="")
    elif name in _TEXT:
        process.print(_TEXT[name], end="")
    else:
        process.warn(f"unknown terminfo capability '{name}'")
        return 4
    return 0


def _size(process: Process) -> WinSize:
    for fd in (2, 1, 0):
        try:
            size = process.ioctl(fd, "winsize")
        except SysError:
            continue
        if isinstance(size, WinSize):
            return size
    return WinSize()
