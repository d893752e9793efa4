"""The installed packages: the tree read from a project's node_modules."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from belljar.abi.errors import SysError
from belljar.bin.npm.lockfile import HIDDEN, entries
from belljar.bin.npm.packagejson import default_name, read_json
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.spec import is_name
from belljar.bin.npm.tree import Node, Package
from belljar.kernel.process import Process
from belljar.libc.pattern import compile_pattern

_DEPTH_MAX: Final = 100


def open_root(process: Process, folder: str, *, legacy_peers: bool = False, lonely: bool = False) -> Node:
    """The project in a directory, without its children. EJSONPARSE."""
    package: Package = {} if lonely else read_json(process, f"{folder}/package.json") or {}
    root = Node(str(package.get("name") or default_name(folder)), package, folder, lonely=lonely, developed=True)
    root.workspaces = {} if lonely else find_workspaces(process, folder, package)
    root.overrides = _overrides(package)
    root.read_edges(legacy_peers=legacy_peers)
    return root


def _overrides(package: Package) -> dict[str, str]:
    """Versions that the project dictates to everyone. Those for one dependent alone are not known here."""
    given = package.get("overrides")
    found: dict[str, str] = {}
    for name, value in given.items() if isinstance(given, dict) else ():
        if isinstance(value, dict):
            value = value.get(".")
        if not isinstance(value, str):
            continue
        if value.startswith("$"):
            buckets = (package.get(bucket) for bucket in ("dependencies", "devDependencies"))
            value = next((own[value[1:]] for own in buckets if isinstance(own, dict) and value[1:] in own), None)
        if isinstance(value, str) and is_name(name):
            found[name] = value
    return found


def find_workspaces(process: Process, folder: str, package: Package) -> dict[str, str]:
    """The workspaces that a project names by patterns: their directories, by name."""
    given = package.get("workspaces")
    if isinstance(given, dict):
        given = given.get("packages")
    found: dict[str, str] = {}
    for pattern in given if isinstance(given, list) else ():
        if not isinstance(pattern, str) or pattern.startswith(("/", "!")) or ".." in pattern.split("/"):
            continue
        for path in _matching(process, folder, [part for part in pattern.split("/") if part not in ("", ".")]):
            about = read_json(process, f"{path}/package.json")
            if about is None:
                continue
            name = about.get("name") or default_name(path)
            if is_name(name) and found.setdefault(name, path) != path:
                raise NpmError("EDUPLICATEWORKSPACE", f"must not have multiple workspaces with the same name: {name}")
    return found


def _matching(process: Process, folder: str, parts: list[str], depth: int = 0) -> Iterator[str]:
    if not parts or depth > 12:
        if depth <= 12:
            yield folder
        return
    process.budget.charge()
    first, rest = parts[0], parts[1:]
    if first == "**":
        yield from _matching(process, folder, rest, depth + 1)
        for name in _directories(process, folder):
            yield from _matching(process, f"{folder}/{name}", parts, depth + 1)
    elif any(char in first for char in "*?[{"):
        pattern = compile_pattern(first, extglob=False, nocase=False)
        for name in _directories(process, folder):
            if pattern.matches(name):
                yield from _matching(process, f"{folder}/{name}", rest, depth + 1)
    else:
        with suppress(SysError):
            if process.fs.stat(f"{folder}/{first}").is_dir:
                yield from _matching(process, f"{folder}/{first}", rest, depth + 1)


def _directories(process: Process, folder: str) -> list[str]:
    with suppress(SysError):
        return sorted(
            e.name for e in process.fs.readdir(folder) if e.is_dir and e.name[0] != "." and e.name != "node_modules"
        )
    return []


def package_folders(process: Process, folder: str) -> Iterator[tuple[str, str]]:
    """The packages in a directory's node_modules: their names and paths, scopes entered."""
    try:
        listed = sorted(entry.name for entry in process.fs.readdir(f"{folder}/node_modules"))
    except SysError:
        return
    for name in listed:
        if name.startswith("@"):
            with suppress(SysError):
                for entry in sorted(e.name for e in process.fs.readdir(f"{folder}/node_modules/{name}")):
                    if is_name(f"{name}/{entry}"):
                        yield f"{name}/{entry}", f"{folder}/node_modules/{name}/{entry}"
        elif is_name(name):
            yield name, f"{folder}/node_modules/{name}"


def read_actual(process: Process, root: Node, *, legacy_peers: bool = False) -> None:
    """Give a root the children that are in its node_modules."""
    try:
        hidden = entries(read_json(process, f"{root.folder}/{HIDDEN}") or {})
    except NpmError:
        hidden = {}
    _read(process, root, root, hidden, legacy_peers, 0)


def _read(process: Process, root: Node, node: Node, hidden: dict[str, Any], legacy: bool, depth: int) -> None:
    if depth > _DEPTH_MAX:
        return
    for name, path in package_folders(process, node.folder):
        process.budget.charge(5)
        if name in node.children:
            continue
        try:
            stat = process.fs.stat(path, follow=False)
            if stat.is_symlink:
                child = _link(process, root, name, path, legacy)
            elif stat.is_dir:
                package = read_json(process, f"{path}/package.json")
                if package is None and node.is_root:
                    package = {}
                if package is None:
                    continue
                child = Node(name, package, "")
            else:
                continue
        except (SysError, NpmError):
            continue
        node.adopt(child)
        about = hidden.get(child.location)
        if about is not None and about.get("version") == child.version and child.target is None:
            resolved, integrity = about.get("resolved"), about.get("integrity")
            if isinstance(resolved, str):
                local = resolved.startswith("file:")
                child.resolved = (
                    "file:" + posixpath.normpath(posixpath.join(root.folder, resolved[5:])) if local else resolved
                )
            child.integrity = integrity if isinstance(integrity, str) else None
            child.bundled = bool(about.get("inBundle"))
            child.package = {**child.package, **{k: about[k] for k in ("hasInstallScript", "deprecated") if k in about}}
        child.read_edges(root.overrides, legacy_peers=legacy)
        inner = child.target if child.target is not None and child.target.home is not None else child
        if child.target is None or inner is child.target:
            _read(process, root, inner, hidden, legacy, depth + 1)


def _link(process: Process, root: Node, name: str, path: str, legacy: bool) -> Node:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), process.fs.readlink(path)))
    found = link_target(process, root, name, target, legacy_peers=legacy)
    return Node(name, found.package, "", target=found)


def link_target(process: Process, root: Node, name: str, folder: str, *, legacy_peers: bool = False) -> Node:
    """The package that a link leads to. Inside the project it sees the project's packages."""
    package = read_json(process, f"{folder}/package.json") or {}
    inside = folder.startswith(root.folder.rstrip("/") + "/") and "/node_modules/" not in folder[len(root.folder) :]
    node = Node(str(package.get("name") or name), package, folder, home=root if inside else None, developed=True)
    node.read_edges(legacy_peers=legacy_peers)
    return node


def read_bundled(process: Process, node: Node) -> None:
    """Add to a node what its own tarball had in its node_modules."""
    _read(process, node.root, node, {}, False, 0)
    for inner in node.descendants():
        if inner.resolved is None:
            inner.bundled = True
