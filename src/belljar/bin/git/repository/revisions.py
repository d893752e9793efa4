"""The meaning of revision names: refs, abbreviations, logs, and steps from there to parents, trees and files."""

from __future__ import annotations

import re

from dulwich.index import ConflictedIndexEntry, IndexEntry
from dulwich.objects import Commit, Tag, Tree

from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import relative
from belljar.bin.git.repository.repo import Repository
from belljar.regex import RegexError
from belljar.regex import compile as compile_regex


def resolve(repo: Repository, name: str) -> bytes:
    """The object a revision means. Raises KeyError."""
    match = re.fullmatch(r"(.+?)((?:\^\{(?:[a-z]*|/[^}]*)\}|\^\d*|~\d*)*)", name, re.S)
    if match is None:
        raise KeyError(name)
    base, steps = match[1], match[2]
    if ":" in base and not base.startswith(":/"):
        revision, _, path = base.partition(":")
        if not revision:
            stage = re.fullmatch(r"([0-3]):(.*)", path, re.S)
            number, path = (int(stage[1]), stage[2]) if stage else (0, path)
            entry = repo.index.get(relative(repo, path) if path.startswith(("./", "../")) else path)
            if isinstance(entry, ConflictedIndexEntry) and number:
                entry = (entry.ancestor, entry.this, entry.other)[number - 1]
            if not isinstance(entry, IndexEntry):
                raise KeyError(name)
            return bytes(entry.sha)
        return _path_in(repo, revision, path)
    sha = _base(repo, base)
    for step in re.findall(r"\^\{(?:[a-z]*|/[^}]*)\}|\^\d*|~\d*", steps):
        sha = _step(repo, sha, step)
    return sha


