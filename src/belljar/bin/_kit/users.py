"""The guest's accounts: names of users and groups from its own /etc/passwd and /etc/group."""

from __future__ import annotations

from functools import cached_property

from belljar.abi.paths import fsdecode
from belljar.kernel.process import Process


class Accounts:
    """Names and numbers of users and groups, read once when first asked for."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def user_name(self, uid: int) -> str | None:
        return self._user_names.get(uid)

    def group_name(self, gid: int) -> str | None:
        return self._group_names.get(gid)

    def user(self, name: str) -> int | None:
        """The number of a user given by name, or else by number."""
        return self._users.get(name, _number(name))

    def group(self, name: str) -> int | None:
        return self._groups.get(name, _number(name))

    def login_group(self, uid: int) -> int | None:
        """The group a user belongs to from the start."""
        return next((_number(fields[3]) for fields in self._passwd if len(fields) > 3 and fields[2] == str(uid)), None)

    def home(self, uid: int) -> str | None:
        """A user's home directory."""
        return next((fields[5] for fields in self._passwd if len(fields) > 5 and fields[2] == str(uid)), None)

    def groups_of(self, uid: int) -> list[int]:
        """The groups that list a user as a member."""
        name = self.user_name(uid)
        return [
            number
            for fields in self._group
            if len(fields) > 3 and name in fields[3].split(",") and (number := _number(fields[2])) is not None
        ]

    @cached_property
    def _passwd(self) -> list[list[str]]:
        return self._read("/etc/passwd")

    @cached_property
    def _group(self) -> list[list[str]]:
        return self._read("/etc/group")

    @cached_property
    def _users(self) -> dict[str, int]:
        return _by_name(self._passwd)

    @cached_property
    def _groups(self) -> dict[str, int]:
        return _by_name(self._group)

    @cached_property
    def _user_names(self) -> dict[int, str]:
        return {number: name for name, number in reversed(self._users.items())}

    @cached_property
    def _group_names(self) -> dict[int, str]:
        return {number: name for name, number in reversed(self._groups.items())}

    def _read(self, path: str) -> list[list[str]]:
        text = fsdecode(self._process.try_read(path) or b"")
        return [line.split(":") for line in text.splitlines() if line and not line.startswith("#")]


def _by_name(lines: list[list[str]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for fields in lines:
        number = _number(fields[2]) if len(fields) > 2 else None
        if number is not None:
            found.setdefault(fields[0], number)
    return found


def _number(text: str) -> int | None:
    """A user's or group's number; a leading + says that it is no name."""
    text = text.removeprefix("+")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 11 and int(text) < 2**32 - 1 else None
