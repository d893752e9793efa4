"""envd's /files: whole files up and down, streamed, by a token or a signed URL."""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from posixpath import basename, normpath
from typing import Any, Final
from urllib.parse import quote

from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.errors import FileError, SandboxClosed, SandboxError, printable
from belljar.server.access import Access
from belljar.server.connect import ByteStream
from belljar.server.control import reply
from belljar.server.errors import ApiError, RpcError, SandboxGone, file_status
from belljar.server.guest import Guest
from belljar.server.paths import check_user, resolve
from belljar.server.records import Held
from belljar.server.service import Service

_PIECE: Final = 1 << 20
_METADATA: Final = "x-metadata-"
_METADATA_MAX: Final = 4096
_PARTS_MAX: Final = 1000
_DESCRIBED_MAX: Final = 10_000
"""Files with metadata in one sandbox."""


class Files:
    def __init__(self, service: Service, access: Access) -> None:
        self._service = service
        self._access = access

    @asynccontextmanager
    async def _guest(self, held: Held) -> AsyncIterator[Guest]:
        """The sandbox, for one transfer. Its errors become those of a REST call."""
        try:
            self._service.check_streams(held)
            async with self._service.use(held, resume=held.record.auto_resume) as guest:
                yield guest
        except RpcError as error:
            raise ApiError(429, error.message) from None
        except FileError as error:
            raise _failure(error) from None
        except SandboxClosed:
            raise SandboxGone(held.record.id) from None
        except SandboxError as error:
            raise ApiError(500, printable(str(error))) from None

    async def download(self, request: Request) -> Response:
        held = self._access.signed(request, "read")
        path = _path(request)
        async with self._guest(held) as guest:
            entry = await guest.sandbox.files.stat(path)
            if entry.kind == "directory":
                raise ApiError(400, f"path '{path}' is a directory")
            if entry.kind != "file":
                raise ApiError(400, f"path '{path}' is no regular file")
            start, end = _range(request.headers.get("range"), entry.size)
            first = await guest.sandbox.files.read_range(path, start, max(1, min(end - start, _PIECE)))
        part = (start, end) != (0, entry.size)
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Disposition": f"inline; filename*=utf-8''{quote(basename(path), safe='')}",
            "Vary": "Accept-Encoding",
            "Accept-Ranges": "bytes",
        }
        if part:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{entry.size}"
        unsized = bool(first) and not entry.size  # as those of /proc: what they hold is made when they are read
        pieces = self._to_end(held, guest, path) if unsized else self._pieces(held, guest, path, start, end, first)
        if not part and request.headers.get("accept-encoding", "").strip().lower() == "gzip":
            return ByteStream(_gzip(pieces), {**headers, "Content-Encoding": "gzip"}, 200)
        if not unsized:
            headers["Content-Length"] = str(end - start)
        return ByteStream(pieces, headers, 206 if part else 200)

    async def _pieces(
        self, held: Held, guest: Guest, path: str, start: int, end: int, first: bytes
    ) -> AsyncGenerator[bytes, None]:
        """Exactly the bytes from `start` to `end`. OSError if they can't all be had: the file may be shorter by now."""
        piece = first[: end - start]
        with self._service.stream(held, guest):
            while start < end:
                if not piece:
                    raise OSError("the file became shorter while it was read")
                yield piece
                self._service.count(held.record.tenant, "bytes_out", len(piece))
                start += len(piece)
                if start < end:
                    try:
                        piece = await guest.sandbox.files.read_range(path, start, min(end - start, _PIECE))
                    except SandboxError as error:
                        raise OSError("the file can't be read to its end") from error

    async def _to_end(self, held: Held, guest: Guest, path: str) -> AsyncGenerator[bytes, None]:
        """The bytes of a file without a size. OSError if they can't all be had."""
        start = 0
        with self._service.stream(held, guest):
            try:
                while piece := await guest.sandbox.files.read_range(path, start, _PIECE):
                    yield piece
                    self._service.count(held.record.tenant, "bytes_out", len(piece))
                    start += len(piece)
            except SandboxError as error:
                raise OSError("the file can't be read to its end") from error

    async def upload(self, request: Request) -> Response:
        held = self._access.signed(request, "write")
        metadata = _metadata(request)
        path = request.query_params.get("path")
        kind, options = parse_options_header(request.headers.get("content-type", ""))
        body = self._body(request, held)
        async with self._guest(held) as guest:
            if kind == b"application/octet-stream":
                if path is None:
                    raise ApiError(400, "path query parameter is required for raw body upload")
                written = [await _write(guest.sandbox, _resolve(request, path), body)]
            elif kind.startswith(b"multipart/") and options.get(b"boundary"):
                written = await _write_parts(guest.sandbox, request, path, body, options[b"boundary"])
            else:
                raise ApiError(
                    400, "unsupported content type, expected multipart/form-data or application/octet-stream"
                )
        shown: list[dict[str, Any]] = []
        for each in written:
            held.record.file_metadata.pop(each, None)
            info: dict[str, Any] = {"name": basename(each), "type": "file", "path": each}
            if metadata:
                if len(held.record.file_metadata) >= _DESCRIBED_MAX:
                    raise ApiError(507, f"more than {_DESCRIBED_MAX} files of the sandbox have metadata")
                held.record.file_metadata[each] = info["metadata"] = metadata
            shown.append(info)
        return reply(shown)

    async def _body(self, request: Request, held: Held) -> AsyncIterator[bytes]:
        """The body in pieces, unpacked, within its bound. ApiError."""
        coding = request.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("identity", "gzip"):
            raise ApiError(400, f"error decompressing request body: unsupported encoding {coding[:40]!r}")
        most, size = self._service.config.upload_bytes, 0
        unpack = zlib.decompressobj(31) if coding == "gzip" else None
        try:
            async for chunk in request.stream():
                data = chunk
                while data:
                    piece = unpack.decompress(data, _PIECE) if unpack is not None else data
                    data = unpack.unconsumed_tail if unpack is not None else b""
                    size += len(piece)
                    if size > most:
                        raise ApiError(413, f"the file is larger than {most} bytes", {"Connection": "close"})
                    if piece:
                        yield piece
            if unpack is not None and not unpack.eof:
                raise ApiError(400, "error decompressing request body: it is incomplete")
        except zlib.error:
            raise ApiError(400, "error decompressing request body: it is no gzip") from None
        except ClientDisconnect:
            raise ApiError(499, "the client went away") from None
        finally:
            self._service.count(held.record.tenant, "bytes_in", size)


