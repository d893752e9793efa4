"""Puts packages into a site-packages directory and takes them out again, by their RECORD."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
from contextlib import suppress

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EEXIST
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin.pip.environment import Distribution, Environment, normal_path
from belljar.bin.pip.problems import PipError
from belljar.bin.pip.wheel import Item, Package, check_path
from belljar.kernel.process import Process

_SCRIPT = """\
#!{python}
import sys
from {module} import {name}
if __name__ == "__main__":
    sys.exit({attribute}())
"""


_Done = tuple[list[tuple[str, bytes]], list[str]]
"""The files written, with what RECORD says of each, and the directories made."""


@dataclass(frozen=True, slots=True)
class Places:
    """Installation directories of each scheme."""

    purelib: str
    scripts: str
    data: str
    headers: str

    @classmethod
    def of(cls, environment: Environment) -> Places:
        prefix = environment.prefix
        return cls(environment.site, environment.scripts, prefix, f"{prefix}/include/site/python3.15")

    @classmethod
    def below(cls, target: str) -> Places:
        """`pip install --target`."""
        return cls(target, f"{target}/bin", target, f"{target}/include")


def install(
    process: Process,
    package: Package,
    places: Places,
    python: str,
    *,
    requested: bool,
    origin: dict[str, object] | None,
) -> list[str]:
    """Write a package's files; gives the paths. What was written is taken back if it fails."""
    written: list[tuple[str, bytes]] = []
    made: list[str] = []
    try:
        for item in package.items():
            process.budget.charge(1 + (len(item.data) >> 12))
            _write_item(process, item, places, python, (written, made))
        for name, module, attribute in package.console_scripts():
            first = attribute.partition(".")[0]
            text = _SCRIPT.format(python=python, module=module, name=first, attribute=attribute)
            _write(process, f"{places.scripts}/{name}", text.encode(), True, (written, made))
        info = f"{places.purelib}/{package.info}"
        _write(process, f"{info}/INSTALLER", b"pip\n", False, (written, made))
        if requested:
            _write(process, f"{info}/REQUESTED", b"", False, (written, made))
        if origin is not None:
            _write(process, f"{info}/direct_url.json", json.dumps(origin).encode(), False, (written, made))
        record = _record(written, places.purelib, f"{info}/RECORD")
        _write(process, f"{info}/RECORD", record, False, (written, made))
    except BaseException:
        for path, _ in written:
            with suppress(SysError):
                process.fs.unlink(path)
        for directory in reversed(made):
            with suppress(SysError):
                process.fs.rmdir(directory)
        raise
    return [path for path, _ in written]


def _write_item(process: Process, item: Item, places: Places, python: str, done: _Done) -> None:
    check_path(item.path, "the package")
    data, executable = item.data, item.executable
    if item.scheme == "scripts":
        executable = True
        if data.startswith(b"#!python"):
            data = b"#!" + python.encode() + b"\n" + data.partition(b"\n")[2]
    _write(process, f"{getattr(places, item.scheme)}/{item.path}", data, executable, done)


def _write(process: Process, path: str, data: bytes, executable: bool, done: _Done) -> None:
    written, made = done
    made += make_directories(process, path.rpartition("/")[0])
    try:
        with suppress(SysError):
            if process.fs.stat(path, follow=False).is_symlink:
                process.fs.unlink(path)  # a link would lead the write elsewhere
        process.write_file(path, data, 0o755 if executable else 0o644)
        process.fs.chmod(path, 0o755 if executable else 0o644)
    except SysError as error:
        raise os_error(error, path) from None
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    written.append((path, b"sha256=%s,%d" % (digest, len(data))))


def os_error(error: SysError, path: str) -> PipError:
    return PipError(
        f"Could not install packages due to an OSError: [Errno {error.errno}] {error.reason}: {path!r}",
        *(["Check the permissions."] if error.name in ("EACCES", "EPERM") else []),
    )


def make_directories(process: Process, path: str) -> list[str]:
    """mkdir -p; gives those that were not there."""
    made: list[str] = []
    parts = path.strip("/").split("/")
    for end in range(1, len(parts) + 1):
        directory = "/" + "/".join(parts[:end])
        try:
            process.fs.mkdir(directory, 0o755)
            made.append(directory)
        except SysError as error:
            if error.errno != EEXIST:
                exists = process.fs.is_dir(directory)
                if not exists:
                    raise os_error(error, directory) from None
    return made


def _record(written: list[tuple[str, bytes]], site: str, own: str) -> bytes:
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    for path, digest in written:
        rows.writerow([_relative(path, site), *digest.decode().split(",")])
    rows.writerow([_relative(own, site), "", ""])
    return out.getvalue().encode("utf-8", "surrogateescape")


def _relative(path: str, site: str) -> str:
    base, parts = site.split("/"), path.split("/")
    common = 0
    while common < min(len(base), len(parts)) and base[common] == parts[common]:
        common += 1
    return "/".join([".."] * (len(base) - common) + parts[common:])


def files_of(process: Process, distribution: Distribution) -> list[str]:
    """The paths a RECORD names, relative to its site-packages."""
    if distribution.info is None:
        return []
    text = fsdecode(process.try_read(f"{distribution.info}/RECORD") or b"")
    return [row[0] for row in csv.reader(io.StringIO(text)) if row]


def removable(process: Process, distribution: Distribution, prefix: str) -> list[str]:
    """The absolute paths to remove. Those outside of the environment are left alone, whatever RECORD says."""
    found = []
    for name in files_of(process, distribution):
        path = normal_path(name if name.startswith("/") else f"{distribution.location}/{name}")
        if path.startswith((f"{prefix}/", f"{distribution.location}/")):
            found.append(path)
    return found


def remove(process: Process, distribution: Distribution, prefix: str) -> None:
    """Take a package out, with the directories that become empty."""
    directories: set[str] = set()
    for path in removable(process, distribution, prefix):
        process.budget.charge()
        with suppress(SysError):
            process.fs.unlink(path)
        parent = path.rpartition("/")[0]
        while parent.startswith(f"{distribution.location}/"):
            directories.add(parent)
            parent = parent.rpartition("/")[0]
    for directory in sorted(directories, key=len, reverse=True):
        _remove_cache(process, f"{directory}/__pycache__")
        with suppress(SysError):
            process.fs.rmdir(directory)


def _remove_cache(process: Process, path: str) -> None:
    with suppress(SysError):
        for entry in process.fs.readdir(path):
            if entry.name.endswith(".pyc"):
                process.fs.unlink(f"{path}/{entry.name}")
        process.fs.rmdir(path)
