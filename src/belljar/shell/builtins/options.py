"""set and shopt: the shell's options and the positional parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.shell.builtins.listing import listing_line, print_function
from belljar.shell.builtins.registry import Options, Usage, builtin
from belljar.shell.options import LETTERS, SET_OPTIONS, SHOPT_DEFAULTS

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


@builtin("set", special=True)
def set_(shell: Shell, args: list[str]) -> int:
    """set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]
    Set shell options (`+` instead of `-` clears them) and the positional parameters; alone, show all variables.

    Options:
      -a allexport   -b notify      -e errexit    -f noglob     -h hashall   -k keyword  -m monitor  -n noexec
      -p privileged  -t onecmd      -u nounset    -v verbose    -x xtrace    -B braceexpand  -C noclobber
      -E errtrace    -H histexpand  -P physical   -T functrace
      -o NAME  by name (-o alone shows them, +o as commands)
      --       what follows are the positional parameters, even if there are none
      -        the same, and -v and -x off; without arguments the parameters stay
    """
    if not args:
        _list_variables(shell)
        return 0
    position = 0
    changes: list[tuple[str, bool]] = []
    while position < len(args):
        arg = args[position]
        if arg == "--":
            _apply(shell, changes)
            shell.args = args[position + 1 :]
            return 0
        if arg == "-":
            _apply(shell, changes)
            shell.set_option("verbose", False)
            shell.set_option("xtrace", False)
            if args[position + 1 :]:
                shell.args = args[position + 1 :]
            return 0
        if arg[0:1] not in ("-", "+"):
            break
        position += 1
        on = arg[0] == "-"
        for letter in arg[1:]:
            if letter == "o":
                if position >= len(args):
                    _apply(shell, changes)
                    list_options(shell, commands=not on)
                    return 0
                name = args[position]
                position += 1
                if name not in SET_OPTIONS:
                    shell.error(f"set: {name}: invalid option name")
                    shell.misused = True
                    return 2
                changes.append((name, on))
            elif letter in LETTERS:
                changes.append((LETTERS[letter], on))
            else:
                raise Usage(f"{arg[0]}{letter}: invalid option")
    _apply(shell, changes)
    if position < len(args):
        shell.args = args[position:]
    return 0


def _apply(shell: Shell, changes: list[tuple[str, bool]]) -> None:
    for name, on in changes:
        shell.set_option(name, on)


def list_options(shell: Shell, *, commands: bool) -> None:
    for name in SET_OPTIONS:
        _show_option(shell, name, shell.options.get(name, False), commands="set" if commands else "")


def _show_option(shell: Shell, name: str, on: bool, *, commands: str) -> None:
    if commands == "set":
        shell.write(f"set {'-' if on else '+'}o {name}\n")
    elif commands:
        shell.write(f"shopt -{'s' if on else 'u'} {name}\n")
    else:
        shell.write(f"{name:<15}\t{'on' if on else 'off'}\n")


def _list_variables(shell: Shell) -> None:
    lines = [line for name in shell.vars.names() if (line := listing_line(shell, name)) is not None]
    if not shell.posix:
        lines += [print_function(shell.functions[name]) for name in sorted(shell.functions)]
    shell.write("".join(f"{line}\n" for line in lines))


@builtin("shopt", "pqsuo")
def shopt(shell: Shell, options: Options, args: list[str]) -> int:
    """shopt [-pqsu] [-o] [optname ...]
    Set, clear or show the options that `set -o` doesn't have.

    Options:
      -s  set      -u  clear
      -p  show as commands
      -q  say nothing; the status tells whether all named are set
      -o  the options of `set -o`
    """
    if "s" in options and "u" in options:
        shell.error("shopt: cannot set and unset shell options simultaneously")
        return 1
    of_set = "o" in options
    table = shell.options if of_set else shell.shopts
    names = list(SET_OPTIONS) if of_set else list(SHOPT_DEFAULTS)
    commands = ("set" if of_set else "shopt") if "p" in options else ""
    wanted = True if "s" in options else False if "u" in options else None
    if not args:
        for name in names:
            on = table.get(name, False)
            if "q" not in options and wanted in (None, on):
                _show_option(shell, name, on, commands=commands)
        return 0
    status = 0
    for name in args:
        if name not in table and name not in names:
            kind = "option name" if of_set else "shell option name"
            shell.error(f"shopt: {name}: invalid {kind}")
            status = 1
        elif wanted is None:
            on = table.get(name, False)
            status = status if on else 1
            if "q" not in options:
                _show_option(shell, name, on, commands=commands)
        elif of_set:
            shell.set_option(name, wanted)
        else:
            shell.set_shopt(name, wanted)
    return status