def _base(repo: Repository, name: str) -> bytes:
    if name.startswith(":/"):
        return _by_message(repo, name[2:], [*repo.refs.under("refs/").values(), *filter(None, [repo.head()])])
    if name == "@":
        name = "HEAD"
    if name == "-":
        return resolve(repo, "@{-1}")
    if match := re.fullmatch(r"(.*)@\{(-?\d+|u|upstream)\}", name):
        return _logged(repo, match[1], match[2])
    for prefix in ("", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"):
        if prefix or name.startswith("refs/") or re.fullmatch(r"[A-Z_]+", name):
            found = repo.refs.get(prefix + name)
            if found is not None:
                return found
    found = repo.refs.get(f"refs/remotes/{name}/HEAD")
    if found is not None:
        return found
    if re.fullmatch(r"[0-9a-f]{4,40}", name):
        return _abbreviated(repo, name)
    raise KeyError(name)


def _by_message(repo: Repository, pattern: str, starts: list[bytes]) -> bytes:
    """The newest commit whose message matches."""
    try:
        regex = compile_regex(pattern, syntax="grep")
    except RegexError as error:
        raise GitError(f"Invalid search pattern: {pattern}: {error}") from None
    queue = {bytes(repo.store.commit(sha).id) for sha in starts}
    seen = set(queue)
    while queue:
        repo.process.budget.charge()
        sha = max(queue, key=lambda each: repo.store.commit(each).commit_time)
        queue.discard(sha)
        commit = repo.store.commit(sha)
        if any(regex.test(line) for line in commit.message.decode("utf-8", "surrogateescape").split("\n")):
            return sha
        fresh = {bytes(parent) for parent in commit.parents} - seen
        seen |= fresh
        queue |= fresh
    raise KeyError(pattern)


def _logged(repo: Repository, name: str, number: str) -> bytes:
    if number in ("u", "upstream"):
        branch = (name if name not in ("", "HEAD") else repo.refs.branch() or "").removeprefix("refs/heads/")
        if (upstream := repo.upstream(branch)) is None:
            raise GitError(
                f"no upstream configured for branch '{branch}'" if branch else "HEAD does not point to a branch"
            )
        sha = repo.refs.get(upstream)
        if sha is None:
            raise KeyError(name)
        return sha
    if number.startswith("-"):
        previous = previous_branch(repo, int(number[1:10]))
        if previous is None:
            raise KeyError(name)
        return resolve(repo, previous)
    log = name or repo.refs.branch() or "HEAD"
    if log not in ("HEAD",) and not log.startswith("refs/"):
        log = "refs/stash" if log == "stash" else f"refs/heads/{log}"
    entries = repo.refs.read_log(log)
    back = int(number[:18])
    if back >= len(entries):
        raise KeyError(name)
    return entries[-1 - back][1]


def previous_branch(repo: Repository, count: int = 1) -> str | None:
    for _, _, _, message in reversed(repo.refs.read_log("HEAD")):
        match = re.fullmatch(r"checkout: moving from (\S+) to (\S+)", message)
        if match:
            count -= 1
            if count == 0:
                return match[1]
    return None


def detached_text(repo: Repository) -> str:
    """Return how `status` and `branch` say where a HEAD without a branch is."""
    head = repo.head() or b""
    for _, new, _, message in reversed(repo.refs.read_log("HEAD")):
        if match := re.fullmatch(r"checkout: moving from (\S+) to (\S+)", message):
            name = "HEAD" if match[2] == "@" else full_name(repo, match[2]) if match[2] != "HEAD" else ""
            at = repo.refs.get(name) if name and name != "HEAD" else new
            if not name or at is None or bytes(repo.store.commit(at).id) != new:
                name = new[:7].decode()
            name = name.removeprefix("refs/tags/").removeprefix("refs/remotes/")
            return f"HEAD detached {'at' if head == new else 'from'} {name}"
    return f"HEAD detached at {head[:7].decode()}"


def _abbreviated(repo: Repository, prefix: str) -> bytes:
    if len(prefix) == 40:
        if fsencode(prefix) not in repo.store:
            raise KeyError(prefix)
        return fsencode(prefix)
    found: set[bytes] = set()
    try:
        for entry in repo.process.fs.readdir(f"{repo.store.directory}/{prefix[:2]}"):
            if entry.name.startswith(prefix[2:]):
                found.add(fsencode(prefix[:2] + entry.name))
    except SysError:
        found.clear()
    for pack in repo.store.packs():
        found |= {bytes(sha) for sha in pack if sha.startswith(fsencode(prefix))}
    if len(found) != 1:
        raise KeyError(prefix)
    return found.pop()


def _step(repo: Repository, sha: bytes, step: str) -> bytes:
    item = repo.store.get(sha)
    if step.startswith("^{/"):
        return _by_message(repo, step[3:-1], [sha])
    if step.startswith("^{"):
        kind = step[2:-1]
        while isinstance(item, Tag):
            item = repo.store.get(item.object[1])
        if kind == "tree" and isinstance(item, Commit):
            return bytes(item.tree)
        return bytes(item.id)
    commit = repo.store.commit(sha)
    number = int(step[1:10] or 1)
    if step[0] == "^":
        if number == 0:
            return bytes(commit.id)
        if number > len(commit.parents):
            raise KeyError(step)
        return bytes(commit.parents[number - 1])
    for _ in range(number):
        if not commit.parents:
            raise KeyError(step)
        commit = repo.store.commit(commit.parents[0])
    return bytes(commit.id)


def _path_in(repo: Repository, revision: str, path: str) -> bytes:
    item = repo.store.get(resolve(repo, revision))
    sha = bytes(item.id) if isinstance(item, Tree) else bytes(repo.store.commit(bytes(item.id)).tree)
    if path.startswith(("./", "../")):
        path = relative(repo, path)
    for part in [part for part in path.split("/") if part and part != "."]:
        tree = repo.store.get(sha)
        if not isinstance(tree, Tree):
            raise KeyError(path)
        sha = bytes(tree[fsencode(part)][1])
    return sha


def find_object(repo: Repository, name: str) -> bytes:
    """Any object by name; or git's complaint."""
    try:
        return resolve(repo, name)
    except KeyError:
        find_commit(repo, name)
        raise


def find_commit(repo: Repository, name: str) -> bytes:
    """A commit by name; or git's complaint."""
    try:
        return bytes(repo.store.commit(resolve(repo, name)).id)
    except KeyError:
        revision, colon, path = name.partition(":")
        if colon and revision and path:
            find_commit(repo, revision)
            raise GitError(f"path '{path}' does not exist in '{revision}'") from None
        raise GitError(
            f"ambiguous argument '{name}': unknown revision or path not in the working tree.\n"
            "Use '--' to separate paths from revisions, like this:\n"
            "'git <command> [<revision>...] -- [<file>...]'"
        ) from None


def full_name(repo: Repository, name: str) -> str:
    """The ref that a name stands for; nothing if it is none."""
    if name in ("HEAD", "@"):
        return repo.refs.branch() or "HEAD"
    if name.endswith(("@{u}", "@{upstream}")):
        branch = name.rpartition("@")[0] or repo.refs.branch() or ""
        return repo.upstream(branch.removeprefix("refs/heads/")) or ""
    for prefix in ("", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"):
        if (prefix or name.startswith("refs/")) and repo.refs.get(prefix + name) is not None:
            return prefix + name
    return ""
