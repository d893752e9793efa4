"""Where packages are installed and what is there: the site-packages of the interpreter or of a venv, markers, tags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import InvalidVersion, Version

from belljar.abi.base import PYTHON_VERSION
from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit.cstack import parse_json
from belljar.bin.pip.metadata import Metadata, parse_metadata
from belljar.bin.pip.places import PIP_VERSION, PREFIX, PYTHON, site_of
from belljar.kernel.process import Process

PYTHON_FULL_VERSION: Final = "3.15.0"

MARKERS: Final = {
    "implementation_name": "cpython",
    "implementation_version": PYTHON_FULL_VERSION,
    "os_name": "posix",
    "platform_machine": "wasm32",
    "platform_python_implementation": "CPython",
    "platform_release": "0.0.0",
    "platform_system": "wasi",
    "platform_version": "0.0.0",
    "python_full_version": PYTHON_FULL_VERSION,
    "python_version": PYTHON_VERSION,
    "sys_platform": "wasi",
}


def supported_tags() -> dict[Tag, int]:
    """The tags of wheels that run here, best first: pure Python only."""
    major, minor = PYTHON
    names = [f"cp{major}{minor}", f"py{major}{minor}", f"py{major}"]
    names += [f"py{major}{older}" for older in range(minor - 1, -1, -1)]
    return {Tag(name, "none", "any"): rank for rank, name in enumerate(names)}


def applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    """Whether a requirement's marker holds here, with any of these extras (none: the plain package)."""
    if requirement.marker is None:
        return True
    return any(requirement.marker.evaluate({**MARKERS, "extra": extra}) for extra in extras or {""})


@dataclass(frozen=True, slots=True)
class Distribution:
    """An installed package."""

    name: str
    version: Version
    location: str
    """Its site-packages."""
    info: str | None
    """Its .dist-info directory; None for one that comes with the interpreter."""
    metadata: Metadata

    @property
    def key(self) -> NormalizedName:
        return canonicalize_name(self.name)

    def requires(self, extras: frozenset[str] = frozenset()) -> Iterator[Requirement]:
        """Yield the requirements that apply here."""
        for text in self.metadata.get("requires_dist", []):
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                continue
            if applies(requirement, extras):
                yield requirement


ITSELF: Final = canonicalize_name("pip")


@dataclass(frozen=True, slots=True)
class Environment:
    """One place to install into."""

    prefix: str
    site: str
    scripts: str
    python: str
    is_venv: bool
    system_site: bool

    def sites(self) -> tuple[str, ...]:
        return (self.site, site_of(PREFIX)) if self.is_venv and self.system_site else (self.site,)


def find_environment(process: Process) -> Environment:
    """The venv whose bin/ this command was called from, or the interpreter's own place."""
    called = process.executable or ""
    prefix = called.rpartition("/bin/")[0]
    try:
        settings = process.read_file(f"{prefix}/pyvenv.cfg").decode("utf-8", "replace")
    except SysError:
        return Environment(PREFIX, site_of(PREFIX), f"{PREFIX}/bin", "/usr/bin/python3", False, True)
    system = re.search(r"(?im)^include-system-site-packages\s*=\s*true", settings) is not None
    return Environment(prefix, site_of(prefix), f"{prefix}/bin", f"{prefix}/bin/python3", True, system)


def installed(
    process: Process, environment: Environment, *, bundled: bool = True
) -> dict[NormalizedName, Distribution]:
    """Everything that is there, by name; a venv's own packages first. Without `bundled`: what was installed."""
    found: dict[NormalizedName, Distribution] = {}
    for site in environment.sites():
        for distribution in read_site(process, site):
            found.setdefault(distribution.key, distribution)
    for distribution in (
        _bundled(process, packages=not environment.is_venv or environment.system_site) if bundled else ()
    ):
        found.setdefault(distribution.key, distribution)
    if bundled:
        found[ITSELF] = itself()
    return found


def itself() -> Distribution:
    """Return this pip: a command of the sandbox and no package, so that nothing can replace it."""
    text = f"Name: {ITSELF}\nVersion: {PIP_VERSION}\nSummary: Installs Python packages; a part of this sandbox.\n\n"
    found = read_distribution(text.encode(), site_of(PREFIX), None)
    assert found is not None
    return found


def read_site(process: Process, site: str) -> Iterator[Distribution]:
    try:
        entries = process.fs.readdir(site)
    except SysError:
        return
    for entry in sorted(entries, key=lambda entry: entry.name):
        process.budget.charge()
        if entry.name.endswith(".dist-info"):
            info = f"{site}/{entry.name}"
            if (data := process.try_read(f"{info}/METADATA")) is None:
                continue
            distribution = read_distribution(data, site, info)
            if distribution is not None:
                yield distribution


def read_distribution(data: bytes, location: str, info: str | None) -> Distribution | None:
    """Parse a METADATA file; None if it names no version."""
    metadata = parse_metadata(data)
    try:
        return Distribution(metadata["name"], Version(metadata["version"]), location, info, metadata)
    except (KeyError, InvalidVersion):
        return None


_LIST: Final = """
import importlib.metadata, json
found = importlib.metadata.distributions(path=[{paths}])
print(json.dumps([(one.read_text("METADATA") or "").partition("\\n\\n")[0] for one in found]))
"""


def _bundled(process: Process, *, packages: bool) -> Iterator[Distribution]:
    """The packages inside the interpreter's own library: only it can see them, so it is asked.

    `packages`: those beside it, too, which a virtual environment does not see.
    """
    paths = ["/usr/local/lib/python315.zip", *(["/usr/local/lib/python315-packages.zip"] if packages else [])]
    text = _LIST.replace("{paths}", ", ".join(map(repr, paths)))
    reader, writer = process.pipe(cloexec=True)
    output = process.fds[writer]
    try:
        child = process.spawn(["/usr/bin/python3", "-I", "-c", text], stdout=output, stderr=output)
    except SysError:
        process.close(reader)
        return
    finally:
        process.close(writer)
    parts = []
    while data := process.read(reader, 1 << 20):
        parts.append(data)
    process.close(reader)
    if process.wait_for(child).shell != 0:
        return  # there is no interpreter: whoever calls it is told
    try:
        texts = parse_json(b"".join(parts))
    except (ValueError, RecursionError):
        return
    for text in texts if isinstance(texts, list) else []:
        distribution = read_distribution(str(text).encode() + b"\n", site_of(PREFIX), None)
        if distribution is not None:
            yield distribution


def normal_path(path: str) -> str:
    """Remove `.` and `..` lexically."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)
