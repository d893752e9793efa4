"""cd, pwd and the directory stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.abi.errno import ENOENT
from belljar.abi.errors import SysError
from belljar.shell.builtins.registry import Options, Usage, builtin

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


def current(shell: Shell) -> str:
    """The logical directory: $PWD while that names it, else the result of getcwd."""
    pwd = shell.vars.get("PWD")
    if pwd and pwd.startswith("/"):
        try:
            here, named = shell.process.fs.stat("."), shell.process.fs.stat(pwd)
        except SysError:
            return pwd
        if (here.dev, here.ino) == (named.dev, named.ino):
            return pwd
    try:
        return shell.process.fs.getcwd()
    except SysError:
        return "."


def change(shell: Shell, path: str, *, physical: bool) -> None:
    """Go to a directory and keep PWD and OLDPWD. SysError."""
    fs = shell.process.fs
    logical = path if path.startswith("/") else f"{current(shell).rstrip('/')}/{path}"
    if physical:
        fs.chdir(path)
        target = fs.getcwd()
    else:
        try:
            target = _logical(shell, logical)
            fs.chdir(target)
        except SysError as error:
            if error.errno != ENOENT or path.startswith("/"):
                raise
            # The logical path may be gone while the directory itself still is there.
            fs.chdir(path)
            target = _physical(shell, logical)
    old = shell.vars.get("PWD")
    if old is not None:
        shell.vars.set("OLDPWD", old)
    shell.vars.set("PWD", target)


def _physical(shell: Shell, otherwise: str) -> str:
    """The result of getcwd; `otherwise` if the directory was removed."""
    try:
        return shell.process.fs.getcwd()
    except SysError as error:
        reason = f"getcwd: cannot access parent directories: {error.reason}"
        shell.process.error(f"cd: error retrieving current directory: {reason}\n")
        return otherwise


def _logical(shell: Shell, path: str) -> str:
    """`path` without dots by text, each directory that `..` leaves checked to exist. SysError."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if parts:
                shell.process.fs.resolve("/" + "/".join(parts) + "/.")
                parts.pop()
        elif part and part != ".":
            parts.append(part)
    lead = "//" if path.startswith("//") and not path.startswith("///") else "/"
    return lead + "/".join(parts)


@builtin("cd", "LPe@")
def cd(shell: Shell, options: Options, args: list[str]) -> int:
    """cd [-L|[-P [-e]] [-@]] [dir]
    Change the working directory: to DIR, to $HOME, or with `-` to $OLDPWD.

    A relative DIR is looked for in the directories of CDPATH first.

    Options:
      -L  follow `..` by the path's text (the default)
      -P  use the physical directory, without symlinks
      -e  with -P, fail if the directory can't be named
    """
    physical = shell.options["physical"]
    for letter in options:
        if letter in "LP":
            physical = letter == "P"
    if len(args) > 1:
        shell.error("cd: too many arguments")
        return 1
    show = False
    if not args:
        home = shell.vars.get("HOME")
        if home is None:
            shell.error("cd: HOME not set")
            return 1
        target = home
    elif args[0] == "-":
        old = shell.vars.get("OLDPWD")
        if old is None:
            shell.error("cd: OLDPWD not set")
            return 1
        target, show = old, True
    else:
        target = args[0]
        found = _search_cdpath(shell, target, physical=physical)
        if found is not None:
            if found:
                shell.write(current(shell) + "\n")
            return 0
    if not target:
        return 0
    try:
        change(shell, target, physical=physical)
    except SysError as error:
        if args and shell.shopts["cdable_vars"] and (value := shell.vars.get(args[0])):
            try:
                change(shell, value, physical=physical)
            except SysError:
                pass
            else:
                shell.write(current(shell) + "\n")
                return 0
        shell.error(f"cd: {target}: {error.reason}")
        return 1
    if show:
        shell.write(current(shell) + "\n")
    return 0


def _search_cdpath(shell: Shell, target: str, *, physical: bool) -> bool | None:
    """Whether a directory of CDPATH took us there: True if its name is to be shown, None if none did."""
    path = shell.vars.get("CDPATH")
    if not path or target.startswith("/") or target.split("/", 1)[0] in (".", ".."):
        return None
    for directory in path.split(":"):
        try:
            change(shell, f"{directory.rstrip('/')}/{target}" if directory else target, physical=physical)
        except SysError:
            continue
        return directory != ""
    return None


@builtin("pwd", "LP")
def pwd(shell: Shell, options: Options, _args: list[str]) -> int:
    """pwd [-LP]
    Print the working directory: as it was reached (-L, the default), or without symlinks (-P).
    """
    physical = shell.options["physical"]
    for letter in options:
        physical = letter == "P"
    if not physical:
        shell.write(current(shell) + "\n")
        return 0
    try:
        path = shell.process.fs.getcwd()
    except SysError as error:
        shell.error(
            f"pwd: error retrieving current directory: getcwd: cannot access parent directories: {error.reason}"
        )
        return 1
    shell.write(path + "\n")
    return 0


# The directory stack: entry 0 is the current directory, the rest is shell.directories.


def _shorten(shell: Shell, path: str) -> str:
    home = shell.vars.get("HOME")
    if home and home != "/" and (path == home or path.startswith(home + "/")):
        return "~" + path[len(home) :]
    return path


