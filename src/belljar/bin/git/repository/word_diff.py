"""`git diff --word-diff`: what changed inside of lines, word by word."""

from __future__ import annotations

import re

from belljar.bin.git.repository.diffs import Look, Pair, patch
from belljar.bin.git.repository.errors import GitError
from belljar.kernel.process import Process
from belljar.libc.line_diff import find_changes

_MARKS = {
    "plain": (b"[-", b"-]", b"{+", b"+}"),
    "color": (b"\x1b[31m", b"\x1b[m", b"\x1b[32m", b"\x1b[m"),
}


def word_hunks(process: Process, pair: Pair, look: Look, mode: str) -> bytes:
    """The patch of a file with its changed lines woven together."""
    if mode == "none":
        return patch(process, pair, look)
    if mode not in _MARKS:
        raise GitError(f"bad --word-diff argument: {mode}", 129, "error: ")
    out: list[bytes] = []
    minus: list[bytes] = []
    plus: list[bytes] = []
    inside = False
    for line in patch(process, pair, look).split(b"\n")[:-1]:
        inside = inside or line.startswith(b"@@ ")
        if inside and line[:1] in (b"-", b"+"):
            (minus if line[:1] == b"-" else plus).append(line[1:] + b"\n")
            continue
        if line.startswith(b"\\ "):
            continue
        out.append(_weave(process, b"".join(minus), b"".join(plus), mode))
        minus.clear()
        plus.clear()
        if inside and line.startswith(b" "):
            line = line[1:] + (b"\x1b[m" if mode == "color" else b"")
        out.append(line + b"\n")
    out.append(_weave(process, b"".join(minus), b"".join(plus), mode))
    return b"".join(out)


def _weave(process: Process, before: bytes, after: bytes, mode: str) -> bytes:
    """New text with what is gone and what came marked."""
    if not before and not after:
        return b""
    cut, end_cut, new, end_new = _MARKS[mode]
    if not after:
        return _wrap(before, cut, end_cut)
    old_words = list(re.finditer(rb"\S+", before))
    new_words = list(re.finditer(rb"\S+", after))
    out: list[bytes] = []
    done = 0
    changed = find_changes([m[0] for m in old_words], [m[0] for m in new_words], process.budget.charge)
    for change in changed:
        if change.low_b < change.high_b:
            begin, end = new_words[change.low_b].start(), new_words[change.high_b - 1].end()
        else:
            begin = end = new_words[change.low_b - 1].end() if change.low_b else 0
        out.append(after[done:begin])
        if change.low_a < change.high_a:
            gone = before[old_words[change.low_a].start() : old_words[change.high_a - 1].end()]
            out.append(_wrap(gone, cut, end_cut))
        if begin < end:
            out.append(_wrap(after[begin:end], new, end_new))
        done = end
    out.append(after[done:])
    text = b"".join(out)
    return text if text.endswith(b"\n") or not text else text + b"\n"


def _wrap(text: bytes, start: bytes, end: bytes) -> bytes:
    """Marks around each line of a text."""
    return b"\n".join(start + line + end if line else line for line in text.split(b"\n"))
