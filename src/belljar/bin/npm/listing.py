"""`npm ls`, `outdated` and `explain`: what is installed, why, and what there is newer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from belljar.bin.npm.packagejson import collate
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.session import Session
from belljar.bin.npm.spec import Spec, parse_spec
from belljar.bin.npm.tree import Edge, Node, fits, flag

_LINES_MAX = 100_000


def run_ls(session: Session, words: list[str]) -> int:
    wanted = [parse_spec(word, session.process.fs.getcwd()) for word in words]
    with session.project() as project:
        root = project.load_actual()
        flag(root)
        lister = _Lister(session, root, wanted)
        if session.config.flag("json"):
            session.process.print(json.dumps(lister.as_json(root), indent=2, ensure_ascii=False))
        elif session.config.flag("parseable"):
            for node in [root, *(n for n in root.descendants() if n.parent is not None)]:
                if node is root or lister.is_shown(node):
                    session.process.print(node.folder)
        else:
            lister.draw()
        for problem in lister.problems:
            session.process.stdout.flush()
            session.process.error(f"npm error {problem}\n")
        if lister.problems and not wanted:
            session.process.error("")
        return 1 if lister.problems or (wanted and not lister.found) else 0


class _Lister:
    def __init__(self, session: Session, root: Node, wanted: list[Spec]) -> None:
        self._session = session
        self._root = root
        self._wanted = wanted
        self._omitted = session.config.omitted
        depth = session.config.text("depth")
        self._depth = int(depth) if depth.isdecimal() else 1 << 30 if session.config.flag("all") or wanted else 0
        self._lines = 0
        self.problems: list[str] = []
        self.found = False
        self._first = self._nearest(root)

    def _nearest(self, root: Node) -> dict[Node, Node]:
        """Below which node each is shown with what it needs: the one nearest to the root."""
        first: dict[Node, Node] = {}
        queue = [root]
        for node in queue:
            for _, _, to in self._edges(node):
                if to is not None and to not in first:
                    first[to] = node
                    queue.append(to.target or to)
        return first

    def is_shown(self, node: Node) -> bool:
        return not self._wanted or any(spec.name == node.name and fits(node, spec) for spec in self._wanted)

    def _edges(self, node: Node) -> Iterator[tuple[str, Edge | None, Node | None]]:
        """Yield a node's dependencies, and for the root its extraneous packages."""
        below: dict[str, tuple[Edge | None, Node | None]] = {}
        for name, edge in node.edges.items():
            if edge.kind != "dev" or "dev" not in self._omitted:
                below[name] = edge, edge.to
        if node is self._root:
            for name, child in node.children.items():
                if name not in below and (child.extraneous or node.lonely):
                    below[name] = None, child
        for name in sorted(below, key=collate):
            via, to = below[name]
            if to is None and via is not None and via.kind == "peerOptional":
                continue
            yield name, via, to

    def _shown_below(self, node: Node, path: tuple[Node, ...]) -> bool:
        """Whether something that was asked for is at or below a node."""
        if self.is_shown(node):
            return True
        if node in path or len(path) > 60:
            return False
        return any(
            to is not None and self._shown_below(to, (*path, node)) for _, _, to in self._edges(node.target or node)
        )

    def _has_shown(self, node: Node, path: tuple[Node, ...]) -> bool:
        below = (to for _, _, to in self._edges(node))
        return any(not self._wanted or (to is not None and self._shown_below(to, (*path, node))) for to in below)

    def _label(self, name: str, edge: Edge | None, to: Node | None) -> str:
        if to is None:
            assert edge is not None
            kind = "UNMET OPTIONAL DEPENDENCY" if edge.optional else "UNMET DEPENDENCY"
            if not edge.optional:
                where = (
                    "the root project" if edge.source.is_root else f"{edge.source.package_name}@{edge.source.version}"
                )
                self.problems.append(
                    f"missing: {name}@{edge.wanted}, required by {_id(edge.source) if edge.source.is_root else where}"
                )
            return f"{kind} {name}@{edge.wanted}"
        shown = (
            f"{name}@npm:{to.package_name}@{to.version}"
            if to.package_name != name and not to.is_link
            else f"{name}@{to.version}"
        )
        if to.target is not None:
            shown += f" -> ./{_relative(to.target.folder, self._root.folder)}"
        marks = []
        if edge is not None and not edge.valid:
            marks.append(
                f' invalid: "{edge.wanted}" from {"the root project" if edge.source.is_root else edge.source.location}'
            )
            self.problems.append(f"invalid: {to.package_name}@{to.version} {to.folder}")
        if to.extraneous and not self._root.lonely:
            marks.append(" extraneous")
            self.problems.append(f"extraneous: {to.package_name}@{to.version} {to.folder}")
        return shown + "".join(marks)

    def draw(self) -> None:
        root = self._root
        title = root.folder if root.lonely or not root.version else f"{root.package_name}@{root.version} {root.folder}"
        self._session.process.print(title)
        if not self._draw(root, "", 0, (root,)):
            self._session.process.print("└── (empty)")
        self._session.process.print("")

    def _draw(self, node: Node, indent: str, depth: int, path: tuple[Node, ...]) -> bool:
        items = [
            (name, edge, to)
            for name, edge, to in self._edges(node)
            if not self._wanted or (to is not None and self._shown_below(to, path))
        ]
        for index, (name, edge, to) in enumerate(items):
            self._lines += 1
            if self._lines > _LINES_MAX:
                raise NpmError("ETOOLARGE", "the tree is too large to be shown: see npm ls --depth=N")
            self._session.process.budget.charge()
            self.found = self.found or (to is not None and self.is_shown(to))
            last = index == len(items) - 1
            inner = (to.target or to) if to is not None else None
            repeated = to is not None and self._first.get(to) is not node
            below = inner is not None and depth < self._depth and not repeated and self._has_shown(inner, path)
            label = self._label(name, edge, to)
            if repeated and (self._depth > 0):
                label += " deduped"
            self._session.process.print(f"{indent}{'└' if last else '├'}─{'┬' if below else '─'} {label}")
            if below and inner is not None:
                self._draw(inner, indent + ("  " if last else "│ "), depth + 1, (*path, inner))
        return bool(items)

    def as_json(self, node: Node, depth: int = 0, path: tuple[Node, ...] = ()) -> dict[str, Any]:
        about: dict[str, Any] = {}
        if node.version:
            about["version"] = node.version
        if node is self._root and not node.lonely:
            about["name"] = node.package_name
        elif node is self._root:
            about["name"] = "lib"
        if node.resolved:
            about["resolved"] = node.resolved
        if node is not self._root:
            about["overridden"] = False
        if depth > self._depth or node in path:
            return about
        below: dict[str, Any] = {}
        for name, edge, to in self._edges(node.target or node):
            self._session.process.budget.charge()
            if to is None and edge is not None:
                self._label(name, edge, None)
                below[name] = {"required": edge.wanted, "missing": True}
            elif to is not None and (not self._wanted or self._shown_below(to, path)):
                self.found = self.found or self.is_shown(to)
                below[name] = self.as_json(to, depth + 1, (*path, node))
                self._label(name, edge, to)
        if below:
            about["dependencies"] = below
        if node is self._root and self.problems:
            about["problems"] = self.problems
        return about


