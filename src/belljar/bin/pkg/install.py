"""Installing, upgrading and removing: what is wanted, what that means, and how it is done in one go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin.pkg.catalogs import Market, now
from belljar.bin.pkg.database import CACHE, LOCAL, Installed, owner_of, record_path
from belljar.bin.pkg.transaction import Transaction, remove_tree
from belljar.bin.pkg.unpack import Archive, Staged, cached, read_manifest, stage, stage_record
from belljar.kernel.process import Process
from belljar.kernel.vfs.credentials import Credentials
from belljar.packages.archive import ENDING
from belljar.packages.catalog import check_fresh
from belljar.packages.errors import PackageError
from belljar.packages.layout import HOME
from belljar.packages.manifest import Permissions, is_name
from belljar.packages.resolve import Candidate, Need, install_order, resolve
from belljar.packages.semver import parse_range

_NOBODY = Credentials(65534, 65534)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asks for."""

    name: str
    range: str
    file: Archive | None = None
    digest: str = ""
    """Of a lock file: the package must be exactly this."""
    note: str | None = None
    """Of a lock file: the range that was asked for at that time; "" for what others need."""


def parse_wanted(process: Process, text: str) -> Wanted:
    """`hello`, `hello@^1`, or the path of an archive. PackageError."""
    if "/" in text or text.endswith(ENDING):
        path = process.absolute(text)
        if not process.fs.is_file(path):
            raise PackageError(f"there is no archive {text}: `belljar package build` makes them")
        archive = Archive(path, text)
        manifest = read_manifest(process, archive)
        return Wanted(manifest.name, manifest.version, archive)
    name, _, wanted = text.partition("@")
    if not is_name(name):
        raise PackageError(f"{text[:80]!r} is no name of a package")
    if parse_range(wanted or "*") is None:
        raise PackageError(
            f"{wanted[:80]!r} is no range of versions: write {name}@^1.2, {name}@1.2.3 or {name}@'>=1 <3'"
        )
    return Wanted(name, wanted or "*")


@dataclass(frozen=True, slots=True)
class Plan:
    """What an installation changes."""

    fresh: tuple[Candidate, ...]
    """To be installed, in this order."""
    gone: tuple[Installed, ...]
    """To be removed, replaced ones among them."""
    noted: Mapping[str, tuple[str, bool]]
    """Of every package that is there then: the range that was asked for, and whether it is pinned."""


def _note(wanted: Wanted) -> str:
    if wanted.note is not None:
        return wanted.note
    return wanted.range if wanted.file is None else "*"


