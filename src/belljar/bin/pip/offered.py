"""`pip index`, `pip cache` and `pip hash`: what an index has, what is kept, and what a file is."""

from __future__ import annotations

import hashlib
import json

from packaging.utils import canonicalize_name

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import count, flag, many, value
from belljar.bin.pip.config import read_settings
from belljar.bin.pip.environment import find_environment, installed
from belljar.bin.pip.finder import IndexFinder
from belljar.bin.pip.problems import PipError
from belljar.bin.pip.requirements import Asked
from belljar.bin.pip.store import Store
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class IndexOptions:
    index_url: str | None = value("-i", "--index-url", "base URL of the package index", metavar="url")
    extra_index_urls: tuple[str, ...] = many("--extra-index-url", "a further index", metavar="url")
    pre: bool = flag("--pre", "include pre-releases")
    json: bool = flag("--json", "as JSON")
    ignored: tuple[str, ...] = many("--python-version", "--platform", "--trusted-host", "(accepted)", metavar="value")
    quiet: int = count("-q", "--quiet", "say less")
    accepted: int = count("-v", "--verbose", "--disable-pip-version-check", "--no-color", "(accepted)")


@dataclass(frozen=True, slots=True)
class PlainOptions:
    algorithm: str = value("-a", "--algorithm", "sha256, sha384 or sha512", metavar="name", default="sha256")
    quiet: int = count("-q", "--quiet", "say less")
    accepted: int = count("-v", "--verbose", "--disable-pip-version-check", "--no-color", "--format", "(accepted)")


def make_finder(process: Process, options: IndexOptions, command: str) -> IndexFinder:
    """A finder for the indexes that options, the environment and pip's settings name."""
    settings = read_settings(process, find_environment(process), command)
    asked = Asked(
        index_url=options.index_url or process.env.get("PIP_INDEX_URL") or settings.get("index-url"),
        extra_index_urls=[
            *options.extra_index_urls,
            *process.env.get("PIP_EXTRA_INDEX_URL", settings.get("extra-index-url", "")).split(),
        ],
    )
    return IndexFinder(process, Store(process), asked, 1)


def run_index(process: Process, options: IndexOptions, operands: list[str]) -> int:
    match operands:
        case ["versions", name]:
            pass
        case ["versions", *_]:
            raise PipError("You need to specify exactly one argument")
        case _:
            raise PipError("Need an action (versions) to perform.")
    key = canonicalize_name(name)
    finder = make_finder(process, options, "index")
    offers, everything = finder.offers(key)
    usable = {offer.version for offer in offers if options.pre or not offer.version.is_prerelease}
    versions = sorted(usable, reverse=True)
    if not versions:
        if everything:
            raise PipError(
                f"No matching distribution found for {name}",
                "Its files have compiled parts, or are for other Pythons: only pure Python can be installed here.",
            )
        raise PipError(f"No matching distribution found for {name}")
    here = installed(process, find_environment(process)).get(key)
    if options.json:
        shown = {"name": name, "versions": [str(v) for v in versions], "latest": str(versions[0])}
        if here is not None:
            shown["installed_version"] = str(here.version)
        process.print(json.dumps(shown))
        return 0
    process.print(f"{name} ({versions[0]})\nAvailable versions: {', '.join(map(str, versions))}")
    if here is not None:
        process.print(f"  INSTALLED: {here.version}\n  LATEST:    {versions[0]}")
    return 0


def run_cache(process: Process, options: PlainOptions, operands: list[str]) -> int:
    """Report that there is no cache."""
    folder = f"{process.env.get('HOME', '')}/.cache/pip"
    match operands:
        case ["dir"]:
            process.print(folder)
        case ["info"]:
            process.print(
                f"Package index page cache location: {folder}/http-v2\nPackage index page cache size: 0 bytes"
            )
            process.print("Number of HTTP files: 0\nNumber of locally built wheels: 0")
        case ["list", *_]:
            process.print("No locally built wheels cached.")
        case ["purge"]:
            process.error("WARNING: No matching packages\n")
            process.print("Files removed: 0 (0 bytes)")
        case ["remove", pattern]:
            process.error(f'WARNING: No matching packages for pattern "{pattern}"\n')
            process.print("Files removed: 0 (0 bytes)")
        case _:
            raise PipError("Need an action (dir, info, list, purge, remove) to perform.")
    return 0


def run_hash(process: Process, options: PlainOptions, operands: list[str]) -> int:
    if options.algorithm not in ("sha256", "sha384", "sha512"):
        raise PipError(
            f"option -a: invalid choice: {options.algorithm!r} (choose from 'sha256', 'sha384', 'sha512')", status=2
        )
    if not operands:
        raise PipError("You must give at least one file to hash")
    for name in operands:
        digest = hashlib.new(options.algorithm)
        try:
            for chunk in process.chunks(name):
                digest.update(chunk)
        except SysError as error:
            raise PipError(f"Could not open {name}: {error.reason}") from None
        process.print(f"{name}:\n--hash={options.algorithm}:{digest.hexdigest()}")
    return 0
