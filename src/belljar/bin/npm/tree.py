"""The tree of packages: nodes that are folders, and edges that are dependencies, resolved as Node looks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from belljar.abi.dataclass import dataclass, field
from belljar.bin._kit.realpath import relative_to
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.spec import Spec, is_name, resolve_spec
from belljar.packages.semver import parse_range, parse_version

Package = Mapping[str, Any]
EdgeKind = Literal["prod", "dev", "optional", "peer", "peerOptional", "workspace"]


@dataclass(eq=False, slots=True)
class Edge:
    """A dependency of one node on a name."""

    source: Node
    name: str
    wanted: str
    kind: EdgeKind
    conflicted: bool = False
    """A peer that can't be satisfied and that we live with."""

    @property
    def peer(self) -> bool:
        return self.kind in ("peer", "peerOptional")

    @property
    def optional(self) -> bool:
        return self.kind in ("optional", "peerOptional")

    @property
    def spec(self) -> Spec:
        return resolve_spec(self.name, self.wanted, self.source.path)

    @property
    def to(self) -> Node | None:
        return self.source.resolve(self.name, itself=not (self.peer and not self.source.is_top))

    @property
    def valid(self) -> bool:
        to = self.to
        return self.optional if to is None else to.satisfies(self)


@dataclass(eq=False, slots=True)
class Node:
    """A package in its folder; the root is the project itself."""

    name: str
    package: Package
    path: str
    """Path of a node without a parent; others are below theirs."""
    resolved: str | None = None
    integrity: str | None = None
    parent: Node | None = None
    children: dict[str, Node] = field(default_factory=dict)
    target: Node | None = None
    """The target of a link."""
    home: Node | None = None
    """The project whose node_modules a link's target inside it sees."""
    workspaces: Mapping[str, str] = field(default_factory=dict)
    """Paths of a root's workspaces, by name."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    developed: bool = False
    """The project itself, or a part of it that is linked."""
    bundled: bool = False
    lonely: bool = False
    """A root for global packages: they are no dependencies of a project."""
    failure: NpmError | None = None
    """The error of fetching it: allowed for optional dependencies only."""
    skipped: bool = False
    """Whether it is for another platform: then it is only in the lockfile."""
    extraneous: bool = True
    dev: bool = True
    optional: bool = True
    dev_optional: bool = True
    peer: bool = True
    edges: dict[str, Edge] = field(default_factory=dict)

    @property
    def is_top(self) -> bool:
        return self.parent is None

    @property
    def is_root(self) -> bool:
        return self.parent is None and self.home is None

    @property
    def is_link(self) -> bool:
        return self.target is not None

    @property
    def above(self) -> Node | None:
        """Return where Node looks next for what this one does not have itself."""
        return self.parent if self.parent is not None else self.home

    @property
    def root(self) -> Node:
        node = self
        while node.above is not None:
            node = node.above
        return node

    @property
    def version(self) -> str:
        return str(self.package.get("version") or "")

    @property
    def package_name(self) -> str:
        return str(self.package.get("name") or self.name)

    @property
    def folder(self) -> str:
        """The full path of its folder."""
        if self.parent is None:
            return self.path
        return f"{self.parent.real_folder}/node_modules/{self.name}"

    @property
    def real_folder(self) -> str:
        return self.target.folder if self.target is not None else self.folder

    @property
    def location(self) -> str:
        """The path of its folder from the root; empty for the root."""
        root = self.root.folder
        return "" if self.folder == root else relative_to(self.folder, root)

    def ancestry(self) -> Iterator[Node]:
        """Itself, and everything above."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.above

    def is_below(self, other: Node) -> bool:
        return any(node is other for node in self.ancestry())

    def resolve(self, name: str, *, itself: bool = True) -> Node | None:
        """Return the package that `require(name)` finds from here."""
        node: Node | None = self if itself else self.above
        while node is not None:
            found = node.children.get(name)
            if found is not None:
                return found
            node = node.above
        return None

    def descendants(self) -> Iterator[Node]:
        """Everything below, parents first; what links inside the project lead to as well."""
        for name in sorted(self.children):
            child = self.children[name]
            yield child
            if child.target is not None and child.target.home is not None:
                yield child.target
                yield from child.target.descendants()
            else:
                yield from child.descendants()

    def inside(self) -> Iterator[Node]:
        yield self
        yield from self.descendants()

    # Changes.

    def adopt(self, child: Node) -> None:
        """Take a node into this one's node_modules, in the place of one of the same name."""
        child.parent = self
        self.children[child.name] = child

    def detach(self) -> None:
        if self.parent is not None and self.parent.children.get(self.name) is self:
            del self.parent.children[self.name]
        self.parent = None

    def read_edges(self, overrides: Mapping[str, str] | None = None, *, legacy_peers: bool = False) -> None:
        """Set the edges from package.json; devDependencies too if it is the project's own."""
        self.edges = {}
        package = self.package
        if self.lonely or self.target is not None:
            return
        for name in self.workspaces:
            self._edge(name, f"file:{self.workspaces[name]}", "workspace")
        if not legacy_peers:
            optional = _mapping(package, "peerDependenciesMeta")
            for name, wanted in _texts(package, "peerDependencies"):
                about = optional.get(name)
                free = isinstance(about, dict) and bool(about.get("optional"))
                self._edge(name, wanted, "peerOptional" if free else "peer")
        for name, wanted in _texts(package, "dependencies"):
            self._edge(name, wanted, "prod")
        for name, wanted in _texts(package, "optionalDependencies"):
            self._edge(name, wanted, "optional")
        if self.developed:
            for name, wanted in _texts(package, "devDependencies"):
                if name not in self.edges or self.edges[name].kind not in ("prod", "optional"):
                    self._edge(name, wanted, "dev")
        for name, edge in self.edges.items():
            if overrides is not None and edge.kind != "workspace":
                edge.wanted = overrides.get(name, edge.wanted)

    def _edge(self, name: str, wanted: str, kind: EdgeKind) -> None:
        if not is_name(name) or (name in self.edges and self.edges[name].kind == "workspace"):
            return
        self.edges[name] = Edge(self, name, wanted, kind)

    # Questions.

    def satisfies(self, edge: Edge) -> bool:
        """Whether this node is what an edge wants."""
        if self.failure is not None:
            return edge.optional
        try:
            return fits(self, edge.spec)
        except NpmError:
            return False

    def same(self, other: Node) -> bool:
        """The same package from the same place."""
        if self.integrity and other.integrity:
            return self.integrity == other.integrity
        return (self.package_name, self.version, self.resolved) == (other.package_name, other.version, other.resolved)

    def edges_in(self) -> Iterator[Edge]:
        """The edges that lead here."""
        for node in self.root.inside():
            edge = node.edges.get(self.name)
            if edge is not None and edge.to is self:
                yield edge


