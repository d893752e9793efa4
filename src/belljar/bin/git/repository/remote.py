"""The other side of fetch and push: a repository in the sandbox's files; and what every kind of remote can do."""

from __future__ import annotations

from abc import ABC, abstractmethod

from dulwich.objects import Commit, Tag, Tree

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.hooks import run_server_hook
from belljar.bin.git.repository.refs import ZERO
from belljar.bin.git.repository.repo import Repository, find_repository
from belljar.bin.git.repository.text import text_of
from belljar.kernel.process import Process

NOTHING = b"0" * 40


@dataclass(frozen=True, slots=True)
class Update:
    """A ref of the other side that is to change; `new` None deletes it."""

    ref: str
    old: bytes | None
    new: bytes | None


class Remote(ABC):
    """Another repository."""

    where: str
    """Its name in messages and configurations."""

    @abstractmethod
    def refs(self) -> dict[str, bytes]:
        """Its branches and tags by their full names."""

    @abstractmethod
    def branch(self) -> str | None:
        """The branch its HEAD is at."""

    @abstractmethod
    def bring(self, repo: Repository, tips: list[bytes], depth: int | None = None) -> None:
        """Copy everything that tips reach and `repo` does not have."""

    @abstractmethod
    def send(self, repo: Repository, updates: list[Update]) -> dict[str, str]:
        """Copy what the updates need, then make them; the refs that were refused, with the reasons."""

    def refusal(self, update: Update) -> str:
        """Why an update would be refused, if that is known before it is tried."""
        return ""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is open."""

    def peeled(self, sha: bytes) -> bytes | None:
        """Return the target of a tag object, if that is known without fetching it."""
        return None

    def under(self, prefix: str) -> dict[str, bytes]:
        return {ref: sha for ref, sha in self.refs().items() if ref.startswith(prefix)}


class LocalRemote(Remote):
    """A repository at a path."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self.where = repository.work or repository.git

    def refs(self) -> dict[str, bytes]:
        return {**self._repository.refs.under("refs/heads/"), **self._repository.refs.under("refs/tags/")}

    def branch(self) -> str | None:
        return self._repository.refs.branch()

    def peeled(self, sha: bytes) -> bytes | None:
        item = self._repository.store.get(sha)
        return bytes(item.object[1]) if isinstance(item, Tag) else None

    def bring(self, repo: Repository, tips: list[bytes], depth: int | None = None) -> None:
        copy_objects(self._repository, repo, tips)

    def refusal(self, update: Update) -> str:
        checked_out = self._repository.work and self._repository.refs.branch() == update.ref
        return "branch is currently checked out" if checked_out and update.old and update.new else ""

    def send(self, repo: Repository, updates: list[Update]) -> dict[str, str]:
        copy_objects(repo, self._repository, [update.new for update in updates if update.new is not None])
        if self._hook("pre-receive", given=_lines(updates)):
            return dict.fromkeys([update.ref for update in updates], "pre-receive hook declined")
        refused: dict[str, str] = {}
        for update in updates:
            old, new = (update.old or ZERO).decode(), (update.new or ZERO).decode()
            if self._hook("update", update.ref, old, new):
                refused[update.ref] = "hook declined"
                self._say(f"error: hook declined to update {update.ref}\n".encode())
            elif update.new is None:
                self._repository.refs.delete(update.ref)
            else:
                self._repository.refs.write(update.ref, new)
        if made := [update for update in updates if update.ref not in refused]:
            self._hook("post-receive", given=_lines(made))
            self._hook("post-update", *(update.ref for update in made))
        return refused

    def _hook(self, name: str, *args: str, given: bytes = b"") -> int:
        status, said = run_server_hook(self._repository, name, *args, given=given)
        self._say(said)
        return status or 0

    def _say(self, data: bytes) -> None:
        """Print the other side's output, prefixed with `remote:`."""
        process = self._repository.process
        for line in text_of(data).splitlines(keepends=True):
            process.error(f"remote: {line[:-1]}        \n" if line.endswith("\n") else f"remote: {line}\n")

    def close(self) -> None:
        self._repository.close()


def _lines(updates: list[Update]) -> bytes:
    """The updates as hooks read them."""
    rows = [f"{text_of(update.old or ZERO)} {text_of(update.new or ZERO)} {update.ref}\n" for update in updates]
    return fsencode("".join(rows))


def open_local(process: Process, url: str) -> LocalRemote:
    """The repository at a path or file:// URL."""
    full = process.absolute(url.removeprefix("file://"))
    for candidate in (full, full + ".git"):
        if not process.fs.exists(candidate):
            continue
        found = find_repository(process, candidate)
        if found is not None and found[1] in (candidate, f"{candidate}/.git"):
            return LocalRemote(Repository(process, *found))
    raise GitError(
        f"'{url}' does not appear to be a git repository\nfatal: Could not read from remote repository.\n\n"
        "Please make sure you have the correct access rights\nand the repository exists."
    )


def missing_objects(source: Repository, tips: list[bytes], known: set[bytes], target: Repository | None) -> list[bytes]:
    """Return the objects reachable from the tips that the other side lacks."""
    stack = list(tips)
    seen: set[bytes] = set()
    found: list[bytes] = []
    while stack:
        sha = stack.pop()
        if sha in seen or sha in known or (target is not None and sha in target.store):
            continue
        seen.add(sha)
        source.process.budget.charge(4)
        source.process.budget.charge_size(len(seen) * 100)
        item = source.store.get(sha)
        if isinstance(item, Commit):
            stack += [bytes(item.tree), *[bytes(parent) for parent in item.parents]]
        elif isinstance(item, Tag):
            stack.append(bytes(item.object[1]))
        elif isinstance(item, Tree):
            stack += [bytes(e.sha) for e in item.iteritems() if e.mode != 0o160000]
        found.append(sha)
    return found


def copy_objects(source: Repository, target: Repository, tips: list[bytes]) -> None:
    """Everything that tips reach and the target does not have; a commit after all it needs."""
    for sha in reversed(missing_objects(source, tips, set(), target)):
        target.store.add(source.store.get(sha))
