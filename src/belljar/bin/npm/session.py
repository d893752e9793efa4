"""One npm command under way: where it works, its settings, and what it says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from belljar.bin.npm.config import Config, find_prefix
from belljar.bin.npm.options import CommandLine
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.project import Project
from belljar.bin.npm.tree import Node
from belljar.kernel.process import Process


class Session:
    def __init__(self, process: Process, line: CommandLine, command: str) -> None:
        self.process = process
        self.line = line
        self.command = command
        given = line.settings.get("prefix")
        here = process.fs.getcwd()
        self.prefix = process.absolute(given) if isinstance(given, str) and given else find_prefix(process, here)
        self.config = Config(process, line.settings, project=self.prefix)
        self.is_global = self.config.flag("global") or self.config.text("location") == "global"
        self.global_prefix = (
            (given if isinstance(given, str) and given else None) or self.config.text("prefix") or "/usr/local"
        )

    def now(self) -> float:
        return self.process.kernel.hub.clock.monotonic()

    @property
    def global_folder(self) -> str:
        return f"{self.process.absolute(self.global_prefix)}/lib"

    @property
    def folder(self) -> str:
        """The directory whose node_modules is used."""
        return self.global_folder if self.is_global else self.prefix

    @contextmanager
    def project(self, folder: str | None = None) -> Iterator[Project]:
        made = Project(
            self.process, self.config, folder or self.folder, self.warn, lonely=self.is_global and folder is None
        )
        try:
            yield made
        finally:
            made.close()

    # Words.

    def say(self, text: str) -> None:
        if not self.config.silent:
            self.process.print(text)

    def warn(self, text: str) -> None:
        if self.config.text("loglevel") not in ("silent", "error"):
            self.process.stdout.flush()
            self.process.error(f"npm warn {text}\n")

    def fail(self, error: NpmError) -> int:
        self.process.stdout.flush()
        if not self.config.silent:
            self.process.error(f"npm error code {error.code}\n")
            for line in error.lines:
                self.process.error("".join(f"npm error {part}".rstrip() + "\n" for part in line.split("\n")))
        return error.status

    def note_outside(self, name: str, target: Node) -> None:
        """A linked directory outside of the project keeps its own node_modules."""
        if any(edge.kind == "prod" and edge.to is None for edge in target.edges.values()):
            self.warn(f"{name} is a link to {target.folder}: run npm install there for what it needs itself")
