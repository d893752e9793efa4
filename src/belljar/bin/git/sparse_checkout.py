"""`git sparse-checkout`: a work tree with a part of the tracked files."""

from __future__ import annotations

from dulwich.index import IndexEntry

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import choice, flag
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.config import read_config, write_config
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import relative
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.sparse import Sparse, cone_folders, cone_patterns, read_patterns
from belljar.bin.git.repository.text import input_lines
from belljar.bin.git.repository.work import check_out_entry, differs, remove_file, stat_of

_USAGE = "usage: git sparse-checkout (init | list | set | add | reapply | disable) [<options>]"


@dataclass(frozen=True, slots=True)
class Options:
    cone: bool | None = choice({"--cone": True, "--no-cone": False}, "folders, or patterns of any kind")
    stdin: bool = flag("--stdin", "read folders or patterns from standard input")
    accepted: bool = flag("--sparse-index", "--no-sparse-index", "--skip-checks", "(accepted)")


def sparse_checkout(repo: Repository, args: list[str]) -> int:
    verb, rest = (args[0], args[1:]) if args else ("", [])
    options, operands = read_options(Options, rest)
    given = [line for line in input_lines(repo) if line] if options.stdin else operands
    cone = repo.config_bool("core.sparseCheckoutCone", True) if options.cone is None else options.cone
    enabled = repo.config_bool("core.sparseCheckout")
    match verb:
        case "init":
            return change_sparse(repo, cone_patterns([]) if cone else ["/*", "!/*/"], cone=cone)
        case "set":
            return change_sparse(repo, _patterns(repo, given, cone=cone), cone=cone)
        case "add":
            if not enabled:
                raise GitError("no sparse-checkout to add to")
            known = read_patterns(repo)
            patterns = cone_patterns([*cone_folders(known), *_folders(repo, given)]) if cone else [*known, *given]
            return change_sparse(repo, patterns, cone=cone)
        case "list":
            if not enabled:
                raise GitError("this worktree is not sparse")
            for line in cone_folders(read_patterns(repo)) if cone else read_patterns(repo):
                repo.process.print(line)
            return 0
        case "reapply":
            if not enabled:
                raise GitError("must be in a sparse-checkout to reapply sparsity patterns")
            return _apply(repo)
        case "disable":
            return change_sparse(repo, ["/*"], cone=cone, enabled=False)
    raise GitError(
        f"{'need a subcommand' if not verb else f'unknown subcommand: `{verb}{chr(39)}'}\n{_USAGE}\n", 129, "error: "
    )


def _folders(repo: Repository, given: list[str]) -> list[str]:
    return [relative(repo, folder.lstrip("/")) for folder in given]


def _patterns(repo: Repository, given: list[str], *, cone: bool) -> list[str]:
    return cone_patterns(_folders(repo, given)) if cone else given


def change_sparse(repo: Repository, patterns: list[str], *, cone: bool, enabled: bool = True) -> int:
    """Write the patterns and make the work tree follow them."""
    repo.process.write_file(f"{repo.git}/info/sparse-checkout", fsencode("".join(f"{line}\n" for line in patterns)))
    path = f"{repo.common}/config"
    config = read_config(repo.process, path)
    config.set((b"core",), b"sparseCheckout", b"true" if enabled else b"false")
    config.set((b"core",), b"sparseCheckoutCone", b"true" if cone else b"false")
    write_config(repo.process, path, config)
    return _apply(repo)


def _apply(repo: Repository) -> int:
    sparse = Sparse(repo)
    kept: list[str] = []
    for name, entry in list(repo.index.items()):
        repo.process.budget.charge(2)
        if not isinstance(entry, IndexEntry) or sparse.wants(name) is not entry.skip_worktree:
            continue
        stat = stat_of(repo, name)
        if entry.skip_worktree:
            entry.set_skip_worktree(False)
            repo.index[name] = check_out_entry(repo, name, entry.mode, bytes(entry.sha), sparse)
        elif stat is not None and not stat.is_dir and differs(repo, name, entry, stat):
            kept.append(name)
        else:
            remove_file(repo, name)
            entry.set_skip_worktree(True)
    repo.write_index()
    if kept:
        listed = "".join(f"\t{name}\n" for name in kept)
        repo.process.error(
            "warning: The following paths are not up to date and were left despite sparse patterns:\n"
            f"{listed}\nAfter fixing the above paths, you may want to run `git sparse-checkout reapply`.\n"
        )
    return 0
