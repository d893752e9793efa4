"""`git submodule`: other repositories at fixed commits, inside the work tree."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsdecode, fsencode, normalise
from belljar.bin.git.repository.config import config_values, read_config, write_config
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import match_paths
from belljar.bin.git.repository.remotes import remotes
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.store import SUBMODULE
from belljar.bin.git.repository.work import stage, stat_of, submodule_head


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    path: str
    url: str


def submodule(repo: Repository, args: list[str]) -> int:
    words = [arg for arg in args if not arg.startswith("-")]
    flags = {arg for arg in args if arg.startswith("-")}
    verb, rest = (words[0], words[1:]) if words else ("status", [])
    match verb:
        case "status":
            return _status(repo, rest)
        case "init":
            for module in _chosen(repo, rest):
                _register(repo, module)
            return 0
        case "update":
            return _update(repo, rest, flags)
        case "add":
            return _add(repo, rest)
        case "foreach":
            return _foreach(repo, rest, quiet="--quiet" in flags or "-q" in flags)
        case "sync" | "absorbgitdirs":
            return 0
    raise GitError(f"git submodule {verb} is not there: status, init, update, add and foreach are", 1, "error: ")


def _modules(repo: Repository) -> list[Module]:
    config = read_config(repo.process, repo.path(".gitmodules"))
    found: list[Module] = []
    for section in config.sections():
        if section[0] == b"submodule" and len(section) > 1:
            name = fsdecode(section[1])
            path, url = (config_values(config, f"submodule.{name}.{key}") for key in ("path", "url"))
            if path and url:
                found.append(Module(name, path[0], url[0]))
    return sorted(found, key=lambda module: module.path)


def _links(repo: Repository) -> dict[str, bytes]:
    """The commits that the index has in place of files."""
    return {path: sha for path, (mode, sha) in repo.staged().items() if mode == SUBMODULE}


def _chosen(repo: Repository, specs: list[str]) -> list[Module]:
    links = _links(repo)
    modules = [module for module in _modules(repo) if module.path in links]
    if not specs:
        return modules
    names = set(match_paths(repo, specs, [module.path for module in modules]))
    if not names:
        raise GitError(f"pathspec '{specs[0]}' did not match any file(s) known to git", 1, "error: ")
    return [module for module in modules if module.path in names]


def _status(repo: Repository, specs: list[str]) -> int:
    links = _links(repo)
    known = {module.path for module in _modules(repo)}
    for path, sha in links.items():
        if specs and not match_paths(repo, specs, [path]):
            continue
        if path not in known:
            raise GitError(f"no submodule mapping found in .gitmodules for path '{path}'")
        head = submodule_head(repo, path)
        mark = "-" if head is None else " " if head == sha else "+"
        shown = (head or sha).decode()
        repo.process.print(f"{mark}{shown} {path}" + (f" ({shown[:7]})" if head is not None else ""))
    return 0


def _absolute(repo: Repository, url: str) -> str:
    """A URL of .gitmodules; one that begins with dots is relative to where this repository is from."""
    if not url.startswith(("./", "../")):
        return url
    base = remotes(repo).get("origin", repo.work).rstrip("/")
    while url.startswith(("./", "../")):
        if url.startswith("../"):
            base = base.rpartition("/")[0]
        url = url.partition("/")[2]
    joined = f"{base}/{url}"
    return joined if "://" in joined or not joined.startswith("/") else normalise(joined)


def _register(repo: Repository, module: Module) -> str:
    """Note a submodule's URL in the configuration; the URL."""
    path = f"{repo.common}/config"
    config = read_config(repo.process, path)
    known = config_values(config, f"submodule.{module.name}.url")
    if known:
        return known[0]
    url = _absolute(repo, module.url)
    config.set((b"submodule", fsencode(module.name)), b"active", b"true")
    config.set((b"submodule", fsencode(module.name)), b"url", fsencode(url))
    write_config(repo.process, path, config)
    repo.process.error(f"Submodule '{module.name}' ({url}) registered for path '{module.path}'\n")
    return url


