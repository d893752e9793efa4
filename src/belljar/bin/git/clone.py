"""`git clone`: another repository, in the sandbox's files or on the web, as a new one here."""

from __future__ import annotations

from contextlib import suppress

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.init import make_repository
from belljar.bin.git.repository.config import read_config, write_config
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.remote import LocalRemote
from belljar.bin.git.repository.remotes import FETCH_SPEC, open_remote, parse_depth, user_config
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.sparse import cone_patterns
from belljar.bin.git.repository.tracking import configure_upstream
from belljar.bin.git.repository.work import check_out
from belljar.bin.git.sparse_checkout import change_sparse
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    quiet: bool = flag("-q", "--quiet", "be quiet")
    bare: bool = flag("--bare", "--mirror", "create a bare repository")
    branch: str | None = value("-b", "--branch", "checkout a branch", metavar="BRANCH")
    origin: str = value("-o", "--origin", "name of the remote", metavar="NAME", default="origin")
    depth: str | None = value("--depth", "create a shallow clone of that depth (over https)", metavar="N")
    single: bool = flag("--single-branch", "clone only one branch, HEAD or --branch")
    no_single: bool = flag("--no-single-branch", "clone all branches, with --depth too")
    no_tags: bool = flag("--no-tags", "don't clone any tags")
    recurse: str | None = value("--recurse-submodules", "clone submodules, too", metavar="PATHS", bare="")
    recursive: bool = flag("--recursive", "clone submodules, too")
    filter: str | None = value("--filter", "(everything is copied)", metavar="ARGS")
    sparse: bool = flag("--sparse", "begin with the files at the top only")
    no_checkout: bool = flag("-n", "--no-checkout", "don't create a checkout")
    local: bool = flag("-l", "--local", "(always)")
    no_hardlinks: bool = flag("--no-hardlinks", "(always)")


def clone(process: Process, args: list[str], settings: list[tuple[str, str]]) -> int:
    options, operands = read_options(Options, args)
    if not operands:
        raise GitError("You must specify a repository to clone.")
    url = operands[0]
    depth = parse_depth(options.depth)
    try:
        source = open_remote(process, url, lambda key: user_config(process, settings, key))
    except GitError as error:
        if "://" in url or "does not appear" not in error.message:
            raise
        raise GitError(f"repository '{url}' does not exist") from None
    base = url.rstrip("/").removesuffix("/.git").rpartition("/")[2].removesuffix(".git").removesuffix(".bundle")
    name = operands[1] if len(operands) > 1 else base + (".git" if options.bare else "")
    path = process.absolute(name)
    with suppress(SysError):
        if process.fs.readdir(path):
            raise GitError(f"destination path '{name}' already exists and is not an empty directory.")
    if not options.quiet:
        process.error(f"Cloning into {'bare repository ' if options.bare else ''}'{name}'...\n")
    branch = source.branch()
    wanted = options.branch or (branch or "refs/heads/master").removeprefix("refs/heads/")
    heads, tags = source.under("refs/heads/"), {} if options.no_tags else source.under("refs/tags/")
    if options.branch and f"refs/heads/{wanted}" not in heads and f"refs/tags/{wanted}" not in tags:
        raise GitError(f"Remote branch {wanted} not found in upstream {options.origin}")
    if options.single or (depth is not None and not options.no_single):
        heads = {ref: sha for ref, sha in heads.items() if ref == f"refs/heads/{wanted}"}
        tags = {ref: sha for ref, sha in tags.items() if ref == f"refs/tags/{wanted}"}
    make_repository(process, path, settings, bare=options.bare, branch=wanted, quiet=True)
    folder = path if options.bare else f"{path}/.git"
    repo = Repository(process, "" if options.bare else path, folder, settings)
    try:
        source.bring(repo, [*heads.values(), *tags.values()], depth)
    except GitError:
        process.run(["rm", "-rf", "--", path])  # a half-made clone is of no use
        raise
    finally:
        source.close()
    config = read_config(process, f"{folder}/config")
    section = (b"remote", fsencode(options.origin))
    absolute = url if "://" in url or url.startswith("/") else f"{process.fs.getcwd().rstrip('/')}/{url}"
    config.set(section, b"url", fsencode(absolute))
    if not options.bare:
        config.set(section, b"fetch", fsencode(FETCH_SPEC.format(name=options.origin)))
    write_config(process, f"{folder}/config", config)
    for ref, sha in tags.items():
        repo.refs.write(ref, sha.decode())
    if options.bare:
        for ref, sha in heads.items():
            repo.refs.write(ref, sha.decode())
        if not options.quiet and isinstance(source, LocalRemote):
            process.error("done.\n")
        return 0
    for ref, sha in heads.items():
        repo.refs.write(f"refs/remotes/{options.origin}/{ref.removeprefix('refs/heads/')}", sha.decode())
    if not heads:
        process.error("warning: You appear to have cloned an empty repository.\n")
        return 0
    if branch in heads:
        short = (branch or "").removeprefix("refs/heads/")
        repo.refs.write(f"refs/remotes/{options.origin}/HEAD", f"ref: refs/remotes/{options.origin}/{short}")
    tip = heads.get(f"refs/heads/{wanted}")
    if tip is None and f"refs/tags/{wanted}" in tags:
        tip = bytes(repo.store.commit(tags[f"refs/tags/{wanted}"]).id)
        repo.refs.write("HEAD", tip.decode())
    elif tip is None:
        return 0
    else:
        repo.refs.set("HEAD", tip, f"clone: from {absolute}", repo.signature())
        configure_upstream(repo, wanted, options.origin, wanted)
    if options.sparse:
        change_sparse(repo, cone_patterns([]), cone=True)
    if not options.no_checkout:
        check_out(repo, {}, repo.tree_of(tip))
    if not options.quiet and isinstance(source, LocalRemote):
        process.error("done.\n")
    if options.recursive or options.recurse is not None:
        return process.run(["/usr/bin/git", "-C", path, "submodule", "update", "--init", "--recursive"]).shell
    return 0
