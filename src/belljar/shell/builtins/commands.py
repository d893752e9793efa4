"""Builtins about commands: which one a name means, and running it in a certain way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.abi.base import DEFAULT_PATH
from belljar.abi.errors import SysError
from belljar.abi.flags import X_OK
from belljar.libc.pattern import compile_pattern
from belljar.libc.quote import single
from belljar.shell.arrays import hash_key
from belljar.shell.builtins.listing import print_function
from belljar.shell.builtins.registry import BUILTINS, Builtin, Options, Usage, builtin, show_help
from belljar.shell.builtins.topics import overview, topics
from belljar.shell.control import ExitShell

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

_BUCKETS = 256
"""Buckets of bash's hash table of commands, whose order `hash` shows."""
KEYWORDS = tuple(
    "if then else elif fi case esac for select while until do done in function time { } ! [[ ]] coproc".split()
)


def files_in_path(shell: Shell, name: str, path: str | None = None) -> list[str]:
    """Every executable file the name could mean, in PATH's order; failing that, the first that isn't executable."""
    fs = shell.process.fs
    candidates = [name]
    if "/" not in name:
        text = path if path is not None else shell.vars.get("PATH")
        candidates = [f"{part}/{name}" if part else f"./{name}" for part in (text or "").split(":")] if text else []
    found: list[str] = []
    spare: list[str] = []
    for candidate in dict.fromkeys(candidates):
        try:
            if not fs.stat(candidate).is_regular:
                continue
            spare.append(candidate)
            fs.access(candidate, X_OK)
        except SysError:
            continue
        found.append(candidate)
    return found or (spare[:1] if "/" not in name else [])


def _builtin(shell: Shell, name: str) -> Builtin | None:
    return BUILTINS.get(name) if name not in shell.disabled else None


@builtin("type", "afptP")
def type_(shell: Shell, options: Options, args: list[str]) -> int:
    """type [-afptP] name [name ...]
    Tell what each name means as a command.

    Options:
      -a  all meanings    -f  functions don't count
      -t  one word: alias, keyword, function, builtin or file
      -p  the file, if it means one    -P  the file, whatever it means
    """
    status = 0
    for name in args:
        if not _describe(shell, name, options):
            if not options.keys() & {"t", "p", "P"}:
                shell.error(f"type: {name}: not found")
            status = 1
    return status


def _describe(shell: Shell, name: str, options: Options) -> bool:
    """Show what a name means; False if it means nothing."""
    every = "a" in options
    style = next((letter for letter in reversed(options) if letter in "tpP"), "")
    forced = "P" in options
    found = False
    if not forced:
        for kind, text in _meanings(shell, name, functions="f" not in options):
            found = True
            if style == "t":
                shell.write(f"{kind}\n")
            elif style == "":
                shell.write(text + "\n")
            if not every:
                return True
    if not every and not forced and name in shell.hash and "/" not in name:
        path = shell.hash[name][0]
        shell.write({"t": "file\n", "p": f"{path}\n"}.get(style, f"{name} is hashed ({path})\n"))
        return True
    for path in files_in_path(shell, name):
        found = True
        shell.write({"t": "file\n", "p": f"{path}\n", "P": f"{path}\n"}.get(style, f"{name} is {path}\n"))
        if not every:
            break
    return found


def _meanings(shell: Shell, name: str, *, functions: bool) -> list[tuple[str, str]]:
    """Meanings of a name inside the shell: each kind with `type`'s sentence for it, in order of precedence."""
    found: list[tuple[str, str]] = []
    if name in shell.aliases and (shell.shopts["expand_aliases"] or shell.interactive):
        found.append(("alias", f"{name} is aliased to `{shell.aliases[name]}'"))
    if name in KEYWORDS:
        found.append(("keyword", f"{name} is a shell keyword"))
    if functions and name in shell.functions:
        found.append(("function", f"{name} is a function\n{print_function(shell.functions[name])}"))
    entry = _builtin(shell, name)
    if entry is not None:
        special = "special " if shell.posix and entry.special else ""
        found.append(("builtin", f"{name} is a {special}shell builtin"))
    return found


