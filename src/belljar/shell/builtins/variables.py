"""unset, let and getopts: builtins that change plain variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.shell.arrays import Array, Assoc
from belljar.shell.builtins.registry import Options, Usage, builtin
from belljar.shell.control import ReadonlyError, ShellError, SubscriptError
from belljar.shell.variables import NAMEREF, READONLY, is_name

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


@builtin("unset", "fnv", special=True)
def unset(shell: Shell, options: Options, args: list[str]) -> int:
    """unset [-f] [-v] [-n] [name ...]
    Forget variables or, where there is none of that name, functions.

    Options:
      -f  functions only
      -v  variables only
      -n  the name reference itself, not what it refers to
    """
    if "f" in options and "v" in options:
        shell.error("unset: cannot simultaneously unset a function and a variable")
        return 1
    status = 0
    for arg in args:
        try:
            if "f" in options or not (_unset_variable(shell, arg, reference="n" in options) or options):
                _unset_function(shell, arg)
        except ReadonlyError as error:
            shell.error(f"unset: {error.name}: cannot unset: readonly variable")
            status = 1
        except SubscriptError:
            raise
        except ShellError as error:
            shell.error(f"unset: {error}")
            status = 1
    return status


def _unset_function(shell: Shell, name: str) -> None:
    found = shell.functions.get(name)
    if found is None:
        return
    if found.readonly:
        raise ShellError(f"{name}: cannot unset: readonly function")
    del shell.functions[name]
    shell.vars.changed(name)


def _unset_variable(shell: Shell, arg: str, *, reference: bool) -> bool:
    variables = shell.vars
    element = shell.split_element(arg)
    if element is not None:
        name, subscript = element
        contents = variables.contents(name)
        if subscript in ("@", "*"):
            if isinstance(contents, Assoc) and contents.get(subscript) is not None:
                return _remove_key(shell, name, subscript)
            if isinstance(contents, Array | Assoc):
                return _clear(shell, name)
            if contents is not None:
                return variables.unset(variables.resolve(name)[0])
            return True
        if contents is None:
            return False
        if isinstance(contents, str) and variables.index_of(shell.subscript_text(name, subscript)) not in (0, -1):
            raise ShellError(f"{name}: not an array variable")
        variables.unset_element(name, subscript)  # expands the subscript, which must happen only once
        return True
    if not is_name(arg):
        return False
    if not reference and variables.own_attrs(arg) & NAMEREF:
        target, subscript_text = variables.resolve(arg)
        if subscript_text is not None:
            variables.unset_element(target, subscript_text)
            return True
        if target != arg:
            return variables.unset(target)
    return variables.unset(arg)


def _remove_key(shell: Shell, name: str, key: str) -> bool:
    """A key as it is, whatever its characters would mean in a subscript."""
    target, _ = shell.vars.resolve(name)
    if shell.vars.own_attrs(target) & READONLY:
        raise ReadonlyError(target)
    contents = shell.vars.own_var(target).value
    return isinstance(contents, Assoc) and contents.remove(key)


def _clear(shell: Shell, name: str) -> bool:
    """`unset a[@]`: no elements, but still an array."""
    target, _ = shell.vars.resolve(name)
    var = shell.vars.own_var(target)
    var.value = Assoc() if isinstance(var.value, Assoc) else Array()
    shell.vars.changed(target)
    return True


@builtin("let")
def let(shell: Shell, args: list[str]) -> int:
    """let arg [arg ...]
    Evaluate each argument as arithmetic; fails if the last one is 0.
    """
    if args and args[0] == "--":
        args = args[1:]
    if not args:
        shell.error("let: expression expected")
        return 1
    value = 0
    for arg in args:
        value = shell.arith(arg)
    return int(value == 0)


@builtin("getopts")
def getopts(shell: Shell, args: list[str]) -> int:
    """getopts optstring name [arg ...]
    Put the next option of the positional parameters (or of the arguments given) into NAME, its value into OPTARG.

    Letters of OPTSTRING followed by a colon take a value. A leading colon makes it silent: NAME becomes `?` or `:` and
    OPTARG the letter. OPTIND is the index of the next argument. Fails when the options are over.
    """
    if args and args[0] == "--":
        args = args[1:]
    elif args and args[0][:1] == "-" and len(args[0]) > 1:
        raise Usage(f"{args[0][:2]}: invalid option")
    if len(args) < 2:
        raise Usage
    optstring, name = args[0], args[1]
    words = args[2:] if len(args) > 2 else shell.args
    silent = optstring.startswith(":")
    letters = optstring[1:] if silent else optstring
    variables = shell.vars
    while shell.getopts_frames and shell.getopts_frames[-1][0] not in variables.frames:
        shell.getopts = shell.getopts_frames[-1][1]
        shell.getopts_frames = shell.getopts_frames[:-1]
    index = _optind(shell)
    place = shell.getopts[1] if shell.getopts[0] == index else 1

    def finish(option: str, index: int, place: int, value: str | None, status: int = 0) -> int:
        try:
            variables.set("OPTIND", str(index))
        except ReadonlyError as error:
            shell.error(str(error))
        shell.getopts = (index, place)
        try:
            if value is None:
                variables.unset("OPTARG")
            else:
                variables.set("OPTARG", value)
        except ReadonlyError as error:
            shell.error(str(error))
        if not is_name(name):
            shell.error(f"getopts: `{name}': not a valid identifier")
            return 1
        try:
            variables.set(name, option)
        except ReadonlyError as error:
            shell.error(str(error))
            return status or 2
        return status

    if place > 1 and (index > len(words) or place >= len(words[index - 1])):
        place = 1  # other arguments than last time
    if place == 1:
        index = min(index, len(words) + 1)
        word = words[index - 1] if 0 < index <= len(words) else ""
        if not word.startswith("-") or word == "-" or word == "--":
            return finish("?", index + (word == "--"), 1, None, 1)
    word = words[index - 1]
    letter = word[place]
    place += 1
    ended = place >= len(word)
    at = letters.find(letter) if letter != ":" else -1
    after_index, after_place = (index + 1, 1) if ended else (index, place)
    loud = not silent and variables.get("OPTERR") != "0"
    if at < 0:
        if loud:
            shell.process.error(f"{shell.name}: illegal option -- {letter}\n")
        return finish("?", after_index, after_place, letter if silent else None)
    if not letters.startswith(":", at + 1):
        return finish(letter, after_index, after_place, None)
    if not ended:
        return finish(letter, index + 1, 1, word[place:])
    if index < len(words):
        return finish(letter, index + 2, 1, words[index])
    if silent:
        return finish(":", index + 1, 1, letter)
    if loud:
        shell.process.error(f"{shell.name}: option requires an argument -- {letter}\n")
    return finish("?", index + 1, 1, None)


def _optind(shell: Shell) -> int:
    text = shell.vars.get("OPTIND") or "1"
    return max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) < 10 else 1
