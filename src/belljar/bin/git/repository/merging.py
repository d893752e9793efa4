"""Merging: common ancestors, three trees into one, and three texts with conflict markers."""

from __future__ import annotations

from collections.abc import Iterable

from dulwich.index import ConflictedIndexEntry
from dulwich.objects import Blob

from belljar.abi.dataclass import dataclass, field
from belljar.abi.paths import fsencode
from belljar.bin.git.repository.diffs import compare, split_lines
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.sparse import Sparse
from belljar.bin.git.repository.store import Flat
from belljar.bin.git.repository.work import check_out_entry, remove_file, write_file
from belljar.kernel.process import Process
from belljar.libc.line_diff import find_changes


def ancestors(repo: Repository, start: bytes) -> set[bytes]:
    """A commit and all before it."""
    seen = {start}
    stack = [start]
    while stack:
        repo.process.budget.charge()
        for parent in repo.store.commit(stack.pop()).parents:
            if parent not in seen:
                seen.add(bytes(parent))
                stack.append(bytes(parent))
    return seen


def merge_base(repo: Repository, first: bytes, second: bytes) -> bytes | None:
    """The best common ancestor: the newest that no other common one descends from."""
    common = ancestors(repo, first) & ancestors(repo, second)
    if not common:
        return None
    if first in common:
        return first
    if second in common:
        return second
    below: set[bytes] = set()
    for sha in common:
        below.update(bytes(parent) for parent in repo.store.commit(sha).parents)
    tips = common - below
    return max(tips, key=lambda sha: (repo.store.commit(sha).commit_time, sha))


@dataclass(slots=True)
class Merged:
    """The outcome for each path: a clean entry, or a conflict with what the file then holds."""

    files: Flat = field(default_factory=dict)
    conflicts: dict[str, tuple[ConflictedIndexEntry, bytes | None, int]] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Names:
    """The sides' names in conflict markers, and which side wins, if one does."""

    ours: str
    theirs: str
    base: str | None = None
    """Given if the text that both changed is to be shown, too (merge.conflictStyle=diff3)."""
    favour: str = ""
    """`ours`, `theirs`, or `union` for both sides."""


def chosen_side(words: Iterable[str]) -> str:
    """The side that wins in conflicts by the options of a merge strategy (-X); nothing if they name none."""
    for word in words:
        if word not in _STRATEGY_OPTIONS and not word.startswith(("find-renames=", "diff-algorithm=", "subtree=")):
            raise GitError(f"unknown strategy option: -X{word}")
    return next((word for word in reversed(list(words)) if word in ("ours", "theirs")), "")


_STRATEGY_OPTIONS = (
    "ours", "theirs", "patience", "histogram", "no-renames", "find-renames", "renormalize", "no-renormalize",
    "ignore-space-change", "ignore-all-space", "ignore-space-at-eol", "ignore-cr-at-eol", "subtree",
)  # fmt: skip


def merge_trees(
    repo: Repository,
    base: Flat,
    ours: Flat,
    theirs: Flat,
    our_name: str,
    their_name: str,
    *,
    base_name: str = "base",
    favour: str = "",
) -> Merged:
    result = Merged()
    style = repo.config("merge.conflictstyle") or "merge"
    names = Names(our_name, their_name, base_name if style in ("diff3", "zdiff3") else None, favour)
    sides = _Renamed(dict(base), dict(ours), dict(theirs))
    if repo.config_bool("merge.renames", True):
        sides = _follow_renames(repo, sides)
    base, ours, theirs = sides.base, sides.ours, sides.theirs
    for path in sorted(base.keys() | ours.keys() | theirs.keys()):
        repo.process.budget.charge()
        b, o, t = base.get(path), ours.get(path), theirs.get(path)
        if o == t or b == t:
            if o is not None:
                result.files[path] = o
        elif b == o:
            if t is not None:
                result.files[path] = t
        else:
            _conflict(repo, result, path, b, o, t, _named(names, path, sides))
    return result


@dataclass(slots=True)
class _Renamed:
    """Three trees in which a file that one side renamed has its new name in all, and what it was called there."""

    base: Flat
    ours: Flat
    theirs: Flat
    our_names: dict[str, str] = field(default_factory=dict)
    their_names: dict[str, str] = field(default_factory=dict)


def _follow_renames(repo: Repository, sides: _Renamed) -> _Renamed:
    base, ours, theirs = sides.base, sides.ours, sides.theirs
    by_us, by_them = _renames(repo, base, ours), _renames(repo, base, theirs)
    for old in by_us.keys() | by_them.keys():
        mine, other = by_us.get(old), by_them.get(old)
        if mine is not None and other is None and old in theirs and mine not in theirs and mine not in base:
            theirs[mine], sides.their_names[mine] = theirs.pop(old), old
            base[mine] = base.pop(old)
        elif other is not None and mine is None and old in ours and other not in ours and other not in base:
            ours[other], sides.our_names[other] = ours.pop(old), old
            base[other] = base.pop(old)
        elif mine is not None and mine == other and mine not in base:
            base[mine] = base.pop(old)
    return sides


def _renames(repo: Repository, base: Flat, side: Flat) -> dict[str, str]:
    """Files of the base under the names that a side gave them."""
    gone = {path: entry for path, entry in base.items() if path not in side}
    came = {path: entry for path, entry in side.items() if path not in base}
    if not gone or not came:
        return {}
    return {str(pair.old): str(pair.new) for pair in compare(repo, gone, came) if pair.old and pair.new}


def _named(names: Names, path: str, sides: _Renamed) -> Names:
    """Markers name the file, too, where it was not called the same on both sides."""
    if path not in sides.our_names and path not in sides.their_names:
        return names
    ours, theirs = sides.our_names.get(path, path), sides.their_names.get(path, path)
    return Names(f"{names.ours}:{ours}", f"{names.theirs}:{theirs}", names.base, names.favour)


