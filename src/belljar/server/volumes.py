"""Volumes: directories that outlive sandboxes, and that several of them share; and their files, over HTTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from posixpath import basename, dirname, normpath
from typing import Any, Final

from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from belljar.abi.errno import EEXIST, ENOTDIR
from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.errors import FileError, SandboxError, printable
from belljar.api.results import Entry
from belljar.server.access import Access, Caller
from belljar.server.assets_host import Volume
from belljar.server.connect import ByteStream
from belljar.server.control import Control, reply, timestamp
from belljar.server.errors import ApiError, file_status
from belljar.server.keys_host import new_id
from belljar.server.service import Service

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_AT: Final = "/volume"
_PIECE: Final = 1 << 20
_DEPTH_MAX: Final = 100
_ENTRIES_MAX: Final = 100_000
_IDLE: Final = 20.0
"""Seconds that a sandbox for a volume's files is kept for the next call."""
_KEEPERS_MAX: Final = 32
_OWNER: Final = 1000


class NewVolume(Struct):
    name: str


class Metadata(Struct):
    uid: int | None = None
    gid: int | None = None
    mode: int | None = None


class Keeper:
    """A sandbox that has nothing but one volume: what is done to the volume's files is done inside it."""

    def __init__(self, sandbox: AsyncSandbox, used: float) -> None:
        self.sandbox = sandbox
        self.busy = 0
        self.used = used


