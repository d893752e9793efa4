"""ex - line-oriented text editor, as scripts use it

Usage: ex [-s] [-c COMMAND | +COMMAND]... [FILE]...

Edit FILE by commands from -c, else from standard input. There are addresses with %, patterns and offsets, and the
commands append, change, copy (t), delete, edit, file, global, insert, join, k, list, move, normal-free print and
number, put, quit, read, substitute, &, undo, v, write, wq, x, yank, <, >, = and !; | stands between two of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import flag, many, utility, value
from belljar.bin.ed import open_file, standard_input
from belljar.bin.ed.buffer import EditError
from belljar.bin.ed.editor import Addresses, Editor, Quit
from belljar.kernel.process import Process

_NAME = re.compile(r"[ \t]*(?:([a-zA-Z]+)|([&<>=!#]))(!?)")
_WORDS = (
    "append", "change", "copy", "delete", "edit", "file", "global", "insert", "join", "list", "move", "number",
    "print", "put", "quit", "read", "set", "substitute", "undo", "vglobal", "write", "wq", "xit", "yank", "mark",
    "nohlsearch", "syntax", "next", "wall", "wqall", "qall", "xall",
)  # fmt: skip
_SHORT = {
    "a": "append", "c": "change", "co": "copy", "t": "copy", "d": "delete", "e": "edit", "f": "file", "g": "global",
    "i": "insert", "j": "join", "l": "list", "m": "move", "nu": "number", "p": "print", "P": "print", "pu": "put",
    "q": "quit", "r": "read", "se": "set", "s": "substitute", "u": "undo", "v": "vglobal", "w": "write", "x": "xit",
    "y": "yank", "k": "mark", "ma": "mark", "wqa": "wqall", "qa": "qall", "xa": "xall", "wa": "wall", "#": "number",
}  # fmt: skip
_TO_END = ("global", "vglobal", "!", "read", "write")
"""Commands whose argument may have a | in it."""


@dataclass(frozen=True, slots=True)
class Options:
    commands: tuple[str, ...] = many("-c", "do COMMAND after reading the file", metavar="COMMAND")
    before: tuple[str, ...] = many("--cmd", "do COMMAND before reading the file", metavar="COMMAND")
    silent: bool = flag("-s", "be silent (batch mode)")
    ex: bool = flag("-e", "be ex (it always is)")
    improved: bool = flag("-E", "be ex (it always is)")
    none: bool = flag("-n", "--noplugin", "(has no effect here)")
    settings: str | None = value("-u", "-i", "(accepted, ignored)", metavar="FILE")
    compatible: bool = flag("-N", "-C", "(has no effect here)")
    readonly: bool = flag("-R", "-v", "-y", "-Z", "(has no effect here)")


def plus_commands(args: list[str]) -> list[str]:
    """+COMMAND is -c COMMAND."""
    end = args.index("--") if "--" in args else len(args)
    before = [part for arg in args[:end] for part in (["-c", arg[1:] or "$"] if arg.startswith("+") else [arg])]
    return before + args[end:]


@utility("ex", Options, rewrite=plus_commands)
def main(process: Process, options: Options, operands: list[str]) -> int:
    return run(process, list(options.commands), operands)


def run(process: Process, commands: list[str], names: list[str]) -> int:
    """Edit files by the commands, then by those of standard input unless one of them was to quit."""
    typed = standard_input(process)
    waiting = iter(commands)
    editor = Editor(process, lambda: next(waiting, None) or typed(), quiet=True, syntax="sed")
    if names:
        try:
            process.fs.stat(names[0])
        except SysError:
            editor.name = names[0]
        else:
            open_file(editor, names[0])
    ex = Ex(editor, names[1:])
    status = 0
    while (line := editor.more()) is not None:
        process.budget.charge()
        try:
            ex.do(line)
        except Quit:
            return status
        except EditError as error:
            process.stdout.flush()
            process.warn(str(error))
            status = 1
        except SysError as error:
            process.warn(str(error))
            status = 1
    return status


class Ex:
    """The commands of ex, on an editor that knows ed's."""

    def __init__(self, editor: Editor, following: list[str]) -> None:
        self._editor = editor
        self._following = following

    def do(self, line: str) -> None:
        """The commands of one line."""
        rest: str | None = line
        while rest is not None:
            rest = self._one(rest.lstrip(" \t:"))

    def _one(self, line: str) -> str | None:
        """Do one command; what is left of the line, None if that is nothing."""
        editor = self._editor
        if line.startswith('"'):
            return None
        place, text = editor.addresses(line)
        match = _NAME.match(text)
        if match is None:
            command, tail = text.partition("|")[0], text.partition("|")[2]
            if command.strip():
                raise EditError(f"Not an editor command: {command.strip()}")
            if place.count:
                editor.buffer.current = place.last
                if not tail:
                    editor.show(range(place.last, place.last + 1), "")
            return tail or None
        name, bang = self._name(match[1] or match[2]), match[3]
        if name not in ("undo", "print", "write", "quit", "xit", "wq") and not editor.in_global:
            editor.buffer.remember()
        argument = text[match.end() :] if match[1] is None or name != "mark" else text[match.start(1) + 1 :]
        if match[1] is not None and name == "substitute":
            argument = text[match.start(1) + 1 :]
            bang = ""
        left: str | None = None
        if name not in _TO_END:
            argument, left = _split(argument)
        self._run(name, bang, place, argument)
        return left

    def _name(self, word: str) -> str:
        if word in _SHORT:
            return _SHORT[word]
        if word[0] == "s" and not any(full.startswith(word) for full in _WORDS):
            return "substitute"
        if word[0] == "k" and len(word) == 2:
            return "mark"
        found = [full for full in _WORDS if full.startswith(word)]
        if found:
            return found[0]
        if word in "&<>=!":
            return word
        raise EditError(f"Not an editor command: {word}")

    def _run(self, name: str, bang: str, place: Addresses, argument: str) -> None:
        editor = self._editor
        simple: dict[str, Callable[[Addresses, str], None]] = {
            "append": editor.do_append, "change": editor.do_change, "copy": editor.do_copy,
            "delete": editor.do_delete, "file": editor.do_file, "insert": editor.do_insert, "list": editor.do_list,
            "move": editor.do_move, "number": editor.do_number, "print": editor.do_print, "put": editor.do_put,
            "undo": editor.do_undo, "yank": editor.do_yank, "=": editor.do_count, "mark": editor.do_mark,
        }  # fmt: skip
        if name in ("append", "insert", "change"):
            simple[name](place, "")
        elif name in simple:
            simple[name](place, argument.strip() if name == "mark" else argument)
        elif name in ("set", "nohlsearch", "syntax"):
            self._set(argument)
        elif name in ("substitute", "&"):
            self._substitute(place, argument if name == "substitute" else argument or "&")
        elif name in ("global", "vglobal"):
            self._global(place, argument, inverse=bool(bang) or name == "vglobal")
        elif name == "join":
            self._join(place, bang)
        elif name in ("<", ">"):
            self._shift(place, name)
        elif name == "!":
            self._filter(place, argument)
        elif name == "read":
            editor.do_read(
                place if place.count else Addresses(editor.buffer.current, editor.buffer.current, 1), argument
            )
        else:
            self._file(name, bang, place, argument)

    def _file(self, name: str, bang: str, place: Addresses, argument: str) -> None:
        editor = self._editor
        if name == "next":
            if not self._following:
                raise EditError("Cannot go beyond last file")
            argument, name = self._following.pop(0), "edit"
        if name == "edit":
            given = f" {argument.strip()}" if argument.strip() else ""
            (editor.do_edit_anyway if bang else editor.do_edit)(place, given)
        elif name in ("write", "wall"):
            self._write(place, argument)
        elif name in ("wq", "wqall") or (name in ("xit", "xall") and editor.buffer.modified):
            self._write(place, argument)
            raise Quit
        elif name in ("quit", "qall") and editor.buffer.modified and not bang:
            raise EditError("No write since last change (add ! to override)")
        else:
            raise Quit

    def _write(self, place: Addresses, argument: str) -> None:
        argument = argument.strip().removeprefix("!").strip() if argument.startswith("!") else argument.strip()
        if argument.startswith(">>"):
            self._editor.do_append_to(place, f" {argument[2:].strip()}")
        else:
            self._editor.do_write(place, f" {argument}" if argument else "")

    def _set(self, argument: str) -> None:
        for word in argument.split():
            if word in ("ic", "ignorecase", "noic", "noignorecase"):
                self._editor.patterns.ignore_case = not word.startswith("no")

    def _substitute(self, place: Addresses, argument: str) -> None:
        editor = self._editor
        numbers = editor.lines(place)
        lenient = re.search(r"[^\\]([a-zA-Z&]*)$", argument)
        flags = lenient[1] if lenient is not None else ""
        quiet = "e" in flags and not argument[:1].isalpha()
        text = (
            argument[: len(argument) - len(flags)] + flags.replace("e", "").replace("c", "")
            if quiet or flags
            else argument
        )
        delimiter = text[:1]
        if delimiter and not delimiter.isalnum() and delimiter not in "&" and text.count(delimiter) < 3:
            text += delimiter
        text = re.sub(r"(?<!\\)((?:\\\\)*)\\r", lambda m: m[1] + "\\\n", text)
        text = re.sub(r"(?<!\\)((?:\\\\)*)\\t", lambda m: m[1] + "\t", text)
        found = editor.substitution(text)
        editor.last_substitution = found
        if not editor.substitute(numbers, found) and not quiet and not editor.in_global:
            raise EditError("Pattern not found")
        if found.shows:
            editor.show(range(editor.buffer.current, editor.buffer.current + 1), found.shows)

    def _global(self, place: Addresses, argument: str, *, inverse: bool) -> None:
        """Mark the lines first, then do the rest of the command line on each, by ex's commands."""
        editor = self._editor
        plain, editor.do = editor.do, self.do  # type: ignore[method-assign]
        try:
            editor.do_global(place, argument, inverse=inverse)
        finally:
            editor.do = plain  # type: ignore[method-assign]

    def _join(self, place: Addresses, bang: str) -> None:
        editor = self._editor
        if place.count < 2:
            place = Addresses(place.last, place.last + 1, 2)
        texts = [editor.buffer.text(number) for number in editor.lines(place)]
        if not bang:
            texts = [texts[0], *(text.lstrip(b" \t") for text in texts[1:])]
        joined = (b"" if bang else b" ").join(text for text in texts if text)
        editor.buffer.delete(place.first, place.last)
        editor.buffer.insert(place.first - 1, [joined])

    def _shift(self, place: Addresses, way: str) -> None:
        buffer = self._editor.buffer
        for number in self._editor.lines(place):
            text = buffer.text(number)
            short = re.sub(rb"^(\t| {1,8})", b"", text)
            buffer.lines[number - 1].text = (b"\t" + text if text else text) if way == ">" else short
        buffer.current, buffer.modified = place.last, True

    def _filter(self, place: Addresses, argument: str) -> None:
        editor = self._editor
        if not place.count:
            editor.do_shell(place, argument)
            return
        data = b"".join(editor.buffer.text(number) + b"\n" for number in editor.lines(place))
        process = editor.process
        path = f"/tmp/.ex.{process.pid}"
        process.write_file(path, data)
        try:
            lines = editor.read(f"!({argument.strip()}) <{path}")
        finally:
            process.fs.unlink(path)
        editor.buffer.delete(place.first, place.last)
        editor.buffer.insert(place.first - 1, lines)


def _split(text: str) -> tuple[str, str | None]:
    """The argument of a command, and what follows the | after it."""
    match = re.search(r"(?<!\\)\|", text)
    return (text, None) if match is None else (text[: match.start()], text[match.end() :])
