"""Differences as git shows them: patches, --stat, names; renames recognised."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.store import Flat
from belljar.kernel.process import Process
from belljar.libc.line_diff import Change, find_changes
from belljar.libc.quotearg import c_escape

_FUNCTION = re.compile(rb"[A-Za-z_$]")

Key = Callable[[bytes], bytes]
"""Maps a line to its comparison key (`-w`, `-b` ...)."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a patch is written."""

    context: int = 3
    key: Key | None = None
    skip_blank: bool = False
    """Changes of blank lines alone are none."""
    old_prefix: str = "a/"
    new_prefix: str = "b/"
    digits: int = 7
    """How many of an object's name are shown."""
    text: bool = False
    """Binary files are shown as text."""


PLAIN = Look()


@dataclass(slots=True)
class Pair:
    """One file on two sides; None where it is not."""

    old: str | None
    new: str | None
    old_mode: int
    new_mode: int
    before: bytes
    after: bytes
    old_sha: bytes
    new_sha: bytes
    similarity: int = 0

    @property
    def letter(self) -> str:
        if self.old is None:
            return "A"
        if self.new is None:
            return "D"
        if self.old != self.new and self.similarity:
            return f"R{self.similarity:03d}"
        return "M" if self.old_mode >> 12 == self.new_mode >> 12 else "T"

    @property
    def path(self) -> str:
        return self.new if self.new is not None else str(self.old)

    def reversed(self) -> Pair:
        """Return the reverse change, from new to old."""
        return Pair(
            self.new, self.old, self.new_mode, self.old_mode, self.after, self.before, self.new_sha, self.old_sha,
            self.similarity,
        )  # fmt: skip

    @property
    def binary(self) -> bool:
        return b"\0" in self.before[:8000] or b"\0" in self.after[:8000]


def changes(
    process: Process, before: bytes, after: bytes, look: Look = PLAIN
) -> tuple[list[bytes], list[bytes], list[Change]]:
    first, second = split_lines(before), split_lines(after)
    if look.key is None:
        found = find_changes(first, second, process.budget.charge)
    else:
        key = look.key
        found = find_changes([key(line) for line in first], [key(line) for line in second], process.budget.charge)
    if look.skip_blank:
        found = [
            c for c in found if any(line.strip() for line in first[c.low_a : c.high_a] + second[c.low_b : c.high_b])
        ]
    return first, second, found


def split_lines(data: bytes) -> list[bytes]:
    """Split into lines with their newlines; only \n ends a line."""
    parts = data.split(b"\n")
    last = parts.pop()
    lines = [part + b"\n" for part in parts]
    return [*lines, last] if last else lines


def compare(
    repo: Repository, old: Flat, new: Flat, read: dict[str, bytes] | None = None, *, renames: bool = True
) -> list[Pair]:
    """Compare two flat trees. `read` holds contents that are not in the store (the work tree's)."""
    contents = read or {}
    pairs: list[Pair] = []
    for path in sorted(old.keys() | new.keys(), key=lambda text: fsencode(text)):
        repo.process.budget.charge()
        before, after = old.get(path), new.get(path)
        if before == after:
            continue
        data_before = repo.contents(before) if before else b""
        data_after = contents[path] if path in contents else repo.contents(after) if after else b""
        pairs.append(
            Pair(
                path if before else None,
                path if after else None,
                before[0] if before else 0,
                after[0] if after else 0,
                data_before,
                data_after,
                before[1] if before else b"0" * 40,
                after[1] if after else b"0" * 40,
            )
        )
    return find_renames(repo, pairs) if renames else pairs


def find_renames(repo: Repository, pairs: list[Pair]) -> list[Pair]:
    removed = [pair for pair in pairs if pair.new is None]
    added = [pair for pair in pairs if pair.old is None]
    if not removed or not added or len(removed) * len(added) > 40_000:
        return pairs
    scores: list[tuple[int, int, int]] = []
    for i, gone in enumerate(removed):
        for j, came in enumerate(added):
            repo.process.budget.charge(2 + (min(len(gone.before), len(came.after)) >> 8))
            score = _similarity(gone, came)
            if score >= 50:
                scores.append((score, i, j))
    scores.sort(key=lambda entry: (-entry[0], entry[2], entry[1]))
    used_old: set[int] = set()
    used_new: set[int] = set()
    for score, i, j in scores:
        if i in used_old or j in used_new:
            continue
        used_old.add(i)
        used_new.add(j)
        gone, came = removed[i], added[j]
        came.old, came.old_mode, came.before, came.old_sha = gone.old, gone.old_mode, gone.before, gone.old_sha
        came.similarity = score
        pairs.remove(gone)
    return pairs