class Volumes:
    def __init__(self, service: Service, access: Access, control: Control) -> None:
        self._service = service
        self._access = access
        self._control = control
        self._keepers: dict[str, Keeper] = {}
        self._lock = asyncio.Lock()
        service.at_close.append(self._close)

    def routes(self) -> list[tuple[str, str, str, Any]]:
        return [
            ("/volumes", "GET", "", self.list_all),
            ("/volumes", "POST", "volume", self.create),
            ("/volumes/{volume}", "GET", "", self.show),
            ("/volumes/{volume}", "DELETE", "delete", self.delete),
        ]

    def content_routes(self) -> list[tuple[str, str, Any]]:
        one = "/volumecontent/{volume}"
        return [
            (f"{one}/path", "GET", self._endpoint(self.stat)),
            (f"{one}/path", "PATCH", self._endpoint(self.change)),
            (f"{one}/path", "DELETE", self._endpoint(self.remove)),
            (f"{one}/dir", "GET", self._endpoint(self.entries)),
            (f"{one}/dir", "POST", self._endpoint(self.make_directory)),
            (f"{one}/file", "GET", self._endpoint(self.read)),
            (f"{one}/file", "PUT", self._endpoint(self.write)),
        ]

    # Volumes.

    async def list_all(self, request: Request, caller: Caller) -> Response:
        found = self._service.assets.volumes(caller.tenant)
        return reply([{"volumeID": volume.id, "name": volume.name} for volume in found])

    async def create(self, request: Request, caller: Caller) -> Response:
        wish = await self._control.body(request, NewVolume)
        if not _NAME.fullmatch(wish.name):
            raise ApiError(400, "Invalid volume name: it takes letters, digits, - and _, at most 128")
        self._service.check_kept(caller.tenant)
        if any(volume.name == wish.name for volume in self._service.assets.volumes(caller.tenant)):
            raise ApiError(409, f"There is a volume '{wish.name}' already")
        volume = Volume(new_id(), caller.tenant, wish.name, self._service.clock.time())
        self._service.volumes.create(volume.id)
        self._service.assets.add_volume(volume)
        return reply(self._shown(volume), 201)

    def _shown(self, volume: Volume) -> dict[str, Any]:
        token = self._service.tokens.link("volume", volume.id)
        return {"volumeID": volume.id, "name": volume.name, "token": token}

    def _find(self, request: Request, caller: Caller) -> Volume:
        volume = self._service.assets.volume(request.path_params["volume"])
        if volume is None or volume.tenant != caller.tenant:
            raise ApiError(404, "volume not found")
        return volume

    async def show(self, request: Request, caller: Caller) -> Response:
        shown = self._shown(self._find(request, caller))
        return reply(shown if caller.may_write else {**shown, "token": ""})

    async def delete(self, request: Request, caller: Caller) -> Response:
        volume = self._find(request, caller)
        users = [
            held.record.id
            for held in self._service.held.values()
            if held.record.tenant == caller.tenant and volume.name in held.record.volumes.values()
        ]
        if users:
            raise ApiError(409, f"volume '{volume.name}' is mounted in {len(users)} sandboxes: end them first")
        self._service.assets.drop_volume(volume.id)
        keeper = self._keepers.pop(volume.id, None)
        if keeper is not None:
            await keeper.sandbox.close()
        await asyncio.to_thread(self._service.volumes.remove, volume.id)
        return Response(status_code=204)

    # Their files.

    def _endpoint(self, do: Any) -> Any:
        """A handler that knows its volume's sandbox. Errors have the shape of this API: their code is a text."""

        async def answer(request: Request) -> Response:
            try:
                number = request.path_params["volume"]
                self._access.check_bearer(request, self._service.tokens.link("volume", number))
                volume = self._service.assets.volume(number)
                if volume is None:
                    raise ApiError(404, "volume not found")
                async with self._keeper(volume) as sandbox:
                    response: Response = await do(request, sandbox, _path(request))
                    return response
            except FileError as error:
                status = 409 if error.errno in (EEXIST, ENOTDIR) else file_status(error)
                failed = ApiError(status, f"{printable(_outside(error.path))}: {error.strerror}")
            except SandboxError as error:
                failed = ApiError(500, printable(str(error)))
            except ApiError as error:
                failed = error
            return reply({"code": str(failed.status), "message": failed.message}, failed.status, failed.headers)

        return answer

    @asynccontextmanager
    async def _keeper(self, volume: Volume) -> AsyncIterator[AsyncSandbox]:
        async with self._lock:
            keeper = self._keepers.get(volume.id)
            if keeper is None or keeper.sandbox.closed:
                if len(self._keepers) >= _KEEPERS_MAX:
                    raise ApiError(429, "Too many volumes are being used: try again in a moment", {"Retry-After": "5"})
                mount = await self._service.mount_volume(volume)
                sandbox = await AsyncSandbox(mounts={_AT: mount}, limits=self._service.config.limits).start()
                keeper = self._keepers[volume.id] = Keeper(sandbox, self._service.clock.monotonic())
                self._service.background(self._close_idle(volume.id, keeper))
            keeper.busy += 1
        try:
            yield keeper.sandbox
        finally:
            keeper.busy -= 1
            keeper.used = self._service.clock.monotonic()

    async def _close_idle(self, number: str, keeper: Keeper) -> None:
        while keeper.busy or self._service.clock.monotonic() - keeper.used < _IDLE:
            await self._service.clock.sleep(_IDLE / 10)
        if self._keepers.get(number) is keeper:
            del self._keepers[number]
        await keeper.sandbox.close()

    async def _close(self) -> None:
        for keeper in self._keepers.values():
            await keeper.sandbox.close()

    async def stat(self, request: Request, sandbox: AsyncSandbox, path: str) -> Response:
        return reply(await _entry(sandbox, path))

    async def change(self, request: Request, sandbox: AsyncSandbox, path: str) -> Response:
        wish = await self._control.body(request, Metadata)
        _check_owner(wish.uid, wish.gid)
        if wish.mode is not None:
            await sandbox.files.chmod(path, _check_mode(wish.mode))
        return reply(await _entry(sandbox, path))

    async def remove(self, request: Request, sandbox: AsyncSandbox, path: str) -> Response:
        if path == _AT:
            raise ApiError(400, "the volume itself is not removed by its path")
        await sandbox.files.remove(path, recursive=True)
        return Response(status_code=204)

    async def entries(self, request: Request, sandbox: AsyncSandbox, path: str) -> Response:
        depth = _number(request, "depth", 1)
        if depth is None or not 0 < depth <= _DEPTH_MAX:
            raise ApiError(400, f"depth is 1 to {_DEPTH_MAX}")
        found: list[dict[str, Any]] = []
        waiting = [(path, 1)]
        while waiting:
            directory, level = waiting.pop(0)
            for entry in await sandbox.files.list(directory):
                found.append(await _shown(sandbox, entry))
                if len(found) > _ENTRIES_MAX:
                    raise ApiError(400, f"more than {_ENTRIES_MAX} entries: list a part of them")
                if entry.is_dir and level < depth:
                    waiting.append((entry.path, level + 1))
        return reply(found)

    async def make_directory(self, request: Request, sandbox: AsyncSandbox, path: str) -> Response:
        _check_owner(_number(request, "uid"), _number(request, "gid"))
        force, mode = request.query_params.get("force", "").lower() == "true", _number(request, "mode")
        there = await sandbox.files.exists(path)
        if there and not (force and (await sandbox.files.stat(path)).is_dir):
            raise ApiError(409, f"Path {_outside(path)} already exists")
        if not there:
            await sandbox.files.mkdir(path, parents=force)
        if mode is not None:
            await sandbox.files.chmod(path, _check_mode(mode))
        return reply(await _entry(sandbox, path), 201)

    async def read(self, request: Request, sandbox: AsyncSandbox, path: str) -> Response:
        entry = await sandbox.files.stat(path)
        if entry.kind != "file":
            raise ApiError(404, f"Path {_outside(path)} is no file")
        return ByteStream(_pieces(sandbox, path, entry.size), {"Content-Type": "application/octet-stream"}, 200)

    async def write(self, request: Request, sandbox: AsyncSandbox, path: str) -> Response:
        _check_owner(_number(request, "uid"), _number(request, "gid"))
        mode = _number(request, "mode")
        if await sandbox.files.exists(path):
            if (await sandbox.files.stat(path)).kind != "file":
                raise ApiError(409, f"Path {_outside(path)} is a directory")
            if request.query_params.get("force", "").lower() != "true":
                raise ApiError(409, f"Path {_outside(path)} already exists")
        elif not await sandbox.files.exists(dirname(path)):
            raise ApiError(404, f"Path {_outside(dirname(path))} not found")
        held, append, most = bytearray(), False, self._service.config.upload_bytes
        try:
            async for piece in request.stream():
                held += piece
                most -= len(piece)
                if most < 0:
                    raise ApiError(413, "the file is too large", {"Connection": "close"})
                if len(held) >= _PIECE:
                    await sandbox.files.write(path, bytes(held), append=append)
                    held.clear()
                    append = True
        except ClientDisconnect:
            raise ApiError(499, "the client went away") from None
        if held or not append:
            await sandbox.files.write(path, bytes(held), append=append)
        if mode is not None:
            await sandbox.files.chmod(path, _check_mode(mode))
        return reply(await _entry(sandbox, path), 201)


