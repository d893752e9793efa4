"""Changes of files as git shows them: a unified diff, for a person to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from unicodedata import category

from belljar.libc.line_diff import Change, find_changes

CONTEXT: Final = 3
_WORK_MAX: Final = 2_000_000
"""Work spent on the shortest diff of one file, in units of `find_changes`; beyond it the file is shown as replaced."""
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of what controls a terminal, or the order and visibility of text."""
_BINARY_LOOK: Final = 8000

Side = tuple[int, bytes | None]
"""A file's mode as git writes it, and its contents (a symlink's target); None: too large to show."""


class _TooMuchWork(Exception):
    pass


def render_file(path: str, old: Side | None, new: Side | None) -> Iterator[str]:
    """The lines of a file's diff, without line ends. One side may be missing, not both."""
    if old is not None and new is not None and (old[0] ^ new[0]) & 0o170000:
        yield from render_file(path, old, None)  # a file that became a symlink: git shows two changes
        yield from render_file(path, None, new)
        return
    before, after = f"a/{path}", f"b/{path}"
    yield f"diff --git {quote(before)} {quote(after)}"
    if old is None:
        assert new is not None
        yield f"new file mode {new[0]:06o}"
        before = "/dev/null"
    elif new is None:
        yield f"deleted file mode {old[0]:06o}"
        after = "/dev/null"
    elif old[0] != new[0]:
        yield f"old mode {old[0]:06o}"
        yield f"new mode {new[0]:06o}"
    contents = [b"" if side is None else side[1] for side in (old, new)]
    if contents[0] == contents[1] and contents[0] is not None:
        return
    if None in contents:
        yield f"Files {quote(before)} and {quote(after)} differ: too large to show"
    elif any(b"\0" in data[:_BINARY_LOOK] for data in contents if data):
        yield f"Binary files {quote(before)} and {quote(after)} differ"
    else:
        yield f"--- {quote(before)}"
        yield f"+++ {quote(after)}"
        yield from _hunks(*[_lines(data or b"") for data in contents])


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _hunks(first: Sequence[bytes], second: Sequence[bytes]) -> Iterator[str]:
    left = _WORK_MAX

    def charge(units: int) -> None:
        nonlocal left
        left -= units
        if left < 0:
            raise _TooMuchWork

    try:
        changes = find_changes(first, second, charge)
    except _TooMuchWork:
        changes = [Change(0, len(first), 0, len(second))]
    start = 0
    for index, change in enumerate(changes):
        if index + 1 == len(changes) or changes[index + 1].low_a - change.high_a > 2 * CONTEXT:
            yield from _hunk(first, second, changes[start : index + 1])
            start = index + 1


def _hunk(first: Sequence[bytes], second: Sequence[bytes], changes: Sequence[Change]) -> Iterator[str]:
    low = max(0, changes[0].low_a - CONTEXT)
    high = min(len(first), changes[-1].high_a + CONTEXT)
    low_b = changes[0].low_b - (changes[0].low_a - low)
    high_b = changes[-1].high_b + (high - changes[-1].high_a)
    yield f"@@ -{_range(low, high)} +{_range(low_b, high_b)} @@"
    at = low
    for change in changes:
        yield from _marked(" ", first[at : change.low_a])
        yield from _marked("-", first[change.low_a : change.high_a])
        yield from _marked("+", second[change.low_b : change.high_b])
        at = change.high_a
    yield from _marked(" ", first[at:high])


def _range(low: int, high: int) -> str:
    count = high - low
    start = low + 1 if count else low
    return f"{start}" if count == 1 else f"{start},{count}"


def _marked(mark: str, lines: Sequence[bytes]) -> Iterator[str]:
    for line in lines:
        yield mark + show(line.removesuffix(b"\n").decode("utf-8", "backslashreplace"))
        if not line.endswith(b"\n"):
            yield "\\ No newline at end of file"


def show(text: str) -> str:
    """A line with all that a terminal or editor would hide made visible, but for tabs and a last carriage return."""
    if text.replace("\t", "").isprintable():
        return text
    end = "\r" if text.endswith("\r") else ""
    return "".join(_escape(char) for char in text.removesuffix("\r")) + end


def _escape(char: str) -> str:
    return char if char == "\t" or category(char) not in _HIDDEN else char.encode("unicode_escape").decode("ascii")


def quote(name: str) -> str:
    """A file's name, in quotes and with escapes if it has characters that are not plain."""
    shown = "".join(c if c == " " or (c.isprintable() and c not in '"\\') else _quoted(c) for c in name)
    return name if shown == name else f'"{shown}"'


def _quoted(char: str) -> str:
    return (
        "\\" + char if char in '"\\' else "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))
    )
