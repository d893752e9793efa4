"""Vi's keys (`set -o vi`): two modes, and commands of a count, an operator and a motion, over the editor's line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from belljar.shell.editor import vi_motions
from belljar.shell.editor.keys import Stroke

if TYPE_CHECKING:
    from belljar.shell.editor.editor import Editor

_COMMAND: Final = re.compile(r"([1-9][0-9]*)?(?:([cdy])([1-9][0-9]*)?)?([fFtTrm`].|.)?", re.DOTALL)
_COUNT_MAX: Final = 4096
_LONGEST: Final = 32
_CHANGES: Final = frozenset("aAiIcCdDpPrRsSxX~")
"""Commands that `.` repeats."""
_MOTIONS: Final = frozenset("hl \x080^$|wWeEbB%fFtT;,`")
_FUNCTIONS: Final = {
    "\x04": "vi-eof-maybe", "\x07": "abort", "\x0b": "kill-line", "\x0c": "clear-screen", "\x0e": "next-history",
    "\x10": "previous-history", "\x11": "quoted-insert", "\x1f": "undo", "#": "insert-comment", "&": "tilde-expand",
    "*": "complete", "+": "next-history", "-": "previous-history", "=": "possible-completions", "\\": "complete",
    "j": "next-history", "k": "previous-history",
}  # fmt: skip
"""Keys of command mode that mean a function which Emacs' keys have, too."""


class Command(NamedTuple):
    """One command of command mode."""

    times: int | None
    operator: str
    key: str
    argument: str


def parse_command(keys: str) -> Command | None:
    """A command, as soon as all of it is there."""
    match = _COMMAND.fullmatch(keys)
    if match is None or len(keys) > _LONGEST:  # nothing goes on like this
        return Command(None, "", "\x07", "")
    first, operator, second, rest = match.groups()
    if not rest or (len(rest) == 1 and rest in "fFtTrm`"):
        return None
    count = int((first or "1")[:9]) * int((second or "1")[:9]) if first or second else None
    return Command(min(count, _COUNT_MAX) if count is not None else None, operator or "", rest[0], rest[1:])