async def _pieces(sandbox: AsyncSandbox, path: str, size: int) -> AsyncGenerator[bytes, None]:
    at = 0
    while at < size:
        try:
            piece = await sandbox.files.read_range(path, at, min(_PIECE, size - at))
        except SandboxError as error:
            raise OSError("the file can't be read to its end") from error
        if not piece:
            raise OSError("the file became shorter while it was read")
        yield piece
        at += len(piece)


async def _entry(sandbox: AsyncSandbox, path: str) -> dict[str, Any]:
    return await _shown(sandbox, await sandbox.files.stat(path, follow=False))


async def _shown(sandbox: AsyncSandbox, entry: Entry) -> dict[str, Any]:
    at = timestamp(entry.mtime)
    shown: dict[str, Any] = {
        "name": basename(_outside(entry.path)) or "/",
        "type": entry.kind if entry.kind in ("file", "directory", "symlink") else "unknown",
        "path": _outside(entry.path),
        "size": entry.size,
        "mode": entry.mode,
        "uid": entry.uid,
        "gid": entry.gid,
        "atime": at,
        "mtime": at,
        "ctime": at,
    }
    if entry.kind == "symlink":
        shown["target"] = await sandbox.files.readlink(entry.path)
    return shown


def _path(request: Request) -> str:
    """Where a path of the volume is in its sandbox. ApiError."""
    path = request.query_params.get("path", "")
    if not path or "\0" in path or len(path.encode("utf-8", "surrogatepass")) > 4096:
        raise ApiError(400, "path is missing, or is none")
    return (_AT + normpath("/" + path.lstrip("/"))).rstrip("/")


def _outside(path: str) -> str:
    """A path as clients know it."""
    return path.removeprefix(_AT) or "/"


def _number(request: Request, name: str, usual: int | None = None) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return usual
    if not (text.isascii() and text.isdigit() and int(text[:12]) < 1 << 32):
        raise ApiError(400, f"Invalid {name}")
    return int(text)


def _check_mode(mode: int) -> int:
    if not 0 <= mode <= 0o7777:
        raise ApiError(400, "Invalid mode")
    return mode & 0o777


def _check_owner(uid: int | None, gid: int | None) -> None:
    if uid not in (None, _OWNER) or gid not in (None, _OWNER):
        raise ApiError(400, f"Files of a volume belong to user {_OWNER}: this server keeps no other owners of them")
