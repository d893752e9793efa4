# ruff: noqa: E501 - the usage line is bash's own
"""bind: the keys of the line editor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.abi.errors import SysError
from belljar.shell.builtins.registry import Options, builtin
from belljar.shell.readline_names import FUNCTIONS, KEYS, VARIABLES

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

_KEYMAPS = ("emacs", "emacs-standard", "emacs-meta", "emacs-ctlx", "vi", "vi-move", "vi-command", "vi-insert")
_SHOWN = 5
"""Number of keys of a function that `bind -P` and `-q` list before `...`."""


@builtin("bind", "lpsvPSVXm:f:q:u:r:x:")
def bind(shell: Shell, options: Options, args: list[str]) -> int:
    """bind [-lpsvPSVX] [-m keymap] [-f filename] [-q name] [-u name] [-r keyseq] [-x keyseq:shell-command] [keyseq:readline-function or readline-command]
    Set or show key bindings and variables of the line editor.

    Options:
      -l  function names    -p, -P  functions and their keys    -s, -S  keys that insert text
      -v, -V  variables     -X  keys that run commands
      -q NAME  which keys run a function    -u NAME  unbind them    -r KEYS  unbind these
      -x KEYS:COMMAND  run a shell command  -f FILE  read bindings from a file    -m KEYMAP  which keymap
    """
    if not shell.interactive:
        shell.error("bind: warning: line editing not enabled")
    if "m" in options and options["m"] not in _KEYMAPS:
        shell.error(f"bind: `{options['m']}': invalid keymap name")
        return 1
    if "l" in options:
        shell.write("".join(f"{name}\n" for name in FUNCTIONS))
    _show(shell, options)
    if "f" in options:
        try:
            shell.process.fs.resolve(options["f"])
        except SysError as error:
            shell.error(f"bind: {options['f']}: cannot read: {error.reason}")
            return 1
    for letter in ("q", "u"):
        if letter in options and options[letter] not in FUNCTIONS:
            shell.error(f"bind: `{options[letter]}': unknown function name")
            return 1
    bindings = dict(shell.bindings)
    for text in [*args, *([options["x"]] if "x" in options else [])]:
        keys, _, command = text.partition(":")
        bindings[keys.strip().strip('"')] = command.strip()
    if "r" in options:
        bindings.pop(options["r"].strip('"'), None)
    shell.bindings = bindings
    if "q" in options:
        return _query(shell, options["q"])
    return 0


def _keys(name: str) -> str:
    keys = KEYS[name]
    return ", ".join(f'"{key}"' for key in keys[:_SHOWN]) + (", ..." if len(keys) > _SHOWN else "") + "."


def _query(shell: Shell, name: str) -> int:
    if name not in KEYS:
        shell.write(f"{name} is not bound to any keys.\n")
        return 1
    shell.write(f"{name} can be invoked via {_keys(name)}\n")
    return 0


def _show(shell: Shell, options: Options) -> None:
    lines: list[str] = []
    for name in FUNCTIONS:
        if "p" in options:
            lines += [f'"{key}": {name}' for key in KEYS.get(name, ())] or [f"# {name} (not bound)"]
        if "P" in options:
            lines.append(
                f"{name} can be found on {_keys(name)}" if name in KEYS else f"{name} is not bound to any keys"
            )
    for name, value in VARIABLES.items():
        if "v" in options:
            lines.append(f"set {name} {value}")
        if "V" in options:
            lines.append(f"{name} is set to `{value}'")
    if "X" in options or "s" in options or "S" in options:
        lines += [f'"{keys}": "{command}"' for keys, command in shell.bindings.items()]
    if lines:
        shell.write("".join(f"{line}\n" for line in lines))
