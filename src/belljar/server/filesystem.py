"""envd's service filesystem.Filesystem: what is where, and what changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from posixpath import basename, dirname, join, normpath
from typing import Any, Final

from msgspec import Struct
from starlette.requests import Request

from belljar.abi.errno import ENOENT, ENOTDIR
from belljar.api.changes import Change
from belljar.api.errors import FileError, SandboxError
from belljar.api.results import Entry
from belljar.server.connect import read_message, read_single
from belljar.server.errors import RpcError, rpc_error
from belljar.server.guest import Guest, Patience, Watcher
from belljar.server.keys_host import new_id
from belljar.server.paths import parse_user, resolve
from belljar.server.process import Stream
from belljar.server.records import Held

_TYPES: Final = {"file": "FILE_TYPE_FILE", "directory": "FILE_TYPE_DIRECTORY"}
_LETTERS: Final = {"file": "-", "directory": "d", "symlink": "L", "other": "-"}
_BITS: Final = "rwxrwxrwx"
_ENTRIES_MAX: Final = 100_000
_EVENTS: Final = {
    "created": "EVENT_TYPE_CREATE",
    "modified": "EVENT_TYPE_WRITE",
    "deleted": "EVENT_TYPE_REMOVE",
    "renamed": "EVENT_TYPE_RENAME",
    "attributes": "EVENT_TYPE_CHMOD",
}
_CARRY_ENTRY: Final = ("EVENT_TYPE_CREATE", "EVENT_TYPE_WRITE", "EVENT_TYPE_CHMOD")


class Path(Struct):
    path: str = ""


class ListDir(Struct):
    path: str = ""
    depth: int = 1


class Move(Struct):
    source: str = ""
    destination: str = ""


class Watch(Struct, rename="camel"):
    path: str = ""
    recursive: bool = False
    include_entry: bool = False


class WatcherId(Struct, rename="camel"):
    watcher_id: str = ""


async def _where(request: Request, path: str) -> str:
    try:
        return resolve(path, parse_user(request))
    except ValueError as error:
        code = "unauthenticated" if "username" in str(error) else "invalid_argument"
        raise RpcError(code, str(error)) from None


def permissions(kind: str, mode: int) -> str:
    """A mode as `ls -l` writes it, with Go's letter for a symlink."""
    bits = "".join(letter if mode >> (8 - place) & 1 else "-" for place, letter in enumerate(_BITS))
    return _LETTERS[kind] + bits


async def entry_info(held: Held, guest: Guest, entry: Entry, path: str) -> dict[str, Any]:
    """An entry in the protocol's words. A symlink has its target's type and mode."""
    kind: str = entry.kind
    mode, files, owners = entry.mode, guest.sandbox.files, await guest.owners()
    info: dict[str, Any] = {}
    if kind == "symlink":
        info |= {"isSymlink": True, "symlinkTarget": path}
        kind, mode = "other", 0
        with suppress(FileError):
            target = await files.stat(path)
            kind, mode = target.kind, target.mode
            info["symlinkTarget"] = normpath(join(dirname(path), await files.readlink(path)))
    if metadata := held.record.file_metadata.get(path):
        info["metadata"] = metadata
    seconds, nanos = divmod(round(entry.mtime * 1e9), 1_000_000_000)
    at = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return info | {
        "name": basename(path) or "/",
        "type": _TYPES.get(kind, "FILE_TYPE_UNSPECIFIED"),
        "path": path,
        "size": str(entry.size),
        "mode": mode & 0o777,
        "permissions": permissions(entry.kind, entry.mode),
        "owner": owners["passwd"].get(entry.uid, str(entry.uid)),
        "group": owners["group"].get(entry.gid, str(entry.gid)),
        "modifiedTime": f"{at}.{nanos:09d}Z",
    }


async def _stat(held: Held, guest: Guest, path: str) -> dict[str, Any]:
    entry = await guest.sandbox.files.stat(path, follow=False)
    return await entry_info(held, guest, entry, normpath(path))


async def stat(request: Request, held: Held, guest: Guest) -> dict[str, Any]:
    wish = await read_message(request, Path)
    return {"entry": await _stat(held, guest, await _where(request, wish.path))}


async def list_dir(request: Request, held: Held, guest: Guest) -> dict[str, Any]:
    wish = await read_message(request, ListDir)
    root = await _where(request, wish.path)
    if (await guest.sandbox.files.stat(root)).kind != "directory":
        raise RpcError("invalid_argument", f"path is not a directory: {root}")
    found: list[dict[str, Any]] = []

    async def walk(path: str, depth: int) -> None:
        for entry in await guest.sandbox.files.list(path):
            if len(found) >= _ENTRIES_MAX:
                raise RpcError("resource_exhausted", f"more than {_ENTRIES_MAX} entries: list fewer levels")
            below = join(path, entry.name)
            found.append(await entry_info(held, guest, entry, normpath(below)))
            if entry.kind == "directory" and depth > 1:
                with suppress(FileError):  # it may be gone by now
                    await walk(below, depth - 1)

    await walk(root, max(wish.depth, 1))
    return {"entries": found}


async def make_dir(request: Request, held: Held, guest: Guest) -> dict[str, Any]:
    wish = await read_message(request, Path)
    path = await _where(request, wish.path)
    try:
        there = await guest.sandbox.files.stat(path)
    except FileError as error:
        if error.errno not in (ENOENT, ENOTDIR):
            raise
    else:
        if there.kind == "directory":
            raise RpcError("already_exists", f"directory already exists: {path}")
        raise RpcError("invalid_argument", f"path already exists but it is not a directory: {path}")
    await guest.sandbox.files.mkdir(path, parents=True)
    return {"entry": await _stat(held, guest, path)}


