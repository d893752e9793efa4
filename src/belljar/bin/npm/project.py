"""A project and what an install makes of it: from package.json and lockfile to a tree, to files, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belljar.abi.dataclass import dataclass
from belljar.bin._kit.realpath import relative_to
from belljar.bin.npm.actual import open_root, read_actual
from belljar.bin.npm.config import Config
from belljar.bin.npm.fitness import check_engines, check_fronts, skip_foreign
from belljar.bin.npm.ideal import Builder, Rules
from belljar.bin.npm.lockfile import grow, read_lock, write_hidden, write_lock
from belljar.bin.npm.packagejson import Document, collate, read_document
from belljar.bin.npm.problems import no_package
from belljar.bin.npm.registry import Registry
from belljar.bin.npm.reify import Changes, Reifier
from belljar.bin.npm.source import Source
from belljar.bin.npm.spec import Spec, parse_spec
from belljar.bin.npm.tarball import Depot, make_directories
from belljar.bin.npm.tree import Edge, Node, flag
from belljar.kernel.process import Process
from belljar.packages.semver import parse_range, parse_version

BUCKETS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")


@dataclass(slots=True)
class Request:
    """A package that was asked for by name, and where it is to be noted."""

    spec: Spec
    name: str
    bucket: str | None


class Project:
    def __init__(
        self, process: Process, config: Config, folder: str, warn: Callable[[str], None], *, lonely: bool = False
    ) -> None:
        self.process = process
        self.config = config
        self.folder = folder
        self._warn = warn
        self.lonely = lonely
        self.legacy = config.flag("legacy-peer-deps")
        self.registry = Registry(process, config)
        self.depot = Depot(process, self.registry.fetcher)
        self.document: Document | None = None if lonely else read_document(process, f"{folder}/package.json")
        self.lock: Document | None = None
        self.root = self._open()
        self.source = Source(process, config, self.root, self.registry, self.depot)
        self.actual: Node | None = None
        self._asked: frozenset[str] = frozenset()

    def _open(self) -> Node:
        return open_root(self.process, self.folder, legacy_peers=self.legacy, lonely=self.lonely)

    def close(self) -> None:
        self.depot.close()

    # The tree to start from.

    def load(self) -> None:
        """Load the tree from the lockfile; without one, from what is installed."""
        if not self.lonely and self.config.get("package-lock") is not False:
            self.lock = read_lock(self.process, self.folder)
        if self.lock is not None:
            grow(self.root, self.lock.data, legacy_peers=self.legacy)
        else:
            read_actual(self.process, self.root, legacy_peers=self.legacy)
        self.refresh_workspaces()

    def refresh_workspaces(self) -> None:
        """Links to workspaces are what their directories say now, not what a lockfile remembers."""
        for node in list(self.root.descendants()):
            if node.target is not None and node.target.home is not None:
                package = read_document(self.process, f"{node.target.folder}/package.json")
                if package is not None:
                    node.package = node.target.package = package.data
                    node.target.read_edges(legacy_peers=self.legacy)

    def load_actual(self) -> Node:
        if self.actual is None:
            self.actual = self._open()
            read_actual(self.process, self.actual, legacy_peers=self.legacy)
        return self.actual

    # Changes to package.json.

    def requests(self, words: list[str]) -> list[Request]:
        bucket = next(
            (name for option, name in (
                ("save-dev", "devDependencies"), ("save-optional", "optionalDependencies"),
                ("save-peer", "peerDependencies"), ("save-prod", "dependencies"),
            ) if self.config.flag(option)), None,
        )  # fmt: skip
        found = []
        for word in words:
            spec = parse_spec(word, self.process.fs.getcwd())
            if spec.kind == "git":
                self.source.load_spec(spec, spec.name)
            name = spec.name or self.source.load_spec(spec, None).name
            found.append(Request(spec, name, bucket))
        return found

    def add(self, requests: list[Request]) -> None:
        """Have the root want what was asked for."""
        package = dict(self.root.package)
        for request in requests:
            wanted = self._wanted(request.spec)
            if self.lonely:
                self.root.edges[request.name] = Edge(self.root, request.name, wanted, "prod")
                continue
            bucket = request.bucket or next((b for b in BUCKETS if request.name in _bucket(package, b)), "dependencies")
            for other in BUCKETS:
                if request.name in _bucket(package, other) and (other != bucket) and request.bucket is not None:
                    package[other] = {n: v for n, v in _bucket(package, other).items() if n != request.name}
            package[bucket] = {**_bucket(package, bucket), request.name: wanted}
        if not self.lonely:
            self.root.package = package
            self.root.read_edges(legacy_peers=self.legacy)

    def _wanted(self, spec: Spec) -> str:
        if spec.kind in ("directory", "file"):
            path = relative_to(spec.wanted, self.folder)
            return f"file:{path}"
        return spec.raw if spec.raw not in ("", "*") else "*"

    def drop(self, names: list[str]) -> None:
        """Have the root want these no longer."""
        package = dict(self.root.package)
        for bucket in BUCKETS:
            if bucket in package:
                package[bucket] = {n: v for n, v in _bucket(package, bucket).items() if n not in names}
        self.root.package = package
        self.root.read_edges(legacy_peers=self.legacy)
        for name in names:
            child = self.root.children.get(name)
            if child is not None and self.lonely:
                child.detach()

    # From tree to files.

    def build(self, rules: Rules) -> None:
        """Complete the tree."""
        self._asked = rules.explicit
        Builder(self.process, self.root, self.source.load, self.source.expect, rules, self._warn).build()

    def prune_and_check(self) -> None:
        """Remove extraneous and failed optional packages from the tree; check the rest for platform and engines."""
        flag(self.root)
        for node in list(self.root.descendants()):
            if node.failure is None:
                continue
            if not node.optional:
                raise node.failure
            node.detach()
        flag(self.root)
        for node in list(self.root.descendants()):
            if node.extraneous and node.parent is not None and not node.bundled:
                node.detach()
        force = self.config.flag("force")
        skip_foreign(self.root, self._warn, force=force)
        check_fronts(self.root, self.registry.packument, self._warn, asked=self._asked, force=force)
        check_engines(self.root, self._warn, strict=self.config.flag("engine-strict"))

    def reify(self) -> Changes:
        """Files as the tree has them."""
        reifier = Reifier(self.process, self.config, self.source, self.load_actual(), self.root, self._warn)
        changes = reifier.run()
        flag(self.root)  # what packages had inside is part of the tree only now
        return changes

    def save(self, requests: list[Request], *, manifest: bool) -> None:
        """package.json and the lockfiles."""
        if self.config.flag("dry-run"):
            return
        if not self.lonely:
            if manifest:
                self._save_manifest(requests)
            if self.config.get("package-lock") is not False and self.config.get("save") is not False:
                write_lock(self.process, self.root, self.lock or read_lock(self.process, self.folder))
        if any(node.parent is not None and not node.skipped for node in self.root.descendants()):
            make_directories(self.process, f"{self.folder}/node_modules")
            write_hidden(self.process, self.root)

    def _save_manifest(self, requests: list[Request]) -> None:
        package = dict(self.root.package)
        for request in requests:
            node = self.root.children.get(request.name)
            for bucket in BUCKETS:
                if node is not None and request.name in _bucket(package, bucket):
                    noted = saved(request.spec, node, self.config) or _bucket(package, bucket)[request.name]
                    package[bucket] = {**_bucket(package, bucket), request.name: noted}
        for bucket in BUCKETS:
            if bucket in package and bucket in self.root.package:
                package[bucket] = {
                    name: package[bucket][name] for name in sorted(_bucket(package, bucket), key=collate)
                }
                if not package[bucket]:
                    del package[bucket]
        self.root.package = package
        if self.document is None:
            self.document = Document(f"{self.folder}/package.json", {})
        self.document.data = package
        self.document.save(self.process)


def _bucket(package: dict[str, Any], name: str) -> dict[str, Any]:
    found = package.get(name)
    return found if isinstance(found, dict) else {}


def saved(spec: Spec, node: Node, config: Config) -> str | None:
    """Return the package.json entry for a package installed by this spec; None to leave it as it is."""
    target = spec.target
    if not target.registry:
        return None
    exact = config.flag("save-exact")
    prefix = "" if exact else config.text("save-prefix") if isinstance(config.get("save-prefix"), str) else "^"
    noted = f"{prefix}{node.version}"
    if target.kind == "range" and not is_subset(noted, target.wanted):
        noted = target.wanted
    return f"npm:{target.name}@{noted}" if spec.kind == "alias" else noted


def is_subset(inner: str, outer: str) -> bool:
    """Whether every version of a range with one alternative is also in another one."""
    narrow, wide = parse_range(inner), parse_range(outer)
    if narrow is None or wide is None or len(narrow.sets) != 1:
        return False
    low = next((c.version for c in narrow.sets[0] if c.operator in (">=", "")), None)
    high = next((c.version for c in narrow.sets[0] if c.operator == "<"), low)
    if low is None or high is None or parse_version(str(low)) is None:
        return False
    for comparators in wide.sets:
        for c in comparators:
            if c.version is None:
                continue
            if c.operator in ("<", "<="):
                fits = (
                    high.key <= c.version.key
                    if c.operator == "<"
                    else high.key <= c.version.key or low == high == c.version
                )
            else:
                fits = c.test(low) and (c.operator != "" or low == high)
            if not fits:
                break
        else:
            return True
    return False


def require_document(project: Project) -> Document:
    """The project's package.json. ENOENT."""
    if project.document is None:
        raise no_package(project.folder)
    return project.document
