"""Paths on a command line: which files of a tree they mean."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.store import Flat
from belljar.libc.pattern import compile_pattern


def folders_above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def match_paths(repo: Repository, specs: list[str], names: list[str]) -> list[str]:
    """The names that pathspecs mean: a file, all below a folder, or a pattern."""
    parsed = [parse_spec(repo, spec) for spec in specs]
    wanted = [spec for spec in parsed if not spec.exclude]
    unwanted = [spec for spec in parsed if spec.exclude]
    if unwanted and not wanted:
        wanted = [Spec("")]
    found = []
    for name in names:
        repo.process.budget.charge(len(parsed) + 1)
        if any(spec.matches(name) for spec in wanted) and not any(spec.matches(name) for spec in unwanted):
            found.append(name)
    return found


@dataclass(frozen=True, slots=True)
class Spec:
    """A pathspec: a path or pattern from the top of the work tree, with the magic words before it."""

    path: str
    exclude: bool = False
    icase: bool = False
    glob: bool = False
    """`*` does not match a slash, `**` does."""
    literal: bool = False

    def matches(self, name: str) -> bool:
        path = self.path
        if self.icase:
            path, name = path.lower(), name.lower()
        if path in ("", name) or name.startswith(path.rstrip("/") + "/"):
            return True
        if self.literal or not any(char in path for char in "*?["):
            return False
        if not self.glob:
            return compile_pattern(path).matches(name)
        return _matches_parts(path.split("/"), name.split("/"))


def _matches_parts(pattern: list[str], names: list[str]) -> bool:
    """A pattern in which `**` stands for any number of folders."""
    reach = {0}
    for part in pattern:
        if part == "**":
            reach = set(range(min(reach, default=len(names)), len(names) + 1))
        else:
            regex = compile_pattern(part)
            reach = {at + 1 for at in reach if at < len(names) and regex.matches(names[at])}
        if not reach:
            return False
    return max(reach) == len(names) or bool(reach - {0})


_MAGIC_SIGNS = {"/": "top", "!": "exclude", "^": "exclude"}


def parse_spec(repo: Repository, text: str) -> Spec:
    """`:!path`, `:(exclude,glob)path` and the like; a plain path has no magic."""
    words: set[str] = set()
    rest = text
    if text.startswith(":("):
        listed, _, rest = text[2:].partition(")")
        words = {word.strip() for word in listed.split(",") if word.strip()}
        if unknown := sorted(words - {"top", "exclude", "icase", "glob", "literal"}):
            raise GitError(f"Invalid pathspec magic '{unknown[0]}' in '{text}'")
    elif text.startswith(":"):
        rest = text[1:]
        while rest[:1] in _MAGIC_SIGNS and rest:
            words.add(_MAGIC_SIGNS[rest[0]])
            rest = rest[1:]
        rest = rest.removeprefix(":")
    path = rest if "top" in words or not rest else relative(repo, rest)
    return Spec(path, "exclude" in words, "icase" in words, "glob" in words, "literal" in words)


def relative(repo: Repository, spec: str) -> str:
    """A path as the index has it: from the top of the work tree."""
    if spec.startswith(":"):
        return parse_spec(repo, spec).path
    full = repo.process.absolute(spec)
    top = repo.work.rstrip("/")
    if full == (top or "/"):
        return ""
    if not full.startswith(top + "/"):
        raise GitError(f"{spec}: '{spec}' is outside repository at '{repo.work}'")
    return full[len(top) + 1 :]


def from_here(repo: Repository, path: str) -> str:
    """A path of the index as seen from the working directory, for people."""
    top, here = repo.work.rstrip("/"), repo.process.fs.getcwd()
    if here == top or not here.startswith(top + "/"):
        return path
    parts, above = path.split("/"), here[len(top) + 1 :].split("/")
    same = 0
    while same < min(len(parts) - 1, len(above)) and parts[same] == above[same]:
        same += 1
    return "../" * (len(above) - same) + "/".join(parts[same:]) or "./"


def restrict(repo: Repository, paths: list[str], old: Flat, new: Flat) -> tuple[Flat, Flat]:
    """Two trees with only the files that the paths mean; as they are if there are none."""
    if not paths:
        return old, new
    names = set(match_paths(repo, paths, list(old.keys() | new.keys())))
    return (
        {path: entry for path, entry in old.items() if path in names},
        {path: entry for path, entry in new.items() if path in names},
    )
