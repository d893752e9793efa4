"""getent - get entries from the databases of users, groups and hosts

Usage: getent DATABASE [KEY]...

DATABASE is passwd, group, hosts, ahosts, services, protocols or networks. Without a KEY every entry is shown. Exit
status is 1 for an unknown database, 2 if a KEY is not found.
"""

from __future__ import annotations

from belljar.abi.paths import fsdecode
from belljar.bin._kit import UsageError, utility
from belljar.kernel.process import Process

_FILES = {name: f"/etc/{name}" for name in ("passwd", "group", "shadow", "hosts", "services", "protocols", "networks")}


@utility("getent")
def main(process: Process, args: list[str]) -> int:
    if args in (["--help"], ["-?"]):
        process.stdout.write(main.help().encode())
        return 0
    if not args:
        raise UsageError("wrong number of arguments")
    database, *keys = args
    path = _FILES.get("hosts" if database.startswith("ahosts") else database)
    if path is None:
        process.error(f"Unknown database: {database}\n")
        process.print("Try `getent --help' or `getent --usage' for more information.")
        return 1
    text = fsdecode(process.try_read(path) or b"")
    entries = [line.partition("#")[0].rstrip() for line in text.splitlines()]
    entries = [entry for entry in entries if entry.strip()]
    by_colons = database in ("passwd", "group", "shadow")
    if not keys:
        for entry in entries:
            process.print(entry if by_colons else _aligned(entry))
        return 0
    status = 0
    for key in keys:
        found = [entry for entry in entries if _matches(entry, key, by_colons)]
        for entry in found[:1]:
            process.print(entry if by_colons else _aligned(entry))
        status = status if found else 2
    return status


def _matches(entry: str, key: str, by_colons: bool) -> bool:
    if by_colons:
        fields = entry.split(":")
        return key == fields[0] or (len(fields) > 2 and key == fields[2])
    return key.partition("/")[0] in entry.split()


def _aligned(entry: str) -> str:
    first, *rest = entry.split()
    return f"{first:<15} {' '.join(rest)}"
