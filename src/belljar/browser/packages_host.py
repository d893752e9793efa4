"""Packages for guest Python that the page's owner hosts: wheels, unpacked beside the guest's own modules.

Compiled ones must be made for the pinned Pyodide. Their digests go into a file of the guest, and guest Python loads no
other compiled code (page/engine_modules.mjs).
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from belljar.browser.errors import BuildError
from belljar.browser.parts_host import PYODIDE_PLATFORM

_SECONDS: Final = 600
_PYTHON: Final = "cp314"
_SKIPPED: Final = (".pyi", ".h", ".pxd", ".a")
_COMPILED: Final = "compiled.json"


def unpack_packages(named: Sequence[str], scratch: Path, known: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Files of wheels, and their names beside the guest's modules; with a list of the compiled ones among them.

    A name is a directory of wheels, one wheel, or what pip understands. `known`: digests of Pyodide's own wheels by
    their file names, which a compiled wheel of that name must have. BuildError.
    """
    place = scratch / "site-packages"
    place.mkdir(parents=True)
    for wheel in _wheels(named, scratch / "wheels"):
        _check_wheel(wheel, known)
        with zipfile.ZipFile(wheel) as archive:
            for info in archive.infolist():
                name = _installed_name(info.filename)
                if name is None or info.is_dir():
                    continue
                target = place / name
                if not target.resolve().is_relative_to(place.resolve()):
                    raise BuildError(f"{wheel.name} has a file outside of itself: {info.filename}")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(info))
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(place.rglob("*.so"))]
    (place / _COMPILED).write_text(json.dumps(digests))
    for path in sorted(place.rglob("*")):
        if path.is_file():
            yield path.relative_to(place).as_posix(), path


def _wheels(named: Sequence[str], downloads: Path) -> list[Path]:
    found: list[Path] = []
    wanted: list[str] = []
    for name in named:
        path = Path(name)
        if path.is_dir():
            wheels = sorted(path.glob("*.whl"))
            if not wheels:
                raise BuildError(f"{path} has no wheels in it")
            found += wheels
        elif path.suffix == ".whl":
            if not path.is_file():
                raise BuildError(f"{path}: there is no such file")
            found.append(path)
        else:
            wanted.append(name)
    if wanted:
        downloads.mkdir()
        _download(wanted, downloads)
        found += sorted(downloads.glob("*.whl"))
    return found


def _download(wanted: list[str], into: Path) -> None:
    """Fetch wheels and what they need by pip, so that the index is the one this machine is set up for."""
    python = [f"--platform={PYODIDE_PLATFORM}", "--python-version=3.14", "--implementation=cp"]
    abis = [f"--abi={_PYTHON}", "--abi=abi3", "--abi=none"]
    options = ["--quiet", "--only-binary=:all:", *python, *abis, f"--dest={into}"]
    command = [sys.executable, "-m", "pip", "download", *options]
    try:
        subprocess.run([*command, "--", *wanted], check=True, capture_output=True, timeout=_SECONDS)  # noqa: S603
    except subprocess.CalledProcessError as error:
        said = [line for line in error.stderr.decode("utf-8", "replace").splitlines() if line.startswith("ERROR")]
        raise BuildError(
            f"{', '.join(wanted)}: {said[-1] if said else error}. A page takes packages without compiled parts, "
            f"and those that have a wheel for {_PYTHON} and {PYODIDE_PLATFORM}"
        ) from None
    except subprocess.TimeoutExpired:
        raise BuildError(f"{', '.join(wanted)}: not fetched within {_SECONDS} seconds: try again") from None


def _check_wheel(wheel: Path, known: Mapping[str, str]) -> None:
    parts = wheel.stem.split("-")
    if len(parts) < 5:
        raise BuildError(f"{wheel.name} has no name of a wheel")
    python, abi, platform = (set(part.split(".")) for part in parts[-3:])
    if "any" in platform and "py3" in python:
        return
    if PYODIDE_PLATFORM not in platform or not (_PYTHON in python & abi or "abi3" in abi):
        raise BuildError(
            f"{wheel.name} is for another Python: a page takes py3-none-any, and {_PYTHON}-{_PYTHON}-{PYODIDE_PLATFORM}"
        )
    wanted = known.get(wheel.name)
    if wanted is not None and hashlib.sha256(wheel.read_bytes()).hexdigest() != wanted:
        raise BuildError(f"{wheel.name} has another digest than Pyodide's list of packages has for it: fetch it again")


def _installed_name(name: str) -> str | None:
    """Where a file of a wheel is installed; None: it is not needed."""
    top, _, rest = name.partition("/")
    if top.endswith(".data"):
        kind, _, inside = rest.partition("/")
        return inside if kind in ("purelib", "platlib") and inside else None
    return None if name.endswith(_SKIPPED) else name
