"""Catalogs of the registries in use: fetched, checked and kept; and which registry a name means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from belljar.abi.errors import SysError
from belljar.bin.pkg.database import (
    CATALOGS,
    LOCAL,
    REGISTRIES,
    Installed,
    Registry,
    read_registries,
    replace_file,
    write_registries,
)
from belljar.bin.pkg.fetch import fetch
from belljar.kernel.process import Process
from belljar.packages.catalog import FILE, SIZE_MAX, Catalog, Offer, check_fresh, open_envelope
from belljar.packages.errors import PackageError
from belljar.packages.resolve import Candidate
from belljar.packages.semver import sort_key


def update(process: Process, registry: Registry) -> tuple[Catalog, Registry, bool]:
    """Fetch a registry's catalog and keep it; gives it, the registry with its key, and whether it is new. PackageError,
    with nothing changed: a wrong signature, another key, an older catalog than the one that is here, or one that
    has expired.
    """
    url = f"{registry.url.rstrip('/')}/{FILE}"
    data = fetch(process, url, SIZE_MAX)
    catalog, key = open_envelope(data, registry.url, registry.key or None)
    known = read_catalog(process, registry.name)
    if known is not None:
        if catalog.serial < known.serial:
            raise PackageError(
                f"the catalog of {registry.url} is older than the one from before (serial {catalog.serial}, not "
                f"{known.serial}): it was rolled back, or somebody plays an old one"
            )
        if catalog.serial == known.serial and catalog != known:
            raise PackageError(
                f"the catalog of {registry.url} is another one under the same serial number, {known.serial}"
            )
    check_fresh(catalog, registry.url, now(process))
    new = known is None or catalog.packages != known.packages
    if known is None or catalog.serial > known.serial:
        process.fs.makedirs(CATALOGS, 0o755)
        replace_file(process, _path(registry.name), msgspec.json.encode(catalog))
    if registry.key != key:
        registry = replace(registry, key=key)
        others = read_registries(process)
        write_registries(process, {**others, registry.name: registry}.values())
    return catalog, registry, new


def now(process: Process) -> float:
    """Seconds since 1970."""
    return process.kernel.now() / 1e9


def forget(process: Process, name: str) -> None:
    """Remove a registry and its catalog. PackageError."""
    registries = read_registries(process)
    if name not in registries:
        raise PackageError(f"there is no registry {name!r}: `pkg registry list` shows those there are")
    del registries[name]
    if registries:
        write_registries(process, registries.values())
    else:
        process.fs.unlink(REGISTRIES)
        process.fs.rmdir(REGISTRIES.rpartition("/")[0])
    if process.fs.exists(_path(name)):
        process.fs.unlink(_path(name))


def _path(name: str) -> str:
    return f"{CATALOGS}/{name}.json"


def read_catalog(process: Process, name: str) -> Catalog | None:
    """The kept catalog of a registry; None if there is none yet. PackageError."""
    try:
        return msgspec.json.decode(process.read_file(_path(name)), type=Catalog)
    except SysError:
        return None
    except (msgspec.DecodeError, RecursionError) as error:
        raise PackageError(f"{_path(name)} is damaged: {error}. Remove it, then `pkg update`") from None


class Market:
    """All that is offered. A name means the package of one registry, and no other's is ever taken for it."""

    def __init__(
        self,
        process: Process,
        installed: Mapping[str, Installed],
        *,
        upgrade: Iterable[str] = (),
        source: str = "",
        named: Iterable[str] = (),
    ) -> None:
        """`upgrade`: packages whose installed version is not preferred. `source`: the registry to take `named` from."""
        self._budget = process.budget
        self.registries = read_registries(process)
        self.catalogs = {name: read_catalog(process, name) for name in self.registries}
        self._installed = installed
        self._upgrade = frozenset(upgrade)
        if source and source not in self.registries:
            raise PackageError(f"there is no registry {source!r}: `pkg registry list` shows those there are")
        self._sources = dict.fromkeys(named, source) if source else {}
        self._local: dict[str, Candidate] = {}
        self._known: dict[str, list[Candidate]] = {}

    def add_local(self, candidate: Candidate) -> None:
        """Have a name mean a package that the user gave as a file."""
        self._local[candidate.name] = candidate

    def registry_of(self, name: str) -> str:
        """The registry that a name means; "" if none has it. PackageError if that is not clear."""
        having = [
            r for r in self.registries.values() if (c := self.catalogs[r.name]) is not None and name in c.packages
        ]
        if name in self._sources:
            return self._sources[name]
        here = self._installed.get(name)
        if here is not None and here.registry in self.registries:
            return here.registry
        best = [registry for registry in having if registry.priority == having[0].priority]
        if len(best) > 1:
            names = " and ".join(registry.name for registry in best)
            raise PackageError(
                f"{name} is offered by {names}, and none goes first: say which with --from REGISTRY, or give one a "
                "higher priority (pkg registry add URL --priority N)"
            )
        if here is not None and here.registry != LOCAL and best:
            raise PackageError(
                f"{name} was installed from {here.registry}, which is not used any more; {best[0].name} offers a "
                f"package of that name, which may be another: say --from {best[0].name} if it is the same"
            )
        return best[0].name if best else ""

    def offer(self, name: str, version: str) -> Offer | None:
        """What is known of a version."""
        catalog = self.catalogs.get(self.registry_of(name))
        return catalog.packages.get(name, {}).get(version) if catalog is not None else None

    def candidates(self, name: str) -> list[Candidate]:
        """The versions of a package that may be chosen: the installed one, then from the newest on."""
        if name not in self._known:
            self._known[name] = [self._local[name]] if name in self._local else self._find(name)
        found = self._known[name]
        self._budget.charge(1 + len(found))  # the resolver looks at each of them
        return found

    def _find(self, name: str) -> list[Candidate]:
        registry = self.registry_of(name)
        here = self._installed.get(name)
        catalog = self.catalogs.get(registry)
        versions = catalog.packages.get(name, {}) if catalog is not None else {}
        usable = [version for version, offer in versions.items() if not offer.yanked]
        found = [
            Candidate(name, version, versions[version].dependencies, registry)
            for version in sorted(usable, key=sort_key, reverse=True)
        ]
        if here is not None and name not in self._sources:
            kept = Candidate(name, here.version, here.dependencies, here.registry)
            others = [candidate for candidate in found if candidate.version != here.version]
            found = [*others, kept] if name in self._upgrade else [kept, *others]
            if name in self._upgrade:
                found.sort(key=lambda candidate: sort_key(candidate.version), reverse=True)
        return found
