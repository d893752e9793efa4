"""`git blame`: the commit that each line of a file came from."""

from __future__ import annotations

import re

from dulwich.objects import Commit

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import flag, many, value
from belljar.bin._kit.options import parse
from belljar.bin.git.repository.diffs import split_lines
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import relative
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit
from belljar.bin.git.repository.text import date, subject_of, text_of, who
from belljar.bin.git.repository.work import stat_of
from belljar.libc.line_diff import find_changes

_NOBODY = b"0" * 40
"""Lines that are not committed yet."""


@dataclass(frozen=True, slots=True)
class BlameOptions:
    suppress: bool = flag("-s", "no author and time")
    email: bool = flag("-e", "--show-email", "show the author's address")
    long: bool = flag("-l", "show whole names of commits")
    raw_time: bool = flag("-t", "show times in seconds")
    number: bool = flag("-n", "--show-number", "show the line's number in its commit")
    name: bool = flag("-f", "--show-name", "show the file's name")
    ranges: tuple[str, ...] = many("-L", "only these lines", metavar="START,END")
    porcelain: bool = flag("-p", "--porcelain", "for machines")
    line_porcelain: bool = flag("--line-porcelain", "for machines, each line with everything")
    date: str = value("--date", "how to show dates", metavar="STYLE", default="iso")
    space: bool = flag("-w", "ignore white space")
    root: bool = flag("--root", "don't mark the first commits")
    blank: bool = flag("-b", "show no name for the first commits")
    moved: str | None = value("-M", "(lines are followed within a file)", metavar="N", bare="")
    copied: str | None = value("-C", "(lines are followed within a file)", metavar="N", bare="")
    reverse: str | None = value("--abbrev", "digits of a name", metavar="N")


@dataclass(frozen=True, slots=True)
class Owner:
    sha: bytes
    line: int
    """Its number in that commit, from 0."""


def blame(repo: Repository, args: list[str]) -> int:
    parsed = parse(BlameOptions, args)
    options = BlameOptions(**parsed.values)
    operands = parsed.operands
    if not operands:
        raise GitError("usage: git blame [<options>] [<rev-opts>] [<rev>] [--] <file>", 129, "")
    revision = operands[0] if len(operands) > 1 else None
    path = relative(repo, operands[-1])
    if revision is None and repo.head() is None:
        raise GitError("no such ref: HEAD")
    start = find_commit(repo, revision or "HEAD")
    tree = repo.tree_of(start)
    if path not in tree:
        raise GitError(f"no such path '{path}' in {revision or 'HEAD'}")
    data = repo.store.blob(tree[path][1])
    owners = _owners(repo, start, path, data, options.space)
    if revision is None and (stat := stat_of(repo, path)) is not None:
        now = repo.read_work(path, stat)
        if now != data:
            mapping = _same_lines(repo, data, now, options.space)
            count = len(split_lines(now))
            owners = [owners[mapping[n]] if n in mapping else Owner(_NOBODY, n) for n in range(count)]
            data = now
    lines = split_lines(data)
    chosen = _ranges(options.ranges, lines, path)
    if options.porcelain or options.line_porcelain:
        _machine(repo, path, lines, owners, chosen, everything=options.line_porcelain)
    else:
        _table(repo, path, lines, owners, chosen, options)
    return 0


def _owners(repo: Repository, start: bytes, path: str, data: bytes, space: bool) -> list[Owner]:
    count = len(split_lines(data))
    found: dict[int, Owner] = {}
    todo = [(start, data, list(enumerate(range(count))))]
    while todo:
        sha, text, wanted = todo.pop()
        repo.process.budget.charge(10)
        left = dict(wanted)
        for parent in repo.store.commit(sha).parents:
            before = repo.tree_of(bytes(parent)).get(path)
            if before is None:
                continue
            old = repo.store.blob(before[1])
            mapping = _same_lines(repo, old, text, space)
            passed = [(final, mapping[line]) for final, line in left.items() if line in mapping]
            if passed:
                todo.append((bytes(parent), old, passed))
            left = {final: line for final, line in left.items() if line not in mapping}
        for final, line in left.items():
            found[final] = Owner(sha, line)
    return [found[number] for number in range(count)]


def _same_lines(repo: Repository, old: bytes, new: bytes, space: bool) -> dict[int, int]:
    """Line numbers of the new text that the old one has, and where."""
    a, b = split_lines(old), split_lines(new)
    if space:
        a, b = ([re.sub(rb"\s+", b"", line) for line in side] for side in (a, b))
    mapping: dict[int, int] = {}
    at_a = at_b = 0
    for change in find_changes(a, b, repo.process.budget.charge):
        mapping.update(zip(range(at_b, change.low_b), range(at_a, change.low_a), strict=True))
        at_a, at_b = change.high_a, change.high_b
    mapping.update(zip(range(at_b, len(b)), range(at_a, len(a)), strict=True))
    return mapping


