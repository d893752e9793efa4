"""Accounts of a native sandbox: the image's, and the one that commands run as."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

FIRST_ID: Final = 1000
_LAST_ID: Final = 60000
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
    rows = [row.split(":") for row in (passwd or f"{ROOT_LINE}\n{NOBODY_LINE}\n").splitlines() if row.count(":") == 6]
    groups = [row.split(":") for row in (group or "root:x:0:\nnogroup:x:65534:\n").splitlines() if row.count(":") == 3]
    name, _, group_name = user.partition(":")
    row = next((row for row in rows if row[0] == name or (name.isdecimal() and row[2] == name)), None)
    if row is None:
        taken = {row[2] for row in rows} | {row[2] for row in groups}
        number = name if name.isdecimal() else next(str(n) for n in range(FIRST_ID, _LAST_ID) if str(n) not in taken)
        called = "agent" if name.isdecimal() else name
        row = [called, "x", number, number, "", f"/home/{called}", "/bin/bash"]
        rows.append(row)
        groups.append([called, "x", number, ""])
    gid = row[3]
    if group_name:
        gid = next((each[2] for each in groups if each[0] == group_name), group_name if group_name.isdecimal() else gid)
    account = Account(row[0], int(row[2]), int(gid), row[5] if row[5].startswith("/") else "/")
    return account, _text(rows), _text(groups)


def _text(rows: list[list[str]]) -> str:
    return "".join(":".join(row) + "\n" for row in rows)
