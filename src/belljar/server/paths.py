"""Paths and users of a request, as envd reads them."""

from __future__ import annotations

from base64 import b64decode
from posixpath import join, normpath
from typing import Final

from starlette.requests import Request

from belljar.server.guest import HOME, USER

_HOMES: Final = {USER: HOME, "root": "/root"}
_PATH_MAX: Final = 4096


def parse_user(request: Request, usual: str = USER) -> str:
    """The user of a Connect call, by Basic authentication without a password. ValueError for an unknown one."""
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return usual
    try:
        name = b64decode(text, validate=True).decode().partition(":")[0]
    except ValueError:
        raise ValueError("invalid username") from None
    return check_user(name)


def check_user(name: str | None) -> str:
    """ValueError for a user that no sandbox has; None or "" is the usual one."""
    if not name:
        return USER
    if name not in _HOMES:
        raise ValueError(f"invalid username: '{name[:32]}'")
    return name


def resolve(path: str, user: str) -> str:
    """An absolute path; `~` and relative ones begin at the user's home. ValueError."""
    home = _HOMES[user]
    if "\0" in path or len(path.encode("utf-8", "surrogatepass")) > _PATH_MAX:
        raise ValueError("a path has no NUL and at most 4096 bytes")
    if path.startswith("~"):
        if path[1:2] not in ("", "/"):
            raise ValueError("cannot expand user-specific home dir")
        path = home + path[1:]
    return path if path.startswith("/") else normpath(join(home, path))
