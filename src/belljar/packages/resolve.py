"""Which versions go together: resolvelib over a catalog's offers, and the reason in words where none do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import resolvelib

from belljar.abi.dataclass import dataclass
from belljar.packages.errors import PackageError
from belljar.packages.semver import Version, parse_version, satisfies

_ROUNDS: Final = 20_000
_CONSTRAINTS_MAX: Final = 600
"""Above so many, the conflict is told as the resolver met it, not the smallest one."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A version that may be chosen."""

    name: str
    version: str
    dependencies: Mapping[str, str]
    registry: str = ""

    @property
    def parsed(self) -> Version:
        found = parse_version(self.version)
        assert found is not None
        return found

    def __hash__(self) -> int:
        return hash((self.name, self.version))


@dataclass(frozen=True, slots=True)
class Need:
    """That a package is wanted: by a candidate, or (with no `parent`) by the user."""

    name: str
    range: str
    parent: tuple[str, str] | None = None
    """Name and version."""
    why: str = "you asked for"
    """Of the user's own: how it came to be wanted."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One line of a conflict: versions of a package need a range of another, or the user does (no `versions`)."""

    name: str
    range: str
    parent: str = ""
    versions: tuple[str, ...] = ()
    why: str = ""


Offers = Callable[[str], Sequence[Candidate]]
"""The candidates of a name, best first."""


class NoSolution(PackageError):
    """No versions go together. Without any one of the constraints there would be some."""

    def __init__(self, constraints: Sequence[Constraint], offers: Offers) -> None:
        super().__init__(explain(constraints, offers))
        self.constraints = tuple(constraints)


class _Provider(resolvelib.AbstractProvider[Need, Candidate, str]):
    def __init__(self, offers: Offers) -> None:
        self._offers = offers

    def identify(self, requirement_or_candidate: Need | Candidate) -> str:
        return requirement_or_candidate.name

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Candidate],
        candidates: Mapping[str, Iterator[Candidate]],
        information: Mapping[str, Iterator[Any]],
        backtrack_causes: Sequence[Any],
    ) -> Any:
        caused = any(cause.requirement.name == identifier for cause in backtrack_causes)
        return not caused, identifier

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Need]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> list[Candidate]:
        needs = list(requirements[identifier])
        refused = {candidate.version for candidate in incompatibilities[identifier]}
        return [
            candidate
            for candidate in self._offers(identifier)
            if candidate.version not in refused and all(satisfies(candidate.version, need.range) for need in needs)
        ]

    def is_satisfied_by(self, requirement: Need, candidate: Candidate) -> bool:
        return satisfies(candidate.version, requirement.range)

    def get_dependencies(self, candidate: Candidate) -> list[Need]:
        parent = (candidate.name, candidate.version)
        return [Need(name, wanted, parent) for name, wanted in sorted(candidate.dependencies.items())]


def resolve(needs: Sequence[Need], offers: Offers) -> dict[str, Candidate]:
    """The versions to have, by name. NoSolution, with the smallest conflict; PackageError."""
    try:
        return _solve(needs, offers)
    except resolvelib.ResolutionImpossible as error:
        causes = [_constraint(cause.requirement) for cause in error.causes]
    raise NoSolution(_smallest(needs, offers) or causes, offers)


def _solve(needs: Iterable[Need], offers: Offers) -> dict[str, Candidate]:
    resolver: resolvelib.Resolver[Need, Candidate, str] = resolvelib.Resolver(
        _Provider(offers), resolvelib.BaseReporter()
    )
    try:
        return dict(resolver.resolve(needs, max_rounds=_ROUNDS).mapping)
    except resolvelib.ResolutionTooDeep:
        raise PackageError("the dependencies are too tangled to resolve: ask for narrower versions") from None


def _constraint(need: Need) -> Constraint:
    if need.parent is None:
        return Constraint(need.name, need.range, why=need.why)
    return Constraint(need.name, need.range, need.parent[0], (need.parent[1],))


