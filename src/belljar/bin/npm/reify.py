"""Makes node_modules what the tree says: everything is got, checked and unpacked before the first file is replaced."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errors import SysError
from belljar.bin._kit.realpath import relative_to
from belljar.bin._remove import Remover
from belljar.bin.npm.actual import read_bundled
from belljar.bin.npm.bins import link_bins, read_json_quietly, unlink_bins
from belljar.bin.npm.config import Config
from belljar.bin.npm.fitness import is_native_package
from belljar.bin.npm.ideal import bundled_names
from belljar.bin.npm.lockfile import has_install_script
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.scripts import Runner
from belljar.bin.npm.source import Source
from belljar.bin.npm.tarball import errno_name, make_directories, unpack
from belljar.bin.npm.tree import Node, Package
from belljar.kernel.process import Process


@dataclass(slots=True)
class Changes:
    """The changes made, for the last line of an install."""

    added: list[Node] = field(default_factory=list)
    changed: list[tuple[Node, Node]] = field(default_factory=list)
    removed: list[Node] = field(default_factory=list)


def is_native(process: Process, folder: str, package: Any) -> bool:
    """Whether a package has an addon to compile."""
    with suppress(SysError):
        process.fs.stat(f"{folder}/binding.gyp")
        return package.get("gypfile") is not False
    return False


class Reifier:
    def __init__(
        self, process: Process, config: Config, source: Source, actual: Node, ideal: Node, warn: Callable[[str], None]
    ) -> None:
        self._process = process
        self._config = config
        self._source = source
        self._have = {node.location: node for node in actual.descendants() if node.parent is not None}
        self._ideal = ideal
        self._warn = warn
        self._staging = f"{ideal.folder}/node_modules/.npm-{process.pid}"
        self._staged: dict[Node, str] = {}
        self.changes = Changes()

    def run(self) -> Changes:
        """EINTEGRITY, EBADPATH and the like before anything changed; disk errors may leave a part done."""
        omitted = self._config.omitted
        wanted = [
            node for node in self._ideal.descendants() if node.parent is not None and not self._left_out(node, omitted)
        ]
        fresh = [node for node in wanted if not node.bundled and not self._is_there(node)]
        for node in set(wanted).difference(fresh):
            node.package = (
                _more(node, self._have[node.location].package) if node.location in self._have else node.package
            )
        keep = {node.location for node in wanted}
        gone = [node for location, node in self._have.items() if location not in keep and not self._is_bundled(node)]
        if self._config.flag("dry-run"):
            self._count(fresh, gone)
            return self.changes
        try:
            self._stage([node for node in fresh if node.target is None])
            fresh = [node for node in fresh if not node.skipped]
            self._count(fresh, gone)
            self._remove(gone)
            self._move(fresh)
            self._commands(wanted, fresh)
            if not self._config.flag("ignore-scripts"):
                self._scripts(fresh)
        except SysError as error:
            raise NpmError(errno_name(error), str(error)) from None
        finally:
            self._delete(self._staging)
        return self.changes

    def _left_out(self, node: Node, omitted: frozenset[str]) -> bool:
        return (
            node.skipped
            or (node.dev and "dev" in omitted)
            or (node.optional and "optional" in omitted)
            or (node.peer and "peer" in omitted)
            or (node.dev_optional and {"dev", "optional"} <= omitted)
            or (node.parent is not None and node.parent.parent is not None and self._left_out(node.parent, omitted))
        )

    def _is_there(self, node: Node) -> bool:
        have = self._have.get(node.location)
        if have is None or have.is_link != node.is_link:
            return False
        if node.target is not None and have.target is not None:
            return node.target.folder == have.target.folder
        same = (have.package_name, have.version) == (node.package_name, node.version)
        if not same or (have.integrity and node.integrity and have.integrity != node.integrity):
            return False
        return node.resolved is None or have.resolved is None or have.resolved == node.resolved or bool(have.integrity)

    def _is_bundled(self, node: Node) -> bool:
        """Inside a package that is kept, as part of it."""
        parent = node.parent
        while parent is not None and parent.parent is not None:
            if node.bundled or bundled_names(parent):
                return True
            parent = parent.parent
        return False

    def _count(self, fresh: list[Node], gone: list[Node]) -> None:
        for node in fresh:
            have = self._have.get(node.location)
            if have is None:
                self.changes.added.append(node)
            else:
                self.changes.changed.append((have, node))
        self.changes.removed = gone

    # Before anything changes.

    def _stage(self, fresh: list[Node]) -> None:
        """Get every tarball, several at a time, and unpack it beside where it will go."""
        if fresh:
            make_directories(self._process, self._staging)
        results = self._source.registry.lanes.each([lambda node=node: self._source.tarball(node) for node in fresh])  # type: ignore[misc]
        for number, (node, result) in enumerate(zip(fresh, results, strict=True)):
            shown = f"{node.package_name}@{node.version}"
            try:
                tarball = result.get()
                node.integrity = node.integrity or tarball.integrity
                folder = f"{self._staging}/{number}"
                native = unpack(self._process, tarball, folder, shown)
                if native is not None:
                    self._warn(f"native {shown} has machine code for Node ({native}), which can't be loaded here")
                self._source.depot.forget(tarball)
                self._adopt(node, folder)
            except NpmError as error:
                if not node.optional:
                    raise
                self._warn(f"skipping optional dependency {shown}: {error}")
                node.skipped = True
                continue
            self._staged[node] = folder

    def _adopt(self, node: Node, folder: str) -> None:
        """Add the fields that only the package's own package.json has."""
        package = read_json_quietly(self._process, f"{folder}/package.json")
        if package is None:
            raise NpmError("ENOENT", f"{node.package_name}@{node.version} has no package.json, or a damaged one")
        scripts = package.get("scripts")
        node.package = {**_more(node, package), **({"scripts": scripts} if isinstance(scripts, dict) else {})}

    # The changes.

    def _delete(self, path: str) -> None:
        if not self._process.fs.exists(path, follow=False):
            return
        Remover(self._process, recursive=True, force=True).remove(path)

    def _remove(self, gone: list[Node]) -> None:
        for node in gone:
            unlink_bins(self._process, node)
            self._delete(node.folder)
            self._tidy(node)

    def _tidy(self, node: Node) -> None:
        """Directories that only held what is gone."""
        folder = node.folder.rpartition("/")[0]
        while folder.rpartition("/")[2] == "node_modules" or folder.rpartition("/")[2].startswith("@"):
            with suppress(SysError):
                self._process.fs.rmdir(f"{folder}/.bin")
            try:
                self._process.fs.rmdir(folder)
            except SysError:
                return
            folder = folder.rpartition("/")[0]

    def _move(self, fresh: list[Node]) -> None:
        """Put what was staged into its place, parents first; what is inside an old version moves over."""
        fs = self._process.fs
        for node in sorted(fresh, key=lambda node: node.location.count("node_modules/")):
            folder = node.folder
            make_directories(self._process, folder.rpartition("/")[0])
            have = self._have.get(node.location)
            if have is not None:
                unlink_bins(self._process, have)
            if node.target is not None:
                self._delete(folder)
                fs.symlink(relative_to(node.target.folder, folder.rpartition("/")[0]), folder)
                continue
            staged = self._staged[node]
            if have is not None and have.target is None:
                with suppress(SysError):
                    fs.stat(f"{staged}/node_modules")
                    self._delete(f"{folder}/node_modules")
                with suppress(SysError):
                    fs.rename(f"{folder}/node_modules", f"{staged}/node_modules")
            self._delete(folder)
            fs.rename(staged, folder)
            if bundled_names(node):
                read_bundled(self._process, node)

    def _commands(self, wanted: list[Node], fresh: list[Node]) -> None:
        if self._config.get("bin-links") is False:
            return
        new = set(fresh)
        for node in wanted:
            if node in new or node.target is not None:
                link_bins(self._process, node, force=self._config.flag("force"))

    # Scripts.

    def _scripts(self, fresh: list[Node]) -> None:
        """Install scripts, those of the deepest first; their output is shown if they fail."""
        for node in sorted(fresh, key=lambda node: -node.location.count("node_modules/")):
            if node.target is not None or node.skipped:
                continue
            native = is_native(self._process, node.folder, node.package)
            if not native and not has_install_script(node):
                continue
            try:
                self._build(node, native)
            except NpmError as error:
                if not node.optional:
                    raise
                self._warn(f"skipping optional dependency {node.package_name}@{node.version}: {error}")
                node.skipped = True
                unlink_bins(self._process, node)
                self._delete(node.folder)
                self.changes.added = [other for other in self.changes.added if other is not node]

    def _build(self, node: Node, native: bool) -> None:
        package = read_json_quietly(self._process, f"{node.folder}/package.json") or {}
        runner = Runner(self._process, self._config, node.folder, package, "install")
        scripts = runner.scripts
        if native and ("install" not in scripts or any(word in scripts["install"] for word in _COMPILERS)):
            raise NpmError(
                "ENATIVE",
                f"{node.package_name}@{node.version} has a native addon (binding.gyp) that would have to be compiled.",
                "Native code can't run in a sandbox, and there is no compiler: look for a package in pure",
                "JavaScript or WebAssembly that does the same. --ignore-scripts installs its files unbuilt.",
            )
        for event in ("preinstall", "install", "postinstall"):
            if event not in scripts:
                continue
            status, output = runner.run(event, scripts[event], [], capture=not self._config.flag("foreground-scripts"))
            if status:
                text = output.decode("utf-8", "replace").rstrip().splitlines()
                raise NpmError(
                    str(status),
                    f"path {node.folder}",
                    "command failed",
                    f"command sh -c {scripts[event]}",
                    *text[-50:],
                    *self._native_part(node),
                    "(an install script of this package failed; --ignore-scripts installs without running them)",
                    status=status,
                )

    def _native_part(self, node: Node) -> list[str]:
        """Return a hint for each skipped native package that a package needs."""
        parts = [
            to for edge in node.edges.values() if (to := edge.to) is not None and to.skipped and is_native_package(to)
        ]
        return [
            f"({part.name}, which it is a front for, is machine code: a sandbox does not run that)" for part in parts
        ]


_COMPILERS = ("node-gyp", "prebuild-install", "node-pre-gyp", "node-gyp-build", "cmake-js", "prebuildify", "napi")


def _more(node: Node, package: Package) -> Package:
    """Complete a package's metadata with fields that the registry left out."""
    return {**{key: package[key] for key in ("license", "funding", "bin") if key in package}, **node.package}
