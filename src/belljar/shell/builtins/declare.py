"""declare, typeset, local, export and readonly: scope and attributes of variables and functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from belljar.shell.builtins.listing import describe, describe_function, function_flags, listing_line, print_function
from belljar.shell.builtins.registry import Options, builtin
from belljar.shell.control import (
    ArithError,
    BadElementError,
    Discard,
    ExitShell,
    ReadonlyError,
    ShellError,
    SubscriptError,
)
from belljar.shell.shell import AssignmentArg
from belljar.shell.variables import (
    ARRAY,
    ASSOC,
    CAPITAL,
    EXPORT,
    INTEGER,
    LOWER,
    NAMEREF,
    READONLY,
    TRACE,
    UPPER,
    Var,
    is_name,
)

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

_ATTRIBUTES: Final = {
    "a": ARRAY, "A": ASSOC, "i": INTEGER, "l": LOWER, "u": UPPER, "c": CAPITAL, "n": NAMEREF, "r": READONLY,
    "t": TRACE, "x": EXPORT,
}  # fmt: skip
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[(.*?)\])?(\+?)=(.*)", re.DOTALL | re.ASCII)
_ELEMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\[(.*)\]", re.DOTALL | re.ASCII)


class Request(Struct):
    """Options of one declaration."""

    name: str
    on: int = 0
    off: int = 0
    everywhere: bool = False
    """-g: the global variable."""
    inherit: bool = False
    """-I: a local starts with what it hides."""
    local: bool = False
    """Whether the variables become local to the running function."""


def _bits(options: Options) -> tuple[int, int]:
    on = off = 0
    for key in options:
        bit = _ATTRIBUTES.get(key[-1], 0)
        if key[0] == "+":
            off |= bit
        else:
            on |= bit
    cases = on & (LOWER | UPPER | CAPITAL)
    if cases & (cases - 1):
        on &= ~cases  # contradicting case attributes cancel each other
    return on, off


_DECLARE = "aAfFgiIlnprtuxc"


@builtin("declare", _DECLARE, declares=True, plus=True)
def declare(shell: Shell, options: Options, args: list[str | AssignmentArg]) -> int:
    """declare [-aAfFgiIlnrtux] [name[=value] ...] or declare -p [-aAfFilnrtux] [name ...]
    Set variables and give them attributes; without names, show them.

    Options:
      -f  functions only            -F  only their names (and, with extdebug, places)
      -g  the global variable       -I  a local takes over what it hides
      -p  show attributes and value
    Attributes (with + instead of -, taken away):
      -a indexed array  -A associative array  -i integer  -l lower case  -u upper case  -n name reference
      -r readonly       -t traced             -x exported
    In a function, variables become local as with `local`, unless -g is given.
    """
    return _declare(shell, "declare", options, args)


@builtin("typeset", _DECLARE, declares=True, plus=True)
def typeset(shell: Shell, options: Options, args: list[str | AssignmentArg]) -> int:
    """typeset [-aAfFgiIlnrtux] name[=value] ... or typeset -p [-aAfFilnrtux] [name ...]
    The same as `declare`.
    """
    return _declare(shell, "typeset", options, args)


@builtin("local", _DECLARE, declares=True, plus=True)
def local(shell: Shell, options: Options, args: list[str | AssignmentArg]) -> int:
    """local [option] name[=value] ...
    Make variables local to the running function and those it calls; options are those of `declare`.

    `local -` makes the shell options local.
    """
    frame = shell.vars.function_frame()
    if frame is None:
        shell.error("local: can only be used in a function")
        return 1
    if "-" in args:
        if frame.options is None:
            shell.vars.own_frame(shell.vars.frames.index(frame)).options = shell.save_options()
        args = [arg for arg in args if arg != "-"]
        if not args:
            return 0
    if not args:
        names = sorted(name for name in frame.saved if shell.vars.declared(name))
        for name in names:
            shell.write(describe(shell, name) + "\n")
        return 0
    return _declare(shell, "local", options, args)


def _declare(shell: Shell, name: str, options: Options, args: list[str | AssignmentArg]) -> int:
    on, off = _bits(options)
    if "f" in options or "F" in options:
        return _functions(shell, name, options, args)
    if "p" in options:
        return _show(shell, name, on, args)
    if not args:
        if not options or (on | off) == 0:
            return _list_all(shell)
        for found in sorted(shell.vars):
            if not on or shell.vars.own_attrs(found) & on == on:
                shell.write(describe(shell, found) + "\n")
        return 0
    inside = shell.vars.function_frame() is not None
    request = Request(name, on, off, "g" in options, "I" in options, inside and "g" not in options)
    return _each(shell, request, args)


def _each(shell: Shell, request: Request, args: list[str | AssignmentArg]) -> int:
    status = 0
    for arg in args:
        try:
            done = _one(shell, request, arg)
        except SubscriptError:
            raise
        except BadElementError as error:
            shell.error(str(error))
            done = False
        except ArithError as error:
            shell.error(f"{request.name}: {error}")
            raise Discard(1) from None
        except ShellError as error:
            plain = not request.on & (ARRAY | ASSOC) or not isinstance(getattr(arg, "value", ""), str)
            if isinstance(error, ReadonlyError) and request.name in ("export", "readonly") and plain:
                shell.error(str(error))
            else:
                shell.error(f"{request.name}: {error}")
            ends = isinstance(error, ReadonlyError) and request.name in ("export", "readonly")
            if ends and shell.posix and not shell.interactive and not shell.spared:
                raise ExitShell(1) from None
            done = False
        status = status if done else 1
    return status


def _one(shell: Shell, request: Request, arg: str | AssignmentArg) -> bool:
    """Declare one name. ShellError."""
    variables = shell.vars
    assignment = _reparse(shell, request, arg) if isinstance(arg, AssignmentArg) else _parse(shell, request, arg)
    if assignment is None:
        name = str(arg)
        element = _ELEMENT.fullmatch(name) if request.name not in ("export", "readonly") else None
        if element is not None:
            name = element.group(1)
            request = replace(request, on=request.on | (0 if request.on & ASSOC else ARRAY))
        elif not is_name(name):
            raise ShellError(f"`{arg}': not a valid identifier")
    else:
        name = assignment.name
        if assignment.subscript is not None and request.name in ("export", "readonly"):
            raise ShellError(f"`{name}[{assignment.subscript}]': not a valid identifier")
        if assignment.subscript is not None:
            assignment = _with_subscript(shell, assignment, assignment.subscript)
    if not (request.on | request.off) & NAMEREF and not request.local and variables.own_attrs(name) & NAMEREF:
        target, subscript = variables.resolve(name)
        if subscript is None and is_name(target):
            if assignment is not None:
                assignment = replace(assignment, name=target)
            name = target
    with _scope(shell, request, name):
        _prepare(shell, request, name)
        if assignment is not None and variables.own_attrs(name) & READONLY:
            raise ReadonlyError(name)
        if request.off & (ARRAY | ASSOC) & variables.own_attrs(name):
            raise ShellError(f"{name}: cannot destroy array variables in this way")
        _set_attributes(shell, request, name, assignment)
    return True


def _parse(shell: Shell, request: Request, text: str) -> AssignmentArg | None:
    """An assignment that came as one string: `(...)` means an array only where one is asked for, or there is one."""
    match = _ASSIGNMENT.fullmatch(text)
    if match is None:
        return None
    name, subscript, plus, value = match.groups()
    wants_array = request.on & (ARRAY | ASSOC)
    if request.name not in ("export", "readonly"):
        wants_array |= shell.vars.attrs(name) & (ARRAY | ASSOC)
    if value.startswith("(") and value.endswith(")") and wants_array and subscript is None:
        parsed = shell.parse_assignment(text)
        if parsed is not None:
            return parsed
    return AssignmentArg(name, subscript, bool(plus), value)


def _with_subscript(shell: Shell, assignment: AssignmentArg, subscript: str) -> AssignmentArg:
    """The assignment to an element with its subscript expanded, as a word of the command for the second time."""
    if shell.split_element(f"{assignment.name}[{subscript}]") is None:
        raise ShellError(f"`{assignment}': not a valid identifier")
    return replace(assignment, subscript=shell.subscript_text(assignment.name, subscript))


def _reparse(shell: Shell, request: Request, arg: AssignmentArg) -> AssignmentArg:
    """`declare -a x=$value`: a value that looks like an array's is read as one."""
    value = arg.value
    if isinstance(value, str) and request.on & (ARRAY | ASSOC) and value.startswith("(") and value.endswith(")"):
        return _parse(shell, request, str(arg)) or arg
    return arg


