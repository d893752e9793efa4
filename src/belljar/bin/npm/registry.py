"""Package metadata of registries: versions and tags, and the version that a range selects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from belljar.bin.npm.config import Config
from belljar.bin.npm.fetch import Fetcher, Missing
from belljar.bin.npm.lanes import Lanes, Later
from belljar.bin.npm.packagejson import load
from belljar.bin.npm.problems import NpmError, coded
from belljar.bin.npm.spec import Spec
from belljar.kernel.process import Process
from belljar.packages.semver import parse_range, parse_version, satisfies, sort_key

BRIEF: Final = "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*"
WHOLE: Final = "application/json"
NODE_VERSION: Final = "24.11.0"
"""The oldest Node that may be here (pyproject.toml): what `engines` are checked against."""
_KEPT: Final = (
    "name version dependencies optionalDependencies peerDependencies peerDependenciesMeta bundleDependencies "
    "bundledDependencies bin engines os cpu libc dist deprecated hasInstallScript license funding workspaces"
).split()
_INSTALLING: Final = frozenset({"preinstall", "install", "postinstall"})

Manifest = Mapping[str, Any]


def _brief(page: dict[str, Any]) -> dict[str, Any]:
    """Without what an install does not ask about: hundreds of these are held at once."""
    versions = page.get("versions")
    kept: dict[str, Any] = {}
    for version, manifest in versions.items() if isinstance(versions, dict) else ():
        if isinstance(manifest, dict):
            kept[version] = {key: manifest[key] for key in _KEPT if key in manifest}
            scripts = manifest.get("scripts")
            if isinstance(scripts, dict) and not _INSTALLING.isdisjoint(scripts):
                kept[version]["hasInstallScript"] = True
    return {"dist-tags": page.get("dist-tags"), "versions": kept}


class Packument:
    """All that a registry says of one name."""

    def __init__(self, name: str, page: Any) -> None:
        versions, tags = page.get("versions"), page.get("dist-tags")
        self.name = name
        self.page: Mapping[str, Any] = page
        self.versions: dict[str, Manifest] = (
            {v: m for v, m in versions.items() if isinstance(m, dict)} if isinstance(versions, dict) else {}
        )
        self.tags: dict[str, str] = (
            {t: v for t, v in tags.items() if isinstance(v, str)} if isinstance(tags, dict) else {}
        )

    def pick(self, spec: Spec, tag: str = "latest") -> Manifest:
        """The version that a spec means. ETARGET."""
        found = self._pick(spec, tag)
        if found is None:
            shown = spec.wanted if spec.kind != "range" or spec.wanted != "*" else tag
            raise coded(
                "ETARGET",
                f"No matching version found for {self.name}@{shown}.",
                "In most cases you or one of your dependencies are requesting",
                "a package version that doesn't exist.",
            )
        return found

    def _pick(self, spec: Spec, tag: str) -> Manifest | None:
        wanted = spec.wanted
        if spec.kind == "tag":
            return self.versions.get(self.tags.get(wanted, ""))
        if spec.kind == "version":
            return self.versions.get(str(parse_version(wanted)))
        bounds = parse_range(wanted)
        assert bounds is not None
        favourite = self.tags.get(tag)
        if favourite is not None and favourite in self.versions:
            manifest, version = self.versions[favourite], parse_version(favourite)
            in_range = wanted == "*" or (version is not None and bounds.test(version))
            if in_range and _engine_fits(manifest) and not manifest.get("deprecated"):
                return manifest
        fitting = [v for v in self.versions if (version := parse_version(v)) is not None and bounds.test(version)]
        if not fitting:
            return None

        def rank(version: str) -> tuple[object, ...]:
            fresh, engine = not self.versions[version].get("deprecated"), _engine_fits(self.versions[version])
            return fresh and engine, engine, fresh, sort_key(version)

        return self.versions[max(fitting, key=rank)]


def _engine_fits(manifest: Manifest) -> bool:
    engines = manifest.get("engines")
    wanted = engines.get("node") if isinstance(engines, dict) else None
    return not isinstance(wanted, str) or not wanted or satisfies(NODE_VERSION, wanted)


class Registry:
    """Packuments, each asked for once in a command."""

    def __init__(self, process: Process, config: Config) -> None:
        self._process = process
        self._config = config
        self.fetcher = Fetcher(process, config)
        self.lanes = Lanes(process)
        self._pages: dict[str, Later[Packument]] = {}

    def expect(self, names: Iterable[str]) -> None:
        """Start fetching these ahead."""
        for name in names:
            if name not in self._pages:
                self._pages[name] = self.lanes.start(lambda name=name: self.read(name, BRIEF))  # type: ignore[misc]

    def packument(self, name: str) -> Packument:
        """E404 and what else can go wrong on the way."""
        self.expect([name])
        return self._pages[name].get()

    def manifest(self, spec: Spec) -> Manifest:
        """The package.json, and where its tarball is, of what a spec means."""
        target = spec.target
        assert target.name is not None
        try:
            found = self.packument(target.name).pick(target, self._config.text("tag") or "latest")
        except NpmError as error:
            if error.code == "E404":
                raise not_found(error.lines[0], target) from None
            raise
        if found.get("name") != target.name or parse_version(str(found.get("version"))) is None:
            said = f"{found.get('name')}@{found.get('version')}"
            raise NpmError("EBADMANIFEST", f"the registry answers {target.shown} with a manifest of {said}")
        return found

    def read(self, name: str, accept: str) -> Packument:
        url = self._config.registry_of(name) + quote(name, safe="@!'()*-._~")
        try:
            data = self.fetcher.page(url, accept)
        except Missing as missing:
            raise NpmError("E404", f"404 {missing.reason} - GET {url} - Not found") from None
        self._process.budget.charge(len(data) >> 8)
        try:
            page = load(data)
        except (ValueError, RecursionError):
            page = None
        if not isinstance(page, dict):
            raise NpmError("EJSONPARSE", f"Invalid response body while trying to fetch {url}: it is no JSON object")
        return Packument(name, page if accept == WHOLE else _brief(page))


def not_found(first: str, spec: Spec) -> NpmError:
    return NpmError(
        "E404",
        first,
        "404",
        f"404  The requested resource '{spec.shown}' could not be found or you do not have permission to access it.",
        "404",
        "404 Note that you can also install from a",
        "404 tarball, folder, http url, or git folder.",
    )