def _git(repo: Repository, args: list[str]) -> int:
    return repo.process.run(["/usr/bin/git", *args]).shell


def _update(repo: Repository, specs: list[str], flags: set[str]) -> int:
    links = _links(repo)
    config = read_config(repo.process, f"{repo.common}/config")
    for module in _chosen(repo, specs):
        known = config_values(config, f"submodule.{module.name}.url")
        if not known and "--init" not in flags:
            continue
        url, folder, sha = _register(repo, module), repo.path(module.path), links[module.path]
        if submodule_head(repo, module.path) is None:
            repo.process.error(f"Cloning into '{folder}'...\n")
            if _git(repo, ["clone", "-q", "--no-checkout", url, folder]):
                raise GitError(f"clone of '{url}' into submodule path '{folder}' failed", 1)
        elif "--remote" in flags:
            _git(repo, ["-C", folder, "fetch", "-q"])
        wanted = "origin/HEAD" if "--remote" in flags else sha.decode()
        if submodule_head(repo, module.path) != sha or "--remote" in flags or "--init" in flags:
            force = ["-f"] if "--force" in flags or "-f" in flags or "--init" in flags else []
            if _git(repo, ["-C", folder, "checkout", "-q", *force, "--detach", wanted]):
                raise GitError(f"Unable to checkout '{wanted}' in submodule path '{module.path}'", 1)
            if not flags & {"-q", "--quiet"}:
                repo.process.print(f"Submodule path '{module.path}': checked out '{wanted}'")
        if "--recursive" in flags and stat_of(repo, f"{module.path}/.gitmodules") is not None:
            _git(repo, ["-C", folder, "submodule", "update", "--init", "--recursive"])
    return 0


def _add(repo: Repository, words: list[str]) -> int:
    if not words:
        raise GitError("usage: git submodule add [<options>] <repository> [<path>]", 129, "")
    path = (words[1] if len(words) > 1 else words[0].rstrip("/").rpartition("/")[2].removesuffix(".git")).rstrip("/")
    if path in repo.index:
        raise GitError(f"'{path}' already exists in the index")
    url, folder = _absolute(repo, words[0]), repo.path(path)
    repo.process.error(f"Cloning into '{folder}'...\n")
    if _git(repo, ["clone", "-q", url, folder]):
        raise GitError(f"clone of '{url}' into submodule path '{folder}' failed")
    repo.process.error("done.\n")
    file = repo.path(".gitmodules")
    config = read_config(repo.process, file)
    config.set((b"submodule", fsencode(path)), b"path", fsencode(path))
    config.set((b"submodule", fsencode(path)), b"url", fsencode(words[0]))
    write_config(repo.process, file, config)
    own = read_config(repo.process, f"{repo.common}/config")
    own.set((b"submodule", fsencode(path)), b"url", fsencode(url))
    own.set((b"submodule", fsencode(path)), b"active", b"true")
    write_config(repo.process, f"{repo.common}/config", own)
    head = submodule_head(repo, path)
    assert head is not None
    repo.index[path] = repo.bare_entry(SUBMODULE, head)
    stage(repo, ".gitmodules")
    repo.write_index()
    return 0


def _foreach(repo: Repository, words: list[str], *, quiet: bool) -> int:
    for module in _chosen(repo, []):
        if submodule_head(repo, module.path) is None:
            continue
        if not quiet:
            repo.process.print(f"Entering '{module.path}'")
        repo.process.stdout.flush()
        script = 'cd "$1" && shift && eval "$*"'
        if repo.process.run(["/bin/sh", "-c", script, "sh", repo.path(module.path), *words]).shell:
            raise GitError(f"run_command returned non-zero status for {module.path}\n.", 128)
    return 0
