"""The sandbox's accounts, by its /etc/passwd."""

from collections import namedtuple

struct_passwd = namedtuple("struct_passwd", "pw_name pw_passwd pw_uid pw_gid pw_gecos pw_dir pw_shell")


def getpwall():
    with open("/etc/passwd", encoding="utf-8", errors="surrogateescape") as file:
        entries = [line.rstrip("\n").split(":") for line in file]
    return [
        struct_passwd(name, password, int(uid), int(gid), *rest)
        for name, password, uid, gid, *rest in entries
        if len(rest) == 3
    ]


def getpwnam(name, /):
    if not isinstance(name, str):
        raise TypeError(f"getpwnam() argument must be str, not {type(name).__name__}")
    if "\0" in name:
        raise ValueError("embedded null byte")
    for entry in getpwall():
        if entry.pw_name == name:
            return entry
    raise KeyError(f"getpwnam(): name not found: {name!r}")


def getpwuid(uid, /):
    if not isinstance(uid, int):
        raise TypeError(f"uid should be integer, not {type(uid).__name__}")
    for entry in getpwall():
        if entry.pw_uid == uid:
            return entry
    raise KeyError(f"getpwuid(): uid not found: {uid}")
