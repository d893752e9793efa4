"""Checks of files that are about to be written to the owner's machine: by `files.download` and `Changes.apply`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from belljar.api.errors import RefusedFile
from belljar.kernel.fs.protection import SECOND_NAME, Has, Protection, fold


def refused_files(
    protection: Protection,
    arrivals: Collection[tuple[Sequence[str], bool]],
    has: Has,
    names: Callable[[Sequence[str]], int],
) -> list[RefusedFile]:
    """Those that a rule forbids, of paths and whether each is a directory.

    `has` and `names` tell what is there now: whether a directory has an entry, how many names a file has. Directories
    are refused only for what they would make of others: an empty one runs nothing.
    """
    coming: dict[tuple[str, ...], set[str]] = {}
    for path, _ in arrivals:
        if path:
            coming.setdefault(tuple(map(fold, path[:-1])), set()).add(fold(path[-1]))

    def will_have(directory: Sequence[str], name: str) -> bool:
        return fold(name) in coming.get(tuple(map(fold, directory)), ()) or has(directory, name)

    refused: list[RefusedFile] = []
    for path, is_dir in arrivals:
        rule = protection.completes_repository(path, will_have)
        if rule is None and not is_dir:
            rule = protection.refusal(path, will_have, fixed=True)
            if rule is None and names(path) > 1 and not protection.trusts(SECOND_NAME, path):
                rule = SECOND_NAME
        if rule is not None:
            refused.append(RefusedFile("/".join(path), rule.name, rule.why))
    return refused
