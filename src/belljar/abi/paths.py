"""Guest paths: text that names a file inside a sandbox, never on the host. Nothing here does I/O."""

from typing import NewType

from belljar.abi.errno import EINVAL, ENAMETOOLONG, ENOENT
from belljar.abi.errors import SysError
from belljar.abi.flags import NAME_MAX, PATH_MAX

GuestPath = NewType("GuestPath", str)
"""A path inside the sandbox. Bytes that are not UTF-8 are kept as surrogate escapes."""


def fsencode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def replace_undecodable(text: str) -> str:
    """Replace bytes of a decoded text that are not UTF-8 by U+FFFD."""
    return fsencode(text).decode("utf-8", "replace")


def fsdecode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(fsencode(text))


def narrow(text: str) -> str:
    """One character a byte, as the locale C sees it: bytes above 127 become surrogate escapes."""
    return text if text.isascii() else fsencode(text).decode("ascii", "surrogateescape")


def widen(text: str) -> str:
    """The text of `narrow` with its UTF-8 sequences as characters again."""
    return fsdecode(fsencode(text))


def check_path(path: str) -> None:
    """Raises ENOENT for an empty path, EINVAL for one with a NUL, ENAMETOOLONG past PATH_MAX."""
    if not path:
        raise SysError(ENOENT, path)
    if "\0" in path:
        raise SysError(EINVAL, path)
    if len(path) >= PATH_MAX // 4 and byte_length(path) >= PATH_MAX:
        raise SysError(ENAMETOOLONG, path)


def check_name(name: str) -> None:
    """Raises ENAMETOOLONG for a single component over 255 bytes."""
    if len(name) > NAME_MAX // 4 and byte_length(name) > NAME_MAX:
        raise SysError(ENAMETOOLONG, name)


def join(base: str, path: str) -> GuestPath:
    """`path` as seen from the directory `base`; an absolute path stays itself."""
    if path.startswith("/"):
        return GuestPath(path)
    return GuestPath(f"{base}{path}" if base.endswith("/") else f"{base}/{path}")


def normalise(path: str) -> GuestPath:
    """Remove `.`, `..` and doubled slashes, by text alone: only right where no symlink is involved."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if parts and parts[-1] != "..":
                parts.pop()
            elif not path.startswith("/"):
                parts.append(part)
        elif part and part != ".":
            parts.append(part)
    text = "/".join(parts)
    return GuestPath("/" + text if path.startswith("/") else text or ".")


def dirname(path: str) -> GuestPath:
    stripped = path.rstrip("/")
    if not stripped:
        return GuestPath("/" if path else ".")
    head, slash, _ = stripped.rpartition("/")
    if not slash:
        return GuestPath(".")
    return GuestPath(head.rstrip("/") or "/")


def basename(path: str) -> str:
    stripped = path.rstrip("/")
    return stripped.rpartition("/")[2] if stripped else path[:1]