class Installer:
    def __init__(self, process: Process, installed: Mapping[str, Installed], *, offline: bool = False) -> None:
        self._process = process
        self._installed = installed
        self._offline = offline
        self._files: dict[str, Archive] = {}
        self._digests: dict[str, str] = {}
        self._downloaded: list[str] = []

    def plan(self, market: Market, wanted: Iterable[Wanted], *, without: Iterable[str] = ()) -> Plan:
        """What is to be done for packages to be there, beside those that were asked for before. PackageError."""
        asked = {each.name: each for each in wanted}
        dropped = set(without)
        for each in asked.values():
            if each.digest:
                self._digests[each.name] = each.digest
            if each.file is not None:
                manifest = read_manifest(self._process, each.file)
                self._files[each.name] = each.file
                market.add_local(Candidate(each.name, manifest.version, manifest.dependencies, LOCAL))
        noted = {
            record.name: (record.requested, record.pinned)
            for record in self._installed.values()
            if record.name not in dropped
        }
        noted |= {each.name: (_note(each), False) for each in asked.values()}
        needs = [Need(each.name, each.range) for each in asked.values()]
        for name, (requested, pinned) in noted.items():
            if name not in asked and (requested or pinned):
                exact = self._installed[name].version
                needs.append(Need(name, exact if pinned else requested, why="pinned:" if pinned else "installed:"))
        chosen = resolve(needs, market.candidates)
        order = install_order(chosen)
        gone = [record for name, record in self._installed.items() if name not in chosen or self._differs(chosen[name])]
        fresh = [candidate for candidate in order if self._differs(candidate)]
        return Plan(tuple(fresh), tuple(gone), {name: noted.get(name, ("", False)) for name in chosen})

    def _differs(self, candidate: Candidate) -> bool:
        here = self._installed.get(candidate.name)
        return here is None or candidate.name in self._files or candidate.version != here.version

    def fetch(self, market: Market, candidate: Candidate) -> Archive:
        """The archive of a candidate. PackageError."""
        if candidate.name in self._files:
            return self._files[candidate.name]
        offer = market.offer(candidate.name, candidate.version)
        shown = f"{candidate.name} {candidate.version}"
        if offer is None:
            raise PackageError(f"{shown} is not offered any more")
        catalog = market.catalogs[candidate.registry]
        if catalog is not None and not self._offline and candidate.name not in self._digests:
            check_fresh(catalog, candidate.registry, now(self._process))
        promised = self._digests.get(candidate.name, offer.digest)
        if promised != offer.digest:
            raise PackageError(f"{shown} of {candidate.registry} is {offer.digest}, the lock file says {promised}")
        url = market.registries[candidate.registry].url
        archive, new = cached(self._process, offer, url, shown, offline=self._offline)
        self._downloaded += [archive.path] if new else []
        return archive

    def carry_out(self, market: Market, plan: Plan) -> list[Installed]:
        """Do what was planned, or nothing; gives the new records. PackageError, SysError."""
        transaction = Transaction(self._process)
        transaction.begin()
        try:
            staged = [
                stage(self._process, transaction, self.fetch(market, candidate), candidate.registry)
                for candidate in plan.fresh
            ]
            for candidate, each in zip(plan.fresh, staged, strict=True):
                if (each.record.name, each.record.version) != (candidate.name, candidate.version):
                    raise PackageError(
                        f"the archive of {candidate.name} {candidate.version} says that it is {each.record}"
                    )
                if each.record.dependencies != candidate.dependencies:
                    raise PackageError(f"{each.record} needs other packages than its registry says")
            records = self._arrange(transaction, plan, staged)
            transaction.commit()
            try:
                for each in staged:
                    self._set_up(each)
            except BaseException:
                transaction.undo()
                raise
            transaction.finish()
        except BaseException:
            for path in self._downloaded:
                remove_tree(self._process, path)
            transaction.close()
            raise
        self._forget_archives(plan.gone, records)
        return [records[each.record.name] for each in staged]

    def _arrange(self, transaction: Transaction, plan: Plan, staged: Sequence[Staged]) -> dict[str, Installed]:
        """Say what is moved where; the records of all packages that are there then."""
        leaving = {record.name for record in plan.gone}
        staying = {name: record for name, record in self._installed.items() if name not in leaving}
        self._check_collisions(staged, staying, plan.gone)
        for record in plan.gone:
            home = f"{HOME}/{record.name}"
            for path in (home, *(path for path in record.files if not path.startswith(home + "/"))):
                transaction.take_away(path)
            transaction.take_away(record_path(record.name))
            transaction.abandoned |= set(record.directories)
        managed = {path for record in self._installed.values() for path in record.directories}
        records: dict[str, Installed] = {}
        for each in staged:
            requested, pinned = plan.noted[each.record.name]
            directories = self._directories([path for path, _ in each.moves], managed)
            record = replace(each.record, requested=requested, pinned=pinned, directories=directories)
            managed |= set(directories)
            records[record.name] = record
            for path, place in (*each.moves, stage_record(self._process, transaction, record)):
                transaction.put(path, place)
        for name, record in staying.items():
            requested, pinned = plan.noted.get(name, ("", False))
            records[name] = replace(record, requested=requested, pinned=pinned)
            if records[name] != record:
                path, place = stage_record(self._process, transaction, records[name])
                transaction.take_away(path)
                transaction.put(path, place)
        used = {path for record in records.values() for path in record.directories}
        transaction.abandoned -= used
        return records

    def _directories(self, paths: Iterable[str], managed: set[str]) -> list[str]:
        """The directories that are made for these paths, or were made for another package."""
        found: set[str] = set()
        for path in paths:
            above = path.rpartition("/")[0]
            while above and above not in found:
                if above in managed or not self._process.fs.exists(above):
                    found.add(above)
                above = above.rpartition("/")[0]
        return sorted(found)

    def _check_collisions(
        self, staged: Sequence[Staged], staying: Mapping[str, Installed], gone: Sequence[Installed]
    ) -> None:
        """Refuse files that are there, or come twice. PackageError."""
        new: dict[str, Installed] = {}
        for each in staged:
            for path in each.record.files:
                other = new.setdefault(path, each.record)
                if other is each.record:
                    other = owner_of(staying.values(), path) or other
                if other is not each.record:
                    raise PackageError(f"{path} is in {other} and in {each.record}: they can't both be installed")
            for path, _ in each.moves:
                if self._process.fs.exists(path, follow=False) and not self._leaves(path, gone):
                    raise PackageError(
                        f"{path} of {each.record} is there already, and belongs to no package: move it away first"
                    )

    @staticmethod
    def _leaves(path: str, gone: Sequence[Installed]) -> bool:
        return any(path in record.files or path == f"{HOME}/{record.name}" for record in gone)

    def _set_up(self, staged: Staged) -> None:
        """Run a package's post-install script: as nobody, in the package's directory, which is its own meanwhile."""
        script = staged.manifest.scripts.post_install
        if script is None:
            return
        process, record = self._process, staged.record
        home = f"{HOME}/{record.name}"
        process.fs.chown(home, _NOBODY.uid, _NOBODY.gid)
        env = {
            "PATH": process.env.get("PATH", "/usr/local/bin:/usr/bin:/bin"), "HOME": home, "TMPDIR": home,
            "LANG": "C.UTF-8", "PKG_NAME": record.name, "PKG_VERSION": record.version,
        }  # fmt: skip

        def body(child: Process) -> int:
            child.fs.credentials = _NOBODY
            child.fs.chdir(home)
            child.execute("/bin/bash", ["bash", f"{home}/{script}"], env)

        process.stdout.flush()
        status = process.wait_for(process.fork(body)).shell
        process.fs.chown(home, 0, 0)
        if status:
            raise PackageError(
                f"the post-install script of {record} failed (exit code {status}). Nothing was installed"
            )

    def _forget_archives(self, gone: Iterable[Installed], records: Mapping[str, Installed]) -> None:
        """Remove the downloads of what was removed."""
        fs = self._process.fs
        kept = {record.digest for record in records.values()}
        about = fs.try_stat(CACHE.rpartition("/")[0])
        for record in gone:
            if record.digest not in kept:
                remove_tree(self._process, f"{CACHE}/{record.digest.replace(':', '-')}.tar.gz")
        if fs.exists(CACHE) and not any(e.name not in (".", "..") for e in fs.readdir(CACHE)):
            fs.rmdir(CACHE)
            if about is not None:
                fs.utimens(CACHE.rpartition("/")[0], None, about.mtime)


