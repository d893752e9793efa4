"""Where the files of a package go in a sandbox: a pure function of its manifest and the files it has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote
from typing import Any, Final

from belljar.abi.base import PYTHON_SITE
from belljar.abi.dataclass import dataclass
from belljar.kernel.services.unit import SUFFIX, UNITS, UnitError, make_unit, render_unit
from belljar.packages.emscripten import runner
from belljar.packages.errors import PackageError
from belljar.packages.manifest import FILE, Emscripten, FileServer, Manifest, PackedFile, ancestors, command_kind

HOME: Final = "/usr/local/lib/pkg"
"""Each package has a directory here, with all of its files that belong nowhere else."""
COMMANDS: Final = "/usr/local/bin"
NODE_MODULES: Final = "/node_modules"
"""Found from every directory by Node's own rules."""
_SERVING: Final = """\
rm -f /mnt/srv/{name} /run/{name}.mounted
({command}) &
trap 'rm -f /run/{name}.mounted; kill $!' TERM
until [ -e /mnt/srv/{name} ]; do kill -0 $! || exit; sleep 0.1; done
mkdir -p {mount}
umount --system {mount} 2>/dev/null
mount --system /mnt/srv/{name} {mount} && touch /run/{name}.mounted || kill $!
wait $!
"""
_INTERPRETERS: Final = {"python": "python3", "javascript": "node", "shell": "bash"}


@dataclass(frozen=True, slots=True)
class Placed:
    """One file of an installed package: a file of the archive, text, or a symbolic link."""

    path: str
    mode: int = 0o644
    source: str | None = None
    text: bytes | None = None
    link: str | None = None


def lay_out(manifest: Manifest, files: Iterable[PackedFile]) -> list[Placed]:
    """Everything that an installation makes, by path. PackageError if two things would be in one place."""
    home = f"{HOME}/{manifest.name}"
    known = {file.path: file for file in files}
    commands = {value for value in manifest.commands.values() if isinstance(value, str)}
    found = [
        Placed(_target(manifest, path, home), 0o755 if file.executable or path in commands else 0o644, source=path)
        for path, file in known.items()
    ]
    for name, value in manifest.commands.items():
        found += _command(name, value, home, known)
    found += _services(manifest)
    by_path: dict[str, Placed] = {}
    for placed in found:
        other = by_path.setdefault(placed.path, placed)
        if other is not placed:
            raise PackageError(f"{manifest.name}: {placed.path} would be two things: rename one of them")
    for above in {above for path in by_path for above in ancestors(path)}:
        if above in by_path:
            raise PackageError(f"{manifest.name}: {above} would be a file and a directory")
    return sorted(found, key=lambda placed: placed.path)


def _target(manifest: Manifest, path: str, home: str) -> str:
    python, node = manifest.libraries.python, manifest.libraries.node
    if python is not None and path.startswith(python + "/"):
        return PYTHON_SITE + path[len(python) :]
    if node is not None and path.startswith(node + "/"):
        return NODE_MODULES + path[len(node) :]
    for source in (path, *ancestors(path)):
        if source in manifest.files:
            return manifest.files[source] + path[len(source) :]
    return f"{home}/{path}"


def _command(name: str, value: str | Emscripten, home: str, known: dict[str, PackedFile]) -> list[Placed]:
    if isinstance(value, Emscripten):
        script = f"{home}/.{name}.cjs"
        return [
            Placed(script, text=runner(f"{home}/{value.emscripten}", name, value.sync).encode()),
            Placed(f"{COMMANDS}/{name}", 0o755, text=_launcher("node", script)),
        ]
    kind = command_kind(value, known[value].head)
    if kind == "wasm":
        return [Placed(f"{COMMANDS}/{name}", link=f"{home}/{value}")]
    return [Placed(f"{COMMANDS}/{name}", 0o755, text=_launcher(_INTERPRETERS[kind], f"{home}/{value}"))]


def _launcher(interpreter: str, script: str) -> bytes:
    return f'#!/bin/sh\nexec {interpreter} {quote(script)} "$@"\n'.encode()


def _services(manifest: Manifest) -> Iterator[Placed]:
    """The services of a package, file servers among them, as init's files have them. PackageError."""
    tables = {**manifest.services, **{name: _serving(name, server) for name, server in manifest.file_servers.items()}}
    for name, table in tables.items():
        try:
            text = render_unit(make_unit(name, table))
        except UnitError as error:
            raise PackageError(f"{FILE}: service {name}: {error}") from None
        yield Placed(f"{UNITS}/{name}{SUFFIX}", text=text.encode())


def _serving(name: str, server: FileServer) -> dict[str, Any]:
    """A file server as a service: once it has posted itself it is mounted for all, again after each restart."""
    return {
        "command": _SERVING.format(command=server.command, name=name, mount=quote(server.mount)),
        "ready": f"file:/run/{name}.mounted",
        "user": "root",
        "restart": "always",
    }
