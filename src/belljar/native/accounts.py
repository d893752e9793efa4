"""Accounts of a native sandbox: the image's, and the one that commands run as."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from belljar.abi.errors import ImageError
from belljar.native.roots import ID_COUNT

FIRST_ID: Final = 1000
_LAST_ID: Final = 60000
_NUMBER: Final = re.compile("[0-9]{1,9}")
ROOT_LINE: Final = "root:x:0:0:root:/root:/bin/bash"
NOBODY_LINE: Final = "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin"


class Account(Struct, frozen=True):
    """Who commands run as."""

    name: str
    uid: int
    gid: int
    home: str


def choose_account(user: str, passwd: str, group: str) -> tuple[Account, str, str]:
    """The account of a name (or `uid[:gid]`), made if the image has none, with its passwd and group files."""
    rows = _rows(passwd or f"{ROOT_LINE}\n{NOBODY_LINE}\n", 7, (2, 3))
    groups = _rows(group or "root:x:0:\nnogroup:x:65534:\n", 4, (2,))
    name, _, group_name = user.partition(":")
    row = next((row for row in rows if row[0] == name or (_NUMBER.fullmatch(name) and row[2] == name)), None)
    if row is None:
        taken = {row[2] for row in rows} | {row[2] for row in groups}
        number = (
            name if _NUMBER.fullmatch(name) else next(str(n) for n in range(FIRST_ID, _LAST_ID) if str(n) not in taken)
        )
        called = "agent" if _NUMBER.fullmatch(name) else name
        row = [called, "x", number, number, "", f"/home/{called}", "/bin/bash"]
        rows.append(row)
        groups.append([called, "x", number, ""])
    gid = row[3]
    if group_name:
        gid = next(
            (each[2] for each in groups if each[0] == group_name), group_name if _NUMBER.fullmatch(group_name) else gid
        )
    account = Account(row[0], int(row[2]), int(gid), row[5] if row[5].startswith("/") else "/")
    if max(account.uid, account.gid) >= ID_COUNT:
        raise ImageError(f"user {user[:100]!r}: a sandbox has the ids 0 to {ID_COUNT - 1}")
    return account, _text(rows), _text(groups)


def _rows(text: str, columns: int, numbers: tuple[int, ...]) -> list[list[str]]:
    """The lines that the C library would take; an image's file may hold anything."""
    rows = [line.split(":") for line in text.splitlines()]
    return [row for row in rows if len(row) == columns and all(_NUMBER.fullmatch(row[at]) for at in numbers)]


def _text(rows: list[list[str]]) -> str:
    return "".join(":".join(row) + "\n" for row in rows)
