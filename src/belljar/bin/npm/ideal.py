"""Builds the tree that a project should have: what is missing or unfit is looked up and placed, level by level."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

from belljar.abi.dataclass import dataclass, field
from belljar.bin.npm.packagejson import collate
from belljar.bin.npm.place import Forest, PeerSet, Placer
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.tree import Edge, Node
from belljar.kernel.process import Process

NODES_MAX: Final = 20_000
DEPTH_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Rules:
    legacy_peers: bool = False
    force: bool = False
    strict_peers: bool = False
    strategy: str = "hoisted"
    explicit: frozenset[str] = frozenset()
    """Names that were asked for on the command line."""
    update: frozenset[str] | None = field(default=frozenset())
    """Names to look up anew wherever they are; None for all."""


class Builder:
    def __init__(
        self,
        process: Process,
        root: Node,
        load: Callable[[Edge], Node],
        expect: Callable[[list[Edge]], None],
        rules: Rules,
        warn: Callable[[str], None],
    ) -> None:
        self._process = process
        self._root = root
        self._load = load
        self._expect = expect
        self._rules = rules
        self._say = warn
        self._sets: dict[Node, PeerSet] = {}
        self._by_source: dict[Node, PeerSet] = {}
        self._sources: dict[Node, Node] = {}
        self._seen: set[Node] = set()
        self._queue: list[tuple[int, str, int, Node]] = []
        self._number = 0
        self._forest = Forest(root, process)
        self._placer = Placer(
            self._forest,
            self._sets,
            strategy=rules.strategy,
            tolerant=self._tolerant,
            warn=self._warn,
            conflict=lambda edge, dep: self._conflict(edge, dep),
        )

    def build(self) -> None:
        """E404, ETARGET, ERESOLVE and what else loading may raise."""
        for node in [self._root, *(n for n in self._root.descendants() if n.home is not None)]:
            self._push(node)
        if self._rules.update is None or self._rules.update:
            for node in self._root.descendants():
                self._push(node)
        while self._queue:
            node = heapq.heappop(self._queue)[3]
            if node not in self._seen and self._forest.has(node):
                self._seen.add(node)
                self._step(node)

    def _push(self, node: Node) -> None:
        depth = sum(1 for _ in node.ancestry())
        if self._forest.count > NODES_MAX or depth > DEPTH_MAX:
            raise NpmError(
                "ETOODEEP",
                f"the dependencies never end: more than {NODES_MAX} packages, or {DEPTH_MAX} inside each other",
            )
        self._number += 1
        heapq.heappush(self._queue, (depth, node.location, self._number, node))

    def _again(self, node: Node) -> None:
        self._seen.discard(node)
        self._push(node)

    def _step(self, node: Node) -> None:
        problems = self._problems(node)
        self._expect(problems)
        tasks = []
        for edge in problems:
            self._process.budget.charge(10)
            known = self._by_source.get(self._sources.get(node, node)) if edge.peer else None
            found = known.nodes.get(edge.name) if known is not None else None
            if found is None or not found.satisfies(edge):
                found = self._load_set(edge, known, None, {edge.source})
            tasks.append((edge, found))
        for edge, dep in sorted(tasks, key=lambda task: collate(task[0].name)):
            for placed in self._placer.place(edge, dep, explicit=self._is_explicit(edge)):
                source = self._sources.get(dep)
                if source is not None:
                    self._sources[placed.node] = source
                self._expect(self._problems(placed.node))
                for other in self._forest.edges_in(placed.node):
                    if other is not placed.edge and not other.valid and not other.conflicted:
                        self._again(other.source)
                for again in placed.again:
                    self._again(again)
                if placed.node.target is not None and placed.node.target.home is not None:
                    self._push(placed.node.target)
                self._push(placed.node)

    def _is_explicit(self, edge: Edge) -> bool:
        return (edge.source.is_root and edge.name in self._rules.explicit) or self._is_updated(edge)

    def _is_updated(self, edge: Edge) -> bool:
        return self._rules.update is None or edge.name in self._rules.update

    def _problems(self, node: Node) -> list[Edge]:
        """The edges of a node that lead nowhere, or not to what they want, or that are to be looked up anew."""
        bundled = set() if node.is_top else set(bundled_names(node))
        found = []
        for edge in node.edges.values():
            if edge.name in bundled or edge.conflicted:
                continue
            to = edge.to
            if to is None:
                if edge.kind != "peerOptional":
                    found.append(edge)
            elif to.failure is not None or to.bundled:
                continue
            elif not edge.valid or (self._is_explicit(edge) and edge.kind != "workspace" and not edge.peer):
                found.append(edge)
        return found

    # Peers.

    def _load_set(self, edge: Edge, known: PeerSet | None, second: Edge | None, required: set[Node]) -> Node:
        """A package for an edge, together with the peers that have to come along."""
        peers = known or PeerSet(edge.source)
        if known is None:
            self._by_source[edge.source] = peers
        node = self._load(edge)
        if second is not None and not node.satisfies(second) and node.failure is None:
            other = self._load(second)
            if other.satisfies(edge):
                node = other
        peers.nodes[node.name] = node
        self._sets[node] = peers
        self._sources[node] = peers.source
        if edge.source in required and edge.kind != "peerOptional":
            required.add(node)
        if not edge.source.lonely and node.failure is None:
            self._load_peers(node, peers, required)
        return node

    def _load_peers(self, node: Node, peers: PeerSet, required: set[Node]) -> None:
        wanted = [edge for edge in node.edges.values() if edge.kind == "peer"]
        self._expect(wanted)
        for edge in sorted(wanted, key=lambda edge: collate(edge.name)):
            self._process.budget.charge(10)
            current = peers.nodes.get(edge.name)
            if current is not None and current.satisfies(edge):
                continue
            above = peers.source.edges.get(edge.name)
            if current is None and above is None:
                self._load_set(edge, peers, None, required)
                continue
            if current is None and above is not None:
                if self._load_set(above, peers, edge, required).satisfies(edge):
                    continue
            else:
                other = self._load(edge)
                if all(
                    other.satisfies(e)
                    for n in peers.nodes.values()
                    if (e := n.edges.get(edge.name)) is not None and e.peer
                ) and (above is None or other.satisfies(above)):
                    self._load_set(edge, peers, None, required)
                    continue
            if not (self._tolerant_of(peers.source) or edge.source not in required):
                raise self._conflict(edge, peers.nodes.get(edge.name))

    def _tolerant(self, entry: Edge) -> bool:
        """Whether a conflict that this edge brings is one to live with: those of strangers are."""
        if self._rules.force:
            return True
        if self._rules.strict_peers or entry.source.is_root or entry.source.home is not None:
            return False
        return not (entry.peer and any(e.source.is_root and not e.peer for e in self._forest.edges_in(entry.source)))

    def _tolerant_of(self, source: Node) -> bool:
        return self._rules.force or (not self._rules.strict_peers and not source.is_top)

    def _warn(self, edge: Edge, dep: Node) -> None:
        have = edge.to
        seen = f"{have.package_name}@{have.version}" if have is not None else f"{dep.package_name}@{dep.version}"
        self._say("ERESOLVE overriding peer dependency")
        self._say(f'ERESOLVE {describe(edge.source)} wants peer {edge.name}@"{edge.wanted}", and gets {seen}')

    def _conflict(self, edge: Edge, dep: Node | None) -> NpmError:
        found = edge.to or dep
        lines = ["ERESOLVE unable to resolve dependency tree", "", f"While resolving: {describe(self._root)}"]
        if found is not None:
            lines.append(f"Found: {found.package_name}@{found.version}")
            own = self._root.edges.get(edge.name)
            if own is not None:
                lines.append(f'  {_kind(own)}{own.name}@"{own.wanted}" from the root project')
        lines += [
            "",
            "Could not resolve dependency:",
            f'{_kind(edge)}{edge.name}@"{edge.wanted}" from {describe(edge.source)}',
        ]
        lines += [
            "",
            "Fix the upstream dependency conflict, or retry",
            "this command with --force or --legacy-peer-deps",
        ]
        lines += ["to accept an incorrect (and potentially broken) dependency resolution."]
        return NpmError("ERESOLVE", *lines)


def _kind(edge: Edge) -> str:
    return "" if edge.kind == "prod" else "peer " if edge.peer else f"{edge.kind} "


def describe(node: Node) -> str:
    return (
        f"{node.package_name}@{node.version}"
        if not node.is_root
        else "the root project"
        if not node.version
        else f"{node.package_name}@{node.version}"
    )


def bundled_names(node: Node) -> list[str]:
    """The dependencies that come inside the package itself."""
    found = node.package.get("bundleDependencies", node.package.get("bundledDependencies"))
    if found is True:
        found = list(node.package.get("dependencies") or {})
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