def fits(node: Node, spec: Spec) -> bool:
    match spec.kind:
        case "alias":
            assert spec.inner is not None
            return node.package_name == spec.inner.name and fits(node, spec.inner)
        case "range" | "version":
            version, bounds = parse_version(node.version), parse_range(spec.wanted)
            if spec.wanted == "*":
                return True
            return version is not None and bounds is not None and bounds.test(version)
        case "tag":
            return node.resolved is None or node.resolved.startswith(("http:", "https:"))
        case "directory":
            return node.target is not None and node.target.folder == spec.wanted
        case "file":
            return node.resolved == f"file:{spec.wanted}"
        case "remote":
            return node.resolved == spec.wanted
        case "git":
            return False


def _mapping(package: Package, key: str) -> Mapping[str, Any]:
    found = package.get(key)
    return found if isinstance(found, dict) else {}


def _texts(package: Package, key: str) -> Iterator[tuple[str, str]]:
    for name, wanted in _mapping(package, key).items():
        if isinstance(wanted, str):
            yield name, wanted


def flag(root: Node) -> None:
    """Say of every node whether it is needed only for development, only optionally, only as a peer, or not at all."""
    for node in root.descendants():
        node.extraneous = node.dev = node.optional = node.dev_optional = node.peer = True
    root.extraneous = root.dev = root.optional = root.dev_optional = root.peer = False
    queue = [root]
    if root.lonely:
        for child in root.children.values():
            child.extraneous = child.dev = child.optional = child.dev_optional = child.peer = False
            queue.append(child)
    while queue:
        node = queue.pop()
        if node.target is not None:
            for name in ("extraneous", "dev", "optional", "dev_optional", "peer"):
                setattr(node.target, name, getattr(node, name))
            if node.target.home is not None:
                queue.append(node.target)
            continue
        for edge in node.edges.values():
            to = edge.to
            if to is not None and _lower(node, edge, to):
                queue.append(to)
    for node in root.descendants():
        node.dev_optional = node.dev_optional and not (node.dev or node.optional)


def _lower(node: Node, edge: Edge, to: Node) -> bool:
    changed = False
    dev = edge.kind == "dev"
    for name, lifted in (
        ("extraneous", not node.extraneous and edge.kind != "peerOptional"),
        ("dev", not node.dev and not dev),
        ("optional", not node.optional and not edge.optional),
        ("dev_optional", not (node.dev_optional or node.dev or node.optional or dev or edge.optional)),
        ("peer", not node.peer and not edge.peer),
    ):
        if lifted and getattr(to, name):
            setattr(to, name, False)
            changed = True
    return changed