async def _gzip(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    pack = zlib.compressobj(1, wbits=31)
    async for piece in pieces:
        if data := pack.compress(piece):
            yield data
    yield pack.flush()


async def _write(sandbox: AsyncSandbox, path: str, body: AsyncIterator[bytes]) -> str:
    """Write a file as it comes, in pieces that are not too small. FileError, ApiError."""
    await _check_target(sandbox, path)
    held = bytearray()
    append = False
    async for piece in body:
        held += piece
        if len(held) >= _PIECE:
            await sandbox.files.write(path, bytes(held), append=append)
            held.clear()
            append = True
    if held or not append:
        await sandbox.files.write(path, bytes(held), append=append)
    return path


async def _check_target(sandbox: AsyncSandbox, path: str) -> None:
    is_there = await sandbox.files.exists(path)
    if path.endswith("/") or (is_there and (await sandbox.files.stat(path)).is_dir):
        raise ApiError(400, f"path is a directory: {path}")


async def _write_parts(
    sandbox: AsyncSandbox, request: Request, path: str | None, body: AsyncIterator[bytes], boundary: bytes
) -> list[str]:
    """Write each part called `file`, to `path` or to where its file name says. FileError, ApiError."""
    parts = Parts(boundary)
    target: str | None = None
    append = False
    written: list[str] = []

    async def write(data: bytes) -> None:
        nonlocal append
        if target is not None:
            await sandbox.files.write(target, data, append=append)
            append = True

    async for piece in body:
        for kind, value in parts.feed(piece):
            if kind == "data":
                await write(value)
            elif kind == "begin":
                name, filename = value
                if name != "file":
                    continue
                if path is None and not filename:
                    raise ApiError(400, "error getting multipart custom part file name")
                target, append = _resolve(request, path if path is not None else filename), False
                if target in written or len(written) >= _PARTS_MAX:
                    raise ApiError(
                        400, f"you cannot upload multiple files to the same path '{target}' in one upload request"
                    )
                await _check_target(sandbox, target)
            elif target is not None:
                if not append:
                    await write(b"")
                written.append(target)
                target = None
    if not parts.ended:
        raise ApiError(400, "error reading form: it is incomplete")
    return written


class Parts:
    """A multipart body as events: ("begin", (name, filename)), ("data", bytes), ("end", None)."""

    def __init__(self, boundary: bytes) -> None:
        self._events: list[tuple[str, Any]] = []
        self._field = self._value = b""
        self._name = self._filename = ""
        self._seen = 0
        self.ended = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_part_data": lambda data, start, end: self._events.append(("data", data[start:end])),
                "on_part_end": lambda: self._events.append(("end", None)),
                "on_header_field": self._header_field,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_headers_finished": lambda: self._events.append(("begin", (self._name, self._filename))),
                "on_end": self._end,
            },
        )

    def feed(self, data: bytes) -> list[tuple[str, Any]]:
        """ApiError for what is no multipart."""
        try:
            self._parser.write(data)
        except ValueError:
            raise ApiError(400, "error reading form: it is no multipart body") from None
        events, self._events = self._events, []
        return events

    def _begin(self) -> None:
        self._name = self._filename = ""
        self._seen += 1
        if self._seen > _PARTS_MAX:
            raise ApiError(400, f"error reading form: more than {_PARTS_MAX} parts")

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]
        self._check_header()

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        self._check_header()

    def _check_header(self) -> None:
        if len(self._field) + len(self._value) > 16 << 10:
            raise ApiError(400, "error reading form: a header is too long")

    def _header_end(self) -> None:
        if self._field.lower() == b"content-disposition":
            _, options = parse_options_header(self._value)
            self._name = options.get(b"name", b"").decode("utf-8", "replace")
            self._filename = options.get(b"filename", b"").decode("utf-8", "replace")
        self._field = self._value = b""

    def _end(self) -> None:
        self.ended = True


