"""`git credential`: ask the stores for a password, and have them keep or forget one."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from belljar.abi.paths import fsdecode
from belljar.bin._httpauth import Credentials
from belljar.bin._url import BadUrl, Url, parse_url
from belljar.bin.git.repository.credentials import erase, find_stored, store, stores
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.remotes import user_config
from belljar.bin.git.repository.repo import Repository
from belljar.kernel.process import Process

_FIELDS: Final = ("protocol", "host", "path", "username", "password")


def credential(process: Process, repo: Repository | None, args: list[str], settings: list[tuple[str, str]]) -> int:
    """`git credential fill|approve|reject`; what it is about is on standard input, as lines of NAME=VALUE."""
    if len(args) != 1 or args[0] not in ("fill", "approve", "reject"):
        raise GitError("usage: git credential (fill|approve|reject)", 129, "")
    fields = parse_description(fsdecode(process.read_file("-")))
    files = stores(process, repo.config_all if repo else lambda key: user_config(process, settings, key))
    url = _url(fields)
    user, password = fields.get("username"), fields.get("password")
    match args[0]:
        case "fill":
            for name, value in _filled(process, files, url, fields).items():
                process.print(f"{name}={value}")
        case "approve" if user is not None and password is not None:
            for path in files:
                store(process, path, url, Credentials(user, password))
        case "reject":
            for path in files:
                erase(process, path, url, user)
    return 0


def parse_description(text: str) -> dict[str, str]:
    """The fields of a credential, up to an empty line. GitError."""
    fields: dict[str, str] = {}
    for line in text.split("\n"):
        if not line:
            break
        name, equals, value = line.partition("=")
        if not equals:
            raise GitError(
                f"warning: invalid credential line: {line}\nfatal: unable to read credential from stdin", 128, ""
            )
        if name == "url":
            fields |= _fields_of(value)
        elif name in _FIELDS:
            fields[name] = value
    if fields.get("protocol") in ("http", "https"):
        fields.pop("path", None)  # one password is for a whole server, as without credential.useHttpPath
    return fields


def _fields_of(text: str) -> dict[str, str]:
    try:
        url = parse_url(text)
    except BadUrl:
        raise GitError(f"credential url cannot be parsed: {text}") from None
    found = {"protocol": url.scheme, "host": url.authority}
    if url.user is not None:
        found["username"] = unquote(url.user)
    if url.password is not None:
        found["password"] = unquote(url.password)
    return found


def _url(fields: dict[str, str]) -> Url:
    for name in ("protocol", "host"):
        if name not in fields:
            raise GitError(f"refusing to work with credential missing {name} field")
    try:
        return parse_url(f"{fields['protocol']}://{fields['host']}")
    except BadUrl as error:
        raise GitError(f"credential host is malformed: {error}") from None


def _filled(process: Process, files: list[str], url: Url, fields: dict[str, str]) -> dict[str, str]:
    """The fields with user and password. GitError if no store has them: nobody can be asked."""
    user, password = fields.get("username"), fields.get("password")
    for path in files:
        if user is not None and password is not None:
            break
        if (found := find_stored(process, path, url, user)) is not None:
            user, password = found.user, found.password
    shown = f"{url.scheme}://{url.authority}"
    if user is None:
        raise GitError(f"could not read Username for '{shown}': No such device or address")
    if password is None:
        shown = f"{url.scheme}://{user}@{url.authority}"
        raise GitError(f"could not read Password for '{shown}': No such device or address")
    found_fields = {**fields, "username": user, "password": password}
    return {name: found_fields[name] for name in _FIELDS if name in found_fields}
