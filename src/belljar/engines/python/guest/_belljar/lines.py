"""Lines from the terminal with the kernel's line editor: what `readline`, `input` and the prompt share."""

import builtins
import sys

from _belljar import descriptors, hostcalls
from _belljar.protocol import CALLS, EDIT_COMPLETES, EDIT_HISTORY, EDIT_LISTS_ALL, EDIT_ONE_COLUMN, decode, encode

CHOICES_MAX = 2000
history = []
state = {"completer": None, "delims": " \t\n`~!@#$%^&*()-=+[{]}\\|;:'\",<>/?", "automatic": True, "told": 0}
"""`told`: how many lines of the history the kernel has; -1: it must be told anew."""
at = {"line": "", "begin": 0, "end": 0, "inserted": ""}
"""The text that is completed, the places of the word in it, and what its completer inserted itself."""
variables = {}
"""GNU readline's variables that were set, with their values as text."""


def is_terminal():
    return descriptors.isatty(0) and descriptors.isatty(2)


def read(prompt):
    """A line without its newline. EOFError, KeyboardInterrupt."""
    sys.stdout.flush()
    if state["told"] != len(history):
        hostcalls.call("history", [line.encode("utf-8", "surrogateescape") for line in history])
    bits = EDIT_HISTORY * state["automatic"] | EDIT_COMPLETES * (state["completer"] is not None)
    bits |= EDIT_LISTS_ALL * (variables.get("completion-query-items", "100") <= "0")
    bits |= EDIT_ONE_COLUMN * (variables.get("completion-display-width") == "0")
    call, answer, kind = CALLS["edit"], [], 1
    while kind:
        status, results = hostcalls.exchange(call.number, encode(call.takes, [prompt.encode(), bits, answer]))
        if status == 4:
            raise KeyboardInterrupt
        if status:
            raise hostcalls.error(status)
        kind, text = decode(call.gives, results)
        line = text.decode("utf-8", "surrogateescape")
        if kind:
            answer = [word.encode("utf-8", "surrogateescape") for word in candidates(line)]
    if not line:
        raise EOFError
    line = line.rstrip("\n")
    if bits & EDIT_HISTORY and line.strip():
        history.append(line)
    state["told"] = len(history) if len(history) <= 1000 else -1
    return line


def candidates(line):
    """The size of the word at the end of the line, then its completions."""
    begin = len(line)
    while begin and line[begin - 1] not in state["delims"]:
        begin -= 1
    word = line[begin:]
    at.update(line=line, begin=begin, end=len(line), inserted="")
    found = []
    try:
        while len(found) < CHOICES_MAX:
            match = state["completer"](word, len(found))
            if match is None:
                break
            found.append(str(match))
    except Exception:  # a completer's mistake completes nothing, as in GNU readline
        pass
    if at["inserted"]:
        return ["0", at["inserted"]]
    return [str(len(word)), *sorted(dict.fromkeys(found))]


def input_(prompt="", /):
    """Read a line from standard input, with line editing if that is a terminal."""
    if sys.stdin is sys.__stdin__ and sys.stdout is sys.__stdout__ and is_terminal() and descriptors.isatty(1):
        return read(str(prompt))
    return _plain_input(prompt)


_plain_input = builtins.input


def edit_input():
    """Have `input` edit lines, from when `readline` is imported on."""
    input_.__name__ = input_.__qualname__ = "input"
    input_.__module__ = "builtins"
    builtins.input = input_
