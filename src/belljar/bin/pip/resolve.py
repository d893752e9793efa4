"""Which versions to install: a provider for resolvelib over indexes, directories of archives, and what is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import resolvelib
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from belljar.abi.dataclass import dataclass, field
from belljar.bin.pip.compiled import Compiled, Link, Pins, Search, explain, hints
from belljar.bin.pip.environment import ITSELF, Distribution, applies, itself
from belljar.bin.pip.index import Offer
from belljar.bin.pip.problems import PipError, Unbuildable
from belljar.bin.pip.requirements import Wanted

SOURCES_TRIED: Final = 3
"""Source archives of one project to look into before giving up on it."""
_ROUNDS: Final = 20_000


class Finder(Protocol):
    """Source of candidates."""

    def offers(self, name: NormalizedName) -> tuple[list[Offer], list[Version]]: ...
    def compiled(self, name: NormalizedName) -> Mapping[Version, str]:
        """The versions of which there are wheels, but only for other platforms; with a file of each."""

    def requires(self, offer: Offer) -> list[str]:
        """The requirements of a file. Unbuildable."""

    def silence(self) -> None:
        """Say nothing of what is looked at from now on."""

    def collecting(self, requirement: Requirement, parent: str) -> None:
        """Say that a project is being looked for."""


@dataclass(frozen=True)
class Candidate:
    """A version that may be chosen: an offered file, a file that was named, or what is installed."""

    name: NormalizedName
    version: Version
    extras: frozenset[str]
    offer: Offer | None = None
    installed: Distribution | None = None
    given: Wanted | None = None
    needs: tuple[str, ...] = field(default=(), compare=False)

    @property
    def identity(self) -> str:
        return _identity(self.name, self.extras)


@dataclass(frozen=True)
class Need:
    """A requirement, and who has it."""

    requirement: Requirement
    parent: Candidate | None
    wanted: Wanted | None = None

    @property
    def name(self) -> NormalizedName:
        return canonicalize_name(self.requirement.name)

    @property
    def extras(self) -> frozenset[str]:
        return frozenset(map(str, self.requirement.extras))


def _identity(name: str, extras: Iterable[str]) -> str:
    return f"{name}[{','.join(sorted(extras))}]" if extras else name


class Provider(resolvelib.AbstractProvider[Need, Candidate, str]):
    def __init__(
        self,
        finder: Finder,
        installed: Mapping[NormalizedName, Distribution],
        *,
        named: Mapping[NormalizedName, Candidate],
        constraints: Mapping[NormalizedName, SpecifierSet],
        upgrade: frozenset[NormalizedName],
        pre: bool,
        no_deps: bool,
        force: bool,
    ) -> None:
        self._finder = finder
        self._installed = installed
        self._named = named
        self._constraints = constraints
        self._upgrade = upgrade
        self._pre = pre
        self._no_deps = no_deps
        self._force = force
        self._seen: set[str] = set()
        self._needs: dict[str, list[str]] = {}
        self._refused: dict[NormalizedName, list[str]] = {}
        self._needed_by: dict[str, Need] = {}
        """The first requirer of each project."""
        self._depths: dict[str, int] = {}

    def identify(self, requirement_or_candidate: Need | Candidate) -> str:
        if isinstance(requirement_or_candidate, Candidate):
            return requirement_or_candidate.identity
        return _identity(requirement_or_candidate.name, requirement_or_candidate.extras)

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Candidate],
        candidates: Mapping[str, Iterator[Candidate]],
        information: Mapping[str, Iterator[Any]],
        backtrack_causes: Sequence[Any],
    ) -> Any:
        causes = {self.identify(cause.requirement) for cause in backtrack_causes}
        pinned = any(
            any(spec.operator in ("==", "===") for spec in need.requirement.requirement.specifier)
            for need in information[identifier]
        )
        return (identifier not in causes, self._depths.get(identifier, 0), not pinned, identifier)

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Need]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> Callable[[], Iterator[Candidate]]:
        needs = list(requirements[identifier])
        refused = {candidate.version for candidate in incompatibilities[identifier]}
        name, extras = needs[0].name, needs[0].extras
        fitting = SpecifierSet()
        for need in needs:
            fitting &= need.requirement.specifier
        fitting &= self._constraints.get(name, SpecifierSet())

        def matches() -> Iterator[Candidate]:
            # Lazily: as long as what is installed will do, no index is asked.
            for c in [self._named[name]] if name in self._named else self._choices(name, fitting, needs):
                if c.version not in refused and (c.given is not None or fitting.contains(c.version, prereleases=True)):
                    yield Candidate(name, c.version, extras, c.offer, c.installed, c.given, c.needs)

        return matches

    def _choices(self, name: NormalizedName, fitting: SpecifierSet, needs: list[Need]) -> Iterator[Candidate]:
        """Yield the candidates, best first."""
        here = self._installed.get(name)
        if name == ITSELF:
            yield Candidate(name, itself().version, frozenset(), installed=itself())
            return
        keep = here is not None and name not in self._upgrade and not self._force
        if here is not None and keep and fitting.contains(here.version, prereleases=True):
            yield Candidate(name, here.version, frozenset(), installed=here)
        if name not in self._seen:
            self._seen.add(name)
            parent = needs[0].parent
            self._finder.collecting(needs[0].requirement, f"{parent.name}" if parent is not None else "")
        offers, _ = self._finder.offers(name)
        pinned = any(spec.operator in ("==", "===") for spec in fitting)
        usable = [offer for offer in offers if pinned or not offer.link.yanked]
        pre = True if self._pre else None
        versions = set(fitting.filter((offer.version for offer in usable), prereleases=pre))
        compiled = self._finder.compiled(name)
        newest = max(fitting.filter({*versions, *compiled}, prereleases=pre), default=None)
        tried, last = 0, None
        for offer in usable:
            if offer.version not in versions or offer.version == last:
                continue
            if here is not None and offer.version == here.version and not self._force:
                yield Candidate(name, here.version, frozenset(), installed=here)
                last = offer.version
                continue
            if not offer.is_wheel:
                tried += 1
                if tried > SOURCES_TRIED:
                    continue
                try:
                    self._requires(offer)
                except Unbuildable as error:
                    self._refused.setdefault(name, []).append(f"{offer.link.filename}: {error}")
                    if offer.version in compiled:
                        break
                    continue
            elif newest in compiled and newest != last and here is None:
                break
            last = offer.version
            yield Candidate(name, offer.version, frozenset(), offer=offer)
        if last is None and newest in compiled and newest is not None:
            raise Compiled(self._chain(needs[0]), needs[0].requirement, compiled[newest])

    def _chain(self, need: Need) -> list[Link]:
        """Return how a project came to be needed."""
        chain = [Link(need.name, None)]
        while need.parent is not None and len(chain) < 50:
            chain.insert(0, Link(need.parent.name, need.parent.version))
            above = self._needed_by.get(need.parent.identity)
            if above is None:
                break
            need = above
        return chain

    def _requires(self, offer: Offer) -> list[str]:
        if offer.link.url not in self._needs:
            self._needs[offer.link.url] = self._finder.requires(offer)
        return self._needs[offer.link.url]

    def is_satisfied_by(self, requirement: Need, candidate: Candidate) -> bool:
        return requirement.requirement.specifier.contains(candidate.version, prereleases=True)

    def get_dependencies(self, candidate: Candidate) -> list[Need]:
        if self._no_deps:
            return []
        if candidate.given is not None:
            texts = list(candidate.needs)
        elif candidate.installed is not None:
            texts = candidate.installed.metadata.get("requires_dist", [])
        else:
            assert candidate.offer is not None
            texts = self._requires(candidate.offer)
        found: list[Need] = []
        if candidate.extras:
            found.append(Need(Requirement(f"{candidate.name}=={candidate.version}"), candidate))
        for text in texts:
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                raise PipError(f"{candidate.name} {candidate.version} has an invalid requirement: {text!r}") from None
            wanted_here = applies(requirement, frozenset())
            if (candidate.extras and not wanted_here and applies(requirement, candidate.extras)) or (
                not candidate.extras and wanted_here
            ):
                found.append(Need(requirement, candidate))
        depth = self._depths.get(candidate.identity, 0) + 1
        for need in found:
            identity = self.identify(need)
            self._needed_by.setdefault(identity, need)
            self._depths.setdefault(identity, depth if need.name != candidate.name else depth - 1)
        return found

    def version_here(self, name: NormalizedName) -> Version | None:
        here = self._installed.get(name)
        return here.version if here is not None else None

    def with_pins(self, pins: Pins) -> Provider:
        """The same with further constraints, for another try."""
        constraints = dict(self._constraints)
        for name, version in pins.items():
            constraints[name] = SpecifierSet(f"=={version}")
        return Provider(
            self._finder, self._installed, named=self._named, constraints=constraints, upgrade=self._upgrade,
            pre=self._pre, no_deps=self._no_deps, force=self._force,
        )  # fmt: skip

    def refusals(self, name: NormalizedName) -> list[str]:
        """Why files of a project could not be used."""
        return self._refused.get(name, [])


def resolve(provider: Provider, finder: Finder, needs: list[Need]) -> dict[str, Candidate]:
    """The versions to have, by name and extras. PipError, as pip words it."""
    resolver: resolvelib.Resolver[Need, Candidate, str] = resolvelib.Resolver(provider, resolvelib.BaseReporter())
    try:
        return dict(resolver.resolve(needs, max_rounds=_ROUNDS).mapping)
    except Compiled as problem:
        raise _compiled(provider, finder, needs, problem) from None
    except resolvelib.ResolutionImpossible as error:
        raise _impossible(provider, finder, list(error.causes)) from None
    except resolvelib.ResolutionTooDeep:
        raise PipError("the requirements are too tangled to resolve: give narrower versions") from None


def _compiled(provider: Provider, finder: Finder, needs: list[Need], problem: Compiled) -> PipError:
    """Make the error for a compiled project: what needs it, and alternatives."""
    offers, versions = finder.offers(problem.name)
    del offers
    lines = explain(problem, versions, provider.version_here(problem.name))
    ways = hints(problem)

    def attempt(pins: Pins) -> None:
        pinned = [
            Need(
                Requirement(f"{need.requirement.name}=={pins[need.name]}") if need.name in pins else need.requirement,
                None,
            )
            for need in needs
        ]
        try:
            resolvelib.Resolver(provider.with_pins(pins), resolvelib.BaseReporter()).resolve(pinned, max_rounds=_ROUNDS)
        except (resolvelib.ResolutionImpossible, resolvelib.ResolutionTooDeep):
            raise PipError("no") from None

    finder.silence()
    pins = Search(lambda name: finder.offers(name)[0], finder.requires).find(problem, attempt)
    if pins is not None:
        named = {need.name for need in needs}
        asked = [f"'{need.requirement.name}=={pins[need.name]}'" if need.name in pins else f"'{need.requirement}'"
                 for need in needs]  # fmt: skip
        asked += [f"'{name}=={version}'" for name, version in pins.items() if name not in named]
        ways.insert(0, f"    These older versions are pure Python: pip install {' '.join(asked)}")
    lines += ways
    return PipError(*lines, f"ERROR: No matching distribution found for {problem.requirement}")


def _impossible(provider: Provider, finder: Finder, causes: list[Any]) -> PipError:
    needs: list[Need] = [cause.requirement for cause in causes]
    projects = {need.name for need in needs}
    if len(needs) == 1 or (len(projects) == 1 and all(_hopeless(finder, need) for need in needs)):
        return _no_match(provider, finder, needs[0])
    asked = [_describe(need) for need in needs]
    between = " and ".join(dict.fromkeys(asked))
    lines = [f"Cannot install {between} because these package versions have conflicting dependencies.", ""]
    lines.append("The conflict is caused by:")
    for need in needs:
        who = "The user requested" if need.parent is None else f"{need.parent.name} {need.parent.version} depends on"
        lines.append(f"    {who} {need.requirement}")
    lines += ["", "To fix this you could try to:"]
    lines += ["1. loosen the range of package versions you've specified"]
    lines += ["2. remove package versions to allow pip to attempt to solve the dependency conflict", ""]
    return PipError(*lines, "ERROR: ResolutionImpossible")


def _hopeless(finder: Finder, need: Need) -> bool:
    _, versions = finder.offers(need.name)
    return not any(need.requirement.specifier.contains(version, prereleases=True) for version in versions)


def _describe(need: Need) -> str:
    if need.parent is None:
        return str(need.requirement)
    return f"{need.parent.name}=={need.parent.version}"


def _no_match(provider: Provider, finder: Finder, need: Need) -> PipError:
    offers, versions = finder.offers(need.name)
    refused = provider.refusals(need.name)
    shown = ", ".join(map(str, versions)) or "none"
    fitting = [v for v in versions if need.requirement.specifier.contains(v, prereleases=True)]
    usable = {offer.version for offer in offers}
    lines = [f"Could not find a version that satisfies the requirement {need.requirement} (from versions: {shown})"]
    if refused:
        lines.append("ERROR: Only pure-Python packages can be installed here, and this one is not:")
        lines += [f"    {text}" for text in refused]
    elif fitting and not usable.intersection(fitting):
        lines.append(
            "ERROR: Its files are for other platforms or Pythons: only pure-Python packages for Python 3.15 can be "
            "installed here."
        )
    return PipError(*lines, f"ERROR: No matching distribution found for {need.requirement}")
