"""Packages, registries and sandboxes for tests: a registry on disk, and a kernel in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from belljar.bin._kit.discovery import find, names
from belljar.kernel.machine import virtual_machine
from belljar.packages.archive import Package, SourceFile, packed
from belljar.packages.owner.registry_host import Registry
from belljar.worker.session import Session


def package(
    name: str,
    version: str = "1.0.0",
    manifest: str = "",
    files: Mapping[str, str | bytes] | None = None,
    **needs: str,
) -> Package:
    """A package with a shell command of its name, unless its manifest says what it has."""
    text = f'name = "{name}"\nversion = "{version}"\n'
    extra = dict(files or {})
    if "[commands]" not in manifest and not files:
        manifest += f'\n[commands]\n{name} = "{name}.sh"\n'
        extra[f"{name}.sh"] = f"echo {name} {version} $*\n"
    if needs:
        manifest += "\n[dependencies]\n" + "".join(f'{dep} = "{wanted}"\n' for dep, wanted in needs.items())
    sources = {"package.toml": text + manifest, **extra}
    return packed(
        SourceFile(path, data.encode() if isinstance(data, str) else data, False) for path, data in sources.items()
    )


def registry(directory: Path, *packages: Package, name: str = "main") -> Registry:
    made = Registry.create(directory / name, name, directory / f"{name}.pem")
    for each in packages:
        made.add(each)
    return made


class World:
    """A sandbox's kernel in this process, with registries that it reaches as files."""

    def __init__(self) -> None:
        self.session = Session(virtual_machine(1), programs=find, names=names())

    def run(self, command: str) -> tuple[int, str]:
        """Exit code, and all that was said."""
        result = self.session.exec(["bash", "-c", command], merge_stderr=True)
        return result.status.shell if hasattr(result.status, "shell") else int(result.status), result.stdout.decode()

    def ok(self, command: str) -> str:
        status, said = self.run(command)
        assert status == 0, said
        return said

    def refused(self, command: str) -> str:
        """What is said by a command that fails and changes nothing."""
        before = self.tree()
        status, said = self.run(command)
        assert status == 1, said
        assert self.tree() == before
        return said

    def put(self, made: Registry) -> str:
        """Copy a registry's files into the sandbox; its URL there."""
        top = f"/srv/{made.catalog.registry}"
        for path in sorted(made.directory.rglob("*")):
            if path.is_file():
                self.write(f"{top}/{path.relative_to(made.directory)}", path.read_bytes())
        return f"file://{top}"

    def use(self, made: Registry, *options: str) -> None:
        url = self.put(made)
        self.ok(f"pkg registry add {url} --name {made.catalog.registry} {' '.join(options)} && pkg update")

    def write(self, path: str, data: bytes) -> None:
        init = self.session.kernel.init
        init.fs.makedirs(path.rpartition("/")[0], 0o755)
        init.write_file(path, data)

    def tree(self) -> dict[str, tuple[object, ...]]:
        """Everything that a tree's digest depends on, of all files but those that registries are in."""
        init = self.session.kernel.init
        found: dict[str, tuple[object, ...]] = {}
        waiting = [""]
        while waiting:
            above = waiting.pop()
            for entry in init.fs.readdir(above or "/"):
                path = f"{above}/{entry.name}"
                if entry.name in (".", "..") or path in ("/proc", "/dev", "/srv", "/mnt", "/net"):
                    continue
                about = init.fs.stat(path, follow=False)
                content: object = None
                if about.is_dir:
                    waiting.append(path)
                elif about.is_symlink:
                    content = init.fs.readlink(path)
                elif about.is_regular:
                    content = init.read_file(path)
                found[path] = about.mode, about.uid, about.gid, about.mtime, content
        return found
