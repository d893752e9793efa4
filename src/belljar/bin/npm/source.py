"""From an edge to a package: the registry's manifest, a directory, a tarball."""

from __future__ import annotations

from typing import Any

from belljar.bin.npm.actual import link_target
from belljar.bin.npm.config import Config
from belljar.bin.npm.packagejson import read_json
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.registry import Registry
from belljar.bin.npm.spec import Spec, is_name
from belljar.bin.npm.tarball import Depot, Tarball, integrity_of, read_manifest
from belljar.bin.npm.tree import Edge, Node
from belljar.kernel.process import Process


class Source:
    """Loads nodes."""

    def __init__(self, process: Process, config: Config, root: Node, registry: Registry, depot: Depot) -> None:
        self._process = process
        self._config = config
        self.root = root
        self.registry = registry
        self.depot = depot
        self._legacy = config.flag("legacy-peer-deps")
        self._tarballs: dict[str, tuple[Tarball, dict[str, Any]]] = {}
        self.deprecated: dict[str, str] = {}

    def expect(self, edges: list[Edge]) -> None:
        """These will be loaded."""
        names = []
        for edge in edges:
            try:
                target = edge.spec.target
            except NpmError:
                continue
            if target.registry and target.name is not None:
                names.append(target.name)
        self.registry.expect(names)

    def load(self, edge: Edge) -> Node:
        """A package for an edge. One that can't be had is a node that says why, for it may be optional."""
        try:
            return self.load_spec(edge.spec, edge.name)
        except NpmError as error:
            return Node(edge.name, {"name": edge.name, "version": ""}, "", failure=error)

    def load_spec(self, spec: Spec, name: str | None) -> Node:
        target = spec.target
        if target.registry:
            manifest = self.registry.manifest(spec)
            dist = manifest.get("dist")
            url = tarball_of(dist, target.shown)
            if manifest.get("deprecated"):
                self.deprecated[f"{manifest.get('name')}@{manifest.get('version')}"] = str(manifest["deprecated"])
            node = Node(name or str(target.name), _slim(manifest), "", url, integrity_of(dist))
        elif spec.kind == "directory":
            node = self._directory(spec, name)
        elif spec.kind in ("file", "remote"):
            node = self._archive(spec, name)
        else:
            raise NpmError(
                "EGIT",
                f"{spec.wanted} is a git repository, which npm here does not install from.",
                "Clone it with git and install the directory, or install its tarball by URL.",
            )
        node.read_edges(self.root.overrides, legacy_peers=self._legacy)
        return node

    def _directory(self, spec: Spec, name: str | None) -> Node:
        is_dir = self._process.fs.is_dir(spec.wanted)
        package = read_json(self._process, f"{spec.wanted}/package.json") if is_dir else None
        if package is None:
            raise NpmError(
                "ENOENT",
                "Could not read package.json: Error: ENOENT: no such file or directory, "
                f"open '{spec.wanted}/package.json'",
            )
        target = link_target(self._process, self.root, str(package.get("name")), spec.wanted, legacy_peers=self._legacy)
        return Node(_named(name or package.get("name"), spec), package, "", target=target)

    def _archive(self, spec: Spec, name: str | None) -> Node:
        resolved = f"file:{spec.wanted}" if spec.kind == "file" else spec.wanted
        if resolved not in self._tarballs:
            tarball = self.depot.get(resolved, None, spec.shown)
            self._tarballs[resolved] = tarball, read_manifest(self._process, tarball, spec.shown)
        tarball, package = self._tarballs[resolved]
        return Node(_named(name or package.get("name"), spec), package, "", resolved, tarball.integrity)

    def tarball(self, node: Node) -> Tarball:
        """The tarball of a node, checked."""
        shown = f"{node.package_name}@{node.version}"
        known = self._tarballs.get(node.resolved or "")
        if known is not None:
            return known[0]
        if node.resolved is None:
            spec = Spec("version", node.package_name, node.version, node.version)
            manifest = self.registry.manifest(spec)
            dist: Any = manifest.get("dist")
            node.resolved = tarball_of(dist, shown)
            node.integrity = node.integrity or integrity_of(dist)
        return self.depot.get(self._replaced(node.resolved), node.integrity, shown)

    def _replaced(self, url: str) -> str:
        """Lockfiles name the public registry; with another one configured, that is asked."""
        public = "https://registry.npmjs.org/"
        wanted = self._config.registry_of("")
        if wanted != public and url.startswith(public) and self._config.text("replace-registry-host") != "never":
            return wanted + url.removeprefix(public)
        return url


def tarball_of(dist: Any, shown: str) -> str:
    """Return where a registry has a package's tarball. EBADMANIFEST."""
    url = dist.get("tarball") if isinstance(dist, dict) else None
    if not isinstance(url, str):
        raise NpmError("EBADMANIFEST", f"the registry has no tarball of {shown}")
    return url


def _named(name: object, spec: Spec) -> str:
    if not isinstance(name, str) or not is_name(name):
        raise NpmError("EINVALIDPACKAGENAME", f"{spec.shown}: the package has no valid name: {name!r}")
    return name


def _slim(manifest: Any) -> dict[str, Any]:
    """A manifest without the registry's own additions."""
    return {
        key: value for key, value in manifest.items() if key not in ("dist", "_id", "_npmUser", "maintainers", "readme")
    }
