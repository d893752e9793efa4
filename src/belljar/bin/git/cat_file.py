"""`git cat-file`: an object's kind, size or contents."""

from __future__ import annotations

from dulwich.objects import Tree

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import resolve
from belljar.bin.git.repository.text import input_lines
from belljar.bin.git.repository.tree import rows


def cat_file(repo: Repository, args: list[str]) -> int:
    verb = args[0] if args else ""
    if verb.startswith("--batch"):
        return _batch(repo, verb)
    if len(args) != 2:
        raise GitError("usage: git cat-file (-e | -p | -t | -s | <type>) <object>", 129, "")
    name = args[1]
    try:
        sha = resolve(repo, name)
        item = repo.store.get(sha)
    except KeyError:
        raise GitError(f"Not a valid object name {name}") from None
    match verb:
        case "-t":
            repo.process.print(item.type_name.decode())
        case "-s":
            repo.process.print(str(len(item.as_raw_string())))
        case "-e":
            return 0
        case "-p":
            if isinstance(item, Tree):
                for row in rows(item):
                    repo.process.print(row.text())
            else:
                repo.process.stdout.write(item.as_raw_string())
        case "blob" | "tree" | "commit" | "tag":
            wanted = item
            if verb == "commit":
                wanted = repo.store.commit(sha)
            elif verb == "tree" and not isinstance(item, Tree):
                wanted = repo.store.get(bytes(repo.store.commit(sha).tree))
            if wanted.type_name.decode() != verb:
                raise GitError(f"git cat-file {name}: bad file")
            repo.process.stdout.write(wanted.as_raw_string())
        case _:
            raise GitError(f'invalid object type "{verb}"')
    return 0


def _batch(repo: Repository, verb: str) -> int:
    form = verb.partition("=")[2] or "%(objectname) %(objecttype) %(objectsize)"
    contents = not verb.startswith("--batch-check")
    for line in input_lines(repo):
        if not line:
            continue
        name, _, rest = line.partition(" ") if "%(rest)" in form else (line, "", "")
        try:
            sha = resolve(repo, name)
            item = repo.store.get(sha)
        except KeyError:
            repo.process.print(f"{name} missing")
            continue
        data = item.as_raw_string()
        text = form.replace("%(objectname)", sha.decode()).replace("%(objecttype)", item.type_name.decode())
        repo.process.print(text.replace("%(objectsize)", str(len(data))).replace("%(rest)", rest))
        if contents:
            repo.process.stdout.write(data + b"\n")
    return 0
