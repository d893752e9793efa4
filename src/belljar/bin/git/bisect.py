"""`git bisect`: the commit that brought a fault, by halving what is left."""

from __future__ import annotations

import math
import re
from contextlib import suppress

from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin.git.log import log
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.history import walk
from belljar.bin.git.repository.merge_state import read_state
from belljar.bin.git.repository.merging import ancestors
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit
from belljar.bin.git.repository.text import commit_subject
from belljar.bin.git.show import show
from belljar.bin.git.switch import switch

_FILES = ("BISECT_START", "BISECT_LOG", "BISECT_NAMES", "BISECT_TERMS")


def bisect(repo: Repository, args: list[str]) -> int:
    verb, *rest = args or ["help"]
    match verb:
        case "start":
            return _start(repo, rest)
        case "reset":
            return _reset(repo, rest)
        case "good" | "old" | "bad" | "new" | "skip":
            _check_started(repo)
            kind = {"old": "good", "new": "bad"}.get(verb, verb)
            for name in rest or ["HEAD"]:
                _mark(repo, kind, find_commit(repo, name), verb)
            return _next(repo)
        case "log":
            _check_started(repo)
            repo.process.stdout.write(repo.process.read_file(f"{repo.git}/BISECT_LOG"))
            return 0
        case "run":
            _check_started(repo)
            return _run(repo, rest)
        case "next":
            return _next(repo)
        case "visualize" | "view":
            _check_started(repo)
            bad, good, _ = _sides(repo)
            shown = [(bad or b"HEAD").decode(), *(f"^{sha.decode()}" for sha in good)]
            return log(repo, [*rest, *shown])
    raise GitError("usage: git bisect [start|bad|good|new|old|skip|next|reset|log|run]", 129, "")


def _check_started(repo: Repository) -> None:
    if read_state(repo, "BISECT_START") is None:
        raise GitError('You need to start by "git bisect start"\n', 1, "")


def _append(repo: Repository, line: str) -> None:
    before = read_state(repo, "BISECT_LOG")
    text = f"{before}\n{line}\n" if before else f"{line}\n"
    repo.process.write_file(f"{repo.git}/BISECT_LOG", fsencode(text))


def _start(repo: Repository, args: list[str]) -> int:
    names = [arg for arg in args if not arg.startswith("-")]
    shas = [find_commit(repo, name) for name in names]
    if read_state(repo, "BISECT_START") is None:
        branch = repo.refs.branch()
        home = branch.removeprefix("refs/heads/") if branch else (repo.head() or b"").decode()
        repo.process.write_file(f"{repo.git}/BISECT_START", fsencode(f"{home}\n"))
    for ref in repo.refs.under("refs/bisect/"):
        repo.refs.delete(ref)
    repo.process.write_file(f"{repo.git}/BISECT_LOG", b"")
    _append(repo, "git bisect start" + "".join(f" '{name}'" for name in names))
    for number, sha in enumerate(shas):
        _mark(repo, "good" if number else "bad", sha, "", log=False)
    return _next(repo)


def _reset(repo: Repository, args: list[str]) -> int:
    home = read_state(repo, "BISECT_START")
    if home is None:
        repo.process.print("We are not bisecting.")
        return 0
    for ref in repo.refs.under("refs/bisect/"):
        repo.refs.delete(ref)
    for name in _FILES:
        with suppress(SysError):
            repo.process.fs.unlink(f"{repo.git}/{name}")
    target = args[0] if args else home
    is_branch = repo.refs.get(f"refs/heads/{target}") is not None
    return switch(repo, [target] if is_branch else ["--detach", target])


def _mark(repo: Repository, kind: str, sha: bytes, verb: str, *, log: bool = True) -> None:
    ref = "refs/bisect/bad" if kind == "bad" else f"refs/bisect/{kind}-{sha.decode()}"
    repo.refs.write(ref, sha.decode())
    subject = commit_subject(repo, sha)
    _append(repo, f"# {kind}: [{sha.decode()}] {subject}")
    if log:
        _append(repo, f"git bisect {verb} {sha.decode()}")


def _sides(repo: Repository) -> tuple[bytes | None, list[bytes], set[bytes]]:
    refs = repo.refs.under("refs/bisect/")
    good = [sha for name, sha in refs.items() if name.startswith("refs/bisect/good-")]
    skipped = {sha for name, sha in refs.items() if name.startswith("refs/bisect/skip-")}
    return refs.get("refs/bisect/bad"), good, skipped


def _next(repo: Repository) -> int:
    """Check out the commit that tells most, or say which one it was."""
    bad, good, skipped = _sides(repo)
    print_line = repo.process.print
    if bad is None or not good:
        if bad is not None:
            waiting = "status: waiting for good commit(s), bad commit known"
        elif good:
            waiting = f"status: waiting for bad commit, {len(good)} good commit{'s' if len(good) > 1 else ''} known"
        else:
            waiting = "status: waiting for both good and bad commits"
        print_line(waiting)
        _append(repo, f"# {waiting}")
        return 0
    left = list(walk(repo, [bad], good))
    if not left:
        raise GitError(f"{bad.decode()} was both good and bad", 1, "")
    if len(left) == 1:
        _append(repo, f"# first bad commit: [{bad.decode()}] {commit_subject(repo, bad)}")
        print_line(f"{bad.decode()} is the first bad commit")
        show(repo, ["--stat", bad.decode()])
        return 0
    known = set(left)
    weights = {sha: len(ancestors(repo, sha) & known) for sha in left}
    ranked = sorted((sha for sha in left if sha != bad), key=lambda sha: -min(weights[sha], len(left) - weights[sha]))
    usable = [sha for sha in ranked if sha not in skipped]
    if not usable:
        print_line("There are only 'skip'ped commits left to test.\nThe first bad commit could be any of:")
        for sha in left:
            print_line(sha.decode())
        print_line("We cannot bisect more!")
        return 2
    chosen = usable[0]
    more = len(left) - weights[chosen] - 1
    steps = _steps(len(left))
    print_line(
        f"Bisecting: {more} revision{'' if more == 1 else 's'} left to test after this "
        f"(roughly {steps} step{'' if steps == 1 else 's'})"
    )
    switch(repo, ["-q", "--detach", chosen.decode()])
    print_line(f"[{chosen.decode()}] {commit_subject(repo, chosen)}")
    return 0


def _steps(count: int) -> int:
    """As git counts them."""
    if count < 3:
        return 0
    n = int(math.log2(count))
    e = 1 << n
    return n if e < 3 * (count - e) else n - 1


def _run(repo: Repository, command: list[str]) -> int:
    if not command:
        raise GitError("bisect run failed: no command provided.", 1, "error: ")
    bad, good, _ = _sides(repo)
    if bad is None or not good:
        raise GitError("bisect run needs a good and a bad commit first", 1, "error: ")
    words = " ".join("'" + re.sub(r"(['!])", r"'\\\1'", word) + "'" for word in command)
    while True:
        repo.process.print(f"running  {words}")
        repo.process.stdout.flush()
        status = repo.process.run(command).shell
        if status >= 128:
            raise GitError(f"bisect run failed: exit code {status} from {words} is < 0 or >= 128", status, "error: ")
        head = repo.head() or b""
        verb = "good" if status == 0 else "skip" if status == 125 else "bad"
        _mark(repo, verb, head, verb)
        outcome = _next(repo)
        bad, good, _ = _sides(repo)
        if outcome:
            return outcome
        if bad is not None and len(list(walk(repo, [bad], good))) <= 1:
            repo.process.print("bisect found first bad commit", end="")
            return 0
