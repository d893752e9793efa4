"""A package of what an extension adds to an image: its new files, each in the table of package.toml that it is for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from belljar.abi.base import PYTHON_SITE
from belljar.abi.paths import fsdecode
from belljar.api.image import Image
from belljar.image.record import environment_of
from belljar.image.tree import FileTree, Node
from belljar.kernel.services.unit import SUFFIX, UNITS
from belljar.packages.archive import Package, SourceFile, packed
from belljar.packages.errors import PackageError
from belljar.packages.layout import COMMANDS, NODE_MODULES
from belljar.packages.manifest import FILE
from belljar.store.objects import content_of
from belljar.store.store import Objects, Store
from belljar.store.tree import Kind

_LIBRARIES: Final = {f"{PYTHON_SITE}/": "python", f"{NODE_MODULES}/": "node"}


def package_of(extension: Callable[[Image], Image], name: str, version: str) -> Package:
    """Make a package that brings what an extension adds to the base image. PackageError for what a package can't have:
    changed or removed files of the base, links, and settings; ImageError.
    """
    store = Store.memory()
    base, made = Image().build(store).built.record, Image().use(extension).build(store).built.record
    if environment_of(base) != environment_of(made) or (base.cwd, base.user) != (made.cwd, made.user):
        raise PackageError(f"{name}: a package has no settings: leave .env(), .cwd() and .user() to the recipe")
    objects = Objects(store)
    before = dict(FileTree.load(objects, base.trees[0]).walk())
    after = dict(FileTree.load(objects, made.trees[0]).walk())
    if gone := next((path for path in before if path not in after), None):
        raise PackageError(f"{name}: a package removes no files, and /{fsdecode(gone)} is gone")
    new: dict[str, tuple[bytes, bool]] = {}
    for path, node in after.items():
        if node.is_directory or _same(before.get(path), node):
            continue
        shown = f"/{fsdecode(path)}"
        if node.kind is not Kind.FILE or path in before or not all(node.parts):
            raise PackageError(f"{name}: a package brings new plain files only, and {shown} is something else")
        new[shown] = content_of(objects.read(node.parts)), bool(node.mode & 0o100)
    return _arrange(new, name, version)


def _same(before: Node | None, node: Node) -> bool:
    return before is not None and (before.kind, before.parts, before.target) == (node.kind, node.parts, node.target)


def _arrange(new: Mapping[str, tuple[bytes, bool]], name: str, version: str) -> Package:
    lines = [f"name = {json.dumps(name)}", f"version = {json.dumps(version)}"]
    tables: dict[str, list[str]] = {"commands": [], "files": [], "libraries": []}
    sources: list[SourceFile] = []
    for path, (data, executable) in new.items():
        library = next((kind for place, kind in _LIBRARIES.items() if path.startswith(place)), None)
        if path.startswith(f"{UNITS}/"):
            service = path.removeprefix(f"{UNITS}/").removesuffix(SUFFIX)
            # Of one table after the other: its own sub-tables come below it.
            text = data.decode("utf-8", "replace").replace("\n[env]\n", f"\n[services.{json.dumps(service)}.env]\n")
            tables[f"services.{json.dumps(service)}"] = [text.rstrip("\n")]
            continue
        inner = f"files{path}"
        if path.startswith(f"{COMMANDS}/"):
            inner = f"bin/{path.removeprefix(f'{COMMANDS}/')}"
            tables["commands"].append(f"{json.dumps(path.removeprefix(f'{COMMANDS}/'))} = {json.dumps(inner)}")
        elif library is not None:
            place = PYTHON_SITE if library == "python" else NODE_MODULES
            inner = f"{library}{path.removeprefix(place)}"
            line = f'{library} = "{library}"'
            tables["libraries"] += [] if line in tables["libraries"] else [line]
        else:
            tables["files"].append(f"{json.dumps(inner)} = {json.dumps(path)}")
        sources.append(SourceFile(inner, data, executable))
    for table, entries in tables.items():
        if entries:
            lines += ["", f"[{table}]", *entries]
    return packed([SourceFile(FILE, ("\n".join(lines) + "\n").encode(), False), *sources])
