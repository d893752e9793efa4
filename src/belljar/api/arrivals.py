"""Checks of files that are about to be written to the owner's machine: by `files.download` and `Changes.apply`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal, NamedTuple

from belljar.api.errors import RefusedFile
from belljar.kernel.fs.protection import SECOND_NAME, Has, Protection, Rule, fold


class Arrival(NamedTuple):
    """A path below the directory that is written to, and what is to be there; "removed": nothing."""

    path: Sequence[str]
    type: Literal["file", "directory", "symlink", "removed"]
    target: str = ""


def refused_files(
    protection: Protection, arrivals: Collection[Arrival], has: Has, names: Callable[[Sequence[str]], int]
) -> list[RefusedFile]:
    """List the arrivals that a rule forbids.

    `has` and `names` tell what is there now: whether a directory has an entry, how many names a file has. Directories
    are refused only for what they would make of others: an empty one runs nothing.
    """
    coming: dict[tuple[str, ...], set[str]] = {}
    for arrival in arrivals:
        if arrival.path and arrival.type != "removed":
            coming.setdefault(tuple(map(fold, arrival.path[:-1])), set()).add(fold(arrival.path[-1]))

    def will_have(directory: Sequence[str], name: str) -> bool:
        return fold(name) in coming.get(tuple(map(fold, directory)), ()) or has(directory, name)

    def rule_for(arrival: Arrival) -> Rule | None:
        path = arrival.path
        if arrival.type != "removed" and (rule := protection.completes_repository(path, will_have)):
            return rule
        if arrival.type == "directory":
            return None
        if rule := protection.refusal(path, will_have, fixed=True):
            return rule
        if arrival.type == "symlink" and (rule := protection.link_refusal(path, arrival.target, will_have)):
            return rule
        is_shared = arrival.type != "removed" and names(path) > 1
        return SECOND_NAME if is_shared and not protection.trusts(SECOND_NAME, path) else None

    found = [(arrival.path, rule_for(arrival)) for arrival in arrivals]
    return [RefusedFile("/".join(path), rule.name, rule.why) for path, rule in found if rule is not None]