def _similarity(gone: Pair, came: Pair) -> int:
    if gone.old_mode >> 12 != came.new_mode >> 12:
        return 0
    if gone.old_sha == came.new_sha:
        return 100
    larger = max(len(gone.before), len(came.after))
    smaller = min(len(gone.before), len(came.after))
    if not smaller or smaller * 100 < larger * 50:
        return 0
    first, second = Counter(split_lines(gone.before)), Counter(split_lines(came.after))
    common = sum(len(line) * min(count, second[line]) for line, count in first.items() if line in second)
    return min(99, common * 100 // larger)


def quote_path(path: str) -> str:
    """A path as git shows it: quoted if C would escape something in it, or it is not ASCII."""
    escaped = c_escape(path, utf8=False, also='"')
    return path if escaped == path else f'"{escaped}"'


def patch(process: Process, pair: Pair, look: Look = PLAIN) -> bytes:
    """The `diff --git` text of one file."""
    old, new = pair.old if pair.old is not None else pair.path, pair.path
    out = [f"diff --git {quote_path(look.old_prefix + old)} {quote_path(look.new_prefix + new)}\n"]
    if pair.old is None:
        out.append(f"new file mode {pair.new_mode:06o}\n")
    elif pair.new is None:
        out.append(f"deleted file mode {pair.old_mode:06o}\n")
    elif pair.old_mode != pair.new_mode:
        out.append(f"old mode {pair.old_mode:06o}\nnew mode {pair.new_mode:06o}\n")
    if pair.letter.startswith("R"):
        out.append(f"similarity index {pair.similarity}%\nrename from {quote_path(old)}\nrename to {quote_path(new)}\n")
    if pair.old_sha != pair.new_sha:
        mode = f" {pair.new_mode:06o}" if pair.old and pair.new and pair.old_mode == pair.new_mode else ""
        names = (sha[: look.digits].decode() for sha in (pair.old_sha, pair.new_sha))
        out.append(f"index {'..'.join(names)}{mode}\n")
    if pair.before == pair.after:
        return fsencode("".join(out))
    name_a = quote_path(look.old_prefix + old) if pair.old is not None else "/dev/null"
    name_b = quote_path(look.new_prefix + new) if pair.new is not None else "/dev/null"
    if pair.binary and not look.text:
        out.append(f"Binary files {name_a} and {name_b} differ\n")
        return fsencode("".join(out))
    tab_a, tab_b = "\t" if " " in name_a else "", "\t" if " " in name_b else ""
    body = hunks(process, pair.before, pair.after, look)
    if not body:
        return b"" if pair.old == pair.new and pair.old_mode == pair.new_mode else fsencode("".join(out))
    out.append(f"--- {name_a}{tab_a}\n+++ {name_b}{tab_b}\n")
    return fsencode("".join(out)) + body


def hunks(process: Process, before: bytes, after: bytes, look: Look = PLAIN) -> bytes:
    first, second, found = changes(process, before, after, look)
    context = look.context
    out: list[bytes] = []
    index = 0
    while index < len(found):
        last = index
        while last + 1 < len(found) and found[last + 1].low_a - found[last].high_a <= 2 * context:
            last += 1
        group = found[index : last + 1]
        index = last + 1
        low_a, high_a = max(0, group[0].low_a - context), min(len(first), group[-1].high_a + context)
        low_b, high_b = max(0, group[0].low_b - context), min(len(second), group[-1].high_b + context)
        function = b""
        for line in reversed(first[:low_a]):
            if _FUNCTION.match(line):
                function = b" " + line.rstrip()[:80]
                break
        out.append(b"@@ -%s +%s @@%s\n" % (_range(low_a, high_a), _range(low_b, high_b), function))
        at = low_b
        for change in group:
            # Lines that are the same but for white space are shown as they are now.
            out += [_line(b" ", line) for line in second[at : change.low_b]]
            out += [_line(b"-", line) for line in first[change.low_a : change.high_a]]
            out += [_line(b"+", line) for line in second[change.low_b : change.high_b]]
            at = change.high_b
        out += [_line(b" ", line) for line in second[at:high_b]]
    return b"".join(out)


def _line(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + b"\n\\ No newline at end of file\n"


def _range(low: int, high: int) -> bytes:
    count = high - low
    if count == 0:
        return b"%d,0" % low
    return b"%d" % (low + 1) if count == 1 else b"%d,%d" % (low + 1, count)


def counts(process: Process, pair: Pair, look: Look = PLAIN) -> tuple[int, int]:
    """Lines added and removed."""
    _, _, found = changes(process, pair.before, pair.after, look)
    return sum(c.high_b - c.low_b for c in found), sum(c.high_a - c.low_a for c in found)


def rename_text(pair: Pair) -> str:
    """`a => b`, with what both have in common outside braces."""
    old, new = str(pair.old), str(pair.new)
    if pair.old is None or pair.new is None or old == new:
        return pair.path
    a, b = old.split("/"), new.split("/")
    head = 0
    while head < min(len(a), len(b)) - 1 and a[head] == b[head]:
        head += 1
    tail = 0
    most = min(len(a), len(b)) - (head or 1)
    while tail < most and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    if not head and not tail:
        return f"{old} => {new}"
    middle = f"{{{'/'.join(a[head : len(a) - tail])} => {'/'.join(b[head : len(b) - tail])}}}"
    return "/".join([*a[:head], middle, *a[len(a) - tail :]] if tail else [*a[:head], middle])


def stat_text(
    process: Process, pairs: list[Pair], width: int = 80, *, summary_only: bool = False, look: Look = PLAIN
) -> str:
    """--stat and its last line."""
    rows: list[tuple[str, int, int, Pair]] = []
    for pair in pairs:
        added, removed = (0, 0) if pair.binary else counts(process, pair, look)
        rows.append((rename_text(pair), added, removed, pair))
    if not rows:
        return ""
    total_added, total_removed = sum(row[1] for row in rows), sum(row[2] for row in rows)
    out: list[str] = []
    if not summary_only:
        longest = max(len(row[0]) for row in rows)
        most = max(row[1] + row[2] for row in rows)
        digits = max(len(str(most)), 3 if any(row[3].binary for row in rows) else 0)
        name_width = min(longest, max(4, width - digits - 10 - 6))
        room = max(2, width - digits - 6 - name_width - 1)
        scale = most > room
        for name, added, removed, pair in rows:
            if len(name) > name_width:
                name = "..." + name[-(name_width - 3) :]
            if pair.binary:
                out.append(f" {name:<{name_width}} | {'Bin':>{digits}} {len(pair.before)} -> {len(pair.after)} bytes")
                continue
            plus, minus = added, removed
            if scale and added + removed:
                total = max(1 + (added + removed) * (room - 1) // most, 2 if added and removed else 1)
                plus = 1 + added * (total - 1) // (added + removed) if added else 0
                minus = total - plus if removed else 0
            bar = "+" * plus + "-" * minus
            out.append(f" {name:<{name_width}} | {added + removed:>{digits}}{' ' + bar if bar else ''}")
    return "\n".join([*out, totals_text(len(rows), total_added, total_removed)]) + "\n"


def totals_text(files: int, added: int, removed: int) -> str:
    """The last line of --stat."""
    text = f" {files} file{'s' if files != 1 else ''} changed"
    if added or not removed:
        text += f", {added} insertion{'s' if added != 1 else ''}(+)"
    if removed or not added:
        text += f", {removed} deletion{'s' if removed != 1 else ''}(-)"
    return text


def mode_lines(pairs: list[Pair]) -> str:
    """Return the summary lines of files created, deleted, renamed and changed in mode."""
    out = []
    for pair in pairs:
        if pair.old is None:
            out.append(f" create mode {pair.new_mode:06o} {quote_path(pair.path)}\n")
        elif pair.new is None:
            out.append(f" delete mode {pair.old_mode:06o} {quote_path(pair.path)}\n")
        elif pair.old != pair.new:
            out.append(f" rename {rename_text(pair)} ({pair.similarity}%)\n")
        elif pair.old_mode != pair.new_mode:
            out.append(f" mode change {pair.old_mode:06o} => {pair.new_mode:06o} {quote_path(pair.path)}\n")
    return "".join(out)