def _scope(shell: Shell, request: Request, name: str) -> AbstractContextManager[None]:
    return shell.vars.in_global_scope(name) if request.everywhere else nullcontext()


def _prepare(shell: Shell, request: Request, name: str) -> None:
    """Make the variable local if it is to be."""
    variables = shell.vars
    if not request.local or variables.is_local(name):
        return
    before = variables.table.get(name)
    if name == "OPTIND":
        # `getopts` goes on where it was when the function returns.
        shell.getopts_frames = [*shell.getopts_frames, (variables.function_frame(), shell.getopts)]
    variables.make_local(name)
    if (request.inherit or shell.shopts["localvar_inherit"]) and before is not None:
        if isinstance(before, Var):
            fresh = before.copy(variables.epoch)
            fresh.attrs &= ~NAMEREF
            variables.table[name] = fresh
        else:
            variables.table[name] = before
        variables.changed(name)


def _set_attributes(shell: Shell, request: Request, name: str, assignment: AssignmentArg | None) -> None:
    """Attributes that shape the value first, then the value, then those that guard it. ShellError."""
    variables = shell.vars
    if request.on & NAMEREF:
        _name_reference(shell, request, name, assignment)
        return
    if request.off & NAMEREF and assignment is not None:
        assignment.assign(shell)  # still through the reference
        assignment = None
    early = request.on & ~(READONLY | EXPORT)
    if assignment is not None and isinstance(assignment.value, list) and not (early & ASSOC):
        early |= 0 if variables.own_attrs(name) & ASSOC else ARRAY
    if early or request.off or assignment is None:
        exists = variables.declared(name)
        if early or request.off or not exists:
            variables.set_attrs(name, early, request.off)
    if assignment is not None:
        assignment.assign(shell)
    late = request.on & (READONLY | EXPORT)
    if late:
        variables.set_attrs(name, late)