def needed_by(installed: Mapping[str, Installed], names: Iterable[str]) -> dict[str, list[Installed]]:
    """Of packages that are to go: those that stay and need them."""
    going = set(names)
    return {
        name: [r for r in installed.values() if name in r.dependencies and r.name not in going]
        for name in going
        if any(name in r.dependencies and r.name not in going for r in installed.values())
    }


def new_permissions(before: Installed | None, after: Installed) -> Permissions:
    """What a package wants that it did not want before."""
    if before is None:
        return after.permissions
    old = before.permissions
    return Permissions(
        [host for host in after.permissions.network if host not in old.network],
        [mount for mount in after.permissions.mounts if mount not in old.mounts],
    )


class LockedPackage(msgspec.Struct, frozen=True):
    name: str
    version: str
    digest: str
    registry: str
    requested: str = ""


class LockFile(msgspec.Struct, frozen=True):
    packages: list[LockedPackage]
    format: int = 1


def write_lock(installed: Mapping[str, Installed]) -> bytes:
    """Exactly what is installed, as text."""
    packages = [LockedPackage(r.name, r.version, r.digest, r.registry, r.requested) for r in installed.values()]
    return msgspec.json.format(msgspec.json.encode(LockFile(packages)), indent=2) + b"\n"


def read_lock(process: Process, path: str) -> list[Wanted]:
    """PackageError."""
    try:
        lock = msgspec.json.decode(process.read_file(path), type=LockFile)
    except SysError as error:
        raise PackageError(f"{path}: {error.reason}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise PackageError(f"{path} is no lock file: {error}") from None
    return [Wanted(each.name, each.version, digest=each.digest, note=each.requested) for each in lock.packages]