def _id(node: Node) -> str:
    return f"{node.package_name}@{node.version}" if node.version else node.package_name


def _relative(path: str, start: str) -> str:
    return path.removeprefix(start.rstrip("/") + "/")


def run_explain(session: Session, words: list[str]) -> int:
    if not words:
        raise NpmError("EUSAGE", "npm explain <package>...")
    with session.project() as project:
        root = project.load_actual()
        flag(root)
        shown = False
        for word in words:
            spec = parse_spec(word, session.process.fs.getcwd())
            for node in root.descendants():
                if node.parent is not None and node.name == spec.name and fits(node, spec):
                    shown = True
                    session.process.print(f"{_id(node)}{' dev' if node.dev else ''}\n{node.location}")
                    _explain(session, node, "  ", {node})
        if not shown:
            raise NpmError("EEXPLAIN", f"No dependencies found matching {', '.join(words)}")
    return 0


def _explain(session: Session, node: Node, indent: str, seen: set[Node]) -> None:
    for edge in sorted(node.edges_in(), key=lambda edge: (not edge.source.is_root, edge.source.location)):
        session.process.budget.charge(5)
        kind = "" if edge.kind == "prod" else "peer " if edge.peer else f"{edge.kind} "
        if edge.source.is_root:
            session.process.print(f'{indent}{kind}{edge.name}@"{edge.wanted}" from the root project')
            continue
        session.process.print(
            f'{indent}{kind}{edge.name}@"{edge.wanted}" from {_id(edge.source)}\n{indent}{edge.source.location}'
        )
        if edge.source not in seen and len(indent) < 60:
            seen.add(edge.source)
            _explain(session, edge.source, indent + "  ", seen)


def run_outdated(session: Session, words: list[str]) -> int:
    rows: list[tuple[str, str, str, str, str, str]] = []
    with session.project() as project:
        root = project.load_actual()
        if root.lonely:
            root.edges = {name: Edge(root, name, "*", "prod") for name in root.children}
        nodes = [root, *(root.descendants() if session.config.flag("all") else ())]
        edges = [edge for node in nodes for edge in node.edges.values() if not words or edge.name in words]
        edges = [edge for edge in edges if not edge.peer and edge.spec.target.registry]
        project.registry.expect(str(edge.spec.target.name) for edge in edges)
        for edge in sorted(edges, key=lambda edge: collate(edge.name)):
            target, to = edge.spec.target, edge.to
            try:
                packument = project.registry.packument(str(target.name))
                wanted = str(packument.pick(target).get("version"))
            except NpmError as error:
                if error.code not in ("E404", "ETARGET"):
                    raise
                continue
            latest = packument.tags.get("latest", wanted)
            current = to.version if to is not None else "MISSING"
            if current != wanted or (current != latest and target.kind != "tag"):
                where = to.location if to is not None else "-"
                rows.append((edge.name, current, wanted, latest, where or "-", edge.source.package_name))
    if session.config.flag("json"):
        keys = ("current", "wanted", "latest", "location", "dependent")
        said = {row[0]: {k: v for k, v in zip(keys, row[1:], strict=True) if v not in ("MISSING", "-")} for row in rows}
        session.process.print(json.dumps(said, indent=2))
        return 1 if rows else 0
    if not rows:
        return 0
    table = [("Package", "Current", "Wanted", "Latest", "Location", "Depended by"), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(6)]
    for row in table:
        cells = [
            row[0].ljust(widths[0]),
            *(row[n].rjust(widths[n]) for n in (1, 2, 3)),
            row[4].ljust(widths[4]),
            row[5],
        ]
        session.process.print("  ".join(cells))
    return 1
