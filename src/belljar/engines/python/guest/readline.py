"""GNU readline's interface over the line editor of the sandbox's terminals."""

import os

from _belljar.lines import at, edit_input, history, state, variables

backend = "readline"
_READLINE_VERSION = _READLINE_RUNTIME_VERSION = 0x0802
_READLINE_LIBRARY_VERSION = "8.2"
_length = [-1]
edit_input()


def _changed():
    state["told"] = -1


def _default(filename):
    return os.path.expanduser("~/.history") if filename is None else filename


def parse_and_bind(string, /):
    """Set a variable. Bindings are accepted and ignored: the keys are Readline's, and Tab completes if there is a
    completer."""
    match string.split():
        case ["set", name, value]:
            variables[name.lower()] = value


def read_init_file(filename=None, /):
    with open(os.path.expanduser("~/.inputrc") if filename is None else filename):
        pass


def get_line_buffer():
    return at["line"]


def insert_text(string, /):
    """Insert text at the cursor, from a completer: then its candidates are not used."""
    at["inserted"] += string


def redisplay():
    """Nothing: the editor shows every change itself."""


def add_history(string, /):
    history.append(string)
    _changed()


def clear_history():
    history.clear()
    _changed()


def get_current_history_length():
    return len(history)


def get_history_item(index, /):
    return history[index - 1] if 0 < index <= len(history) else None


def _check(pos):
    if pos < 0:
        raise ValueError("History index cannot be negative")
    if pos >= len(history):
        raise ValueError(f"No history item at position {pos}")


def remove_history_item(pos, /):
    _check(pos)
    del history[pos]
    _changed()


def replace_history_item(pos, line, /):
    _check(pos)
    history[pos] = line
    _changed()


def get_history_length():
    return _length[0]


def set_history_length(length, /):
    _length[0] = length


def set_auto_history(enabled, /):
    state["automatic"] = bool(enabled)


def read_history_file(filename=None, /):
    with open(_default(filename), encoding="utf-8", errors="surrogateescape") as file:
        history.extend(line.rstrip("\n") for line in file)
    _changed()


def write_history_file(filename=None, /):
    kept = history if _length[0] < 0 else history[max(len(history) - _length[0], 0) :]
    with open(_default(filename), "w", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(line + "\n" for line in kept)


def append_history_file(nelements, filename=None, /):
    if nelements < 0:
        raise ValueError("nelements must be positive")
    with open(_default(filename), "r+", encoding="utf-8", errors="surrogateescape") as file:
        file.seek(0, 2)
        file.writelines(line + "\n" for line in history[max(len(history) - nelements, 0) :])


def set_completer(function=None, /):
    state["completer"] = function


def get_completer():
    return state["completer"]


def set_completer_delims(string, /):
    state["delims"] = string


def get_completer_delims():
    return state["delims"]


def get_completion_type():
    return 9


def get_begidx():
    return at["begin"]


def get_endidx():
    return at["end"]


def set_startup_hook(function=None, /):
    """Accepted and ignored."""


def set_pre_input_hook(function=None, /):
    """Accepted and ignored."""


def set_completion_display_matches_hook(function=None, /):
    """Accepted and ignored: the editor lists the candidates itself."""