def _ranges(texts: tuple[str, ...], lines: list[bytes], path: str) -> list[int]:
    """The lines that -L asks for: `2,3`, `2,+2`, `5,-2`, `2,`, `,3`, `/re/,+2`."""
    if not texts:
        return list(range(len(lines)))
    chosen: set[int] = set()
    for text in texts:
        first, _, last = text.partition(",")
        low = _bound(first, lines, 1, path) if first else 1
        if last.startswith(("+", "-")) and last[1:].isdecimal():
            size = int(last[1:9])
            low, high = (low, low + size - 1) if last[0] == "+" else (max(1, low - size + 1), low)
        else:
            high = _bound(last, lines, low, path) if last else len(lines)
        if low > len(lines):
            raise GitError(f"file {path} has only {len(lines)} line{'' if len(lines) == 1 else 's'}")
        low, high = min(low, high), max(low, high)
        chosen.update(range(low - 1, min(high, len(lines))))
    return sorted(chosen)


def _bound(text: str, lines: list[bytes], start: int, path: str) -> int:
    if text.isdecimal():
        return int(text[:9])
    if len(text) > 1 and text.startswith("/") and text.endswith("/"):
        from belljar.regex import RegexError
        from belljar.regex import compile as compile_regex

        try:
            regex = compile_regex(text[1:-1], syntax="grep")
        except RegexError as error:
            raise GitError(f"-L parameter '{text[1:-1]}': {error}") from None
        for number in range(start, len(lines) + 1):
            if regex.test(lines[number - 1].removesuffix(b"\n")):
                return number
        raise GitError(f"-L parameter '{text[1:-1]}' starting at line {start}: No match")
    raise GitError(f"-L parameter '{text}' is not a line of {path}")


def _author(repo: Repository, owner: Owner) -> tuple[str, str, int, int]:
    """Name, address, time and zone."""
    if owner.sha == _NOBODY:
        seconds, offset = repo.now("NOBODY")
        return "Not Committed Yet", "not.committed.yet", seconds, offset
    commit = repo.store.commit(owner.sha)
    return (*who(commit.author), commit.author_time, commit.author_timezone)


def _table(
    repo: Repository, path: str, lines: list[bytes], owners: list[Owner], chosen: list[int], options: BlameOptions
) -> None:
    width = len(str(chosen[-1] + 1)) if chosen else 1
    digits = 40 if options.long else 8
    people = {n: _author(repo, owners[n]) for n in chosen}
    names = {n: f"<{person[1]}>" if options.email else person[0] for n, person in people.items()}
    wide = max((len(name) for name in names.values()), default=0)
    far = len(str(max((owners[n].line + 1 for n in chosen), default=1)))
    for n in chosen:
        owner = owners[n]
        first = owner.sha != _NOBODY and not repo.store.commit(owner.sha).parents
        mark = f"^{owner.sha.decode()[: digits - 1]}" if first and not options.root else owner.sha.decode()[:digits]
        if first and options.blank:
            mark = " " * digits
        head = mark
        if options.name:
            head += f" {path}"
        if options.number:
            head += f" {owner.line + 1:>{far}}"
        _, _, seconds, offset = people[n]
        if options.suppress:
            head += f" {n + 1:>{width}}) "
        else:
            when = date(seconds, offset, "raw" if options.raw_time else options.date)
            head += f" ({names[n]:<{wide}} {when} {n + 1:>{width}}) "
        repo.process.stdout.write(fsencode(head) + lines[n].rstrip(b"\n") + b"\n")


def _machine(
    repo: Repository, path: str, lines: list[bytes], owners: list[Owner], chosen: list[int], *, everything: bool
) -> None:
    told: set[bytes] = set()
    for at, n in enumerate(chosen):
        owner = owners[n]
        head = f"{owner.sha.decode()} {owner.line + 1} {n + 1}"
        before = owners[chosen[at - 1]] if at and chosen[at - 1] == n - 1 else None
        if before is None or before.sha != owner.sha or before.line != owner.line - 1:
            size = 1
            while at + size < len(chosen) and owners[chosen[at + size]] == Owner(owner.sha, owner.line + size):
                size += 1
            head += f" {size}"
        out = [head]
        if everything or owner.sha not in told:
            told.add(owner.sha)
            out += _facts(repo, owner, path)
            out.append(f"filename {path}")
        text = "\n".join(out) + "\n\t"
        repo.process.stdout.write(fsencode(text) + lines[n].rstrip(b"\n") + b"\n")


def _facts(repo: Repository, owner: Owner, path: str) -> list[str]:
    name, email, seconds, offset = _author(repo, owner)
    out: list[str] = []
    commit: Commit | None = repo.store.commit(owner.sha) if owner.sha != _NOBODY else None
    committer = who(commit.committer) if commit else (name, email)
    then = (commit.commit_time, commit.commit_timezone) if commit else (seconds, offset)
    for role, person, when in (("author", (name, email), (seconds, offset)), ("committer", committer, then)):
        clock, zone = date(when[0], when[1], "raw").split()
        out += [f"{role} {person[0]}", f"{role}-mail <{person[1]}>", f"{role}-time {clock}", f"{role}-tz {zone}"]
    if commit is None:
        return [*out, f"summary Version of {path} from {path}"]
    out.append(f"summary {subject_of(text_of(commit.message))}")
    for parent in commit.parents[:1]:
        if path in repo.tree_of(bytes(parent)):
            out.append(f"previous {parent.decode()} {path}")
    return out if commit.parents else [*out, "boundary"]
