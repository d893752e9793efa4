"""`git name-rev`: a commit as steps back from a ref."""

from __future__ import annotations

from dulwich.objects import Tag

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import resolve


@dataclass(frozen=True, slots=True)
class Options:
    tags: bool = flag("--tags", "only tags")
    name_only: bool = flag("--name-only", "only the name")
    no_undefined: bool = flag("--no-undefined", "fail if there is no name")
    always: bool = flag("--always", "the commit's own name if there is no other")


def name_rev(repo: Repository, args: list[str]) -> int:
    """`git name-rev`: a commit as steps back from a ref."""

    options, operands = read_options(Options, args)
    names: dict[bytes, tuple[tuple[int, int, int], str]] = {}
    for ref, sha in repo.refs.under("refs/tags/" if options.tags else "refs/").items():
        try:
            tip = bytes(repo.store.commit(sha).id)
        except KeyError:
            continue
        tag = ref.startswith("refs/tags/")
        if options.name_only and options.tags:
            label = ref.removeprefix("refs/tags/")
        else:
            label = ref.removeprefix("refs/heads/") if not tag else ref.removeprefix("refs/")
        annotated = isinstance(repo.store.get(sha), Tag)
        stack = [(tip, label + ("^0" if annotated else ""), label, 0, 0)]
        while stack:
            commit, shown, base, steps, merges = stack.pop()
            repo.process.budget.charge()
            score = (0 if tag else 1, merges, steps)
            if commit in names and names[commit][0] <= score:
                continue
            names[commit] = (score, shown)
            for number, parent in enumerate(repo.store.commit(commit).parents):
                if number == 0:
                    stack.append((bytes(parent), f"{base}~{steps + 1}", base, steps + 1, merges))
                else:
                    side = f"{shown.removesuffix('^0')}^{number + 1}"
                    stack.append((bytes(parent), side, side, 0, merges + 1))
    for name in operands:
        try:
            wanted = bytes(repo.store.commit(resolve(repo, name)).id)
        except KeyError:
            repo.process.error(f"Could not get sha1 for {name}. Skipping.\n")
            continue
        found = names[wanted][1] if wanted in names else wanted[:7].decode() if options.always else "undefined"
        if found == "undefined" and options.no_undefined:
            raise GitError(f"cannot describe '{wanted.decode()}'")
        repo.process.print(found if options.name_only else f"{name} {found}")
    return 0