@builtin("command", "pVv")
def command(shell: Shell, options: Options, args: list[str]) -> int:
    """command [-pVv] command [arg ...]
    Run a command, leaving functions out.

    Options:
      -p  look for it in the standard PATH
      -v  tell what it means, briefly    -V  the same in a sentence
    """
    if not args:
        return 0
    if "v" in options or "V" in options:
        found = [_explain(shell, name, options) for name in args]
        return int(not any(found))
    path = DEFAULT_PATH if "p" in options else None
    shell.spared += 1
    try:
        return shell.run_command(args, functions=False, path=path)
    finally:
        shell.spared -= 1


def _explain(shell: Shell, name: str, options: Options) -> bool:
    path = DEFAULT_PATH if "p" in options else None
    if "V" in options and path is None:
        if _describe(shell, name, {}):
            return True
        shell.error(f"command: {name}: not found")
        return False
    for kind, text in _meanings(shell, name, functions=True):
        if "V" in options:
            shell.write(text + "\n")
        else:
            shell.write(f"alias {name}={single(shell.aliases[name])}\n" if kind == "alias" else f"{name}\n")
        return True
    if path is None and name in shell.hash and "/" not in name:
        shell.write(f"{shell.hash[name][0]}\n")
        return True
    files = files_in_path(shell, name, path)
    if files:
        shell.write(f"{name} is {files[0]}\n" if "V" in options else f"{_absolute(shell, files[0])}\n")
        return True
    if "V" in options:
        shell.error(f"command: {name}: not found")
    return False


def _absolute(_shell: Shell, path: str) -> str:
    return path


@builtin("builtin", "")
def builtin_(shell: Shell, _options: Options, args: list[str]) -> int:
    """builtin [shell-builtin [arg ...]]
    Run a builtin even if a function has its name.
    """
    if not args:
        return 0
    entry = _builtin(shell, args[0])
    if entry is None:
        shell.error(f"builtin: {args[0]}: not a shell builtin")
        return 1
    return entry.function(shell, args[1:])


@builtin("hash", "lrp:dt")
def hash_(shell: Shell, options: Options, args: list[str]) -> int:
    """hash [-lr] [-p pathname] [-dt] [name ...]
    Remember where commands are, or show what is remembered.

    Options:
      -r  forget all    -d  forget the names
      -l  show as commands    -t  show the files of the names
      -p FILE  the names mean that file
    """
    if not shell.options["hashall"]:
        shell.error("hash: hashing disabled")
        return 1
    if "r" in options:
        shell.hash.clear()
    if not args:
        if "t" in options or "d" in options:
            shell.error(f"hash: -{'t' if 't' in options else 'd'}: option requires an argument")
            return 1
        if "r" not in options and "p" not in options:
            _list_hash(shell, commands="l" in options)
        return 0
    status = 0
    for name in args:
        if not _hash_one(shell, name, options, several=len(args) > 1):
            shell.error(f"hash: {name}: not found")
            status = 1
    return status


def _list_hash(shell: Shell, *, commands: bool) -> None:
    if not shell.hash:
        shell.write("" if commands or shell.posix else "hash: hash table empty\n")
        return
    order = sorted(reversed(shell.hash), key=lambda name: hash_key(name) % _BUCKETS)
    if commands:
        lines = [f"builtin hash -p {shell.hash[name][0]} {name}\n" for name in order]
    else:
        lines = ["hits\tcommand\n"] + [f"{shell.hash[name][1]:4d}\t{shell.hash[name][0]}\n" for name in order]
    shell.write("".join(lines))


def _hash_one(shell: Shell, name: str, options: Options, *, several: bool) -> bool:
    if "t" in options:
        if name not in shell.hash:
            return False
        path = shell.hash[name][0]
        if "l" in options:
            shell.write(f"builtin hash -p {path} {name}\n")
        else:
            shell.write(f"{name}\t{path}\n" if several else f"{path}\n")
        return True
    if "d" in options:
        return shell.hash.pop(name, None) is not None
    if "p" in options:
        shell.hash[name] = (options["p"], 0)
        return True
    if "/" in name or name in shell.functions or _builtin(shell, name) is not None:
        return True
    files = files_in_path(shell, name)
    if files:
        shell.hash[name] = (files[0], 0)
    return bool(files)


