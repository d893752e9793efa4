"""Which packages can be of use here: Linux, Node 24, and no native code."""

from __future__ import annotations

from collections.abc import Callable

from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.registry import NODE_VERSION
from belljar.bin.npm.semver import satisfies
from belljar.bin.npm.tree import Node


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
                    "notsup It is for other systems, or native code, which can't run in the virtual tier.",
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
