"""The line editor: reads keys from the terminal and runs their functions until a line is entered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from belljar.abi.dataclass import replace
from belljar.abi.errno import EINTR
from belljar.abi.errors import SysError
from belljar.abi.signals import Signal
from belljar.abi.termios import ECHO, ICANON, VMIN, VTIME, Termios, WinSize
from belljar.shell.control import Discard
from belljar.shell.editor.buffer import Buffer, KillRing
from belljar.shell.editor.completion import Completion, complete, in_columns
from belljar.shell.editor.keys import Decoder, Stroke, parse_keys
from belljar.shell.editor.screen import Screen
from belljar.shell.editor.search import Search

if TYPE_CHECKING:
    from belljar.shell.editor.vi import Vi
    from belljar.shell.shell import Shell

ASK_ABOVE: Final = 100
"""Number of completions from which the user is asked whether to list them."""
COUNT_MAX: Final = 4096
PASTE_ON, PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l\r"
PASTE_END: Final = "\x1b[201~"
KILLS: Final = frozenset(
    "kill-line kill-word backward-kill-word backward-kill-line unix-line-discard unix-word-rubout "
    "unix-filename-rubout kill-whole-line shell-kill-word shell-backward-kill-word".split()
)
NO_UNDO: Final = frozenset({"complete", "digit-argument", "possible-completions"})
"""Functions that change nothing to undo, or save the line themselves."""


Completer = Callable[["Shell", str, str], Completion]
"""Finds the completions of the text before the cursor; also given what follows it."""


class Suspended(Exception):
    """Raised by a completer that has to ask first: `read` passes it on, and `resume` goes on with the same key."""


class Editor:
    """Edits the lines of one interactive shell."""

    buffer: Buffer
    screen: Screen
    columns: int
    place: int
    _before: Termios
    _pastes: bool
    _suspended_at: Stroke

    def __init__(self, shell: Shell, completer: Completer = complete) -> None:
        self.shell = shell
        self._completer = completer
        self.process = shell.process
        self.ring = KillRing()
        self.last_query = ""
        self.asks = True
        """Whether many completions are listed only after a question."""
        self.one_column = False
        """Whether completions are listed one in a line."""
        self.columns = 80
        self._next_place: int | None = None
        self._vi: Vi | None = None
        self._begin("")

    # A line.

    def _begin(self, prompt: str) -> None:
        """Reset the state of one line."""
        self.buffer = Buffer(self.ring)
        shown = prompt.replace("\x01", "").replace("\x02", "")  # marks around what takes no columns, as in Readline
        self.screen = Screen(self._write if prompt else lambda _: None, shown, self.columns)
        self.overwriting = False
        if self.shell.options["vi"]:
            from belljar.shell.editor.vi import Vi  # few need it, and all wait for the shell to load

            self._vi = self._vi or Vi(self)
            self._vi.begin()
        self.vi = self._vi if self.shell.options["vi"] else None
        """Vi's modes, where they are wanted; what the last change was outlives a line."""
        self.decoder = Decoder(self.shell.bindings, vi=self.vi is not None)
        self.lines: list[str] = [*self.shell.history.lines, ""]
        self.place = len(self.lines) - 1
        self.last = ""
        """The function run before this one."""
        self.inserted = False
        """Whether the last Tab put something in: the next one then lists nothing yet."""
        self.count: int | None = None
        self.search: Search | None = None
        self.question: list[str] = []
        """Completions the user is asked about."""
        self.pasted: str | None = None
        """Text received so far of a bracketed paste; None outside one."""
        self.entered: str | None = None
        self.ended = False
        self._strokes: Iterator[Stroke] = iter(())
        """Keys that were typed and are not handled yet."""

    def read(self, prompt: str) -> str | None:
        """A line, with its newline; None at the end of input. Discard: it was interrupted."""
        before = self.process.ioctl(0, "termios")
        assert isinstance(before, Termios)
        self._measure()
        cc = list(before.cc)
        cc[VMIN], cc[VTIME] = 1, 0
        raw = replace(before, lflag=before.lflag & ~(ICANON | ECHO), cc=tuple(cc))
        if Signal.WINCH not in self.process.handlers:
            self.process.catch(Signal.WINCH, lambda _: None)
        self.process.ioctl(0, "set_termios", raw)
        self._pastes = (self.shell.vars.get("TERM") or "") not in ("", "dumb", "vt100")
        self._before = before

        def first() -> None:
            if self._pastes:
                self._write(PASTE_ON)
            self._begin(prompt)
            self._resume_history()

        return self._edit(first)

    def resume(self) -> str | None:
        """Go on after Suspended."""
        return self._edit(lambda: self._stroke(self._suspended_at))

    def _edit(self, first: Callable[[], None]) -> str | None:
        try:
            first()
            line = self._read_strokes()
        except Suspended:
            raise
        except BaseException:
            self._leave()
            raise
        self._leave()
        return line

    def _leave(self) -> None:
        with suppress(SysError):
            if self._pastes:
                self._write(PASTE_OFF)
            self.process.ioctl(0, "set_termios", self._before)

    def _read_strokes(self) -> str | None:
        for stroke in self._strokes:
            self._stroke(stroke)
        self._refresh()
        while self.entered is None and not self.ended:
            try:
                data = self._next_bytes()
            except SysError as error:
                if error.errno != EINTR:
                    return None
                self._signalled()
                continue
            if not data:
                return None
            self._strokes = self.decoder.feed(data)
            for stroke in self._strokes:
                self._stroke(stroke)
            self._refresh()
        self.screen.leave()
        return self.entered

    def _next_bytes(self) -> bytes:
        """Read typed bytes, none after an end of line: they may be the next program's."""
        ready = bytes(self.process.fds[0].handle.peek() or b"")
        ends = [at for at in (ready.find(b"\n"), ready.find(b"\r")) if at >= 0]
        return self.process.read(0, min(ends) + 1 if ends else len(ready) or 1)

    def _signalled(self) -> None:
        """A signal came while waiting for a key."""
        shell = self.shell
        if shell.interrupted or "INT" in shell.traps.pending:
            self._end_search()
            self._refresh()
            self.screen.show(self.buffer.text + "^C", len(self.buffer.text) + 2)
            self.screen.leave()
            shell.interrupted = False
            shell.run_pending_traps()
            raise Discard(130)
        size = self.columns
        self._measure()
        if self.columns != size:
            self.screen.resize(self.columns)
            self._refresh()
        if shell.traps.pending:
            self.screen.leave()
            shell.run_pending_traps()
            self.screen.clear_state()
            self._refresh()

    def _measure(self) -> None:
        with suppress(SysError):
            size = self.process.ioctl(0, "winsize")
            if isinstance(size, WinSize) and size.columns:
                self.columns = size.columns
                if self.shell.shopts["checkwinsize"]:
                    self.shell.vars.set("COLUMNS", str(size.columns))
                    self.shell.vars.set("LINES", str(size.rows))

    def _write(self, text: str) -> None:
        self.process.error(text)

    def bell(self) -> None:
        """Ring, with the text shown that it is about."""
        self._refresh()
        self._write("\a")

    def _refresh(self) -> None:
        if self.search is not None:
            self.screen.set_prompt(self.search.prompt)
            self.screen.show(self.search.line, self.search.point)
        elif self.vi is not None and (asked := self.vi.prompt()) is not None:
            self.screen.set_prompt(asked)
            self.screen.show("", 0)
        else:
            self.screen.set_prompt(self.screen.first_prompt)
            self.screen.show(self.buffer.text, self.buffer.point)

    # A key.

    def _stroke(self, stroke: Stroke) -> None:
        if self.entered is not None or self.ended:
            return
        self.process.budget.charge_size(len(self.buffer.text))
        if self.pasted is not None:
            self._paste(stroke.keys)
        elif self.question:
            self._answer(stroke)
        elif self.search is not None and self._search_stroke(self.search, stroke):
            return
        elif self.vi is None or not self.vi.stroke(stroke):
            self._suspended_at = stroke
            self.run(stroke)
        if self.vi is not None:
            self.vi.clamp_cursor()

    def run(self, stroke: Stroke) -> None:
        """Run the function of a key."""
        from belljar.shell.editor.actions import ACTIONS, REPEATED

        name = stroke.function
        if name.startswith(('"', "'")):
            for inner in Decoder({}).feed(parse_keys(name[1:-1]).encode("utf-8", "surrogateescape")):
                self.run(inner)
            return
        if name not in KILLS:
            self.ring.joins = False
        if name == "self-insert":
            if self.vi is None and (self.last != "self-insert" or stroke.keys == " "):
                self.buffer.remember()
            self.insert(stroke.keys * self._times())
        else:
            action = ACTIONS.get(name)
            if name not in NO_UNDO and name != "undo":
                self.buffer.remember()
            if action is None:
                self.bell()
            elif name == "digit-argument":
                self._digit(stroke.keys)
            else:
                for _ in range(self._times() if name in REPEATED else 1):
                    action(self)
        if name != "digit-argument":
            self.count = None
        self.last = name

    def _times(self) -> int:
        return max(0, min(self.count, COUNT_MAX)) if self.count is not None else 1

    def _digit(self, keys: str) -> None:
        if keys[-1].isdecimal():
            self.count = min((self.count or 0) * 10 + int(keys[-1]), COUNT_MAX)

    def insert(self, text: str) -> None:
        """Type text at the cursor."""
        if self.overwriting:
            self.buffer.overwrite(text)
        else:
            self.buffer.insert(text)

    def _paste(self, keys: str) -> None:
        """Pasted text is taken as it is: a newline in it doesn't enter the line."""
        assert self.pasted is not None
        self.pasted += keys
        if self.pasted.endswith(PASTE_END):
            text = self.pasted.removesuffix(PASTE_END).replace("\r", "\n")
            self.pasted = None
            self.decoder.verbatim = False
            self.buffer.insert(text)
        else:
            self.process.budget.charge_size(len(self.pasted))

    # Functions of keys.

    def accept(self) -> None:
        self.entered = self.buffer.text + "\n"
        self.buffer.point = len(self.buffer.text)
        self._end_search()
        self._refresh()

    def accept_and_next(self) -> None:
        """^O: enter this line, and offer the one after it in the history next."""
        self._next_place = self.place + 1 if self.place < len(self.lines) - 1 else None
        self.accept()

    def _resume_history(self) -> None:
        if self._next_place is not None and self._next_place < len(self.lines) - 1:
            self.go(self._next_place)
        self._next_place = None
        self._refresh()

    def delete_or_end(self) -> None:
        if not self.buffer.text and self.last != "delete-char":
            self.ended = True
        elif self.buffer.point < len(self.buffer.text):
            self.buffer.delete(self.buffer.point, self.buffer.next())
        else:
            self.bell()

    def accept_or_end(self) -> None:
        """^D of vi's keys: it enters what there is."""
        if self.buffer.text:
            self.accept()
        else:
            self.ended = True

    def delete_back(self) -> None:
        if self.buffer.point:
            self.buffer.delete(self.buffer.previous(), self.buffer.point)
        else:
            self.bell()

    def move(self, point: int) -> None:
        self.buffer.point = point

    def go(self, place: int) -> None:
        """Another line of the history; changes to this one are kept while the line is edited."""
        if not 0 <= place < len(self.lines):
            self.bell()
            return
        self.lines[self.place] = self.buffer.text
        self.place = place
        commanding = self.vi is not None and not self.vi.inserting
        self.buffer.set(self.lines[place], 0 if commanding else None)

    def go_matching(self, step: int) -> None:
        """The next line that begins as this one does before the cursor."""
        point = self.buffer.point
        prefix = self.buffer.text[:point]
        place = self.place + step
        while 0 <= place < len(self.lines):
            if self.lines[place].startswith(prefix) and self.lines[place] != self.buffer.text:
                self.go(place)
                self.buffer.point = point if prefix else len(self.buffer.text)
                return
            place += step
        self.bell()

    def yank(self) -> None:
        if self.ring.texts:
            self.buffer.mark = self.buffer.point
            self.buffer.insert(self.ring.texts[-1])
        else:
            self.bell()

    def yank_pop(self) -> None:
        if self.last not in ("yank", "yank-pop") or not self.ring.texts:
            self.bell()
            return
        self.ring.texts.insert(0, self.ring.texts.pop())
        self.buffer.delete(self.buffer.mark, self.buffer.point)
        self.buffer.insert(self.ring.texts[-1])

    def last_argument(self) -> None:
        """The last word of the line before; again: of the one before that."""
        again = self.last in ("yank-last-arg", "insert-last-argument")
        self.argument_place = (self.argument_place if again else len(self.lines) - 1) - 1
        if self.argument_place < 0:
            self.argument_place = 0
            self.bell()
            return
        if again:
            self.buffer.delete(self.buffer.mark, self.buffer.point)
        self.buffer.mark = self.buffer.point
        words = self.lines[self.argument_place].split()
        self.buffer.insert(words[-1] if words else "")

    argument_place = 0

    def clear_screen(self) -> None:
        self.screen.clear()

    def begin_paste(self) -> None:
        self.pasted = ""
        self.decoder.verbatim = True

    def quoted_insert(self) -> None:
        self.decoder.literal = True

    def undo(self) -> None:
        if not self.buffer.undo():
            self.bell()

    def comment(self) -> None:
        self.buffer.set("#" + self.buffer.text)
        self.accept()

    def tilde_expand(self) -> None:
        start = self.buffer.field_start()
        text = self.buffer.text[start : self.buffer.point]
        if text.startswith("~"):
            self.buffer.delete(start, self.buffer.point)
            self.buffer.insert(self.shell.expand_string(text))

    def abort(self) -> None:
        self.bell()

    # Searching.

    def start_search(self, *, backward: bool) -> None:
        self.lines[self.place] = self.buffer.text
        before = (self.buffer.text, self.buffer.point)
        self.search = Search(self.lines, self.place, before, backward, point=self.buffer.point)

    def _end_search(self) -> None:
        if self.search is not None:
            self.last_query = self.search.query or self.last_query
            self.place = self.search.place
            self.buffer.set(self.search.line, self.search.point)
            self.search = None

    def _search_stroke(self, search: Search, stroke: Stroke) -> bool:
        """Whether the key belonged to the search; another one ends it and is then run."""
        match stroke.function:
            case "self-insert":
                search.type(stroke.keys)
            case "reverse-search-history" | "forward-search-history":
                search.again(backward=stroke.function.startswith("reverse"), last=self.last_query)
            case "backward-delete-char":
                search.erase()
            case "abort":
                self.search = None
                self.buffer.set(*search.before)
                self.bell()
            case _:
                self._end_search()
                return False
        if search.failed:
            self.bell()
        return True

    # Completion.

    def complete(self) -> None:
        buffer = self.buffer
        found = self._completer(self.shell, buffer.text[: buffer.point], buffer.text[buffer.point :])
        before = buffer.text[found.start : buffer.point]
        if not found.choices:
            self.bell()
        elif found.replacement != before and len(found.replacement) >= len(before):
            buffer.remember()
            buffer.delete(found.start, buffer.point)
            buffer.insert(found.replacement)
            self.inserted = True
            return
        elif self.last == "complete" and not self.inserted:
            self._list(found.choices)
        else:
            self.bell()
        self.inserted = False

    def possible_completions(self) -> None:
        found = self._completer(self.shell, self.buffer.text[: self.buffer.point], "")
        if found.choices:
            self._list(found.choices)
        else:
            self.bell()

    def _list(self, choices: list[str]) -> None:
        self._refresh()
        if self.asks and len(choices) > ASK_ABOVE:
            self.question = choices
            self.screen.ask(f"Display all {len(choices)} possibilities? (y or n)")
            return
        self.screen.print_below(self._listed(choices))

    def _listed(self, choices: list[str]) -> str:
        return in_columns(choices, 0 if self.one_column else self.columns)

    def _answer(self, stroke: Stroke) -> None:
        if stroke.keys in ("y", "Y", " "):
            self._write("\n" + self._listed(self.question))
        elif stroke.keys in ("n", "N", "\x7f", "\x07"):
            self._write("\n")
        else:
            self.bell()
            return
        self.question = []
        self.screen.clear_state()
