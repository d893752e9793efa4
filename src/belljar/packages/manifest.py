"""`package.toml`: what a package is and brings, checked.

    name = "hello"
    version = "1.0.0"
    description = "Greets whoever asks"

    [commands]
    hello = "bin/hello.py"

docs/packages.md describes every key. A manifest that was parsed has been checked as far as that goes without the
files; `check_files` does the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from belljar.abi.dataclass import dataclass
from belljar.libc.toml import TomlError, parse_toml
from belljar.packages.errors import PackageError
from belljar.packages.semver import Version, parse_range, parse_version

FILE: Final = "package.toml"
SIZE_MAX: Final = 256 << 10
"""Bytes of a package.toml."""
_DEPTH_MAX: Final = 64
"""Names in one path."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._+-]{0,63}")
_COMMAND: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}")
_VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?", re.A)
_HOST: Final = re.compile(r"(\*\.)?[A-Za-z0-9.-]+(:\d{1,5})?|\[[0-9a-fA-F:]+\](:\d{1,5})?")
_TARGETS: Final = ("/usr/local/", "/opt/", "/etc/", "/srv/")
"""Where [files] may go: never over the programs that a sandbox has, nor into what belongs to users or the kernel."""
_OURS: Final = ("/etc/pkg", "/etc/init", "/usr/local/bin", "/usr/local/lib/pkg")
"""Not there either: these are filled from the other tables."""
_PATH_MAX: Final = 1024