def _path(request: Request) -> str:
    return _resolve(request, request.query_params.get("path", ""))


def _resolve(request: Request, path: str) -> str:
    try:
        user = check_user(request.query_params.get("username"))
    except ValueError as error:
        raise ApiError(401, f"error looking up user: {error}") from None
    try:
        where = resolve(path, user)
    except ValueError as error:
        raise ApiError(400, f"error resolving path: {error}") from None
    return normpath(where) + ("/" if where.endswith("/") and len(where) > 1 else "")


def _metadata(request: Request) -> dict[str, str]:
    """What clients say about a file, by headers."""
    found = {name[len(_METADATA) :]: value for name, value in request.headers.items() if name.startswith(_METADATA)}
    if sum(len(name) + len(value) for name, value in found.items()) > _METADATA_MAX:
        raise ApiError(400, "invalid metadata: it is too long")
    if any(not name or not value.isascii() or not value.isprintable() for name, value in found.items()):
        raise ApiError(400, "invalid metadata: names are not empty, and values are printable US-ASCII")
    return found


def _range(text: str | None, size: int) -> tuple[int, int]:
    """The part of a file that a Range header asks for: all of it if it has none, or one we don't do. ApiError 416."""
    unit, _, spec = (text or "").partition("=")
    first, dash, last = spec.partition("-")
    if unit.strip() != "bytes" or not dash or not (first + last).isdigit() or not (first + last).isascii():
        return 0, size
    if not first:
        start, end = max(0, size - int(last[:18])), size
    else:
        start, end = int(first[:18]), min(size, int(last[:18]) + 1 if last else size)
    if start >= end:
        raise ApiError(416, "the range is outside the file", {"Content-Range": f"bytes */{size}"})
    return start, end


def _failure(error: FileError) -> ApiError:
    status, path = file_status(error), printable(error.path)
    if status == 404:
        return ApiError(404, f"path '{path}' does not exist")
    return ApiError(status, f"error with file '{path}': {error.strerror}")