def _conflict(
    repo: Repository,
    result: Merged,
    path: str,
    b: tuple[int, bytes] | None,
    o: tuple[int, bytes] | None,
    t: tuple[int, bytes] | None,
    names: Names,
) -> None:
    our_name, their_name = names.ours, names.theirs
    entry = ConflictedIndexEntry(*(repo.bare_entry(*side) if side is not None else None for side in (b, o, t)))
    if o is None or t is None:
        kept, gone_in, changed_in = (t, our_name, their_name) if o is None else (o, their_name, our_name)
        assert kept is not None
        result.messages.append(
            f"CONFLICT (modify/delete): {path} deleted in {gone_in} and modified in {changed_in}.  "
            f"Version {changed_in} of {path} left in tree."
        )
        result.conflicts[path] = (entry, repo.contents(kept), kept[0])
        return
    before = repo.contents(b) if b is not None else b""
    first, second = repo.contents(o), repo.contents(t)
    mode = t[0] if b is not None and o[0] == b[0] else o[0]
    if any(b"\0" in data[:8000] for data in (before, first, second)):
        result.messages.append(f"warning: Cannot merge binary files: {path} ({our_name} vs. {their_name})")
        result.messages.append(f"Auto-merging {path}")
        result.messages.append(f"CONFLICT (content): Merge conflict in {path}")
        result.conflicts[path] = (entry, first, mode)
        return
    text, clean = merge_texts(repo.process, before, first, second, names)
    result.messages.append(f"Auto-merging {path}")
    if clean:
        result.files[path] = (mode, repo.store.add(Blob.from_string(text)))
        return
    kind = "content" if b is not None else "add/add"
    result.messages.append(f"CONFLICT ({kind}): Merge conflict in {path}")
    result.conflicts[path] = (entry, text, mode)


def apply_merge(repo: Repository, ours: Flat, merged: Merged) -> None:
    """Write an outcome to the work tree and the index."""
    index, sparse = repo.index, Sparse(repo)
    for path in sorted(ours.keys() | merged.files.keys() | merged.conflicts.keys()):
        repo.process.budget.charge()
        if path in merged.conflicts:
            entry, data, mode = merged.conflicts[path]
            if data is not None:
                write_file(repo, path, mode, data)
            index[path] = entry
        elif path not in merged.files:
            remove_file(repo, path)
            index.pop(path, None)
        elif merged.files[path] != ours.get(path):
            mode, sha = merged.files[path]
            index[path] = check_out_entry(repo, path, mode, sha, sparse)
    repo.write_index()


def merge_texts(process: Process, base: bytes, first: bytes, second: bytes, names: Names) -> tuple[bytes, bool]:
    """Three-way merge by lines; False with conflict markers in the text."""
    o, a, b = split_lines(base), split_lines(first), split_lines(second)
    ours = find_changes(o, a, process.budget.charge)
    theirs = find_changes(o, b, process.budget.charge)
    out: list[bytes] = []
    clean = True
    position = i = j = shift_a = shift_b = 0
    while i < len(ours) or j < len(theirs):
        # The next stretch that either side changed, grown by all changes that touch it.
        low = min(c.low_a for c in (*ours[i : i + 1], *theirs[j : j + 1]))
        high = low
        first_i, first_j = i, j
        grown = True
        while grown:
            grown = False
            if i < len(ours) and ours[i].low_a <= high:
                high = max(high, ours[i].high_a)
                i += 1
                grown = True
            if j < len(theirs) and theirs[j].low_a <= high:
                high = max(high, theirs[j].high_a)
                j += 1
                grown = True
        out += o[position:low]
        mine, delta_a = _side(a, ours[first_i:i], low, high, shift_a)
        other, delta_b = _side(b, theirs[first_j:j], low, high, shift_b)
        shift_a, shift_b = delta_a, delta_b
        if first_i == i:
            out += other
        elif first_j == j or mine == other:
            out += mine
        elif names.favour:
            out += mine if names.favour == "ours" else other if names.favour == "theirs" else [*_ended(mine), *other]
        else:
            clean = False
            out += _marked(mine, other, o[low:high], names)
        position = high
    out += o[position:]
    return b"".join(out), clean


def _side(lines: list[bytes], changes: list, low: int, high: int, shift: int) -> tuple[list[bytes], int]:  # type: ignore[type-arg]
    """A side's lines for a stretch of the base, and how far its line numbers are off behind it."""
    after = shift + sum((c.high_b - c.low_b) - (c.high_a - c.low_a) for c in changes)
    return lines[low + shift : high + after], after


def _marked(mine: list[bytes], other: list[bytes], before: list[bytes], names: Names) -> list[bytes]:
    """Conflict markers around what differs; without the base, lines that both start or end with stay outside."""
    head: list[bytes] = []
    tail: list[bytes] = []
    base: list[bytes] = []
    if names.base is not None:
        base = [fsencode(f"||||||| {names.base}\n"), *_ended(before)]
    else:
        while mine and other and mine[0] == other[0]:
            head.append(mine[0])
            mine, other = mine[1:], other[1:]
        while mine and other and mine[-1] == other[-1]:
            tail.insert(0, mine[-1])
            mine, other = mine[:-1], other[:-1]
    return [
        *head,
        fsencode(f"<<<<<<< {names.ours}\n"),
        *_ended(mine),
        *base,
        b"=======\n",
        *_ended(other),
        fsencode(f">>>>>>> {names.theirs}\n"),
        *tail,
    ]


def _ended(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], lines[-1] + b"\n"] if lines and not lines[-1].endswith(b"\n") else lines