def _name_reference(shell: Shell, request: Request, name: str, assignment: AssignmentArg | None) -> None:
    variables = shell.vars
    if variables.own_attrs(name) & (ARRAY | ASSOC):
        raise ShellError(f"{name}: reference variable cannot be an array")
    target = assignment.value if assignment is not None else None
    if assignment is None and not variables.own_attrs(name) & NAMEREF:
        target = variables.get(name)
    if isinstance(target, str) and target:
        base = target.partition("[")[0] if target.endswith("]") else target
        if not is_name(base):
            raise ShellError(f"`{target}': invalid variable name for name reference")
        if base == name:
            if target != base:
                raise ShellError(f"{target}: reference variable cannot be an array")
            if not request.local:
                raise ShellError(f"{name}: nameref variable self references not allowed")
            shell.error(f"{request.name}: warning: {name}: circular name reference")
    var = variables.own_var(name)
    var.attrs = (var.attrs | request.on & ~READONLY) & ~request.off
    if isinstance(target, str):
        var.value = target
    var.attrs |= request.on & READONLY
    variables.changed(name)


# Showing.


def _show(shell: Shell, name: str, on: int, args: list[str | AssignmentArg]) -> int:
    """declare -p."""
    if not args:
        for found in sorted(shell.vars):
            if name == "local" and not shell.vars.is_local(found):
                continue
            if not on or shell.vars.own_attrs(found) & on == on:
                shell.write(describe(shell, found) + "\n")
        return 0
    status = 0
    for arg in args:
        text = str(arg)
        if shell.vars.declared(text):
            shell.write(describe(shell, text) + "\n")
        else:
            shell.error(f"{name}: {text}: not found")
            status = 1
    return status


def _list_all(shell: Shell) -> int:
    """`declare` or `set` alone: every variable as an assignment, then (outside POSIX mode) the functions."""
    lines = [line for name in shell.vars.names() if (line := listing_line(shell, name)) is not None]
    if not shell.posix:
        lines += [print_function(shell.functions[name]) for name in sorted(shell.functions)]
    shell.write("".join(f"{line}\n" for line in lines))
    return 0


