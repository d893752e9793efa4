"""The packages that some packages need: everything they depend on, chosen as apt chooses, without recommendations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from belljar.abi.errors import ImageError
from belljar.image.debian.control import Package, PackageIndex, Relation, provided
from belljar.image.debian.version import satisfies

_MERGED: Final = "usr-is-merged"
"""Says that /bin and the like are links into /usr: `assemble.py` makes them so, and no package has to."""


def resolve(index: PackageIndex, names: Sequence[str]) -> list[Package]:
    """The packages that are asked for ("name" or "name=version"), what they recommend, what every system has, and all
    that these need; by name. ImageError.

    Of alternatives that nothing chosen satisfies, the first that can be had is taken; a name that no package has means
    the most usual package that provides it. What only dependencies recommend is left out.
    """
    chosen: dict[str, Package] = {}
    merged = [name for name in (_MERGED,) if index.versions(name)]
    for text in (*names, *index.needed, *merged):
        name, _, version = text.partition("=")
        group = [Relation(name, "=" if version else "", version)]
        if not _satisfied(group, chosen.values()):
            package = _choose(index, group, chosen)
            if package is None:
                raise _missing(index, text, chosen)
            chosen[package.name] = package
    named = {text.partition("=")[0] for text in names}
    waiting = list(chosen.values())
    while waiting:
        package = waiting.pop(0)
        needs = package.relations("pre-depends", "depends")
        recommended = package.relations("recommends") if package.name in named else []
        for group in needs + recommended:
            if _satisfied(group, chosen.values()):
                continue
            found = _choose(index, group, chosen)
            if found is None and group in recommended:
                continue
            if found is None:
                wanted = " | ".join(_show(relation) for relation in group)
                raise ImageError(
                    f"the package {package.name} needs {wanted}, which can't be had{_why(index, group, chosen)}"
                )
            chosen[found.name] = found
            waiting.append(found)
    return [chosen[name] for name in sorted(chosen)]


def _choose(index: PackageIndex, group: Sequence[Relation], chosen: dict[str, Package]) -> Package | None:
    for package in _candidates(index, group):
        if package.name not in chosen and not any(_conflict(package, other) for other in chosen.values()):
            return package
    return None


def _candidates(index: PackageIndex, group: Iterable[Relation]) -> Iterator[Package]:
    for relation in group:
        for package in [*index.versions(relation.name), *index.providers(relation.name)]:
            if _provides(package, relation):
                yield package


def _satisfied(group: Iterable[Relation], packages: Iterable[Package]) -> bool:
    return any(_provides(package, relation) for relation in group for package in packages)


def _provides(package: Package, relation: Relation) -> bool:
    """Whether a package is what is asked for, by its own name or by one that it provides."""
    if package.name == relation.name:
        return satisfies(package.version, relation.operator, relation.version)
    for offer in provided(package, relation.name):
        if not relation.operator or (offer.version and satisfies(offer.version, relation.operator, relation.version)):
            return True
    return False


def _conflict(one: Package, other: Package) -> bool:
    return any(
        _provides(theirs, group[0])
        for mine, theirs in ((one, other), (other, one))
        for group in mine.relations("conflicts", "breaks")
    )


def _missing(index: PackageIndex, text: str, chosen: dict[str, Package]) -> ImageError:
    name = text.partition("=")[0]
    group = [Relation(name)]
    if why := _why(index, group, chosen):
        return ImageError(f"the package {text!r} can't be had{why}")
    if found := [package.version for package in index.versions(name)]:
        return ImageError(f"there is no package {text!r} in the archive: it has {', '.join(found)}")
    hint = f": did you mean {', '.join(index.similar(name))}?" if index.similar(name) else ""
    return ImageError(f"there is no package {text!r} in the archive{hint}")


def _why(index: PackageIndex, group: Sequence[Relation], chosen: dict[str, Package]) -> str:
    for package in _candidates(index, group):
        for other in chosen.values():
            if _conflict(package, other):
                return f": {package.name} and {other.name} exclude each other"
    return ""


def _show(relation: Relation) -> str:
    return f"{relation.name} ({relation.operator} {relation.version})" if relation.operator else relation.name
