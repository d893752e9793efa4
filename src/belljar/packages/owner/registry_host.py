"""A registry on disk: a signed catalog, and archives by digest. Any web server can serve the directory.

The key that signs is kept elsewhere: nothing secret is in what is served.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from msgspec.structs import replace

from belljar.packages.archive import Package, compress, unpacked
from belljar.packages.catalog import (
    DAY,
    FILE,
    VALID_DAYS_MAX,
    Catalog,
    Offer,
    archive_path,
    dated,
    encode_catalog,
    encode_envelope,
    expiry,
    format_key,
    open_envelope,
    parse_key,
)
from belljar.packages.errors import PackageError
from belljar.packages.resolve import Candidate, install_order
from belljar.packages.semver import satisfies, sort_key

_REGISTRY: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def default_keys() -> Path:
    """The directory of this user's signing keys."""
    base = os.environ.get("XDG_DATA_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "share") / "belljar" / "keys"


class Registry:
    """A registry that this user can change, if its key is here."""

    def __init__(self, directory: Path, key_file: Path | None = None) -> None:
        """PackageError if there is none, or if its catalog is not signed as it says."""
        self.directory = directory
        self._key_file = key_file
        self.catalog, self.key = self._read()

    @classmethod
    def create(
        cls, directory: Path, name: str | None = None, key_file: Path | None = None, valid_days: int = 0
    ) -> Registry:
        """Make an empty registry, and a key for it unless one is given. Its catalogs expire after so many days, unless
        that is 0. PackageError.
        """
        _check_days(valid_days)
        called = name or re.sub(r"[^a-z0-9._-]", "-", directory.resolve().name.lower())
        if not _REGISTRY.fullmatch(called):
            raise PackageError(f"{called!r} is no name for a registry: lower case letters, digits and . _ - (--name)")
        if (directory / FILE).exists():
            raise PackageError(
                f"{directory} is a registry already: `belljar registry add {directory} PACKAGE` adds to it"
            )
        try:
            directory.mkdir(parents=True, exist_ok=True)
            key = _load_key(key_file) if key_file is not None and key_file.exists() else Ed25519PrivateKey.generate()
            public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
            place = key_file or default_keys() / f"{public.hex()}.pem"
            if not place.exists():
                _save_key(place, key)
            (directory / "archives").mkdir(exist_ok=True)
            _write(directory / FILE, _sign(dated(Catalog(called, 1, valid_days=valid_days), time()), key))
        except OSError as error:
            raise PackageError(f"{error.filename or directory}: {error.strerror}") from None
        return cls(directory, key_file)

    def _read(self) -> tuple[Catalog, str]:
        try:
            data = (self.directory / FILE).read_bytes()
        except FileNotFoundError:
            raise PackageError(
                f"{self.directory} is no registry: `belljar registry init {self.directory}` makes one"
            ) from None
        except OSError as error:
            raise PackageError(f"{self.directory / FILE}: {error.strerror}") from None
        return open_envelope(data, str(self.directory), None)

    @property
    def key_path(self) -> Path:
        """Where its signing key is expected."""
        return self._key_file or default_keys() / f"{parse_key(self.key).hex()}.pem"

    def _signing_key(self) -> Ed25519PrivateKey:
        path = self.key_path
        if not path.exists():
            raise PackageError(
                f"the key of {self.directory} is not at {path}: only its owner can change it (--key FILE)"
            )
        key = _load_key(path)
        if format_key(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)) != self.key:
            raise PackageError(f"{path} is not the key of {self.directory}, which is {self.key}")
        return key

    def add(self, package: Package) -> bool:
        """Offer a package; False if it is offered already. PackageError: a version never changes."""
        manifest = package.manifest
        name, version = manifest.name, manifest.version
        archive = compress(package.tar)
        with self._changing() as key:
            versions = self.catalog.packages.get(name, {})
            known = next((v for v in versions if sort_key(v)[:2] == sort_key(version)[:2]), None)
            if known is not None:
                if versions[known].digest == package.digest and known == version:
                    return False
                raise PackageError(
                    f"{name} {known} is there already, with other contents. A version that was published never "
                    "changes: raise the version in package.toml"
                )
            offer = Offer(
                package.digest, len(package.tar), len(archive), manifest.dependencies, manifest.description,
                sorted(manifest.commands), manifest.permissions,
            )  # fmt: skip
            packages = {**self.catalog.packages, name: {**versions, version: offer}}
            _check_circles(packages)
            place = self.directory / archive_path(package.digest)
            place.parent.mkdir(exist_ok=True)
            _write(place, archive)
            self._publish(packages, key)
        return True

    def yank(self, name: str, version: str, reason: str) -> None:
        """Have a version not be chosen any more; who has it keeps it. PackageError."""
        with self._changing() as key:
            versions = self.catalog.packages.get(name, {})
            if version not in versions:
                have = ", ".join(versions) or "no version of it"
                raise PackageError(f"{self.directory} has no {name} {version}: it has {have}")
            offer = replace(versions[version], yanked=reason)
            self._publish({**self.catalog.packages, name: {**versions, version: offer}}, key)

    def refresh(self, valid_days: int | None = None) -> None:
        """Sign the catalog anew, so that it expires later; from now on after so many days, if that is given.
        PackageError.
        """
        if valid_days is not None:
            _check_days(valid_days)
        with self._changing() as key:
            if valid_days is not None:
                self.catalog = replace(self.catalog, valid_days=valid_days)
            self._publish(self.catalog.packages, key)

    def refresh_in_time(self) -> None:
        """Sign it anew if half of its time is over and the key is here. PackageError."""
        self.catalog, self.key = self._read()
        left = self.catalog.expires - time()
        if self.catalog.expires and left < self.catalog.valid_days * DAY / 2 and self.key_path.exists():
            self.refresh()

    def problems(self) -> Iterator[str]:
        """What is wrong with the catalog's date, and with the archives compared with the catalog."""
        if self.catalog.expires and time() >= self.catalog.expires:
            yield f"the catalog expired on {expiry(self.catalog)}: `belljar registry refresh` signs it anew"
        wanted: set[str] = set()
        for name, versions in self.catalog.packages.items():
            for version, offer in versions.items():
                path = archive_path(offer.digest)
                wanted.add(path.rpartition("/")[2])
                try:
                    package = unpacked((self.directory / path).read_bytes(), path)
                except FileNotFoundError:
                    yield f"{name} {version}: {path} is missing"
                    continue
                except (OSError, PackageError) as error:
                    yield f"{name} {version}: {error}"
                    continue
                manifest = package.manifest
                if package.digest != offer.digest:
                    yield f"{name} {version}: {path} is another package: its digest is {package.digest}"
                elif (manifest.name, manifest.version, manifest.dependencies) != (name, version, offer.dependencies):
                    yield f"{name} {version}: {path} says that it is {manifest.name} {manifest.version}"
        archives = self.directory / "archives"
        for entry in sorted(archives.iterdir()) if archives.is_dir() else ():
            if entry.name not in wanted:
                yield f"archives/{entry.name} belongs to no package"

    @contextmanager
    def _changing(self) -> Iterator[Ed25519PrivateKey]:
        """One change at a time, of what is there then. PackageError."""
        try:
            descriptor = os.open(self.directory, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                self.catalog, self.key = self._read()
                yield self._signing_key()
            finally:
                os.close(descriptor)
        except OSError as error:
            raise PackageError(f"{error.filename or self.directory}: {error.strerror}") from None

    def _publish(self, packages: dict[str, dict[str, Offer]], key: Ed25519PrivateKey) -> None:
        self.catalog = dated(replace(self.catalog, packages=packages, serial=self.catalog.serial + 1), time())
        _write(self.directory / FILE, _sign(self.catalog, key))


def _check_days(days: int) -> None:
    if not 0 <= days <= VALID_DAYS_MAX:
        raise PackageError(f"a catalog is valid for 1 to {VALID_DAYS_MAX} days, or for ever (0), not for {days}")


def _check_circles(packages: dict[str, dict[str, Offer]]) -> None:
    """Refuse packages whose newest versions need each other: nobody could install them. PackageError."""
    newest = {name: max(versions, key=sort_key) for name, versions in packages.items()}

    def met(name: str) -> dict[str, str]:
        needed = packages[name][newest[name]].dependencies
        return {dep: wanted for dep, wanted in needed.items() if dep in newest and satisfies(newest[dep], wanted)}

    install_order({name: Candidate(name, version, met(name)) for name, version in newest.items()})


def _sign(catalog: Catalog, key: Ed25519PrivateKey) -> bytes:
    text = encode_catalog(catalog)
    return encode_envelope(text, key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw), key.sign(text))


def _load_key(path: Path) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise PackageError(f"{path} is no key: {error}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise PackageError(f"{path} is no Ed25519 key")
    return key


def _save_key(path: Path, key: Ed25519PrivateKey) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _write(path: Path, data: bytes) -> None:
    """Replace a file as a whole: whoever fetches it meanwhile gets the old one or the new one."""
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(descriptor, 0o644)
            file.flush()
            os.fsync(descriptor)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