class Emscripten(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A command that Emscripten compiled: JavaScript glue with its .wasm file beside it."""

    emscripten: str
    sync: tuple[str, ...] = (".",)
    """What it is given of the sandbox's files, beside those its arguments name; relative to where it is called."""


class Libraries(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Directories whose contents the sandbox's Python or node can import."""

    python: str | None = None
    node: str | None = None


class Permissions(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the commands need of the sandbox. It is shown, and grants nothing."""

    network: list[str] = []
    mounts: list[str] = []

    def __str__(self) -> str:
        parts = [("network", self.network), ("mounts", self.mounts)]
        return "; ".join(f"{name} {', '.join(values)}" for name, values in parts if values)


class Scripts(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="kebab"):
    post_install: str | None = None


class Build(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What `belljar package build` does first."""

    wasm: str | None = None
    """Compile the sources in this directory by `belljar wasm build` to commands in `build/`."""


class FileServer(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A program that serves files: a service that posts /mnt/srv/NAME, and where that is mounted."""

    command: str
    mount: str


class Manifest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="kebab"):
    name: str
    version: str
    description: str = ""
    license: str = ""
    homepage: str = ""
    exclude: list[str] = []
    """Patterns of paths that are not packed."""
    dependencies: dict[str, str] = {}
    commands: dict[str, str | Emscripten] = {}
    libraries: Libraries = field(default_factory=Libraries)
    files: dict[str, str] = {}
    services: dict[str, dict[str, Any]] = {}
    file_servers: dict[str, FileServer] = {}
    permissions: Permissions = field(default_factory=Permissions)
    scripts: Scripts = field(default_factory=Scripts)
    build: Build = field(default_factory=Build)

    @property
    def parsed_version(self) -> Version:
        found = parse_version(self.version)
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file of a package, as far as checking it needs."""

    path: str
    executable: bool
    head: bytes
    """Its first bytes."""


def parse_manifest(text: str) -> Manifest:
    """Read a package.toml. PackageError."""
    if len(text) > SIZE_MAX:
        raise PackageError(f"{FILE}: it has more than {SIZE_MAX:,} bytes")
    try:
        data = parse_toml(text)
    except TomlError as error:
        raise PackageError(f"{FILE}: {error}") from None
    try:
        manifest = msgspec.convert(data, Manifest)
    except msgspec.ValidationError as error:
        raise PackageError(f"{FILE}: {_plain(str(error))}") from None
    for problem in _problems(manifest):
        raise PackageError(f"{FILE}: {problem}")
    return manifest


def _plain(message: str) -> str:
    """msgspec's words in ours: "Expected `str`, got `int` - at `$.commands[...]`"."""
    said, _, where = message.partition(" - at `$")
    said = said.replace("Object contains unknown field", "there is no key").replace(
        "Object missing required field", "missing:"
    )
    said = re.sub(r"Expected `(.*)`, got `(.*)`", r"a value of type \1 is needed, this is \2", said)
    place = where.rstrip("`").lstrip(".")
    return f"{place}: {said}" if place else said


def _problems(manifest: Manifest) -> Iterator[str]:
    if not _NAME.fullmatch(manifest.name):
        yield f"name: {manifest.name[:80]!r} is no name: lower case letters, digits and . _ + -, at most 64"
    if not _VERSION.fullmatch(manifest.version) or parse_version(manifest.version) is None:
        yield f"version: {manifest.version[:80]!r} is no version: write it as 1.2.3 or 1.2.3-beta.1"
    for name, wanted in manifest.dependencies.items():
        if not _NAME.fullmatch(name):
            yield f"dependencies: {name[:80]!r} is no name of a package"
        if parse_range(wanted) is None:
            yield f"dependencies.{name}: {wanted[:80]!r} is no range of versions: write ^1.2, ~1.2, >=1 <3 or *"
        if name == manifest.name:
            yield f"dependencies.{name}: a package can't need itself"
    for command, value in manifest.commands.items():
        if not _COMMAND.fullmatch(command):
            yield f"commands: {command[:80]!r} can't be typed as a command"
        yield from _bad_path(f"commands.{command}", value if isinstance(value, str) else value.emscripten)
    for what, path in _sources(manifest):
        yield from _bad_path(what, path)
    for source, target in manifest.files.items():
        yield from _bad_target(f"files.{source}", target)
    for name in (*manifest.services, *manifest.file_servers):
        if not _COMMAND.fullmatch(name):
            yield f"{name[:80]!r} is no name of a service"
    for name, server in manifest.file_servers.items():
        if name in manifest.services:
            yield f"{name} is a service and a file server: rename one of them"
        if not server.mount.startswith("/mnt/") or ".." in server.mount.split("/") or len(server.mount) > _PATH_MAX:
            yield f"file-servers.{name}: mount is a path below /mnt, not {server.mount[:80]!r}"
    for host in manifest.permissions.network:
        if not _HOST.fullmatch(host):
            yield f"permissions.network: {host[:80]!r} is no host: write api.example.com or *.example.com"
    for mount in manifest.permissions.mounts:
        if not mount.startswith("/") or not mount.isprintable():
            yield f"permissions.mounts: {mount[:80]!r} is no absolute path"
    for what, text in (("description", manifest.description), ("license", manifest.license),
                       ("homepage", manifest.homepage)):  # fmt: skip
        if not text.isprintable() or len(text) > 1000:
            yield f"{what}: one line of text, at most 1000 characters"


def _sources(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """The paths of a manifest that name files or directories of the package, beside commands."""
    found = {
        "libraries.python": manifest.libraries.python,
        "libraries.node": manifest.libraries.node,
        "scripts.post-install": manifest.scripts.post_install,
        **{f"files.{source}": source for source in manifest.files},
    }
    yield from ((what, path) for what, path in found.items() if path is not None)


def is_name(text: str) -> bool:
    """Whether it can be the name of a package."""
    return _NAME.fullmatch(text) is not None


def is_inner(path: str) -> bool:
    """Whether a path is one of a package's files: relative, with nothing in it that means another place."""
    parts = path.split("/")
    if not 0 < len(path) <= _PATH_MAX or len(parts) > _DEPTH_MAX or not path.isprintable():
        return False
    return not {"", ".", ".."} & set(parts) and "\\" not in path


def ancestors(path: str) -> Iterator[str]:
    """The directories that a path is in, the nearest first."""
    while path := path.rpartition("/")[0]:
        yield path


def _bad_path(what: str, path: str) -> Iterator[str]:
    if not is_inner(path):
        yield f"{what}: {path[:80]!r} is no path in the package: write it relative to {FILE}, without '..'"


def _bad_target(what: str, target: str) -> Iterator[str]:
    if not target.startswith("/") or not is_inner(target[1:]):
        yield f"{what}: {target[:80]!r} is no absolute path, or has '..' or a slash too many"
    elif not target.startswith(_TARGETS):
        yield f"{what}: files go below {', '.join(_TARGETS)}, not to {target[:80]}"
    elif any(target == place or target.startswith(place + "/") for place in _OURS):
        yield f"{what}: {target[:80]} is filled from other tables: use [commands], [libraries] or [services]"


def command_kind(path: str, head: bytes) -> str:
    """What runs a command: python, javascript, shell or wasm; "" if it can't be told."""
    if head.startswith(b"\0asm"):
        return "wasm"
    ending = path.rpartition("/")[2].rpartition(".")[2]
    kinds = {"py": "python", "mjs": "javascript", "js": "javascript", "cjs": "javascript", "sh": "shell"}
    if ending in kinds:
        return kinds[ending]
    line = head.partition(b"\n")[0]
    if line.startswith(b"#!"):
        for word, kind in ((b"python", "python"), (b"node", "javascript"), (b"sh", "shell")):
            if word in line:
                return kind
    return ""


def check_files(manifest: Manifest, files: Iterable[PackedFile]) -> None:
    """Check that what a manifest names is there and can be run. PackageError."""
    known: Mapping[str, PackedFile] = {file.path: file for file in files}
    directories = {above for path in known for above in ancestors(path)}
    for command, value in manifest.commands.items():
        path = value if isinstance(value, str) else value.emscripten
        if path not in known:
            hint = f": `belljar package build` compiles {manifest.build.wasm} to build/" if manifest.build.wasm else ""
            raise PackageError(f"{FILE}: commands.{command}: there is no file {path!r}{hint}")
        if isinstance(value, str) and not command_kind(path, known[path].head):
            raise PackageError(
                f"{FILE}: commands.{command}: what runs {path!r} can't be told: it ends with .py, .mjs, .js or .sh, "
                "begins with a #! line, or is WebAssembly"
            )
        if isinstance(value, Emscripten) and not path.endswith((".js", ".mjs", ".cjs")):
            raise PackageError(f"{FILE}: commands.{command}: Emscripten's glue is a .js file, not {path!r}")
    for what, path in _sources(manifest):
        if path not in known and path not in directories:
            raise PackageError(f"{FILE}: {what}: there is no {path!r}")
        if what.startswith("libraries.") and path in known:
            raise PackageError(f"{FILE}: {what}: {path!r} is a file; name the directory with the modules in it")
    if not (manifest.commands or manifest.files or manifest.services or manifest.file_servers or manifest.dependencies
            or manifest.libraries.python or manifest.libraries.node):  # fmt: skip
        raise PackageError(
            f"{FILE}: the package brings nothing: give it [commands], [libraries], [files] or [services]"
        )
