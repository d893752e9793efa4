"""`git count-objects`: how many objects there are, and their size."""

from __future__ import annotations

from belljar.bin.git.repository.repo import Repository


def count_objects(repo: Repository, args: list[str]) -> int:
    count = size = packed = packs = 0
    fs = repo.process.fs
    for folder in fs.readdir(repo.store.directory):
        if len(folder.name) != 2:
            continue
        for entry in fs.readdir(f"{repo.store.directory}/{folder.name}"):
            repo.process.budget.charge()
            count += 1
            size += fs.stat(f"{repo.store.directory}/{folder.name}/{entry.name}").blocks // 2
    if "-v" not in args:
        repo.process.print(f"{count} objects, {size} kilobytes")
        return 0
    for pack in repo.store.packs():
        packs += 1
        packed += len(pack)
    repo.process.print(f"count: {count}\nsize: {size}\nin-pack: {packed}\npacks: {packs}")
    repo.process.print("size-pack: 0\nprune-packable: 0\ngarbage: 0\nsize-garbage: 0")
    return 0
