"""Request bodies: form data joined, multipart forms, and files to upload."""

from __future__ import annotations

import re
from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin.curl.errors import READ_ERROR, CurlError
from belljar.bin.curl.options import Operation
from belljar.kernel.process import Process

_TYPES = {
    ".gif": "image/gif", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".svg": "image/svg+xml",
    ".txt": "text/plain", ".htm": "text/html", ".html": "text/html", ".pdf": "application/pdf",
    ".xml": "application/xml",
}  # fmt: skip
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a body: bytes, or a file that is read when it is sent."""

    data: bytes = b""
    file: str | None = None
    size: int | None = 0


@dataclass(frozen=True, slots=True)
class Body:
    """A request's body and its type. `size` None is not known in advance."""

    parts: tuple[Part, ...]
    content_type: str | None = None

    @property
    def size(self) -> int | None:
        total = 0
        for part in self.parts:
            if part.size is None:
                return None
            total += part.size
        return total

    def chunks(self, process: Process) -> Iterator[bytes]:
        for part in self.parts:
            if part.file is None:
                if part.data:
                    yield part.data
                continue
            try:
                yield from process.chunks(part.file)
            except SysError:
                raise CurlError(READ_ERROR, "Failed to open/read local data from file/application") from None


def plain(data: bytes) -> Part:
    return Part(data, size=len(data))


def joined_data(operation: Operation) -> bytes:
    """All of -d's family, with & between them; JSON is put together as it is."""
    parts: list[bytes] = []
    for name, text in operation.data:
        if parts and name != "json":
            parts.append(b"&")
        parts.append(text.encode("utf-8", "surrogateescape"))
    return b"".join(parts)


def upload(process: Process, name: str) -> Body:
    """-T: a file; `-` and `.` are standard input, whose length nobody knows."""
    if name in ("-", "."):
        return Body((Part(file="-", size=None),))
    return Body((_file(process, name),))


def _file(process: Process, name: str) -> Part:
    if name == "-":
        return Part(file="-", size=None)
    try:
        stat = process.fs.stat(name)
        process.close(process.open(name))
    except SysError:
        raise CurlError(READ_ERROR, "Failed to open/read local data from file/application") from None
    if stat.is_dir:
        raise CurlError(READ_ERROR, "Failed to open/read local data from file/application")
    return Part(file=name, size=stat.size if stat.is_regular else None)


def multipart(process: Process, operation: Operation, boundary: str) -> Body:
    """-F: fields and files."""
    parts: list[Part] = []
    for number, (kind, text) in enumerate(operation.forms):
        name, _, content = text.partition("=")
        parts.append(plain(f"--{boundary}\r\n".encode()))
        quoted = _quote(name, operation.flag("form-escape"))
        if kind == "form-string" or content[:1] not in ("@", "<"):
            value, settings = (content, {}) if kind == "form-string" else _settings(content)
            head = f'Content-Disposition: form-data; name="{quoted}"'
            parts += [
                _head(head, settings.get("type"), settings.get("headers")),
                plain(value.encode("utf-8", "surrogateescape")),
            ]
        elif content[0] == "<":
            file_name, settings = _settings(content[1:])
            head = f'Content-Disposition: form-data; name="{quoted}"'
            parts += [_head(head, settings.get("type"), settings.get("headers")), _file(process, file_name)]
        else:
            parts += _files(process, operation, quoted, content[1:], f"{boundary}{number:x}")
        parts.append(plain(b"\r\n"))
    parts.append(plain(f"--{boundary}--\r\n".encode()))
    return Body(tuple(parts), f"multipart/form-data; boundary={boundary}")


def _files(process: Process, operation: Operation, name: str, content: str, inner: str) -> list[Part]:
    """One file, or several (`@a,b`) in a part of their own."""
    escaped = operation.flag("form-escape")
    described = [_settings(text) for text in _split(content, ",")]
    found: list[tuple[str, str, Part, str | None]] = []
    for file_name, settings in described:
        shown = _quote(settings.get("filename", file_name.rpartition("/")[2]), escaped)
        kind = settings.get("type") or guess_type(settings.get("filename", file_name))
        found.append((shown, kind, _file(process, file_name), settings.get("headers")))
    if len(found) == 1:
        shown, kind, part, more = found[0]
        return [_head(f'Content-Disposition: form-data; name="{name}"; filename="{shown}"', kind, more), part]
    out = [_head(f'Content-Disposition: form-data; name="{name}"', f"multipart/mixed; boundary={inner}", None)]
    for shown, kind, part, more in found:
        head = _head(f'Content-Disposition: attachment; filename="{shown}"', kind, more)
        out += [plain(f"--{inner}\r\n".encode()), head, part, plain(b"\r\n")]
    return [*out, plain(f"--{inner}--\r\n".encode())]


def _head(disposition: str, kind: str | None, more: str | None) -> Part:
    lines = [disposition]
    if kind:
        lines.append(f"Content-Type: {kind}")
    if more:
        lines.append(more)
    return plain("".join(line + "\r\n" for line in [*lines, ""]).encode("utf-8", "surrogateescape"))


def _quote(text: str, backslashes: bool) -> str:
    if backslashes:
        return text.replace("\\", "\\\\").replace('"', '\\"')
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _split(text: str, separator: str) -> list[str]:
    """At the separator, but not inside double quotes."""
    return [piece for piece in re.findall(rf'(?:[^{separator}"]|"(?:[^"\\]|\\.)*"?)+', text) if piece]


def _settings(text: str) -> tuple[str, dict[str, str]]:
    """`content;type=a/b;filename=x`: the content, and what was said of it."""
    pieces = _split(text, ";")
    settings: dict[str, str] = {}
    content: list[str] = []
    for piece in pieces:
        match = re.fullmatch(r"\s*(type|filename|headers|encoder)=(.*)", piece, re.S)
        if match is not None and content:
            settings[match[1]] = _unquote(match[2].strip())
        else:
            content.append(piece)
    return _unquote(";".join(content)), settings


def _unquote(text: str) -> str:
    if len(text) >= 2 and text.startswith('"') and text.endswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def guess_type(name: str) -> str:
    dot = name.rfind(".")
    return _TYPES.get(name[dot:].lower(), "application/octet-stream") if dot >= 0 else "application/octet-stream"