@builtin("enable", "adnpsf:")
def enable(shell: Shell, options: Options, args: list[str]) -> int:
    """enable [-a] [-dnps] [-f filename] [name ...]
    Switch builtins on, or off with -n; without names, show them.

    Options:
      -a  all, and which are off    -p  show
      -s  only POSIX's special builtins
      -f, -d  load or unload from a file (not possible here)
    """
    if "f" in options:
        for name in args:
            shell.error(f"enable: cannot open shared object {options['f']}: {name}: No such file or directory")
        return 1
    if not args or "p" in options:
        for name in sorted(BUILTINS):
            off = name in shell.disabled
            if ("s" in options and not BUILTINS[name].special) or ("a" not in options and off is not ("n" in options)):
                continue
            shell.write(f"enable {'-n ' if off else ''}{name}\n")
        return 0
    status = 0
    for name in args:
        if name not in BUILTINS or ("s" in options and not BUILTINS[name].special):
            shell.error(f"enable: {name}: not a shell builtin")
            status = 1
        elif "d" in options:
            shell.error(f"enable: {name}: not dynamically loaded")
            status = 1
        elif "n" in options:
            shell.disabled.add(name)
        else:
            shell.disabled.discard(name)
    return status


@builtin("exec", "cla:", special=True)
def exec_(shell: Shell, options: Options, args: list[str]) -> int:
    """exec [-cl] [-a name] [command [argument ...]] [redirection ...]
    Become another program; without one, the redirections stay in force.

    Options:
      -a NAME  its argv[0]
      -c       with an empty environment
      -l       as a login shell: a dash before argv[0]
    """
    if not args:
        return 0
    title = options.get("a", args[0])
    if "l" in options:
        title = "-" + title.rpartition("/")[2] if "a" not in options else "-" + title
    environment: dict[str, str] | None = {} if "c" in options else None
    status = shell.exec(args, environment, title=title)
    if not shell.interactive and not shell.shopts["execfail"]:
        raise ExitShell(status)
    return status


@builtin("help", "dms")
def help_(shell: Shell, options: Options, args: list[str]) -> int:
    """help [-dms] [pattern ...]
    Tell about builtins, keywords and variables.

    Options:
      -d  one line each    -m  as a manual page    -s  only the usage
    """
    if not args:
        columns = shell.vars.get("COLUMNS") or "80"
        shell.write(overview(shell, int(columns) if columns.isdecimal() and len(columns) < 5 else 80))
        return 0
    known = topics()
    status = 0
    for text in args:
        pattern = compile_pattern(text)
        found = [topic for name, topic in known.items() if pattern.matches(name)]
        found = found or [topic for name, topic in known.items() if name.startswith(text)]
        if not found:
            shell.error(f"help: no help topics match `{text}'.  Try `help help' or `man -k {text}' or `info {text}'.")
            status = 1
            continue
        if len(found) > 1 and pattern.literal is None:
            shell.write(f"Shell commands matching keyword `{text}'\n\n")
        for entry in found:
            if "s" in options:
                shell.write(f"{entry.name}: {entry.synopsis}\n")
            elif "d" in options:
                shell.write(f"{entry.name} - {entry.summary}\n")
            elif "m" in options:
                body = "".join(f"    {line}\n" for line in entry.help.split("\n"))
                shell.write(f"NAME\n    {entry.name} - {entry.summary}\n\nSYNOPSIS\n    {entry.synopsis}\n\n")
                shell.write(f"DESCRIPTION\n{body}\nSEE ALSO\n    bash(1)\n\n")
            else:
                show_help(shell, entry)
    return status


__all__ = ["KEYWORDS", "Usage", "files_in_path"]
