"""Files in the console: directories, small changes, and what is different from the last snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from belljar.abi.errno import EACCES, EEXIST, ENOTEMPTY, EPERM, EROFS
from belljar.api.errors import FileError, printable
from belljar.api.results import Entry
from belljar.api.snapshot import Snapshot
from belljar.server.access import Caller
from belljar.server.console.access import SessionAccess
from belljar.server.console.pages_host import SEALED
from belljar.server.control import Control, reply
from belljar.server.database_host import SnapshotRow
from belljar.server.errors import ApiError, file_status
from belljar.server.files import Files
from belljar.server.guest import USER
from belljar.server.paths import resolve
from belljar.server.records import Held
from belljar.server.service import Service

_ENTRIES_MAX: Final = 2000
_CHANGES_MAX: Final = 2000
_SHOWN_MAX: Final = 1 << 20
"""Bytes of a file as it was that are shown."""
_REFUSED: Final = {EACCES: 403, EPERM: 403, EROFS: 403, EEXIST: 409, ENOTEMPTY: 409}


class NewName(Struct):
    path: str
    to: str


class ConsoleFiles:
    """Calls with a request and its caller, as those of `Control`."""

    def __init__(self, service: Service, control: Control, access: SessionAccess) -> None:
        self._service = service
        self._control = control
        self._access = access
        self._files = Files(service, access)

    async def entries(self, request: Request, caller: Caller) -> Response:
        held = self._access.sandbox(request)
        path = path_of(request)
        async with self._service.use(held) as guest:
            with told():
                found = await guest.sandbox.files.list(path)
        found.sort(key=lambda entry: (not entry.is_dir, entry.name.lower(), entry.name))
        shown = [show(entry) for entry in found[:_ENTRIES_MAX]]
        return reply({"path": printable(path), "entries": shown, "more": max(0, len(found) - _ENTRIES_MAX)})

    async def download(self, request: Request, caller: Caller) -> Response:
        """A file to keep: no browser shows it, whatever it is."""
        response = await self._files.download(request)
        name = path_of(request).rpartition("/")[2]
        more = {**SEALED, "Content-Disposition": f"attachment; filename*=utf-8''{quote(name, safe='')}"}
        kept = [(key, value) for key, value in response.raw_headers if key != b"content-disposition"]
        response.raw_headers = kept + [(key.lower().encode(), value.encode()) for key, value in more.items()]
        return response

    async def upload(self, request: Request, caller: Caller) -> Response:
        return await self._files.upload(request)

    async def make_directory(self, request: Request, caller: Caller) -> Response:
        held = self._access.sandbox(request)
        async with self._service.use(held) as guest:
            with told():
                await guest.sandbox.files.mkdir(path_of(request))
        return Response(status_code=204)

    async def rename(self, request: Request, caller: Caller) -> Response:
        held = self._access.sandbox(request)
        wish = await self._control.body(request, NewName)
        async with self._service.use(held) as guest:
            with told():
                await guest.sandbox.files.rename(resolved(wish.path), resolved(wish.to))
        return Response(status_code=204)

    async def remove(self, request: Request, caller: Caller) -> Response:
        held = self._access.sandbox(request)
        path = path_of(request)
        if path == "/":
            raise ApiError(400, "The root directory stays: kill the sandbox instead")
        async with self._service.use(held) as guest:
            with told():
                await guest.sandbox.files.remove(path, recursive=True)
        return Response(status_code=204)

    async def changes(self, request: Request, caller: Caller) -> Response:
        """Paths that are not as they were in the last snapshot."""
        held = self._access.sandbox(request)
        row = self._last(held)
        if row is None:
            return reply({"since": None, "changes": [], "more": 0})
        async with self._service.use(held) as guest:
            now = await guest.sandbox.snapshot(store=self._service.store)
        try:
            found = await asyncio.to_thread(lambda: Snapshot.find(row.ref, self._service.store).diff(now))
        finally:
            await self._service.release(now.ref)
        files = [change for change in found if (change.after or change.before) and not _is_directory_time(change)]
        shown = [{**show_name(each.path), "kind": each.kind} for each in files[:_CHANGES_MAX]]
        since = {"id": row.id, "name": row.name, "created": row.created}
        return reply({"since": since, "changes": shown, "more": max(0, len(files) - _CHANGES_MAX)})

    async def before(self, request: Request, caller: Caller) -> Response:
        """A file as it was in the last snapshot."""
        row, path = self._last(self._access.sandbox(request)), path_of(request)
        if row is None:
            raise ApiError(404, "There is no snapshot of this sandbox yet")

        def read() -> bytes:
            files = Snapshot.find(row.ref, self._service.store).files
            if files.stat(path).size > _SHOWN_MAX:
                raise ApiError(413, "The file is too large to be compared")
            return files.read_bytes(path)

        with told():
            data = await asyncio.to_thread(read)
        return Response(data, 200, SEALED, media_type="application/octet-stream")

    def _last(self, held: Held) -> SnapshotRow | None:
        """The newest snapshot of a sandbox, or that which it was made from."""
        rows = self._service.database.snapshots(held.record.tenant)
        mine = [row for row in rows if row.sandbox == held.record.id]
        return next(iter(mine), None) or next((row for row in rows if row.id == held.record.template), None)


def _is_directory_time(change: Any) -> bool:
    """A directory that is only younger: something in it changed, which is shown itself."""
    return change.kind == "attributes" and change.after is not None and change.after.is_dir


def path_of(request: Request) -> str:
    return resolved(request.query_params.get("path", ""))


def resolved(path: str) -> str:
    try:
        return resolve(path, USER)
    except ValueError as error:
        raise ApiError(400, str(error)) from None


def show_name(name: str) -> dict[str, str | None]:
    """A name as it is, and as it may be shown. One that is no text can be seen, and not be asked for."""
    return {"name": name if name.isprintable() or _is_text(name) else None, "shown": printable(name)}


def _is_text(name: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def show(entry: Entry) -> dict[str, Any]:
    """An entry of a directory."""
    return {
        **show_name(entry.name),
        "kind": entry.kind,
        "size": entry.size,
        "mode": entry.mode,
        "mtime": entry.mtime,
    }


@contextmanager
def told() -> Iterator[None]:
    """Have an error of a file be one of the request. ApiError."""
    try:
        yield
    except FileError as error:
        status = _REFUSED.get(error.errno, file_status(error))
        raise ApiError(status, f"{printable(error.path)}: {error.strerror}") from None
    except (TypeError, ValueError) as error:
        raise ApiError(400, printable(str(error))) from None
