"""make's command line, and MAKEFLAGS, which is one too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from belljar.bin._kit import UsageError
from belljar.bin.make.state import Switches

_FLAGS: Final = {
    "n": "dry_run", "B": "always", "k": "keep_going", "s": "silent", "q": "question", "t": "touch",
    "i": "ignore_errors", "e": "environment", "r": "no_rules", "R": "no_variables", "p": "print_database",
}  # fmt: skip
_VALUES: Final = {"f": "files", "C": "directories", "I": "includes", "o": "old", "W": "new", "E": "evals"}
_LONG: Final[Mapping[str, str]] = {
    "just-print": "n", "dry-run": "n", "recon": "n", "always-make": "B", "keep-going": "k", "silent": "s", "quiet": "s",
    "question": "q", "touch": "t", "ignore-errors": "i", "environment-overrides": "e", "no-builtin-rules": "r",
    "no-builtin-variables": "R", "file": "f", "makefile": "f", "directory": "C", "include-dir": "I", "old-file": "o",
    "assume-old": "o", "what-if": "W", "new-file": "W", "assume-new": "W", "eval": "E", "jobs": "j",
    "load-average": "l", "max-load": "l",
    "print-directory": "w", "no-keep-going": "S", "stop": "S", "version": "v", "help": "h",
    "no-print-directory": "no-w", "trace": "trace", "warn-undefined-variables": "undefined", "output-sync": "O",
    "debug": "d", "print-data-base": "p", "no-silent": "no-s", "check-symlink-times": "L", "jobserver-auth": "auth",
}  # fmt: skip
_IGNORED: Final = frozenset("bmdLl")


def parse(args: list[str], inherited: str) -> tuple[Switches, str]:
    """Parse MAKEFLAGS and the command line; return the switches, and whether help or version was asked for."""
    switches = Switches()
    words = _split(inherited)
    if words and not words[0].startswith("-") and "=" not in words[0]:
        words[0] = "-" + words[0]
    for text in (words, args):
        asked = _parse(switches, text)
        if asked:
            return switches, asked
    return switches, ""


def _split(text: str) -> list[str]:
    words: list[str] = []
    current: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            current.append(text[at + 1])
            at += 2
            continue
        if char == " ":
            if current:
                words.append("".join(current))
                current = []
        else:
            current.append(char)
        at += 1
    if current:
        words.append("".join(current))
    return words


def _parse(switches: Switches, args: list[str]) -> str:
    index = 0
    only_operands = False
    while index < len(args):
        arg = args[index]
        index += 1
        if only_operands or not arg.startswith("-") or arg == "-":
            if "=" in arg:
                name = arg.partition("=")[0].rstrip(":?+!")
                switches.assignments = [a for a in switches.assignments if a.partition("=")[0].rstrip(":?+!") != name]
                switches.assignments.append(arg)
            elif arg:
                switches.goals.append(arg)
            continue
        if arg == "--":
            only_operands = True
            continue
        if arg.startswith("--"):
            name, equals, value = arg[2:].partition("=")
            letter = _complete(name)
            if letter in _VALUES and not equals:
                if index >= len(args):
                    raise UsageError(f"option '--{name}' requires an argument")
                value = args[index]
                index += 1
            if asked := _set(switches, letter, value):
                return asked
            continue
        position = 1
        while position < len(arg):
            letter = arg[position]
            position += 1
            value = ""
            if letter in _VALUES:
                value = arg[position:]
                position = len(arg)
                if not value:
                    if index >= len(args):
                        raise UsageError(f"option requires an argument -- '{letter}'")
                    value = args[index]
                    index += 1
            elif letter in "jlO":
                value = arg[position:] if arg[position : position + 1].isdigit() or letter == "O" else ""
                position += len(value)
                if (
                    not value
                    and letter in "jl"
                    and position >= len(arg)
                    and index < len(args)
                    and args[index].isdigit()
                ):
                    value = args[index]
                    index += 1
            if asked := _set(switches, letter, value):
                return asked
    return ""


def _complete(name: str) -> str:
    if name in _LONG:
        return _LONG[name]
    matches = {_LONG[full] for full in _LONG if full.startswith(name)}
    if not matches:
        raise UsageError(f"unrecognized option '--{name}'")
    if len(matches) > 1:
        raise UsageError(f"option '--{name}' is ambiguous")
    return matches.pop()


def _set(switches: Switches, letter: str, value: str) -> str:
    if letter in _FLAGS:
        setattr(switches, _FLAGS[letter], True)
        if letter == "R":
            switches.no_rules = True
    elif letter in _VALUES:
        getattr(switches, _VALUES[letter]).append(value)
    elif letter == "j":
        switches.jobs = value
    elif letter in ("w", "no-w"):
        switches.print_directory = letter == "w"
    elif letter == "S":
        switches.keep_going = False
    elif letter == "no-s":
        switches.silent = False
    elif letter == "trace":
        switches.trace = True
    elif letter in ("v", "h"):
        return "version" if letter == "v" else "help"
    elif letter not in _IGNORED and letter not in ("undefined", "O", "auth"):
        raise UsageError(f"invalid option -- '{letter}'")
    return ""


def letters(switches: Switches) -> str:
    """The flags as MAKEFLAGS shows them, in make's order."""
    return "".join(letter for letter in "BeiknqrRst" if getattr(switches, _FLAGS[letter])) + (
        "w" if switches.print_directory else ""
    )
