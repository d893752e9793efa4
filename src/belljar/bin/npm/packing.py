"""`npm pack`: the tarball a package would be published as."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import posixpath
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from belljar.abi.errors import SysError
from belljar.bin.npm.packagejson import bins, read_json
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.scripts import Runner
from belljar.bin.npm.session import Session
from belljar.bin.npm.spec import check_name
from belljar.libc.pattern import compile_pattern
from belljar.packages.semver import parse_version

_ALWAYS: Final = ("package.json", "readme", "license", "licence", "copying")
_NEVER: Final = frozenset(
    ".git .npmrc .svn .hg CVS .DS_Store node_modules package-lock.json pnpm-lock.yaml yarn.lock bun.lockb .gitignore "
    ".npmignore .wafpickle-0 config.gypi npm-debug.log .lock-wscript".split()
)
_MTIME: Final = 499162500
_SIZE_MAX: Final = 256 << 20


def pack(session: Session, folder: str) -> None:
    process = session.process
    package = read_json(process, f"{folder}/package.json")
    if package is None:
        raise NpmError(
            "ENOENT", f"Could not read package.json: ENOENT: no such file or directory, open '{folder}/package.json'"
        )
    name, version = check_name(package.get("name")), str(package.get("version"))
    if parse_version(version) is None:
        raise NpmError("EINVALIDVERSION", f"Invalid version: {version}")
    runner = Runner(process, session.config, folder, package, "pack")
    for event in ("prepack", "prepare"):
        if event in runner.scripts and not session.config.flag("ignore-scripts"):
            runner.banner(event, runner.scripts[event], [])
            status, _ = runner.run(event, runner.scripts[event], [])
            if status:
                raise NpmError(str(status), "command failed", f"command sh -c {runner.scripts[event]}", status=status)
    files = sorted(_files(session, folder, package))
    data, sizes = _tarball(session, folder, files, set(bins(package, name).values()))
    filename = f"{name.lstrip('@').replace('/', '-')}-{version}.tgz"
    target = session.config.text("pack-destination")
    where = process.absolute(target) if target else process.fs.getcwd()
    if not session.config.flag("dry-run"):
        process.write_file(f"{where}/{filename}", data, 0o644)
    _tell(session, name, version, filename, data, sizes)


def _tell(session: Session, name: str, version: str, filename: str, data: bytes, sizes: dict[str, int]) -> None:
    shasum = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    total = sum(sizes.values())
    if session.config.flag("json"):
        about = {
            "id": f"{name}@{version}", "name": name, "version": version, "size": len(data), "unpackedSize": total,
            "shasum": shasum, "integrity": integrity, "filename": filename,
            "files": [{"path": path, "size": size} for path, size in sizes.items()], "entryCount": len(sizes),
        }  # fmt: skip
        session.process.print(json.dumps([about], indent=2))
        return
    if not session.config.silent:
        lines = [
            "",
            f"📦  {name}@{version}",
            "Tarball Contents",
            *(f"{_size(size, '')} {path}" for path, size in sizes.items()),
        ]
        lines += ["Tarball Details", f"name: {name}", f"version: {version}", f"filename: {filename}"]
        lines += [f"package size: {_size(len(data))}", f"unpacked size: {_size(total)}", f"shasum: {shasum}"]
        lines += [f"integrity: {integrity[:20]}[...]{integrity[-15:]}", f"total files: {len(sizes)}", ""]
        session.process.error("".join(f"npm notice {line}".rstrip() + "\n" for line in lines))
    session.process.print(filename)


def _size(size: int, gap: str = " ") -> str:
    if size < 1000:
        return f"{size}{gap}B"
    return f"{size / 1000:.1f}{gap}kB" if size < 1_000_000 else f"{size / 1_000_000:.1f}{gap}MB"


def _files(session: Session, folder: str, package: Any) -> Iterator[str]:
    """The files that belong into the tarball: those that `files` names, or all that no ignore file has."""
    wanted = package.get("files")
    patterns = (
        [p.removeprefix("./").strip("/") for p in wanted if isinstance(p, str)] if isinstance(wanted, list) else None
    )
    main = str(package.get("main") or "index.js").removeprefix("./")
    kept = {main, *bins(package, "x").values()}
    ignored = _ignored(session, folder) if patterns is None else []
    for path in _walk(session, folder, "", 0):
        first = path.partition("/")[0]
        always = ("/" not in path and path.lower().partition(".")[0] in _ALWAYS) or path == "package.json"
        if always or path in kept:
            yield path
        elif patterns is not None:
            if _matches(path, [p for p in patterns if not p.startswith("!")]) and not _matches(
                path, [p[1:] for p in patterns if p.startswith("!")]
            ):
                yield path
        elif not _matches(path, ignored) and first not in _NEVER:
            yield path


def _ignored(session: Session, folder: str) -> list[str]:
    for name in (".npmignore", ".gitignore"):
        with suppress(SysError):
            text = session.process.read_file(f"{folder}/{name}").decode("utf-8", "surrogateescape")
            return [line.strip().strip("/") for line in text.splitlines() if line.strip() and line[0] not in "#!"]
    return []


def _matches(path: str, patterns: list[str]) -> bool:
    for text in patterns:
        if text in (".", "", "*", "**", "**/*"):
            return True
        pattern = compile_pattern(text.removesuffix("/**/*").removesuffix("/**").removesuffix("/*"), extglob=False)
        parts = path.split("/")
        if any(pattern.matches("/".join(parts[:n])) for n in range(1, len(parts) + 1)):
            return True
        if "/" not in text and any(pattern.matches(part) for part in parts):
            return True
    return False


def _walk(session: Session, folder: str, below: str, depth: int) -> Iterator[str]:
    if depth > 40:
        return
    for entry in sorted(session.process.fs.readdir(f"{folder}/{below}"), key=lambda e: e.name):
        session.process.budget.charge()
        if (
            entry.name in _NEVER
            or entry.name in (".", "..")
            or entry.name.endswith((".orig", ".swp"))
            or (entry.name.endswith(".tgz") and not below)
        ):
            continue
        path = posixpath.join(below, entry.name)
        stat = session.process.fs.stat(f"{folder}/{path}", follow=False)
        if stat.is_dir:
            yield from _walk(session, folder, path, depth + 1)
        elif stat.is_regular:
            yield path


def _tarball(session: Session, folder: str, files: list[str], commands: set[str]) -> tuple[bytes, dict[str, int]]:
    out = io.BytesIO()
    sizes: dict[str, int] = {}
    total = 0
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in files:
            stat = session.process.fs.stat(f"{folder}/{path}")
            total += stat.size
            if total > _SIZE_MAX:
                raise NpmError("ETOOLARGE", f"the package has more than {_SIZE_MAX >> 20} MB")
            session.process.budget.charge(1 + (stat.size >> 10))
            data = session.process.read_file(f"{folder}/{path}")
            member = tarfile.TarInfo(f"package/{path}")
            member.size, member.mtime = len(data), _MTIME
            member.mode = 0o755 if stat.mode & 0o111 or path in commands else 0o644
            archive.addfile(member, io.BytesIO(data))
            sizes[path] = len(data)
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return packer.compress(out.getvalue()) + packer.flush(), sizes
