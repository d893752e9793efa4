"""Which packages can be of use here: Linux, Node 24, and no native code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.registry import NODE_VERSION, Manifest, Packument
from belljar.bin.npm.tree import Node
from belljar.packages.semver import satisfies, sort_key


def _words(value: object) -> list[str]:
    words = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [word for word in words if isinstance(word, str)]


def runs_here(node: Node) -> bool:
    """Whether a package is for this platform. What is for certain processors is machine code: nothing runs that."""
    systems, processors = _words(node.package.get("os")), _words(node.package.get("cpu"))
    if "!linux" in systems or any(
        word for word in systems if word[:1] != "!" and "linux" not in systems and "any" not in systems
    ):
        return False
    return all(word.startswith("!") or word == "any" for word in processors)


def is_native_package(node: Node) -> bool:
    """Whether it is machine code that an ordinary Linux machine would get."""
    systems, processors = _words(node.package.get("os")), _words(node.package.get("cpu"))
    return (
        "x64" in processors and (not systems or "linux" in systems) and "musl" not in _words(node.package.get("libc"))
    )


def skip_foreign(root: Node, warn: Callable[[str], None], *, force: bool) -> None:
    """Mark what is not for this platform, and what only that would need. EBADPLATFORM if it is needed itself."""
    nodes = [node for node in root.descendants() if node.parent is not None]
    for node in nodes:
        if node.target is None and not runs_here(node):
            if node.optional:
                node.skipped = True
                if is_native_package(node):
                    warn(f"native {node.package_name}@{node.version} is machine code, which can't run here: left out")
            elif not force:
                wanted = {key: node.package.get(key) for key in ("os", "cpu", "libc") if node.package.get(key)}
                raise NpmError(
                    "EBADPLATFORM",
                    f"notsup Unsupported platform for {node.package_name}@{node.version}: wanted {wanted}",
                    "notsup It is for other systems, or native code, which can't run in a sandbox.",
                )
    changed = any(node.skipped for node in nodes)
    while changed:
        changed = False
        for node in nodes:
            if node.skipped or not node.optional:
                continue
            edges = list(node.edges_in())
            if edges and all(edge.source.skipped for edge in edges):
                node.skipped = changed = True


def check_fronts(
    root: Node,
    packument: Callable[[str], Packument],
    warn: Callable[[str], None],
    *,
    asked: frozenset[str],
    force: bool,
) -> None:
    """Name what does without native code, for packages that are only a front for it.

    EBADPLATFORM if one was asked for.
    """
    for node in root.descendants():
        native = native_part(node)
        if native is None or node.skipped or node.optional:
            continue
        ways = _ways_out(node, native, packument)
        if not ways:
            continue
        shown = f"{node.package_name}@{node.version}"
        what = f"{shown} is a front for machine code ({native.package_name}), which can't run here"
        direct = any(edge.source.is_root for edge in node.edges_in()) and node.name in asked
        if direct and not force:
            raise NpmError("EBADPLATFORM", f"notsup {what}.", *(f"notsup {way}" for way in ways))
        warn(f"native {what}. {' '.join(ways)}")


def native_part(node: Node) -> Node | None:
    """The machine code that a package is a front for; None if it has a form that runs anywhere, too."""
    found: Node | None = None
    for edge in node.edges.values():
        if edge.kind != "optional":
            continue
        if "wasm" in edge.name:
            return None
        if edge.to is not None and edge.to.skipped and is_native_package(edge.to):
            found = edge.to
    return found


def _ways_out(node: Node, native: Node, packument: Callable[[str], Packument]) -> list[str]:
    name = node.package_name
    ways: list[str] = []
    try:
        versions = packument(name).versions
    except NpmError:
        versions = {}
    plain = [version for version, manifest in versions.items() if _is_plain(version, manifest, native.package_name)]
    if plain and name not in INSTEAD:
        best = max(plain, key=sort_key)
        major = best.partition(".")[0]
        newest = max((v for v in versions if v.startswith(f"{major}.") and "-" not in v), key=sort_key)
        short = major if major != "0" and newest == best else best
        ways.append(f"{name}@{best} works here: npm install {name}@{short}")
    if name in INSTEAD:
        ways.append(f"{INSTEAD[name]} is the same without machine code: npm install {name}@npm:{INSTEAD[name]}")
    return ways


def _is_plain(version: str, manifest: Manifest, native: str) -> bool:
    """Whether a released version has neither parts for platforms nor a script that would fetch them."""
    if "-" in version or manifest.get("deprecated") or manifest.get("hasInstallScript"):
        return False
    optional = manifest.get("optionalDependencies")
    system = native.removeprefix("@").replace("/", "-").split("-")[-2:]
    names = optional if isinstance(optional, dict) else {}
    return native not in names and not any(name.split("-")[-2:] == system for name in names)


INSTEAD: Final = {
    "esbuild": "esbuild-wasm",
    "lightningcss": "lightningcss-wasm",
    "rollup": "@rollup/wasm-node",
    "sass-embedded": "sass",
}
"""Packages that do the same in JavaScript or WebAssembly, under another name."""


def check_engines(root: Node, warn: Callable[[str], None], *, strict: bool) -> None:
    """Say which packages want another Node. EBADENGINE if that is strict."""
    for node in root.descendants():
        engines = node.package.get("engines")
        wanted = engines.get("node") if isinstance(engines, dict) else None
        if not isinstance(wanted, str) or node.skipped or not wanted or satisfies(NODE_VERSION, wanted):
            continue
        shown = f"{node.package_name}@{node.version}"
        if strict:
            raise NpmError(
                "EBADENGINE",
                f'notsup Unsupported engine for {shown}: wanted: {{"node":"{wanted}"}} (current: "v{NODE_VERSION}")',
            )
        warn("EBADENGINE Unsupported engine {")
        warn(f"EBADENGINE   package: '{shown}',")
        warn(f"EBADENGINE   required: {{ node: '{wanted}' }},")
        warn(f"EBADENGINE   current: {{ node: 'v{NODE_VERSION}', npm: '11' }}")
        warn("EBADENGINE }")
