"""The descriptions that are in a sandbox's /etc/init, and its accounts."""

from __future__ import annotations

import re
from typing import Final

from belljar.abi.errno import EFBIG, ENOENT
from belljar.abi.errors import SysError
from belljar.abi.flags import O_NONBLOCK, O_RDONLY
from belljar.abi.paths import fsdecode
from belljar.kernel.services.unit import SUFFIX, UNITS, Unit, UnitError, parse_unit
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.view import View

SERVICES_MAX: Final = 256
UNIT_MAX: Final = 64 << 10
PASSWD_MAX: Final = 1 << 20
_ID: Final = re.compile(r"[0-9]{1,10}")


def unit_names(view: View) -> list[str]:
    """Sorted; those past the limit are not there."""
    try:
        found = [entry.name for entry in view.readdir(UNITS) if entry.name.endswith(SUFFIX)]
    except SysError:
        return []
    return sorted(name.removesuffix(SUFFIX) for name in found)[:SERVICES_MAX]


def read_unit(view: View, name: str) -> Unit:
    """ENOENT, UnitError."""
    if "/" in name:
        raise SysError(ENOENT, name)
    path = f"{UNITS}/{name}{SUFFIX}"
    try:
        text = _read(view, path, UNIT_MAX).decode()
    except UnicodeDecodeError:
        raise UnitError(f"{path}: it is not UTF-8") from None
    except SysError as error:
        if error.errno == EFBIG:
            raise UnitError(f"{path}: it is longer than {UNIT_MAX} bytes") from None
        raise
    return parse_unit(name, text)


def read_units(view: View) -> tuple[dict[str, Unit], dict[str, str]]:
    """The descriptions there are, and what is wrong with the others."""
    units: dict[str, Unit] = {}
    broken: dict[str, str] = {}
    for name in unit_names(view):
        try:
            units[name] = read_unit(view, name)
        except (SysError, UnitError) as error:
            broken[name] = str(error)
    return units, broken


def read_account(view: View, name: str) -> tuple[Credentials, str]:
    """The rights and the home of a user (`name`, `uid` or `uid:gid`), by the guest's own /etc/passwd. UnitError."""
    user, _, group = name.partition(":")
    if _ID.fullmatch(user) and (not group or _ID.fullmatch(group)):
        return Credentials(int(user) & 0xFFFFFFFF, int(group or user) & 0xFFFFFFFF), "/"
    try:
        lines = fsdecode(_read(view, "/etc/passwd", PASSWD_MAX)).splitlines()
    except SysError:
        lines = ["root:x:0:0:root:/root:"]
    for line in lines:
        fields = line.split(":")
        if len(fields) > 5 and fields[0] == user and _ID.fullmatch(fields[2]) and _ID.fullmatch(fields[3]):
            gid = group if _ID.fullmatch(group) else fields[3]
            return Credentials(int(fields[2]) & 0xFFFFFFFF, int(gid) & 0xFFFFFFFF), fields[5]
    raise UnitError(f"there is no user {name!r}")


def _read(view: View, path: str, most: int) -> bytes:
    """All of a file. EFBIG if it is longer."""
    file = view.open(path, O_RDONLY | O_NONBLOCK).retain()
    try:
        parts: list[bytes] = []
        size = 0
        while data := file.read(most + 1):
            size += len(data)
            if size > most:
                raise SysError(EFBIG, path)
            parts.append(data)
        return b"".join(parts)
    finally:
        file.release()