def _functions(shell: Shell, name: str, options: Options, args: list[str | AssignmentArg]) -> int:
    names_only = "F" in options
    if not args:
        for found in sorted(shell.functions):
            definition = shell.functions[found]
            if ("x" in options and not definition.exported) or ("r" in options and not definition.readonly):
                continue
            shell.write(describe_function(definition, names_only=names_only) + "\n")
        return 0
    status = 0
    changes = [key for key in options if key[-1] in "rtx"]
    for arg in args:
        text = str(arg)
        if isinstance(arg, AssignmentArg):
            shell.error(f"{name}: cannot use `-f' to make functions")
            status = 1
            continue
        found_function = shell.functions.get(text)
        if found_function is None:
            if "p" in options:
                shell.error(f"{name}: {text}: not found")
            status = 1
            continue
        if changes and "p" not in options:
            fresh = found_function
            for key in changes:
                on = key[0] != "+"
                if key[-1] == "r" and not on and fresh.readonly:
                    shell.error(f"{name}: {text}: readonly function")
                    status = 1
                elif key[-1] == "r":
                    fresh = replace(fresh, readonly=on)
                elif key[-1] == "x":
                    fresh = replace(fresh, exported=on)
                else:
                    fresh = replace(fresh, traced=on)
            shell.functions[text] = fresh
            shell.vars.changed(text)
        elif names_only:
            where = f" {found_function.line} {found_function.source}" if shell.shopts["extdebug"] else ""
            shell.write(f"{text}{where}\n")
        else:
            shell.write(print_function(found_function) + "\n")
            if function_flags(found_function) != "f":
                shell.write(f"declare -{function_flags(found_function)} {text}\n")
    return status


# export and readonly.


@builtin("export", "aAfnp", special=True, declares=True)
def export(shell: Shell, options: Options, args: list[str | AssignmentArg]) -> int:
    """export [-fn] [name[=value] ...] or export -p
    Pass variables on to the commands run; without names, show those that are.

    Options:
      -f  functions
      -n  no longer export
      -p  show what is exported
    """
    if not args:
        if "f" in options:
            return _list_functions(shell, lambda found: shell.functions[found].exported)
        return _list_with(shell, "export", EXPORT)
    if "f" in options:
        return _mark_functions(shell, "export", args, on="n" not in options)
    off = EXPORT if "n" in options else 0
    kind, _ = _bits(options)
    return _each(shell, Request("export", kind & (ARRAY | ASSOC) | EXPORT & ~off, off), args)


@builtin("readonly", "aAfpn", special=True, declares=True)
def readonly(shell: Shell, options: Options, args: list[str | AssignmentArg]) -> int:
    """readonly [-aAf] [name[=value] ...] or readonly -p
    Make variables unchangeable; without names, show those that are.

    Options:
      -a  indexed arrays
      -A  associative arrays
      -f  functions
      -p  show what is readonly
    """
    if not args:
        if "f" in options:
            return _list_functions(shell, lambda found: shell.functions[found].readonly)
        return _list_with(shell, "readonly", READONLY | _bits(options)[0] & (ARRAY | ASSOC))
    if "f" in options:
        return _mark_functions(shell, "readonly", args, on=True)
    on, _ = _bits(options)
    status = 0
    for arg in args:
        # A variable that is only declared stays no array, whatever -a says.
        name, equals, _ = str(arg).partition("=")
        kind = on & (ARRAY | ASSOC) if equals or shell.vars.declared(name) else 0
        status = _each(shell, Request("readonly", kind | READONLY), [arg]) or status
    return status


def _list_with(shell: Shell, name: str, attribute: int) -> int:
    for found in sorted(shell.vars):
        attrs = shell.vars.own_attrs(found)
        if attrs & attribute == attribute:
            line = describe(shell, found)
            if shell.posix:
                kind = "-a " if attrs & ARRAY else "-A " if attrs & ASSOC else ""
                line = f"{name} {kind}" + line.split(" ", 2)[2]
            shell.write(line + "\n")
    return 0


def _list_functions(shell: Shell, wanted: Callable[[str], bool]) -> int:
    for found in sorted(shell.functions):
        if wanted(found):
            definition = shell.functions[found]
            shell.write(f"{print_function(definition)}\ndeclare -{function_flags(definition)} {found}\n")
    return 0


def _mark_functions(shell: Shell, name: str, args: list[str | AssignmentArg], *, on: bool) -> int:
    status = 0
    for arg in args:
        found = shell.functions.get(str(arg))
        if found is None:
            shell.error(f"{name}: {arg}: not a function")
            status = 1
        else:
            marked = replace(found, exported=on) if name == "export" else replace(found, readonly=on)
            shell.functions[str(arg)] = marked
            shell.vars.changed(str(arg))
    return status
