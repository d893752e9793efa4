"""One run of tar: what its parts share - messages, the status they add up to, names chosen and changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin._compress.codecs import CODECS, Codec
from belljar.bin._kit.users import Accounts
from belljar.bin.tar.names import Exclusion, matches, safe_prefix, strip_components
from belljar.bin.tar.options import Settings
from belljar.bin.tar.stream import codec_by_suffix
from belljar.kernel.process import Process
from belljar.libc.tar_header import Member

_PROGRAMS = {
    "gzip": "gzip", "pigz": "gzip", "bzip2": "bzip2", "pbzip2": "bzip2", "lbzip2": "bzip2", "xz": "xz", "pixz": "xz",
    "lzma": "lzma", "zstd": "zstd", "zstdmt": "zstd", "pzstd": "zstd",
}  # fmt: skip


class Fatal(Exception):
    """tar stops now: `Error is not recoverable`. The reason was already printed."""


class Run:
    def __init__(self, process: Process, settings: Settings) -> None:
        self.process = process
        self.settings = settings
        self.accounts = Accounts(process)
        self.status = 0
        self.fatal_end = False
        self._told: set[tuple[str, str]] = set()
        self.exclusions = list(settings.exclusions)
        for name, rules in settings.exclude_files:
            try:
                text = fsdecode(process.read_file(name))
            except SysError as error:
                self.fatal(f"{name}: Cannot open: {error.reason}")
            self.exclusions += [Exclusion(line, rules) for line in text.splitlines() if line]

    # Messages.

    def warn(self, text: str) -> None:
        self.process.stdout.flush()
        self.process.warn(text)

    def fail(self, text: str) -> None:
        """An error that the rest of the work survives."""
        self.warn(text)
        self.status = 2

    def fatal(self, text: str) -> NoReturn:
        self.warn(text)
        raise Fatal

    def differ(self) -> None:
        self.status = max(self.status, 1)

    # The archive.

    def codec(self, *, writing: bool) -> Codec | None:
        """The compression that was asked for."""
        settings = self.settings
        if settings.program:
            words = settings.program.split()
            known = _PROGRAMS.get(words[0].rpartition("/")[2]) if words else None
            if known is None:
                self.process.error(f"tar (child): {settings.program}: Cannot exec: No such file or directory\n")
                self.fatal("Child returned status 2")
            return CODECS[known]
        if settings.compression:
            return CODECS[settings.compression]
        return codec_by_suffix(settings.file) if writing and settings.auto_compress else None

    # Names.

    def excluded(self, name: str) -> bool:
        return any(exclusion.matches(name) for exclusion in self.exclusions)

    def safe(self, name: str, what: str = "member names") -> str:
        """A name without what could lead out of the directory, said once for each prefix that goes."""
        if self.settings.on("absolute-names"):
            return name
        prefix = safe_prefix(name)
        if not prefix:
            return name
        key = (prefix, what)
        if key not in self._told:
            self._told.add(key)
            self.warn(f"Removing leading `{prefix}' from {what}")
        left = name[len(prefix) :]
        if not left:
            if ("", what) not in self._told:
                self._told.add(("", what))
                self.warn(f"Substituting `.' for empty {what[:-1]}")
            return "./" if name.endswith("/") else "."
        return left

    def changed(self, name: str, scope: str = "r") -> str:
        if not self.settings.transforms:
            return name
        slash = "/" if name.endswith("/") else ""
        name = name.rstrip("/")
        for transform in self.settings.transforms:
            name = transform.apply(name, scope)
        return name + slash

    def extracted_name(self, member: Member) -> str | None:
        """The name a member gets on disk; None if --strip-components leaves nothing."""
        name = self.changed(member.name)
        if self.settings.strip:
            stripped = strip_components(name, self.settings.strip)
            if stripped is None:
                return None
            name = stripped
        return self.safe(name)

    def links_name(self, member: Member) -> str:
        name = self.changed(member.link, "h")
        if self.settings.strip:
            name = strip_components(name, self.settings.strip) or name
        return self.safe(name, "hard link targets")


class Selection:
    """The members that the operands name; all if there are none."""

    def __init__(self, run: Run, names: list[str]) -> None:
        self._run = run
        self._rules = run.settings.select
        self._names = names
        self._found = [False] * len(names)

    def wants(self, name: str) -> bool:
        if not self._names:
            return not self._run.excluded(name)
        for index, wanted in enumerate(self._names):
            if self._run.settings.recursive:
                hit = matches(wanted, name, self._rules)
            else:
                hit = name.rstrip("/") == wanted.rstrip("/")
            if hit:
                self._found[index] = True
                return not self._run.excluded(name)
        return False

    def report(self) -> None:
        told = self._rules.wildcards or self._run.settings.wildcards_said
        for name, found in zip(self._names, self._found, strict=True):
            if not found:
                if not told and any(char in name for char in "*?["):
                    told = True
                    self._run.warn("Pattern matching characters used in file names")
                    self._run.warn(
                        "Use --wildcards to enable pattern matching, or --no-wildcards to suppress this warning"
                    )
                self._run.fail(f"{name}: Not found in archive")


def operand_names(run: Run) -> Iterator[tuple[str, str]]:
    """("name", text) and ("directory", text) in their order, files of names read where they stand."""
    for operand in run.settings.operands:
        if operand.kind != "files-from":
            yield operand.kind, operand.text
            continue
        try:
            text = fsdecode(run.process.read_file(operand.text))
        except SysError as error:
            run.fatal(f"{operand.text}: Cannot stat: {error.reason}")
        lines = text.split("\0" if run.settings.null else "\n")
        literal = run.settings.null or run.settings.on("verbatim-files-from")
        position = 0
        lines = [line for line in lines if line]
        while position < len(lines):
            line = lines[position]
            position += 1
            if not literal and line == "-C" and position < len(lines):
                yield "directory", lines[position]
                position += 1
            elif not literal and line.startswith("-C"):
                yield "directory", line[2:].strip()
            else:
                yield "name", line


def change_directory(run: Run, path: str) -> None:
    try:
        run.process.fs.chdir(path)
    except SysError as error:
        run.fatal(f"{path}: Cannot open: {error.reason}")