def _constraints(needs: Iterable[Need], offers: Offers) -> list[Constraint]:
    """All that limits the choice: what the user wants, and what each reachable package needs, versions together."""
    found = [_constraint(need) for need in needs]
    todo = [constraint.name for constraint in found]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        versions: dict[tuple[str, str], list[str]] = {}
        for candidate in offers(name):
            for needed, wanted in candidate.dependencies.items():
                versions.setdefault((needed, wanted), []).append(candidate.version)
        found += [Constraint(dep, wanted, name, tuple(same)) for (dep, wanted), same in versions.items()]
        todo += [needed for needed, _ in versions]
    return found


def _smallest(needs: Sequence[Need], offers: Offers) -> list[Constraint]:
    """Constraints that can't be met together, though all but any one of them can. [] if there are too many to try."""
    kept = _constraints(needs, offers)
    if len(kept) > _CONSTRAINTS_MAX:
        return []
    # Large steps first: most constraints have no part in the conflict.
    step = max(1, len(kept) // 2)
    while True:
        start = 0
        while start < len(kept):
            fewer = kept[:start] + kept[start + step :]
            if _impossible(fewer, offers):
                kept = fewer
            else:
                start += step
        if step == 1:
            return kept
        step //= 2


def _impossible(constraints: Sequence[Constraint], offers: Offers) -> bool:
    edges: dict[tuple[str, str, str], bool] = {(c.parent, c.name, c.range): True for c in constraints if c.parent}
    cache: dict[str, list[Candidate]] = {}

    def fewer(name: str) -> list[Candidate]:
        if name not in cache:
            cache[name] = [
                Candidate(
                    c.name,
                    c.version,
                    {dep: wanted for dep, wanted in c.dependencies.items() if (name, dep, wanted) in edges},
                )
                for c in offers(name)
            ]
        return cache[name]

    try:
        _solve([Need(c.name, c.range) for c in constraints if not c.parent], fewer)
    except resolvelib.ResolutionImpossible:
        return True
    return False


def explain(constraints: Sequence[Constraint], offers: Offers) -> str:
    """A conflict in words."""
    lines = []
    for constraint in sorted(constraints, key=lambda c: (c.parent != "", c.parent, c.name)):
        what = constraint.name if constraint.range == "*" else f"{constraint.name} {constraint.range}"
        known = offers(constraint.name)
        if not known:
            what += f", and no {constraint.name} is offered: `pkg update` gets what registries offer now"
        elif not any(satisfies(candidate.version, constraint.range) for candidate in known):
            shown = ", ".join(candidate.version for candidate in known[:8]) + ", ..." * (len(known) > 8)
            what += f", of which there {'is' if len(known) == 1 else 'are'} only {shown}"
        if not constraint.parent:
            lines.append(f"{constraint.why or 'you asked for'} {what}")
            continue
        count = len(constraint.versions)
        if count > 1 and count == len(offers(constraint.parent)):
            lines.append(f"every {constraint.parent} needs {what}")
        else:
            shown = ", ".join(constraint.versions[:4]) + (" and others" if count > 4 else "")
            lines.append(f"{constraint.parent} {shown} need{'s' if count == 1 else ''} {what}")
    if len(lines) == 1:
        return f"nothing can be installed: {lines[0]}"
    return "these can't be had together:\n" + "\n".join(f"  {line}" for line in lines)


def install_order(chosen: Mapping[str, Candidate]) -> list[Candidate]:
    """What others need comes first. PackageError if packages need each other in a circle."""
    ordered: list[Candidate] = []
    state: dict[str, bool] = {}
    for name in sorted(chosen):
        stack: list[tuple[str, Iterator[str]]] = []
        if name not in state:
            state[name] = False
            stack.append((name, iter(sorted(chosen[name].dependencies))))
        while stack:
            current, rest = stack[-1]
            below = next((each for each in rest if each in chosen), None)
            if below is None:
                stack.pop()
                state[current] = True
                ordered.append(chosen[current])
            elif below not in state:
                state[below] = False
                stack.append((below, iter(sorted(chosen[below].dependencies))))
            elif not state[below]:
                names = [each for each, _ in stack]
                circle = [*names[names.index(below) :], below]
                said = ", ".join(f"{a} {chosen[a].version} needs {b}" for a, b in pairwise(circle))
                raise PackageError(f"packages need each other in a circle: {said}")
    return ordered