class Vi:
    """The mode, what is typed of a command, and what `.`, `;` and marks refer to."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._find: tuple[str, str] | None = None
        self._change: str = ""
        """The keys of the last change, with what was inserted."""
        self._query: tuple[str, bool] = ("", True)
        self.begin()

    def begin(self) -> None:
        """Begin a new line, in insert mode."""
        self.inserting = True
        self._pending = ""
        self._recorded: str | None = None
        self._asking: str | None = None
        self._marks: dict[str, int] = {}
        self._first = True
        self._editor.overwriting = False

    # Strokes.

    def stroke(self, stroke: Stroke) -> bool:
        """Whether the key was one of vi's own; if not, it means what it does in any mode."""
        if self._asking is not None:
            self._ask(stroke)
            return True
        if stroke.function == "vi-movement-mode":
            self._leave_insertion()
            return True
        if self.inserting:
            if self._recorded is not None:
                self._recorded += stroke.keys
            return False
        if len(stroke.keys) > 1:
            return False
        self._pending += stroke.keys
        if (command := parse_command(self._pending)) is None:
            return True
        keys, self._pending = self._pending, ""
        if command.key in _FUNCTIONS and not command.operator:
            self._editor.count = command.times
            self._editor.run(Stroke(_FUNCTIONS[command.key], stroke.keys))
            return True
        if command.key in "\r\n" or (command.key < " " and command.key != "\x08"):
            return False
        self._run_command(command, keys)
        return True

    def clamp_cursor(self) -> None:
        """Keep the cursor on a character in command mode, not behind the last one."""
        buffer = self._editor.buffer
        if not self.inserting and buffer.point >= len(buffer.text):
            buffer.point = max(0, len(buffer.text) - 1)

    def _leave_insertion(self) -> None:
        editor = self._editor
        if not self.inserting:
            if not self._pending:
                editor.bell()
            self._pending = ""
            return
        self.inserting = editor.overwriting = False
        if self._recorded is not None:
            self._change, self._recorded = self._recorded + "\x1b", None
        if self._first:
            self._first = False
            editor.buffer.forget()  # as in Readline: what was typed first can't be undone
        if editor.buffer.point > 0:
            editor.buffer.point = editor.buffer.previous()

    def _insert(self, point: int) -> None:
        self._editor.buffer.point = point
        self.inserting = True

    # Commands.

    def _run_command(self, command: Command, keys: str) -> None:
        editor, buffer = self._editor, self._editor.buffer
        if command.key == "." and not command.operator:
            self._redo(command.times)
            return
        changes = command.operator in ("c", "d") or (not command.operator and command.key in _CHANGES)
        if changes:
            buffer.remember()
        was = self.inserting
        if not (self._operate(command) if command.operator else self._simple(command)):
            editor.bell()
        elif changes:
            if self.inserting and not was:
                self._recorded = keys
            else:
                self._change = keys
        self.clamp_cursor()

    def _redo(self, count: int | None) -> None:
        if not self._change:
            self._editor.bell()
            return
        keys = self._change
        if count is not None:
            keys = str(count) + re.sub(r"^[1-9][0-9]*", "", keys)
        inserts = keys.endswith("\x1b")
        head, body = self._split(keys.removesuffix("\x1b")) if inserts else (keys, "")
        for key in head:
            self.stroke(Stroke("self-insert", key))
        if inserts:
            self._recorded = None
            times = count if count is not None and head.lstrip("0123456789") in ("i", "a", "I", "A") else 1
            self._editor.insert(body * times)
            self._recorded = head + body
            self._leave_insertion()

    @staticmethod
    def _split(keys: str) -> tuple[str, str]:
        """The command that began an insertion, and what was inserted."""
        end = 1
        while parse_command(keys[:end]) is None and end < len(keys):
            end += 1
        return keys[:end], "".join(char for char in keys[end:] if char >= " " and char != "\x7f")

    def _target(self, command: Command) -> vi_motions.Target | None:
        buffer = self._editor.buffer
        key, argument = command.key, command.argument
        if key in "fFtT":
            self._find = (key, argument)
        elif key in ";,":
            if self._find is None:
                return None
            key, argument = self._find
            if command.key == ",":
                key = key.swapcase()
        elif key == "`":
            mark = self._marks.get(argument)
            return vi_motions.Target(mark) if mark is not None and mark <= len(buffer.text) else None
        return vi_motions.find_target(
            buffer.text, buffer.point, key, command.times, argument, operator=command.operator
        )

    def _operate(self, command: Command) -> bool:
        """`d`, `c` and `y`."""
        buffer = self._editor.buffer
        if command.key == command.operator:
            start, end = 0, len(buffer.text)
        else:
            target = self._target(command)
            if target is None or target.place == buffer.point:
                # To Readline a motion that goes nowhere is a mistake, but `c` has its way.
                if command.operator != "c" or command.key not in _MOTIONS:
                    return False
                target = vi_motions.Target(buffer.point, inclusive=command.key in "ft%")
            start, end = sorted((buffer.point, target.place))
            end += target.inclusive
        return self._apply(command.operator, start, end)

    def _apply(self, operator: str, start: int, end: int) -> bool:
        buffer = self._editor.buffer
        end = min(end, len(buffer.text))
        if operator == "y":
            buffer.ring.joins = False
            buffer.ring.push(buffer.text[start:end], backward=False)
            return True
        buffer.ring.joins = False
        buffer.kill(start, end)
        buffer.point = start
        if operator == "c":
            self._insert(start)
        return True

    def _simple(self, command: Command) -> bool:
        buffer, point = self._editor.buffer, self._editor.buffer.point
        count = command.times or 1
        size = len(buffer.text)
        action = _SIMPLE.get(command.key)
        if action is not None:
            return action(self, command)
        match command.key:
            case "i":
                self._insert(point)
            case "a":
                self._insert(min(point + 1, size))
            case "I":
                self._insert(0)
            case "A":
                self._insert(size)
            case "C" | "D" | "Y":
                self._apply(command.key.lower(), point, size)
            case "S":
                self._apply("c", 0, size)
            case "s":
                self._apply("c", point, point + count)
            case "x":
                return size > 0 and self._apply("d", point, point + count)
            case "X":
                return point > 0 and self._apply("d", max(0, point - count), point)
            case "R":
                self._editor.overwriting = True
                self._insert(point)
            case "m":
                self._marks[command.argument] = point
            case _:
                target = self._target(command)
                if target is None:
                    return False
                buffer.point = target.place
        return True

    def _replace(self, command: Command) -> bool:
        buffer, count = self._editor.buffer, command.times or 1
        point, end = buffer.point, buffer.point + count
        if end > len(buffer.text):
            return False
        buffer.set(buffer.text[:point] + command.argument * count + buffer.text[end:], end - 1)
        return True

    def _change_case(self, command: Command) -> bool:
        buffer = self._editor.buffer
        point, end = buffer.point, min(buffer.point + (command.times or 1), len(buffer.text))
        buffer.set(buffer.text[:point] + buffer.text[point:end].swapcase() + buffer.text[end:], end)
        return end > point

    def _put(self, command: Command) -> bool:
        buffer = self._editor.buffer
        if not buffer.ring.texts:
            return False
        if command.key == "p" and buffer.text:
            buffer.point = min(buffer.point + 1, len(buffer.text))
        buffer.insert(buffer.ring.texts[-1] * (command.times or 1))
        buffer.point = max(0, buffer.point - 1)
        return True

    def _undo(self, command: Command) -> bool:
        return all([self._editor.buffer.undo() for _ in range(command.times or 1)])

    def _revert(self, command: Command) -> bool:
        buffer = self._editor.buffer
        found = buffer.undo()
        while buffer.undo():
            pass
        buffer.point = 0
        return found

    def _last_argument(self, command: Command) -> bool:
        """`_`: a blank and the last word of the line before, and on with typing."""
        buffer = self._editor.buffer
        self._insert(min(buffer.point + 1, len(buffer.text)))
        buffer.insert(" ")
        self._editor.last_argument()
        return True

    def _fetch(self, command: Command) -> bool:
        editor = self._editor
        editor.go(command.times - 1 if command.times is not None else 0)
        return True

    # Searching.

    def _search(self, command: Command) -> bool:
        self._asking = command.key
        self._editor.screen.set_prompt(self._asking)
        return True

    def prompt(self) -> str | None:
        """The search text being typed, shown instead of the line; None if there is none."""
        return self._asking

    def _ask(self, stroke: Stroke) -> None:
        assert self._asking is not None
        match stroke.function:
            case "accept-line":
                key, text = self._asking[0], self._asking[1:]
                self._asking = None
                self._query = (text or self._query[0], key == "/")
                self._find_line(backward=self._query[1])
            case "backward-delete-char":
                self._asking = self._asking[:-1] or None
            case "vi-movement-mode" | "abort":
                self._asking = None
            case _:
                self._asking += stroke.keys

    def _search_again(self, command: Command) -> bool:
        return self._find_line(backward=self._query[1] is (command.key == "n"))

    def _find_line(self, *, backward: bool) -> bool:
        editor = self._editor
        text = self._query[0]
        place = editor.place
        step = -1 if backward else 1
        matches: Callable[[str], bool] = (
            (lambda line: line.startswith(text[1:])) if text.startswith("^") else (lambda line: text in line)
        )
        while text and 0 <= place + step < len(editor.lines):
            place += step
            if matches(editor.lines[place]) and editor.lines[place] != editor.buffer.text:
                editor.go(place)
                return True
        editor.bell()
        return True


_SIMPLE: Final[dict[str, Callable[[Vi, Command], bool]]] = {
    "r": Vi._replace, "~": Vi._change_case, "p": Vi._put, "P": Vi._put, "u": Vi._undo, "U": Vi._revert,
    "_": Vi._last_argument, "G": Vi._fetch, "/": Vi._search, "?": Vi._search, "n": Vi._search_again,
    "N": Vi._search_again,
}  # fmt: skip