def _stack(shell: Shell) -> list[str]:
    return [current(shell), *shell.directories]


def _index(shell: Shell, name: str, text: str, size: int) -> int:
    """The entry of `+N` or `-N`. Usage; IndexError if there is none."""
    if not text[1:].isdecimal() or not text.isascii():
        raise Usage(f"{text}: invalid number")
    number = int(text[1:]) if len(text) < 10 else size
    index = number if text[0] == "+" else size - 1 - number
    if not 0 <= index < size:
        shown = text[1:] if name == "dirs" else text
        shell.error(
            f"{name}: " + (f"{shown}: directory stack index out of range" if size > 1 else "directory stack empty")
        )
        raise IndexError
    return index


def _go(shell: Shell, name: str, path: str) -> bool:
    try:
        change(shell, path, physical=shell.options["physical"])
    except SysError as error:
        shell.error(f"{name}: {path}: {error.reason}")
        return False
    return True


def _list(shell: Shell) -> int:
    shell.write(" ".join(_shorten(shell, path) for path in _stack(shell)) + "\n")
    return 0


def _split(args: list[str]) -> tuple[bool, list[str]]:
    """Whether -n was given, and what else; `-1` is no option."""
    stay = False
    position = 0
    while position < len(args):
        arg = args[position]
        if arg == "-n":
            stay = True
        elif arg == "--":
            position += 1
            break
        else:
            break
        position += 1
    rest = args[position:]
    if rest and rest[0][0:1] == "-" and len(rest[0]) > 1 and not rest[0][1:].isdecimal():
        raise Usage(f"{rest[0]}: invalid number")
    return stay, rest


@builtin("pushd")
def pushd(shell: Shell, args: list[str]) -> int:
    """pushd [-n] [+N | -N | dir]
    Put DIR on the directory stack and go there; without it, swap the top two; +N or -N rotates to that entry.

    -n changes only the stack, not the directory.
    """
    stay, args = _split(args)
    stack = _stack(shell)
    if not args:
        if len(stack) < 2:
            shell.error("pushd: no other directory")
            return 1
        if stay:
            return _list(shell)
        if not _go(shell, "pushd", stack[1]):
            return 1
        shell.directories = [stack[0], *stack[2:]]
        return _list(shell)
    if len(args) > 1:
        shell.error("pushd: too many arguments")
        return 1
    target = args[0]
    if target[:1] in ("+", "-") and len(target) > 1:
        try:
            index = _index(shell, "pushd", target, len(stack))
        except IndexError:
            return 1
        rotated = stack[index:] + stack[:index]
        if not stay and not _go(shell, "pushd", rotated[0]):
            return 1
        shell.directories = rotated[1:]
        return 0 if stay else _list(shell)
    if stay:
        shell.directories = [target, *shell.directories]
        return _list(shell)
    if target == "-":
        target = shell.vars.get("OLDPWD") or ""
        if not target:
            shell.error("pushd: OLDPWD not set")
            return 1
    if not _go(shell, "pushd", target):
        return 1
    shell.directories = stack
    return _list(shell)


@builtin("popd")
def popd(shell: Shell, args: list[str]) -> int:
    """popd [-n] [+N | -N]
    Drop the top of the directory stack and go to the next; +N or -N drops that entry.

    -n changes only the stack, not the directory.
    """
    stay, args = _split(args)
    stack = _stack(shell)
    if args and args[0][:1] not in ("+", "-"):
        raise Usage(f"{args[0]}: invalid argument")
    if len(stack) < 2:
        shell.error("popd: directory stack empty")
        return 1
    index = 0
    if args:
        try:
            index = _index(shell, "popd", args[0], len(stack))
        except IndexError:
            return 1
    if index == 0 and not stay:
        if not _go(shell, "popd", stack[1]):
            return 1
        shell.directories = stack[2:]
    else:
        index = index or 1
        shell.directories = [path for place, path in enumerate(stack) if place not in (0, index)]
    return _list(shell)


@builtin("dirs")
def dirs(shell: Shell, args: list[str]) -> int:
    """dirs [-clpv] [+N] [-N]
    Show the directory stack, or its Nth entry from the left (+N) or the right (-N).

    Options:
      -c  clear the stack
      -l  full paths, not `~`
      -p  one entry a line
      -v  the same, numbered
    """
    full = numbered = lines = False
    for arg in args:
        if arg == "--":
            break
        if arg == "-c":
            shell.directories = []
            return 0
        if arg in ("-l", "-p", "-v"):
            full, lines, numbered = full or arg == "-l", lines or arg != "-l", numbered or arg == "-v"
        elif arg[:1] in ("+", "-") and len(arg) > 1:
            stack = _stack(shell)
            try:
                path = stack[_index(shell, "dirs", arg, len(stack))]
            except IndexError:
                return 1
            shell.write((path if full else _shorten(shell, path)) + "\n")
            return 0
        else:
            raise Usage(f"{arg}: invalid option")
    entries = [path if full else _shorten(shell, path) for path in _stack(shell)]
    if numbered:
        shell.write("".join(f"{place:2d}  {path}\n" for place, path in enumerate(entries)))
    else:
        shell.write(("\n" if lines else " ").join(entries) + "\n")
    return 0
