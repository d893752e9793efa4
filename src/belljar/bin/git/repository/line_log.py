"""The history of some lines of a file (`git log -L`): where they were in each commit, and what became of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from belljar.abi.paths import fsencode
from belljar.bin.git.repository.changes import commit_pairs
from belljar.bin.git.repository.diffs import Pair, compare, quote_path, split_lines
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import relative
from belljar.bin.git.repository.repo import Repository
from belljar.libc.line_diff import find_changes
from belljar.regex import RegexError
from belljar.regex import compile as compile_regex

_PLACE = re.compile(r"[+-]?\d+|/(?:[^/\\]|\\.)*/")
_FUNCTION = re.compile(rb"[A-Za-z_$]")

Span = tuple[int, int]
"""Lines from one, counted from 0, up to another."""
Spans = dict[str, list[Span]]
"""Line ranges by the path that the file has in a commit."""


class Change(NamedTuple):
    """Lines of the old file, and those that came for them."""

    old: Span
    new: Span


# What -L says.


def parse_ranges(repo: Repository, words: tuple[str, ...], tip: bytes) -> Spans:
    """The lines of a commit that the arguments of -L mean."""
    found: Spans = {}
    files = repo.tree_of(tip)
    for word in words:
        match = re.fullmatch(r"(:(?:[^:\\]|\\.)+|(?:[^:/\\]|/(?:[^/\\]|\\.)*/)*):(.+)", word, re.S)
        if match is None:
            raise GitError(f"-L argument not 'start,end:file' or ':funcname:file': {word}")
        path = relative(repo, match[2])
        if path not in files:
            raise GitError(f"There is no path {match[2]} in the commit")
        lines = split_lines(repo.store.blob(files[path][1]))
        spans = found.setdefault(path, [])
        after = spans[-1][1] if spans else 0
        span = _function(repo, match[1][1:], lines, after) if match[1][:1] == ":" else _range(repo, match, lines, after)
        found[path] = merge_spans([*spans, span])
    return found


def _range(repo: Repository, match: re.Match[str], lines: list[bytes], after: int) -> Span:
    text = match[1]
    first = _PLACE.match(text)
    start, rest = (first[0], text[first.end() :]) if first is not None else ("", text)
    end = rest[1:] if rest.startswith(",") else ""
    if (rest and not rest.startswith(",")) or (end and not _PLACE.fullmatch(end)):
        raise GitError(f"-L argument not 'start,end:file' or ':funcname:file': {match[0]}")
    low = 0
    if start.startswith("/"):
        low = _search(repo, start[1:-1], lines, after)
    elif start:
        low = int(start[:9].lstrip("+-")) - 1
        if low < 0:
            raise GitError(f"-L invalid line number: {low + 1}")
    if low >= len(lines):
        raise GitError(f"file {match[2]} has only {len(lines)} line{'' if len(lines) == 1 else 's'}")
    high = len(lines)
    if end.startswith("/"):
        high = _search(repo, end[1:-1], lines, low + 1) + 1
    elif end.startswith("+"):
        high = low + int(end[1:10])
    elif end.startswith("-"):
        low, high = max(0, low - int(end[1:10]) + 1), low + 1
    elif end:
        high = int(end[:9])
        if high <= low:
            low, high = max(0, high - 1), low + 1
    return low, min(high, len(lines))


def _search(repo: Repository, pattern: str, lines: list[bytes], start: int, message: str = "No match") -> int:
    try:
        regex = compile_regex(pattern, syntax="grep")
    except RegexError as error:
        raise GitError(f"-L parameter '{pattern}' starting at line {start + 1}: {error}") from None
    for at in range(start, len(lines)):
        repo.process.budget.charge()
        if regex.test(lines[at].decode("utf-8", "surrogateescape").rstrip("\n")):
            return at
    raise GitError(f"-L parameter '{pattern}' starting at line {start + 1}: {message}")


def _function(repo: Repository, pattern: str, lines: list[bytes], start: int) -> Span:
    """Return the range from a line that names a function to the next such line."""
    at = start - 1
    while True:
        at = _search(repo, pattern, lines, at + 1, "no match")
        if _FUNCTION.match(lines[at]):
            break
    end = at + 1
    while end < len(lines) and not _FUNCTION.match(lines[end]):
        end += 1
    return at, end


# Following lines.


def merge_spans(spans: list[Span]) -> list[Span]:
    """In order, those that touch made one."""
    out: list[Span] = []
    for low, high in sorted(spans):
        if out and low <= out[-1][1]:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        elif high > low:
            out.append((low, high))
    return out


def touched(changes: list[Change], spans: list[Span]) -> list[Change]:
    """The changes that reach into some lines of the new file."""
    return [
        change for change in changes if any((low < change.new[1] and change.new[0] < high)
                                            or (change.new[0] == change.new[1] and low < change.new[0] < high)
                                            for low, high in spans)
    ]  # fmt: skip


def carry_back(changes: list[Change], spans: list[Span]) -> list[Span]:
    """Return where lines of the new file were in the old one."""
    hit = touched(changes, spans)
    left: list[Span] = []
    for low, high in spans:
        for change in hit:
            if change.new[1] <= low or change.new[0] >= high:
                continue
            left.append((low, change.new[0]))
            low = change.new[1]
        left.append((low, high))
    moved = [(low + _offset(changes, low), high + _offset(changes, low)) for low, high in left if low < high]
    return merge_spans(moved + [change.old for change in hit])


def _offset(changes: list[Change], place: int) -> int:
    before = [change for change in changes if change.new[1] <= place]
    return before[-1].old[1] - before[-1].new[1] if before else 0


def line_changes(repo: Repository, pair: Pair) -> list[Change]:
    found = find_changes(split_lines(pair.before), split_lines(pair.after), repo.process.budget.charge)
    return [Change((change.low_a, change.high_a), (change.low_b, change.high_b)) for change in found]


def trace_lines(
    repo: Repository, keep: Callable[[bytes], bool], spans: dict[bytes, Spans], traced: dict[bytes, bytes]
) -> Callable[[bytes], bool]:
    """Commits that changed the lines; asked about each commit before its parents. `traced` gets the patches."""

    def changed(sha: bytes) -> bool:
        wanted = spans.pop(sha, None)
        if not wanted:
            return False
        commit = repo.store.commit(sha)
        if len(commit.parents) > 1:
            text = b""
            shown = _through_merge(repo, [bytes(parent) for parent in commit.parents], sha, wanted, spans)
        else:
            text, before = _through(repo, commit_pairs(repo, commit, []), wanted)
            shown = bool(text)
            for parent in commit.parents:
                _add(spans, bytes(parent), before)
        if shown and keep(sha):
            traced[sha] = text
            return True
        return False

    return changed


def _through(repo: Repository, pairs: list[Pair], wanted: Spans) -> tuple[bytes, Spans]:
    """The patch of a commit as far as it is of the lines, and where they were before it."""
    known = {pair.new: pair for pair in pairs if pair.new is not None}
    text, before = b"", {}
    for path, ranges in sorted(wanted.items()):
        pair = known.get(path)
        if pair is None:
            before[path] = ranges
            continue
        changes = line_changes(repo, pair)
        text += _patch(pair, ranges, touched(changes, ranges))
        if pair.old is not None and (older := carry_back(changes, ranges)):
            before[pair.old] = older
    return text, before


def _through_merge(
    repo: Repository, parents: list[bytes], sha: bytes, wanted: Spans, spans: dict[bytes, Spans]
) -> bool:
    """A parent that has the lines as they are answers for them; otherwise all do. Whether it is the latter."""
    sides = []
    for parent in parents:
        text, before = _through(repo, compare(repo, repo.tree_of(parent), repo.tree_of(sha)), wanted)
        if not text:
            _add(spans, parent, before)
            return False
        sides.append((parent, before))
    for parent, before in sides:
        _add(spans, parent, before)
    return True


def _add(spans: dict[bytes, Spans], sha: bytes, more: Spans) -> None:
    known = spans.setdefault(sha, {})
    for path, ranges in more.items():
        known[path] = merge_spans(known.get(path, []) + ranges)


def _patch(pair: Pair, ranges: list[Span], changes: list[Change]) -> bytes:
    """The lines, with what was changed in them."""
    old, new = split_lines(pair.before), split_lines(pair.after)
    out: list[bytes] = []
    at = 0
    for low, high in ranges:
        while at < len(changes) and changes[at].new[1] < low:
            at += 1
        last = at
        while last < len(changes) and changes[last].new[0] < high:
            last += 1
        inside = changes[at:last]
        if not inside:
            continue
        at = last
        start = inside[0].old[0] - max(0, inside[0].new[0] - low)
        end = inside[-1].old[1] + max(0, high - inside[-1].new[1])
        shown = f"-{start + 1},{end - start}" if start or end else "-0,0"
        out.append(f"@@ {shown} +{low + 1},{high - low} @@\n".encode())
        place = low
        for change in inside:
            out += [b" " + line for line in new[place : change.new[0]]]
            out += [b"-" + line for line in old[change.old[0] : change.old[1]]]
            out += [b"+" + line for line in new[max(place, change.new[0]) : min(high, change.new[1])]]
            place = max(place, change.new[1])
        out += [b" " + line for line in new[place:high]]
    if not out:
        return b""
    before = quote_path(f"a/{pair.old}") if pair.old is not None else "/dev/null"
    first = quote_path(f"a/{pair.old if pair.old is not None else pair.path}")
    after = quote_path(f"b/{pair.path}")
    head = fsencode(f"diff --git {first} {after}\n--- {before}\n+++ {after}\n")
    return head + b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in out)
