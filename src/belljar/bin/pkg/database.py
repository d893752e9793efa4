"""What is installed, and which registries are used: files below /var/lib/pkg and /etc/pkg."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from belljar.abi.errors import SysError
from belljar.kernel.process import Process
from belljar.libc.toml import TomlError, parse_toml
from belljar.packages.errors import PackageError
from belljar.packages.manifest import Permissions

STATE: Final = "/var/lib/pkg"
INSTALLED: Final = f"{STATE}/installed"
CATALOGS: Final = f"{STATE}/catalogs"
CACHE: Final = "/var/cache/pkg"
REGISTRIES: Final = "/etc/pkg/registries.toml"
LOCAL: Final = "local file"
"""The registry of packages that came from none."""
PRIORITY: Final = 50


class Installed(Struct, frozen=True):
    """The record of an installed package."""

    name: str
    version: str
    digest: str
    registry: str
    requested: str = ""
    """The range that the user asked for; "": it is only there because others need it."""
    pinned: bool = False
    dependencies: dict[str, str] = {}
    description: str = ""
    permissions: Permissions = field(default_factory=Permissions)
    commands: list[str] = []
    services: list[str] = []
    mounts: list[str] = []
    """Where its file servers are mounted."""
    files: dict[str, str] = {}
    """Paths, with the digest of each file, or "link TARGET"."""
    directories: list[str] = []
    """Directories that were made for it, and go with the last package that uses them."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class Registry(Struct, frozen=True, forbid_unknown_fields=True):
    """A registry that is used."""

    name: str
    url: str
    priority: int = PRIORITY
    key: str = ""
    """The key that its catalogs must be signed by; "": that of the first one that is fetched."""


def record_path(name: str) -> str:
    return f"{INSTALLED}/{name}.json"


def read_installed(process: Process) -> dict[str, Installed]:
    """All records, by name. PackageError."""
    found: dict[str, Installed] = {}
    try:
        entries = sorted(entry.name for entry in process.fs.readdir(INSTALLED))
    except SysError:
        return {}
    for entry in entries:
        if entry.endswith(".json"):
            try:
                record = msgspec.json.decode(process.read_file(f"{INSTALLED}/{entry}"), type=Installed)
            except (msgspec.DecodeError, RecursionError) as error:
                raise PackageError(
                    f"{INSTALLED}/{entry} is damaged: {error}. Remove it, and install it again"
                ) from None
            found[record.name] = record
    return found


def read_registries(process: Process) -> dict[str, Registry]:
    """The registries in use, by name, those of higher priority first. PackageError."""
    data = process.try_read(REGISTRIES)
    if data is None:
        return {}
    try:
        tables: Any = parse_toml(data.decode())
        found = [msgspec.convert({"name": name, **table}, Registry) for name, table in tables.items()]
    except (UnicodeDecodeError, TomlError, msgspec.ValidationError, TypeError) as error:
        raise PackageError(f"{REGISTRIES}: {error}") from None
    return {registry.name: registry for registry in sorted(found, key=lambda r: (-r.priority, r.name))}


def write_registries(process: Process, registries: Iterable[Registry]) -> None:
    lines: list[str] = []
    for registry in registries:
        lines += [f"[{json.dumps(registry.name)}]", f"url = {json.dumps(registry.url)}"]
        lines += [f"priority = {registry.priority}", f"key = {json.dumps(registry.key)}", ""]
    process.fs.makedirs(REGISTRIES.rpartition("/")[0], 0o755)
    replace_file(process, REGISTRIES, "\n".join(lines).encode())


def replace_file(process: Process, path: str, data: bytes) -> None:
    """Write a file as a whole, or not at all."""
    process.write_file(f"{path}.new", data, 0o644)
    process.fs.rename(f"{path}.new", path)


def owner_of(installed: Iterable[Installed], path: str) -> Installed | None:
    """The package that a file belongs to."""
    return next((record for record in installed if path in record.files), None)