async def remove(request: Request, held: Held, guest: Guest) -> dict[str, Any]:
    wish = await read_message(request, Path)
    path = await _where(request, wish.path)
    try:
        await guest.sandbox.files.remove(path, recursive=True)
    except FileError as error:
        if error.errno != ENOENT:
            raise
    for known in [known for known in held.record.file_metadata if _is_below(known, path)]:
        del held.record.file_metadata[known]
    return {}


async def move(request: Request, held: Held, guest: Guest) -> dict[str, Any]:
    wish = await read_message(request, Move)
    source, destination = await _where(request, wish.source), await _where(request, wish.destination)
    await guest.sandbox.files.stat(source, follow=False)
    with suppress(FileError):
        await guest.sandbox.files.mkdir(dirname(destination), parents=True)
    await guest.sandbox.files.rename(source, destination)
    for known in [known for known in held.record.file_metadata if _is_below(known, source)]:
        held.record.file_metadata[destination + known[len(source) :]] = held.record.file_metadata.pop(known)
    return {"entry": await _stat(held, guest, destination)}


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


async def _events(
    held: Held, guest: Guest, root: str, wish: Watch, started: asyncio.Event
) -> AsyncIterator[dict[str, Any]]:
    """File system events of a watch. RpcError."""
    try:
        changes = await guest.sandbox.files.watch(root, recursive=wish.recursive).start()
        started.set()
        try:
            async for change in changes:
                for kind, path in _split(change):
                    event: dict[str, Any] = {"name": _relative(path, root), "type": kind}
                    if wish.include_entry and kind in _CARRY_ENTRY:
                        with suppress(FileError):
                            event["entry"] = await _stat(held, guest, path)
                    yield event
        finally:
            with suppress(SandboxError):
                await changes.close()
    except SandboxError as error:
        raise rpc_error(error) from None


def _relative(path: str, root: str) -> str:
    return path.removeprefix(root.rstrip("/") + "/") if path != root else "."


def _split(change: Change) -> list[tuple[str, str]]:
    """A change as inotify tells it: a renamed file is gone here and appears there."""
    if change.kind == "overflow":
        raise RpcError("internal", "watcher error: too many changes at once")
    kinds = [(_EVENTS[change.kind], change.path)]
    if change.kind == "renamed" and change.to is not None:
        kinds.append(("EVENT_TYPE_CREATE", change.to))
    return kinds


async def _check_watch(request: Request, guest: Guest, wish: Watch) -> str:
    root = normpath(await _where(request, wish.path))
    try:
        there = await guest.sandbox.files.stat(root)
    except FileError as error:
        if error.errno in (ENOENT, ENOTDIR):
            raise RpcError("not_found", f"path {root} not found") from None
        raise
    if there.kind != "directory":
        raise RpcError("invalid_argument", f"path {root} not a directory")
    return root


async def watch_dir(request: Request, held: Held, guest: Guest, patience: Patience) -> Stream:
    """The stream of a watch, from its start event on. RpcError."""
    wish = await read_single(request, Watch)
    root = await _check_watch(request, guest, wish)
    queue: asyncio.Queue[dict[str, Any] | RpcError] = asyncio.Queue(64)
    started = asyncio.Event()

    async def carry() -> None:
        try:
            async for event in _events(held, guest, root, wish, started):
                await queue.put({"filesystem": event})
            await queue.put(RpcError("unavailable", "the sandbox ended before the call was done"))
        except RpcError as error:
            started.set()
            await queue.put(error)

    task = asyncio.ensure_future(carry())

    async def events() -> AsyncGenerator[dict[str, Any], None]:
        await started.wait()
        yield {"start": {}}
        while True:
            event = await patience.next(queue)
            if isinstance(event, RpcError):
                raise event
            yield event

    return events(), task.cancel


async def create_watcher(request: Request, held: Held, guest: Guest) -> dict[str, Any]:
    wish = await read_message(request, Watch)
    root = await _check_watch(request, guest, wish)
    started = asyncio.Event()
    watcher = Watcher(_events(held, guest, root, wish, started))
    number = "w" + new_id()
    guest.add_watcher(number, watcher)
    await started.wait()
    return {"watcherId": number}


def _watcher(guest: Guest, number: str) -> Watcher:
    watcher = guest.watchers.get(number)
    if watcher is None:
        raise RpcError("not_found", f"watcher with id {number} not found")
    return watcher


async def get_watcher_events(request: Request, held: Held, guest: Guest) -> dict[str, Any]:
    wish = await read_message(request, WatcherId)
    return {"events": _watcher(guest, wish.watcher_id).take()}


async def remove_watcher(request: Request, held: Held, guest: Guest) -> dict[str, Any]:
    wish = await read_message(request, WatcherId)
    _watcher(guest, wish.watcher_id).close()
    del guest.watchers[wish.watcher_id]
    return {}


UNARY: Final = {
    "Stat": stat,
    "ListDir": list_dir,
    "MakeDir": make_dir,
    "Remove": remove,
    "Move": move,
    "CreateWatcher": create_watcher,
    "GetWatcherEvents": get_watcher_events,
    "RemoveWatcher": remove_watcher,
}
