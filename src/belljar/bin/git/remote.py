"""`git remote`: the other repositories that this one knows by name."""

from __future__ import annotations

from belljar.abi.paths import fsdecode, fsencode
from belljar.bin.git.repository.config import config_values, read_config, write_config
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.remotes import FETCH_SPEC, remotes
from belljar.bin.git.repository.repo import Repository


def remote(repo: Repository, args: list[str]) -> int:
    path = f"{repo.common}/config"
    words = [arg for arg in args if not arg.startswith("-")]
    verbose = "-v" in args or "--verbose" in args
    known = remotes(repo)
    if not words:
        for name, url in known.items():
            if verbose:
                repo.process.print(f"{name}\t{url} (fetch)\n{name}\t{url} (push)")
            else:
                repo.process.print(name)
        return 0
    verb, rest = words[0], words[1:]
    config = read_config(repo.process, path)
    if verb == "add":
        if len(rest) != 2:
            raise GitError("usage: git remote add [<options>] <name> <url>", 129, "")
        if rest[0] in known:
            raise GitError(f"remote {rest[0]} already exists.", 3, "error: ")
        config.set((b"remote", fsencode(rest[0])), b"url", fsencode(rest[1]))
        config.set((b"remote", fsencode(rest[0])), b"fetch", fsencode(FETCH_SPEC.format(name=rest[0])))
        write_config(repo.process, path, config)
        return 0
    if verb not in ("remove", "rm", "rename", "set-url", "get-url", "show", "prune", "update"):
        raise GitError(f"error: Unknown subcommand: {verb}", 129, "")
    name = rest[0] if rest else ""
    if name not in known and verb not in ("show", "update"):
        raise GitError(f"No such remote: '{name}'" if verb != "get-url" else f"No such remote '{name}'", 2, "error: ")
    if verb in ("rename", "set-url") and len(rest) < 2:
        raise GitError(f"usage: git remote {verb} [<options>] <name> <new>", 129, "")
    match verb:
        case "get-url":
            repo.process.print(known[name])
        case "set-url":
            config.set((b"remote", fsencode(name)), b"url", fsencode(rest[1]))
            write_config(repo.process, path, config)
        case "remove" | "rm":
            del config[(b"remote", fsencode(name))]
            for section in list(config.sections()):
                if section[0] == b"branch" and config_values(config, f"branch.{fsdecode(section[-1])}.remote") == [
                    name
                ]:
                    del config[section]
            write_config(repo.process, path, config)
            for ref in repo.refs.under(f"refs/remotes/{name}/"):
                repo.refs.delete(ref)
        case "rename":
            new = rest[1]
            config.set((b"remote", fsencode(new)), b"url", fsencode(known[name]))
            config.set((b"remote", fsencode(new)), b"fetch", fsencode(FETCH_SPEC.format(name=new)))
            del config[(b"remote", fsencode(name))]
            for section in list(config.sections()):
                if section[0] == b"branch" and config_values(config, f"branch.{fsdecode(section[-1])}.remote") == [
                    name
                ]:
                    config.set(section, b"remote", fsencode(new))
            write_config(repo.process, path, config)
            for ref, sha in repo.refs.under(f"refs/remotes/{name}/").items():
                repo.refs.write(ref.replace(f"refs/remotes/{name}/", f"refs/remotes/{new}/", 1), sha.decode())
                repo.refs.delete(ref)
        case "show":
            for shown in rest or known:
                repo.process.print(
                    f"* remote {shown}\n  Fetch URL: {known.get(shown)}\n  Push  URL: {known.get(shown)}"
                )
    return 0
