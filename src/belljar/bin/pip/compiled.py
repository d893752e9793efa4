"""Packages with compiled parts: what is said of one that is needed, and which versions do without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from belljar.abi.dataclass import dataclass
from belljar.bin.pip.environment import applies
from belljar.bin.pip.index import Offer
from belljar.bin.pip.problems import PipError, Unbuildable

INSTEAD: Final = {
    "aiohttp": "httpx is pure Python, and asynchronous too",
    "bcrypt": "hashlib.scrypt and hashlib.pbkdf2_hmac are in the standard library",
    "cryptography": "hashlib, hmac and secrets are in the standard library; ssl works without it",
    "grpcio": "most services have a REST interface: httpx or requests",
    "httptools": "install uvicorn without [standard]",
    "jiter": "call the service's HTTP interface with httpx or requests",
    "mysqlclient": "PyMySQL is pure Python",
    "orjson": "json is in the standard library",
    "psycopg-binary": "pg8000 is pure Python",
    "psycopg2": "pg8000 is pure Python",
    "psycopg2-binary": "pg8000 is pure Python",
    "pydantic-core": "pydantic 1.10 is pure Python; dataclasses and attrs are, too",
    "pyzmq": "socket and asyncio are in the standard library",
    "regex": "re is in the standard library",
    "rpds-py": "jsonschema 4.17 is pure Python",
    "ujson": "json is in the standard library",
    "uvloop": "asyncio's own loop is there",
}
"""Alternatives to compiled packages that are often asked for."""
_ATTEMPTS: Final = 4


class Compiled(Exception):
    """A project that is needed has no files of pure Python; `chain` leads from what was asked for to it."""

    def __init__(self, chain: list[Link], requirement: Requirement, file: str) -> None:
        super().__init__(file)
        self.chain = chain
        self.requirement = requirement
        self.file = file

    @property
    def name(self) -> NormalizedName:
        return self.chain[-1].name


@dataclass(frozen=True, slots=True)
class Link:
    """A project on the way to a compiled one, and the version of it that needs the next."""

    name: NormalizedName
    version: Version | None


Pins = dict[NormalizedName, Version]


def explain(problem: Compiled, versions: list[Version], here: Version | None) -> list[str]:
    """Return the error message, in pip's form."""
    shown = ", ".join(map(str, versions)) or "none"
    lines = [f"Could not find a version that satisfies the requirement {problem.requirement} (from versions: {shown})"]
    lines.append(
        f"ERROR: {problem.name} has compiled parts ({problem.file}), "
        "and only pure-Python packages can be installed here."
    )
    parents = [f"{link.name} {link.version}" for link in reversed(problem.chain[:-1])]
    if parents:
        lines.append(f"    It is needed by {', which is needed by '.join(parents)}.")
    if here is not None:
        lines.append(f"    {problem.name} {here} is here already: ask for no newer one.")
    return lines


def hints(problem: Compiled) -> list[str]:
    return [f"    Instead of {problem.name}: {INSTEAD[problem.name]}."] if problem.name in INSTEAD else []


class Search:
    """Looks for older versions that need no compiled project."""

    def __init__(self, offers: Callable[[NormalizedName], list[Offer]], requires: Callable[[Offer], list[str]]) -> None:
        self._offers = offers
        self._requires = requires

    def find(self, problem: Compiled, attempt: Callable[[Pins], None]) -> Pins | None:
        """Versions to ask for, so that `attempt` does not meet a compiled project; None if there are none."""
        pins: Pins = {}
        for _ in range(_ATTEMPTS):
            if not self._pin(problem.chain, pins):
                return None
            try:
                attempt(pins)
            except Compiled as further:
                problem = further
            except PipError:
                return None
            else:
                return pins
        return None

    def _pin(self, chain: list[Link], pins: Pins) -> bool:
        """Add pins that avoid the end of a chain; False if no version does."""
        last = chain[-1]
        pure = next((offer.version for offer in self._wheels(last.name) if last.name not in pins), None)
        found: list[tuple[NormalizedName, Version]] = [(last.name, pure)] if pure is not None else []
        for link in reversed(chain[:-1]):
            below = found[0] if found else None
            avoided = chain[chain.index(link) + 1].name
            version = self._newest(link.name, avoided, below[1] if below else None, pins.get(link.name))
            if version is None:
                return False
            keeps = below is not None and self._needs(link.name, version, avoided) is not None
            found = [(link.name, version), *(found if keeps else [])]
        if not found:
            return False
        changed = any(pins.get(name) != version for name, version in found)
        pins.update(found)
        return changed

    def _wheels(self, name: NormalizedName) -> list[Offer]:
        """Pure wheels, newest first, one of each version."""
        found: dict[Version, Offer] = {}
        for offer in self._offers(name):
            if offer.is_wheel and not offer.link.yanked and not offer.version.is_prerelease:
                found.setdefault(offer.version, offer)
        return list(found.values())

    def _needs(self, name: NormalizedName, version: Version, other: NormalizedName) -> Requirement | None:
        """Return a version's requirement on another project."""
        offer = next(offer for offer in self._wheels(name) if offer.version == version)
        for text in self._requires(offer):
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                continue
            if canonicalize_name(requirement.name) == other and applies(requirement, frozenset()):
                return requirement
        return None

    def _newest(
        self, name: NormalizedName, avoided: NormalizedName, allowed: Version | None, most: Version | None
    ) -> Version | None:
        """The newest version that does not need a project, or is content with the version of it that is allowed.

        Looked for by halving: from some version on, all newer ones need it.
        """
        versions = [offer.version for offer in self._wheels(name) if most is None or offer.version <= most]

        def good(index: int) -> bool:
            try:
                need = self._needs(name, versions[index], avoided)
            except (PipError, Unbuildable):
                return False
            return need is None or (allowed is not None and need.specifier.contains(allowed))

        low, step = 0, 1
        while low < len(versions) and not good(low):
            low, step = low + step, step * 2
        if low >= len(versions):
            low = len(versions) - 1
            if low < 0 or not good(low):
                return None
        high = max(0, low - step // 2)
        while high < low:  # versions[low] is good
            middle = (high + low) // 2
            if good(middle):
                low = middle
            else:
                high = middle + 1
        return versions[low]
