"""`git range-diff`: two versions of a series of commits beside each other."""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.changes import commit_pairs
from belljar.bin.git.repository.diffs import Pair, hunks, quote_path, split_lines
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.history import walk
from belljar.bin.git.repository.merging import merge_base
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit
from belljar.bin.git.repository.text import commit_subject, text_of
from belljar.kernel.process import Process
from belljar.libc.line_diff import find_changes

_CONTEXT = 3
_SECTION = re.compile(rb" ## (.*) ##$|.?@@ .*")


@dataclass(frozen=True, slots=True)
class Options:
    no_patch: bool = flag("-s", "--no-patch", "only the list of commits")
    factor: str = value("--creation-factor", "how different commits may be", metavar="PERCENT", default="60")
    accepted: bool = flag("--no-color", "--no-dual-color", "--dual-color", "--no-notes", "(accepted)")


@dataclass(slots=True)
class Patch:
    """A commit as text in which only what matters differs."""

    sha: bytes
    text: bytes
    changes: bytes
    """The patch without author and message."""
    match: int = -1
    shown: bool = False


def range_diff(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(Options, args)
    if not options.factor.isdecimal():
        raise GitError("option `creation-factor' expects a numerical value", 129, "error: ")
    old, new = (
        [_patch(repo, sha) for sha in reversed(list(walk(repo, [tip], hidden))) if _is_plain(repo, sha)]
        for tip, hidden in _ranges(repo, operands)
    )
    _pair_up(repo.process, old, new, int(options.factor[:6]))
    _show(repo, old, new, options)
    return 0


def _is_plain(repo: Repository, sha: bytes) -> bool:
    return len(repo.store.commit(sha).parents) < 2


def _ranges(repo: Repository, names: list[str]) -> list[tuple[bytes, list[bytes]]]:
    """The tips and what is left out, of `a..b c..d`, of `base a b`, or of `a...b`."""
    if len(names) == 1 and "..." in names[0]:
        left, _, right = names[0].partition("...")
        tips = [find_commit(repo, left or "HEAD"), find_commit(repo, right or "HEAD")]
        base = merge_base(repo, *tips)
        return [(tip, [base] if base else []) for tip in tips]
    if len(names) == 2 and all(".." in name for name in names):
        pairs = [name.partition("..") for name in names]
        return [(find_commit(repo, right or "HEAD"), [find_commit(repo, left or "HEAD")]) for left, _, right in pairs]
    if len(names) == 3:
        base = find_commit(repo, names[0])
        return [(find_commit(repo, name), [base]) for name in names[1:]]
    raise GitError("need two commit ranges")


def _patch(repo: Repository, sha: bytes) -> Patch:
    commit = repo.store.commit(sha)
    message = text_of(commit.message).strip("\n")
    body = "".join(f"    {line}".rstrip() + "\n" for line in message.split("\n"))
    head = f" ## Metadata ##\nAuthor: {text_of(commit.author)}\n\n ## Commit message ##\n{body}"
    changes = b"".join(_file(repo.process, pair) for pair in commit_pairs(repo, commit, []))
    return Patch(sha, fsencode(head) + changes, changes)


def _file(process: Process, pair: Pair) -> bytes:
    path = quote_path(pair.path)
    title = path
    if pair.old is None:
        title += " (new)"
    elif pair.new is None:
        title += " (deleted)"
    elif pair.letter.startswith("R"):
        title = f"{quote_path(str(pair.old))} => {path}"
    if pair.old is not None and pair.new is not None and pair.old_mode != pair.new_mode:
        title += f" (mode change {pair.old_mode:06o} => {pair.new_mode:06o})"
    out = [fsencode(f"\n ## {title} ##\n")]
    for line in split_lines(hunks(process, pair.before, pair.after)):
        if line.startswith(b"@@"):
            heading = line.split(b"@@", 2)[2].strip()
            line = b"@@" + (fsencode(f" {path}: ") + heading if heading else b"") + b"\n"
        out.append(line)
    return b"".join(out)


def _size(process: Process, before: bytes, after: bytes) -> int:
    """Return how many lines the difference of two texts has."""
    return len(split_lines(hunks(process, before, after)))


def _pair_up(process: Process, old: list[Patch], new: list[Patch], factor: int) -> None:
    """Find which commit became which: those with the same change first, then the ones that differ least."""
    for number, patch in enumerate(old):
        twin = next((n for n, other in enumerate(new) if other.match < 0 and other.changes == patch.changes), None)
        if twin is not None:
            patch.match, new[twin].match = twin, number
    left = [n for n, patch in enumerate(old) if patch.match < 0]
    right = [n for n, patch in enumerate(new) if patch.match < 0]
    if len(left) * len(right) > 10_000:
        return
    costs = sorted((_size(process, old[i].changes, new[j].changes), i, j) for i in left for j in right)
    for cost, i, j in costs:
        alone = sum(len(split_lines(side.changes)) * factor // 100 for side in (old[i], new[j]))
        if old[i].match < 0 and new[j].match < 0 and cost < alone:
            old[i].match, new[j].match = j, i


def _show(repo: Repository, old: list[Patch], new: list[Patch], options: Options) -> None:
    width = len(str(max(len(old), len(new))))
    i = j = 0
    while i < len(old) or j < len(new):
        while i < len(old) and old[i].shown:
            i += 1
        if i < len(old) and old[i].match < 0:
            _line(repo, (i, old[i]), None, width)
            i += 1
            continue
        while j < len(new) and new[j].match < 0:
            _line(repo, None, (j, new[j]), width)
            j += 1
        if j < len(new):
            before = old[new[j].match]
            _line(repo, (new[j].match, before), (j, new[j]), width)
            if not options.no_patch and before.text != new[j].text:
                _difference(repo.process, before.text, new[j].text)
            before.shown = True
            j += 1


def _line(repo: Repository, old: tuple[int, Patch] | None, new: tuple[int, Patch] | None, width: int) -> None:
    sign = "<" if new is None else ">" if old is None else "=" if old[1].text == new[1].text else "!"
    sides = [
        f"{side[0] + 1:{width}d}:  {side[1].sha[:7].decode()}" if side is not None else f"{'-':>{width}}:  -------"
        for side in (old, new)
    ]
    named = old or new
    assert named is not None
    repo.process.print(f"{sides[0]} {sign} {sides[1]} {commit_subject(repo, named[1].sha)}")


def _difference(process: Process, before: bytes, after: bytes) -> None:
    """The difference of two patches, whose hunks are named by the section that they are in."""
    first, second = split_lines(before), split_lines(after)
    found = find_changes(first, second, process.budget.charge)
    index = 0
    while index < len(found):
        last = index
        while last + 1 < len(found) and found[last + 1].low_a - found[last].high_a <= 2 * _CONTEXT:
            last += 1
        group = found[index : last + 1]
        index = last + 1
        low, high = max(0, group[0].low_a - _CONTEXT), min(len(second), group[-1].high_b + _CONTEXT)
        section = b""
        for line in reversed(first[:low]):
            if match := _SECTION.match(line.rstrip(b"\n")):
                section = b" " + (match[1] if match[1] is not None else match[0])
                break
        rows = [b"@@" + section + b"\n"]
        at = max(0, group[0].low_b - _CONTEXT)
        for change in group:
            rows += [b" " + line for line in second[at : change.low_b]]
            rows += [b"-" + line for line in first[change.low_a : change.high_a]]
            rows += [b"+" + line for line in second[change.low_b : change.high_b]]
            at = change.high_b
        rows += [b" " + line for line in second[at:high]]
        for row in rows:
            process.stdout.write(b"    " + (row if row.endswith(b"\n") else row + b"\n"))
