"""Where in the tree a package goes: as far up as nothing that is there already, or wanted there, speaks against it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from belljar.abi.dataclass import dataclass, field
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.tree import Edge, Node
from belljar.kernel.process import Process
from belljar.packages.semver import sort_key


class State(Enum):
    OK = "ok"
    KEEP = "keep"
    """The existing package satisfies the dependency."""
    REPLACE = "replace"
    CONFLICT = "conflict"


@dataclass(eq=False, slots=True)
class PeerSet:
    """Packages that must be seen together: one, and the peers that it and they ask for."""

    source: Node
    """The package that asked."""
    nodes: dict[str, Node] = field(default_factory=dict)


class Forest:
    """The tree being built, with an index of who wants a name."""

    def __init__(self, root: Node, process: Process) -> None:
        self.root = root
        self._process = process
        self._wanting: dict[str, dict[Node, None]] = {}
        self.count = 0
        for node in root.inside():
            self.enter(node)

    def enter(self, node: Node) -> None:
        self.count += 1
        for name in node.edges:
            self._wanting.setdefault(name, {})[node] = None

    def has(self, node: Node) -> bool:
        return node.root is self.root

    def edges_in(self, node: Node) -> list[Edge]:
        """The edges that lead to a node."""
        wanting = self._wanting.get(node.name, {})
        self._process.budget.charge(1 + len(wanting))
        edges = (other.edges.get(node.name) for other in wanting if self.has(other))
        return [edge for edge in edges if edge is not None and edge.to is node]

    def gather(self, nodes: Iterable[Node], follow: Callable[[Edge], bool]) -> set[Node]:
        """Return these nodes and their dependencies, without those that others depend on as well."""
        found = dict.fromkeys(nodes)
        queue = list(found)
        while queue:
            for edge in queue.pop().edges.values():
                to = edge.to
                if to is not None and to not in found and follow(edge):
                    found[to] = None
                    queue.append(to)
        changed = True
        while changed and found:
            changed = False
            for node in list(found):
                if any(edge.source not in found and follow(edge) for edge in self.edges_in(node)):
                    del found[node]
                    changed = True
        return set(found)

    def can_replace(self, new: Node, old: Node, together: Iterable[str] = ()) -> bool:
        """Whether everyone who has `old` would be as happy with `new`."""
        if new.package_name != old.package_name:
            return False
        names = set(together)
        own = self.gather([old], lambda edge: edge.to is not old and edge.valid)
        for edge in self.edges_in(old):
            if edge.peer and edge.source.parent is old.parent and edge.source.name in names:
                continue
            if edge.source not in own and not new.satisfies(edge):
                return False
        return True

    def can_dedupe(self, node: Node, explicit: bool) -> bool:
        """Whether what is found further up does as well."""
        above = node.above
        if node.bundled or above is None or above.above is None:
            return False
        if not self.edges_in(node):
            return True
        other = above.above.resolve(node.name)
        if other is None or (not other.same(node) and not self.can_replace(other, node)):
            return False
        return explicit or other.same(node) or sort_key(other.version) >= sort_key(node.version)

    def prune(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            node.detach()


def deepest(start: Node, name: str) -> Node:
    """The place furthest down from which `start` and those who want `name` as a peer see it."""
    for node in start.ancestry():
        edge = node.edges.get(name)
        if node.above is None or node.is_top or edge is None or not edge.peer:
            return node
    return start


@dataclass(eq=False, slots=True)
class Check:
    """Whether a package, with its peers, may go into one node's node_modules."""

    forest: Forest
    sets: dict[Node, PeerSet]
    dep: Node
    edge: Edge
    target: Node
    parent: Check | None = None
    path: tuple[Node, ...] = ()
    prefer_dedupe: bool = False
    explicit: bool = False
    state: State = State.CONFLICT
    own: State | None = None
    """The result for the package without its peers."""
    children: list[Check] = field(default_factory=list)

    def run(self) -> Check:
        self.state = self._check()
        if self.own is None:
            self.own = self.state
        return self

    @property
    def _entry(self) -> Edge:
        return self.parent._entry if self.parent is not None else self.edge

    def _deepest(self) -> Node:
        return deepest(self.parent._deepest() if self.parent is not None else self.edge.source, self.edge.name)

    def _check(self) -> State:
        target, name = self.target, self.edge.name
        current, wanted = target.children.get(name), target.edges.get(name)
        if self.dep.failure is not None:
            return State.REPLACE if current is not None else State.OK
        if wanted is not None and wanted.peer and not target.is_top:
            return State.CONFLICT
        if current is not None:
            return self._over(current)
        if wanted is not None and wanted is not self.edge and not self.dep.satisfies(wanted):
            return State.CONFLICT
        return self._free()

    def _free(self) -> State:
        """Check a place without a package of that name: dependents below it must stay satisfied."""
        seen = self.target.resolve(self.edge.name) if self.target is not self._entry.source else None
        if seen is not None:
            for edge in self.forest.edges_in(seen):
                if edge.source.is_below(self.target) and edge.valid and not self.dep.satisfies(edge):
                    return State.CONFLICT
        return self._with_peers(State.OK)

    def _over(self, current: Node) -> State:
        """Check a place that has a package of that name."""
        dep, edge, dedupe = self.dep, self.edge, self.prefer_dedupe or self.edge.peer
        if dep.same(current) and (current.satisfies(edge) or not dep.satisfies(edge)):
            return State.REPLACE if self.explicit else State.KEEP
        newer = sort_key(dep.version) >= sort_key(current.version)
        together = self.sets[dep].nodes if dep in self.sets else ()
        if newer and self.forest.can_replace(dep, current, together):
            state = self._with_peers(State.REPLACE)
            if state is not State.CONFLICT:
                return state
        if current.satisfies(edge) and (not self.explicit or dedupe):
            return State.KEEP
        if dedupe and not newer and self.forest.can_replace(dep, current, together):
            state = self._with_peers(State.REPLACE)
            if state is not State.CONFLICT:
                return state
        if self.target is not self._deepest():
            return State.CONFLICT
        if not edge.peer and self.target is edge.source:
            return self._with_peers(State.REPLACE)
        if edge.peer and self._nestable(current):
            return self._with_peers(State.REPLACE)
        return State.CONFLICT

    def _nestable(self, current: Node) -> bool:
        """Whether all who want what is here could have it deeper down."""
        for edge in self.forest.edges_in(current):
            if edge is self.edge or edge is self._entry or not edge.valid or self.dep.satisfies(edge):
                continue
            place = deepest(edge.source, current.name)
            if edge.peer or place is self.target or self.target.is_below(place):
                return False
        return True

    def _with_peers(self, state: State) -> State:
        self.own = state
        if self.children:
            return State.CONFLICT if any(child.state is State.CONFLICT for child in self.children) else state
        path = (*self.path, self.dep)
        known = self.sets.get(self.dep)
        for edge in self.dep.edges.values():
            peer = known.nodes.get(edge.name) if known is not None and edge.peer else None
            if peer is None or peer in path:
                continue
            target = deepest(self.target, peer.name)
            child = Check(self.forest, self.sets, peer, edge, target, self, path, prefer_dedupe=True)
            self.children.append(child.run())
        return State.CONFLICT if any(child.state is State.CONFLICT for child in self.children) else state


