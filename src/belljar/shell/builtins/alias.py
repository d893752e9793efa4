"""alias and unalias."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from belljar.libc.quote import single
from belljar.shell.builtins.registry import Options, Usage, builtin

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

_BAD_NAME: Final = re.compile(r"[ \t\n/$`=|&;()<>'\"\\]")


def _show(shell: Shell, name: str, *, reusable: bool = False) -> None:
    command = "" if shell.posix and not reusable else "alias -- " if name.startswith("-") else "alias "
    shell.write(f"{command}{name}={single(shell.aliases[name])}\n")


@builtin("alias", "p")
def alias(shell: Shell, options: Options, args: list[str]) -> int:
    """alias [-p] [name[=value] ... ]
    Define aliases, or show them.
    """
    if not args or "p" in options:
        for name in sorted(shell.aliases):
            _show(shell, name, reusable="p" in options)
    status = 0
    for arg in args:
        name, equals, value = arg.partition("=")
        if equals and name:
            if _BAD_NAME.search(name):
                shell.error(f"alias: `{name}': invalid alias name")
                status = 1
            else:
                shell.aliases[name] = value
        elif arg in shell.aliases:
            _show(shell, arg)
        else:
            shell.error(f"alias: {arg}: not found")
            status = 1
    return status


@builtin("unalias", "a")
def unalias(shell: Shell, options: Options, args: list[str]) -> int:
    """unalias [-a] name [name ...]
    Forget aliases; with -a, all of them.
    """
    if "a" in options:
        shell.aliases.clear()
        return 0
    if not args:
        raise Usage
    status = 0
    for arg in args:
        if arg in shell.aliases:
            del shell.aliases[arg]
        else:
            shell.error(f"unalias: {arg}: not found")
            status = 1
    return status
