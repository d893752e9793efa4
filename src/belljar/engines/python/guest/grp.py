"""The sandbox's groups, by its /etc/group."""

from collections import namedtuple

struct_group = namedtuple("struct_group", "gr_name gr_passwd gr_gid gr_mem")


def getgrall():
    with open("/etc/group", encoding="utf-8", errors="surrogateescape") as file:
        entries = [line.rstrip("\n").split(":") for line in file]
    return [
        struct_group(entry[0], entry[1], int(entry[2]), [name for name in entry[3].split(",") if name])
        for entry in entries
        if len(entry) == 4
    ]


def getgrnam(name, /):
    if not isinstance(name, str):
        raise TypeError(f"getgrnam() argument must be str, not {type(name).__name__}")
    if "\0" in name:
        raise ValueError("embedded null byte")
    for entry in getgrall():
        if entry.gr_name == name:
            return entry
    raise KeyError(f"getgrnam(): name not found: {name!r}")


def getgrgid(id, /):
    if not isinstance(id, int):
        raise TypeError(f"group id must be int, not {type(id).__name__}")
    for entry in getgrall():
        if entry.gr_gid == id:
            return entry
    raise KeyError(f"getgrgid(): gid not found: {id}")
