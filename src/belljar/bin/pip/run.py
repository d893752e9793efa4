"""pip's commands: from a command line to what it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from belljar.abi.base import PYTHON_VERSION
from belljar.bin._kit import UsageError
from belljar.bin._kit.options import describe, parse
from belljar.bin.pip.config import ConfigOptions, run_config
from belljar.bin.pip.environment import find_environment
from belljar.bin.pip.inspect import (
    ListOptions,
    ShowOptions,
    UninstallOptions,
    run_check,
    run_freeze,
    run_list,
    run_show,
    run_uninstall,
)
from belljar.bin.pip.install import Options, run_download, run_install, run_wheel
from belljar.bin.pip.offered import IndexOptions, PlainOptions, run_cache, run_hash, run_index
from belljar.bin.pip.places import PIP_VERSION
from belljar.bin.pip.problems import PipError
from belljar.kernel.process import Process

_COMMANDS: Final[dict[str, tuple[type, Callable[[Process, Any, list[str]], int], str]]] = {
    "install": (Options, run_install, "pip install [options] <requirement specifier> ..."),
    "download": (Options, run_download, "pip download [options] <requirement specifier> ..."),
    "wheel": (Options, run_wheel, "pip wheel [options] <requirement specifier> ..."),
    "index": (IndexOptions, run_index, "pip index versions <package>"),
    "config": (ConfigOptions, run_config, "pip config [options] list|debug|get|set|unset [name] [value]"),
    "cache": (PlainOptions, run_cache, "pip cache dir|info|list|purge|remove [pattern]"),
    "hash": (PlainOptions, run_hash, "pip hash [options] <file> ..."),
    "uninstall": (UninstallOptions, run_uninstall, "pip uninstall [options] <package> ..."),
    "list": (ListOptions, run_list, "pip list [options]"),
    "freeze": (ListOptions, run_freeze, "pip freeze [options]"),
    "show": (ShowOptions, run_show, "pip show [options] <package> ..."),
    "check": (ShowOptions, run_check, "pip check [options]"),
}
_BEFORE: Final = ("-q", "--quiet", "-v", "--verbose", "--no-input", "--disable-pip-version-check", "--no-cache-dir")
"""Options that may come before the command."""


def run(process: Process, args: list[str], doc: str) -> int:
    first: list[str] = []
    while args and args[0] in _BEFORE:
        first.append(args[0])
        args = args[1:]
    match args:
        case [] | ["-h" | "--help", *_] | ["help"]:
            process.stdout.write(doc.encode())
            return 0
        case ["-V" | "--version", *_]:
            site = find_environment(process).site
            process.print(f"pip {PIP_VERSION} from {site}/pip (python {PYTHON_VERSION})")
            return 0
        case ["help", name, *_] if name in _COMMANDS:
            return _help(process, name)
        case [name, *rest] if name in _COMMANDS:
            return _run(process, name, [*first, *rest])
    process.error(f'ERROR: unknown command "{args[0]}"\n')
    return 1


def _help(process: Process, name: str) -> int:
    options, _, usage = _COMMANDS[name]
    process.print(f"\nUsage:\n  {usage}\n\nOptions:\n{describe(options)}")
    return 0


def _run(process: Process, name: str, args: list[str]) -> int:
    kind, command, usage = _COMMANDS[name]
    try:
        parsed = parse(kind, args)
        if parsed.asked == "help":
            return _help(process, name)
        return command(process, kind(**parsed.values), parsed.operands)
    except UsageError as error:
        process.error(f"\nUsage:\n  {usage}\n\n{error}\n")
        return 2
    except PipError as error:
        process.stdout.flush()
        process.error("".join(f"{line}\n" for line in (f"ERROR: {error.lines[0]}", *error.lines[1:])))
        return error.status
