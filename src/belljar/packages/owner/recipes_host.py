"""Packages that are made of archives of others: what is fetched is known by its digest, the rest is in `recipes/`."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tomllib
import urllib.request
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.packages.errors import PackageError

RECIPES: Final = Path(__file__).parents[1] / "recipes"
_NPM: Final = "https://registry.npmjs.org"
_ARCHIVE_MAX: Final = 256 << 20
_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to fetch, which files of it go where, and what is compiled."""

    name: str
    url: str
    sha256: str
    files: Mapping[str, str]
    """Patterns of paths in the archive, and where in the package these files go: a directory, or a file's own name."""
    compile: str = ""
    """Commands that make files of the fetched ones in a sandbox with `belljar prepare toolchain`'s compiler."""
    makes: Mapping[str, str] | None = None
    """Files that these commands make, and where in the package they go; the fetched ones are not in it then."""


def names() -> list[str]:
    """The packages that there are recipes for."""
    return sorted(path.parent.name for path in RECIPES.glob("*/recipe.toml"))


def read_recipe(name: str) -> Recipe:
    """The recipe of a package. PackageError."""
    if name not in names():
        raise PackageError(f"there is no recipe for {name}: there are {', '.join(names())}")
    return Recipe(name, **tomllib.loads((RECIPES / name / "recipe.toml").read_text("utf-8")))


def own_files(recipe: Recipe) -> dict[str, bytes]:
    """The files of the package that are ours, by their places in it."""
    top = RECIPES / recipe.name
    paths = (path for path in sorted(top.rglob("*")) if path.is_file() and path.name != "recipe.toml")
    return {path.relative_to(top).as_posix(): path.read_bytes() for path in paths}


def fetch_files(recipe: Recipe, fetch: Callable[[str], bytes] | None = None) -> dict[str, bytes]:
    """The files of the archive that are needed, by where they go. PackageError."""
    archive = (fetch or _fetch)(recipe.url)
    if hashlib.sha256(archive).hexdigest() != recipe.sha256:
        raise PackageError(f"{recipe.url} is not the archive that belljar knows: nothing was kept")
    found: dict[str, bytes] = {}
    missing = set(recipe.files)
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        for member in members:
            for pattern, place in recipe.files.items():
                if (
                    member.isreg()
                    and fnmatchcase(member.name, pattern)
                    and member.name.count("/") == pattern.count("/")
                ):
                    file = members.extractfile(member)
                    assert file is not None
                    found[_place(place, member.name)] = file.read()
                    missing.discard(pattern)
    if missing:
        raise PackageError(f"{recipe.url}: it has no {', '.join(sorted(missing))}")
    return found


def _place(place: str, name: str) -> str:
    path, own = PurePosixPath(place), PurePosixPath(name)
    return str(path if path.suffix == ".mjs" else path / own.name)


def _fetch(url: str) -> bytes:
    registry = os.environ.get("NPM_CONFIG_REGISTRY")
    if registry and url.startswith(_NPM):
        url = registry.rstrip("/") + url.removeprefix(_NPM)
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as response:  # noqa: S310 - the digest is known
            data: bytes = response.read(_ARCHIVE_MAX)
    except (OSError, ValueError) as error:
        raise PackageError(f"{url} can't be fetched: {error}; behind a proxy set https_proxy") from None
    return data
