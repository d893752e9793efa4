"""package-lock.json: the tree as it was installed, written and read in its version 3 (and read in 1 and 2)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, Final

from belljar.bin._kit.realpath import relative_to
from belljar.bin.npm.packagejson import Document, collate, dump, nice, read_document
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.spec import is_name
from belljar.bin.npm.tree import Node
from belljar.kernel.process import Process

NAMES: Final = ("npm-shrinkwrap.json", "package-lock.json")
HIDDEN: Final = "node_modules/.package-lock.json"
_FIRST: Final = ("name", "version", "lockfileVersion", "resolved", "integrity", "requires", "packages", "dependencies")
_FROM_PACKAGE: Final = (
    "version dependencies peerDependencies peerDependenciesMeta optionalDependencies bundleDependencies "
    "acceptDependencies funding engines os cpu libc license hasInstallScript bin deprecated workspaces".split()
)
_DEPTH_MAX: Final = 100


def read_lock(process: Process, folder: str) -> Document | None:
    """The lockfile of a project. ELOCK for one that can't be used."""
    for name in NAMES:
        found = read_document(process, f"{folder}/{name}")
        if found is not None:
            return found
    return None


def entries(lock: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a lockfile's entries by location, the root's own included."""
    packages = lock.get("packages")
    if isinstance(packages, dict):
        return {location: about for location, about in packages.items() if isinstance(about, dict)}
    old = lock.get("dependencies")
    return dict(_old_entries(old, "", 0)) if isinstance(old, dict) else {}


def _old_entries(dependencies: Mapping[str, Any], above: str, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the entries of lockfile version 1, which nests them."""
    if depth > _DEPTH_MAX:
        raise NpmError("ELOCK", "the lockfile is nested too deeply")
    for name, about in dependencies.items():
        if not isinstance(about, dict):
            continue
        location = f"{above}node_modules/{name}"
        entry = {key: about[key] for key in ("version", "resolved", "integrity", "dev", "optional") if key in about}
        if isinstance(about.get("requires"), dict):
            entry["dependencies"] = about["requires"]
        if about.get("bundled"):
            entry["inBundle"] = True
        yield location, entry
        if isinstance(about.get("dependencies"), dict):
            yield from _old_entries(about["dependencies"], f"{location}/", depth + 1)


def split(location: str) -> tuple[str, str] | None:
    """The location of the parent and the name, of a package in a node_modules; None for anything else."""
    above, found, name = location.rpartition("node_modules/")
    if not found or not is_name(name) or (above and not above.endswith("/")):
        return None
    return above.rstrip("/"), name


def grow(root: Node, lock: Mapping[str, Any], *, legacy_peers: bool = False) -> None:
    """Give a root the children that a lockfile has for it."""
    known: dict[str, Node] = {"": root}
    found = entries(lock)
    links = {a["resolved"]: loc for loc, a in found.items() if a.get("link") and isinstance(a.get("resolved"), str)}
    for location in sorted(found, key=lambda text: (text.count("node_modules/"), text)):
        about = found[location]
        if not location or about.get("extraneous"):
            continue
        place = split(location)
        if place is None:
            if location in links and posixpath.normpath(location) == location and not location.startswith(("..", "/")):
                target = Node(
                    str(about.get("name") or location), about, f"{root.folder}/{location}", home=root, developed=True
                )
                target.read_edges(legacy_peers=legacy_peers)
                known[location] = target
            continue
        if place[0] not in known:
            continue
        node = _node(place[1], about, root)
        if node is None:
            continue
        if about.get("link"):
            target_location = posixpath.normpath(str(about.get("resolved")))
            node.target = known.get(target_location) or Node(place[1], {}, posixpath.join(root.folder, target_location))
        known[place[0]].adopt(node)
        known[location] = node
        node.read_edges(root.overrides, legacy_peers=legacy_peers)


def _node(name: str, about: dict[str, Any], root: Node) -> Node | None:
    resolved, integrity = about.get("resolved"), about.get("integrity")
    if isinstance(resolved, str) and resolved.startswith("file:"):
        resolved = "file:" + posixpath.normpath(posixpath.join(root.folder, resolved[5:]))
    return Node(
        name,
        about,
        "",
        resolved if isinstance(resolved, str) and not about.get("link") else None,
        integrity if isinstance(integrity, str) else None,
        bundled=bool(about.get("inBundle")),
    )


def describe(node: Node, root: Node) -> dict[str, Any]:
    """Return the lockfile entry of a node."""
    if node.target is not None:
        return {"resolved": relative_to(node.target.folder, root.folder), "link": True, **_flags(node)}
    found: dict[str, Any] = {}
    for key in _FROM_PACKAGE:
        value = node.package.get(key)
        if key == "bundleDependencies" and value is None:
            value = node.package.get("bundledDependencies")
        if key == "license" and isinstance(value, dict):
            value = value.get("type")
        if value or (key == "version" and value):
            found[key] = value
    if isinstance(found.get("bin"), str):
        found["bin"] = {node.package_name.rpartition("/")[2]: found["bin"].removeprefix("./")}
    elif isinstance(found.get("bin"), dict):
        found["bin"] = {k: v.removeprefix("./") if isinstance(v, str) else v for k, v in found["bin"].items()}
    needs, optional = found.get("dependencies"), found.get("optionalDependencies")
    if isinstance(needs, dict) and isinstance(optional, dict):
        found["dependencies"] = {name: wanted for name, wanted in needs.items() if name not in optional}
    found = {key: value for key, value in found.items() if value not in ({}, [])}
    if isinstance(found.get("funding"), str):
        found["funding"] = {"url": found["funding"]}
    if node is root or (node.package_name != posixpath.basename(node.folder) and node.package_name != node.name):
        found["name"] = node.package_name
    if node.developed and node.package.get("devDependencies"):
        found["devDependencies"] = node.package["devDependencies"]
    if node.integrity:
        found["integrity"] = node.integrity
    if node.bundled:
        found["inBundle"] = True
    if has_install_script(node):
        found["hasInstallScript"] = True
    if node.resolved is not None and not node.is_top:
        where = node.resolved
        found["resolved"] = "file:" + relative_to(where[5:], root.folder) if where.startswith("file:") else where
    return {**found, **(_flags(node) if node is not root else {})}


def has_install_script(node: Node) -> bool:
    scripts = node.package.get("scripts")
    own = isinstance(scripts, dict) and any(scripts.get(name) for name in ("preinstall", "install", "postinstall"))
    return bool(node.package.get("hasInstallScript")) or own


def _flags(node: Node) -> dict[str, bool]:
    if node.extraneous:
        return {"extraneous": True}
    named = {"peer": node.peer, "dev": node.dev, "optional": node.optional, "devOptional": node.dev_optional}
    return {name: True for name, value in named.items() if value}


def write_lock(process: Process, root: Node, before: Document | None) -> None:
    """The project's lockfile, if that changes anything."""
    packages = {"": describe(root, root)}
    packages.update(_locations(root, hidden=False))
    path = before.path if before is not None else f"{root.folder}/package-lock.json"
    document = Document(
        path, _document(root, packages), *((before.indent, before.newline, before.text) if before else ())
    )
    document.save(process)


def write_hidden(process: Process, root: Node) -> None:
    """node_modules/.package-lock.json: what is really there."""
    text = dump(_document(root, _locations(root, hidden=True)), 2) + "\n"
    process.write_file(f"{root.folder}/{HIDDEN}", text.encode("utf-8", "surrogateescape"), 0o644)


def _locations(root: Node, *, hidden: bool) -> dict[str, dict[str, Any]]:
    found = {node.location: node for node in root.descendants() if not (hidden and node.skipped)}
    return {location: describe(found[location], root) for location in sorted(found, key=collate)}


def _document(root: Node, packages: dict[str, dict[str, Any]]) -> dict[str, Any]:
    about = {"name": root.package_name, "version": root.version, "lockfileVersion": 3, "requires": True}
    if not root.version:
        del about["version"]
    return {**about, "packages": {location: nice(entry, _FIRST) for location, entry in packages.items()}}