@dataclass(slots=True)
class Placed:
    """The result of placing a package."""

    node: Node
    edge: Edge
    replaced: bool
    again: list[Node] = field(default_factory=list)
    """Nodes whose dependencies have to be looked at again."""


class Placer:
    def __init__(
        self,
        forest: Forest,
        sets: dict[Node, PeerSet],
        *,
        strategy: str,
        tolerant: Callable[[Edge], bool],
        warn: Callable[[Edge, Node], None],
        conflict: Callable[[Edge, Node], NpmError],
    ) -> None:
        self._forest = forest
        self._sets = sets
        self._strategy = strategy
        self._tolerant = tolerant
        self._warn = warn
        self._conflict = conflict

    def place(self, edge: Edge, dep: Node, *, explicit: bool, parent: Check | None = None) -> list[Placed]:
        """Put a package and its peers into the tree. ERESOLVE if they can't be."""
        if edge.to is not None and edge.valid and not explicit:
            return []
        check, own = self._find(edge, dep, explicit, parent)
        if check is None:
            entry = parent._entry if parent is not None else edge
            if not self._tolerant(entry):
                raise self._conflict(edge, dep)
            if own is None:
                edge.conflicted = True
                self._warn(edge, dep)
                return []
            check = own
        state = check.own if check.state is State.CONFLICT else check.state
        if state is State.KEEP:
            if edge.peer and not edge.valid:
                edge.conflicted = True
                self._warn(edge, dep)
            return []
        return self._put(edge, dep, check, state is State.REPLACE, explicit)

    def _find(self, edge: Edge, dep: Node, explicit: bool, parent: Check | None) -> tuple[Check | None, Check | None]:
        best: Check | None = None
        own: Check | None = None
        start = deepest(parent._deepest() if parent is not None else edge.source, edge.name)
        for target in start.ancestry():
            wanted = target.edges.get(edge.name)
            if not target.is_top and wanted is not None and wanted.peer:
                continue
            check = Check(self._forest, self._sets, dep, edge, target, parent, explicit=explicit).run()
            if check.own is not State.CONFLICT:
                own = check
            if check.state is State.CONFLICT:
                break
            best = check
            if dep.failure is not None or self._strategy == "nested":
                break
            if self._strategy == "shallow" and target.above is not None and target.above.is_root:
                break
        return best, own

    def _put(self, edge: Edge, dep: Node, check: Check, replace: bool, explicit: bool) -> list[Placed]:
        forest, target = self._forest, check.target
        loop = next((node for node in target.ancestry() if not node.is_top and node.same(dep)), None)
        if loop is not None:
            # a@1 -> b@1 -> a@2 -> b@2 -> a@1 ...: nested for ever, were it not for a link to the first one.
            made = Node(dep.name, dep.package, "", target=loop)
            target.adopt(made)
            forest.enter(made)
            return []
        made = Node(dep.name, dep.package, dep.path, dep.resolved, dep.integrity, target=dep.target)
        made.failure, made.parent = dep.failure, target
        made.edges = {n: Edge(made, e.name, e.wanted, e.kind) for n, e in dep.edges.items()}
        done = Placed(made, edge, replace)
        old = target.children.get(dep.name)
        target.adopt(made)
        if old is not None:
            self._replace(old, made, done)
        forest.enter(made)
        for node in [n for n in target.descendants() if n.name == made.name and n is not made]:
            if forest.has(node) and forest.can_dedupe(node, explicit):
                gone = node
                forest.prune(forest.gather([gone], lambda e, gone=gone: e.to is not gone and e.valid) | {gone})  # type: ignore[misc]
        placed = [done]
        known = self._sets.get(dep)
        for peer_edge in made.edges.values():
            if not peer_edge.peer or peer_edge.conflicted or (peer_edge.to is not None and peer_edge.valid):
                continue
            peer = known.nodes.get(peer_edge.name) if known is not None else None
            if peer is not None and peer.satisfies(peer_edge):
                placed += self.place(peer_edge, peer, explicit=explicit, parent=check)
        return placed

    def _replace(self, old: Node, made: Node, done: Placed) -> None:
        """Replace a node, remove what only the old one needed, and queue dependents that are no longer satisfied."""
        forest = self._forest
        made.children = {name: child for name, child in old.children.items() if not child.bundled}
        for child in made.children.values():
            child.parent = made
        old.parent = None
        stale = [edge.to for edge in made.edges.values() if edge.to is not None and not edge.valid]
        stale += [edge.to for name, edge in old.edges.items() if name not in made.edges and edge.to is not None]
        stale += list(made.children.values())
        unneeded = forest.gather(
            [node for node in stale if node is not made and forest.has(node)],
            lambda edge: edge.source is not made and edge.to is not made and edge.valid,
        )
        forest.prune(node for node in unneeded if not any(e.source is made and e.valid for e in forest.edges_in(node)))
        for edge in forest.edges_in(made):
            if not edge.valid and not edge.conflicted:
                done.again.append(edge.source)
