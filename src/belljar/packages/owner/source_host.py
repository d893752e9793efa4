"""Packages from directories and archives of this machine, and new ones to begin with."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from belljar.packages.archive import ENDING, Package, SourceFile, packed, unpacked
from belljar.packages.errors import PackageError
from belljar.packages.manifest import FILE, Manifest, is_name, parse_manifest

_LEFT_OUT: Final = ("__pycache__", "*.pyc", ".*")
_FILE_MAX: Final = 1 << 30


def read_manifest(directory: Path) -> Manifest:
    """The manifest in a directory. PackageError."""
    try:
        return parse_manifest((directory / FILE).read_text("utf-8"))
    except FileNotFoundError:
        raise PackageError(f"{directory}: there is no {FILE}: `belljar package new` makes one") from None
    except (OSError, UnicodeError) as error:
        raise PackageError(f"{directory / FILE}: {error}") from None
    except PackageError as error:
        raise PackageError(f"{directory}: {error}") from None


def read_package(source: Path | str) -> Package:
    """A package from its directory, or from an archive that was built. PackageError."""
    path = Path(source).expanduser()
    try:
        if path.is_dir():
            manifest = read_manifest(path)
            return packed(_files(path, manifest))
        if path.stat().st_size > _FILE_MAX:
            raise PackageError(f"{path} is larger than any package")
        return unpacked(path.read_bytes(), str(path))
    except OSError as error:
        raise PackageError(f"{error.filename or path}: {error.strerror}") from None
    except PackageError as error:
        raise PackageError(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from None


def _files(top: Path, manifest: Manifest) -> Iterator[SourceFile]:
    """All files that are packed: not hidden ones, caches of Python, archives that were built, or excluded ones."""
    out = [*manifest.exclude, f"{manifest.name}-*{ENDING}"]
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        for name in sorted(os.listdir(directory)):
            path = directory / name
            inner = path.relative_to(top).as_posix()
            if any(fnmatchcase(name, pattern) for pattern in _LEFT_OUT) or any(fnmatchcase(inner, p) for p in out):
                continue
            found = path.lstat()
            if stat.S_ISDIR(found.st_mode):
                waiting.append(path)
            elif stat.S_ISREG(found.st_mode):
                yield SourceFile(inner, path.read_bytes(), bool(found.st_mode & 0o111))
            else:
                raise PackageError(f"{inner} is a link or a device: packages have plain files; copy it, or exclude it")


_NEW: Final = {
    "python": ("bin/{0}.py", 'import sys\n\nprint("hello from {0}:", *sys.argv[1:])\n'),
    "javascript": ("bin/{0}.mjs", 'console.log("hello from {0}:", ...process.argv.slice(2));\n'),
    "shell": ("bin/{0}.sh", 'echo "hello from {0}: $*"\n'),
    "c": (
        "src/{0}.c",
        '#include <stdio.h>\n\nint main(int argc, char **argv) {{\n    printf("hello from {0}:");\n'
        '    for (int i = 1; i < argc; i++) printf(" %s", argv[i]);\n    puts("");\n}}\n',
    ),
}
KINDS: Final = tuple(_NEW)


def new_package(directory: Path, kind: str) -> list[str]:
    """Make a package to begin with; gives its files. PackageError."""
    name = directory.resolve().name
    if not is_name(name):
        raise PackageError(f"{name!r} can't be a package's name: lower case letters, digits and . _ + -")
    path, text = _NEW[kind]
    lines = [f'name = "{name}"', 'version = "1.0.0"', 'description = ""', "", "[commands]"]
    if kind == "c":
        lines += [f'{name} = "build/{name}"', "", "[build]", 'wasm = "src"']
        extra = {"src/belljar.toml": f'[commands.{name}]\nsources = ["{name}.c"]\n'}
    else:
        lines += [f'{name} = "{path.format(name)}"']
        extra = {}
    files = {FILE: "\n".join(lines) + "\n", path.format(name): text.format(name), **extra}
    write_package(directory, {inner: content.encode() for inner, content in files.items()})
    return list(files)


def write_package(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write a package's files into a new directory. PackageError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise PackageError(f"{directory} is not empty")
        for inner, content in files.items():
            place = directory / inner
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    except OSError as error:
        raise PackageError(f"{error.filename or directory}: {error.strerror}") from None
