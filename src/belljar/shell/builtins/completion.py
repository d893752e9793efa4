# ruff: noqa: E501 - the usage lines are bash's own
"""complete, compgen and compopt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.shell.arrays import hash_key
from belljar.shell.builtins.registry import Options, Usage, builtin
from belljar.shell.complete import ACTIONS, LETTERS, OPTIONS, Specification, generate

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

_FLAGS = "".join(LETTERS) + "o:A:G:W:F:C:X:P:S:"
_BUCKETS = 512
"""Buckets of bash's hash table, whose order `complete -p` shows."""
_TABLE_NAMES = {"-D": "_DefaultCmD_", "-E": "_EmptycmD_", "-I": "_InitialWorD_"}
_SPECIAL = {"D": "-D", "E": "-E", "I": "-I"}


def _parse(shell: Shell, name: str, args: list[str], extra: str) -> tuple[Specification, Options, list[str]] | None:
    """A specification from options; None if one was wrong and has been reported. -o and -A may repeat."""
    spec = Specification()
    flags: Options = {}
    letters = _FLAGS + extra
    position = 0
    while position < len(args):
        arg = args[position]
        if len(arg) < 2 or arg[0] != "-":
            break
        position += 1
        if arg == "--":
            break
        place = 1
        while place < len(arg):
            letter = arg[place]
            place += 1
            at = letters.find(letter)
            if at < 0 or letter == ":":
                raise Usage(f"-{letter}: invalid option")
            value = ""
            if letters.startswith(":", at + 1):
                value, place = arg[place:], len(arg)
                if not value:
                    if position >= len(args):
                        raise Usage(f"-{letter}: option requires an argument")
                    value = args[position]
                    position += 1
            if letter in LETTERS:
                spec.actions.append(LETTERS[letter])
            elif letter == "o":
                if value not in OPTIONS:
                    shell.error(f"{name}: {value}: invalid option name")
                    return None
                spec.options.add(value)
            elif letter == "A":
                if value not in ACTIONS:
                    shell.error(f"{name}: {value}: invalid action name")
                    return None
                spec.actions.append(value)
            elif letter in _TARGETS:
                setattr(spec, _TARGETS[letter], value)
            else:
                flags[letter] = ""
    return spec, flags, args[position:]


_TARGETS = {
    "G": "globs", "W": "words", "P": "prefix", "S": "suffix", "X": "filter", "C": "command", "F": "function",
}  # fmt: skip


@builtin("compgen")
def compgen(shell: Shell, args: list[str]) -> int:
    """compgen [-abcdefgjksuv] [-o option] [-A action] [-G globpat] [-W wordlist] [-F function] [-C command] [-X filterpat] [-P prefix] [-S suffix] [word]
    Show the completions of WORD that the options generate; see `complete`.
    """
    parsed = _parse(shell, "compgen", args, "")
    if parsed is None:
        return 2
    spec, _, rest = parsed
    word = rest[0] if rest else ""
    for letter, value in (("F", spec.function), ("C", spec.command)):
        if value is not None:
            shell.error(f"compgen: warning: -{letter} option may not work as you expect")
    if spec == Specification():
        return 0
    found = generate(shell, spec, word)
    if found:
        shell.write("".join(f"{text}\n" for text in found))
    return int(not found)


@builtin("complete")
def complete(shell: Shell, args: list[str]) -> int:
    """complete [-abcdefgjksuv] [-pr] [-DEI] [-o option] [-A action] [-G globpat] [-W wordlist] [-F function] [-C command] [-X filterpat] [-P prefix] [-S suffix] [name ...]
    Say how the arguments of the commands named are completed; without options, show what was said.

    Options:
      -p  show as commands    -r  forget
      -D  the default    -E  an empty line    -I  the first word
      -A ACTION  names of a kind (-a aliases, -b builtins, -c commands, -d directories, -e exported variables, -f files,
                 -g groups, -j jobs, -k keywords, -s services, -u users, -v variables)
      -G PATTERN files that match    -W WORDS  these words    -F FUNCTION  what it puts into COMPREPLY
      -C COMMAND what it prints      -X PATTERN  without those that match (with `!`, only those)
      -P PREFIX, -S SUFFIX  put around each    -o OPTION  how it is used
    """
    parsed = _parse(shell, "complete", args, "prDEI")
    if parsed is None:
        return 2
    spec, flags, names = parsed
    names = [_SPECIAL[letter] for letter in "DEI" if letter in flags] or names
    table = shell.completions
    if "r" in flags:
        return _remove(shell, names)
    if "p" in flags or (not names and spec == Specification()):
        status = 0
        order = sorted(reversed(table), key=_bucket)
        for name in names or order:
            if name in table:
                shell.write(table[name].describe(name) + "\n")
            else:
                shell.error(f"complete: {name}: no completion specification")
                status = 1
        return status
    if not names:
        raise Usage
    shell.completions = {**table, **dict.fromkeys(names, spec)}
    return 0


def _bucket(name: str) -> int:
    return hash_key(_TABLE_NAMES.get(name, name)) % _BUCKETS


def _remove(shell: Shell, names: list[str]) -> int:
    status = 0
    if shell.completions:
        for name in names:
            if name not in shell.completions:
                shell.error(f"complete: {name}: no completion specification")
                status = 1
    gone = names or list(shell.completions)
    shell.completions = {name: spec for name, spec in shell.completions.items() if name not in gone}
    return status


@builtin("compopt")
def compopt(shell: Shell, args: list[str]) -> int:
    """compopt [-o|+o option] [-DEI] [name ...]
    Change the options of completions; without options, show them.
    """
    changes: list[tuple[str, bool]] = []
    flags: list[str] = []
    position = 0
    while position < len(args) and args[position][:1] in ("-", "+") and len(args[position]) > 1:
        arg = args[position]
        position += 1
        if arg == "--":
            break
        if arg[1] == "o":
            value = arg[2:]
            if not value:
                if position >= len(args):
                    raise Usage(f"{arg[0]}o: option requires an argument")
                value = args[position]
                position += 1
            if value not in OPTIONS:
                shell.error(f"compopt: {value}: invalid option name")
                return 2
            changes.append((value, arg[0] == "-"))
        elif arg[0] == "-" and arg[1] in _SPECIAL:
            flags.append(_SPECIAL[arg[1]])
        else:
            raise Usage(f"{arg[:2]}: invalid option")
    names = flags or args[position:]
    if not names:
        shell.error("compopt: not currently executing completion function")
        return 1
    status = 0
    for name in names:
        spec = shell.completions.get(name)
        if spec is None:
            shell.error(f"compopt: {name}: no completion specification")
            status = 1
        elif not changes:
            shown = [f"{'-' if option in spec.options else '+'}o {option}" for option in OPTIONS]
            shell.write(" ".join(["compopt", *shown, name]) + "\n")
        else:
            options = {option for option in spec.options if (option, False) not in changes}
            spec.options = options | {option for option, on in changes if on}
    return status
