"""The editor's functions by their Readline names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belljar.shell.editor.buffer import Buffer
from belljar.shell.editor.editor import Editor

Action = Callable[[Editor], None]


def _kill_to(end: Callable[[Buffer], int]) -> Action:
    """Kill from the cursor to a place, in either direction."""

    def act(editor: Editor) -> None:
        buffer = editor.buffer
        place = end(buffer)
        low, high = sorted((place, buffer.point))
        if low == high:
            return
        buffer.kill(low, high, backward=place < high)

    return act


def _move_to(place: Callable[[Buffer], int]) -> Action:
    return lambda editor: editor.move(place(editor.buffer))


def _swap(transpose: Callable[[Buffer], bool]) -> Action:
    def act(editor: Editor) -> None:
        if not transpose(editor.buffer):
            editor.bell()

    return act


def _kill_whole(editor: Editor) -> None:
    editor.buffer.kill(0, len(editor.buffer.text))


def _set_mark(editor: Editor) -> None:
    editor.buffer.mark = editor.buffer.point


def _exchange(editor: Editor) -> None:
    buffer = editor.buffer
    buffer.point, buffer.mark = min(buffer.mark, len(buffer.text)), buffer.point


def _revert(editor: Editor) -> None:
    while editor.buffer.undo():
        pass


def _toggle_overwriting(editor: Editor) -> None:
    editor.overwriting = not editor.overwriting


def _delete_blanks(editor: Editor) -> None:
    buffer = editor.buffer
    left = len(buffer.text[: buffer.point].rstrip(" \t"))
    right = len(buffer.text) - len(buffer.text[buffer.point :].lstrip(" \t"))
    buffer.delete(left, right)


ACTIONS: Final[dict[str, Action]] = {
    "abort": Editor.abort,
    "accept-line": Editor.accept,
    "backward-char": _move_to(Buffer.previous),
    "backward-delete-char": Editor.delete_back,
    "backward-kill-line": _kill_to(lambda buffer: 0),
    "backward-kill-word": _kill_to(Buffer.word_start),
    "backward-word": _move_to(Buffer.word_start),
    "beginning-of-history": lambda editor: editor.go(0),
    "beginning-of-line": _move_to(lambda buffer: 0),
    "bracketed-paste-begin": Editor.begin_paste,
    "capitalize-word": lambda editor: editor.buffer.change_word(str.title),
    "clear-display": Editor.clear_screen,
    "clear-screen": Editor.clear_screen,
    "complete": Editor.complete,
    "delete-char": Editor.delete_or_end,
    "delete-horizontal-space": _delete_blanks,
    "digit-argument": lambda editor: None,
    "downcase-word": lambda editor: editor.buffer.change_word(str.lower),
    "end-of-history": lambda editor: editor.go(len(editor.lines) - 1),
    "end-of-line": _move_to(lambda buffer: len(buffer.text)),
    "exchange-point-and-mark": _exchange,
    "forward-char": _move_to(Buffer.next),
    "forward-search-history": lambda editor: editor.start_search(backward=False),
    "forward-word": _move_to(Buffer.word_end),
    "history-search-backward": lambda editor: editor.go_matching(-1),
    "history-search-forward": lambda editor: editor.go_matching(1),
    "insert-comment": Editor.comment,
    "insert-last-argument": Editor.last_argument,
    "kill-line": _kill_to(lambda buffer: len(buffer.text)),
    "kill-whole-line": _kill_whole,
    "kill-word": _kill_to(Buffer.word_end),
    "next-history": lambda editor: editor.go(editor.place + 1),
    "operate-and-get-next": Editor.accept_and_next,
    "overwrite-mode": _toggle_overwriting,
    "possible-completions": Editor.possible_completions,
    "previous-history": lambda editor: editor.go(editor.place - 1),
    "quoted-insert": Editor.quoted_insert,
    "redraw-current-line": lambda editor: editor.screen.resize(editor.columns),
    "reverse-search-history": lambda editor: editor.start_search(backward=True),
    "revert-line": _revert,
    "set-mark": _set_mark,
    "tilde-expand": Editor.tilde_expand,
    "transpose-chars": _swap(Buffer.transpose_characters),
    "transpose-words": _swap(Buffer.transpose_words),
    "undo": Editor.undo,
    "unix-filename-rubout": _kill_to(lambda buffer: buffer.field_start(" \t\n/")),
    "unix-line-discard": _kill_to(lambda buffer: 0),
    "unix-word-rubout": _kill_to(Buffer.field_start),
    "upcase-word": lambda editor: editor.buffer.change_word(str.upper),
    "vi-eof-maybe": Editor.accept_or_end,
    "vi-unix-word-rubout": _kill_to(Buffer.vi_word_start),
    "yank": Editor.yank,
    "yank-last-arg": Editor.last_argument,
    "yank-pop": Editor.yank_pop,
}
REPEATED: Final = frozenset(
    "backward-char forward-char backward-word forward-word delete-char backward-delete-char kill-word "
    "backward-kill-word unix-word-rubout previous-history next-history transpose-chars undo yank "
    "upcase-word downcase-word capitalize-word".split()
)
"""Functions that a numeric argument repeats."""
