"""`/dev/tcp/host/port` and `/dev/udp/host/port` in redirections: dialled through the files of /net."""

from __future__ import annotations

from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY, O_RDWR
from belljar.abi.paths import fsdecode, fsencode
from belljar.kernel.process import Process
from belljar.kernel.vfs.openfile import OpenFile

PREFIXES = ("/dev/tcp/", "/dev/udp/")
_TEXT_MAX = 4096


class DialError(Exception):
    """A failed connection; the text is the reason."""


def dial(process: Process, name: str) -> OpenFile | None:
    """The connection such a name stands for; None if it is an ordinary name. Raises DialError."""
    protocol, _, rest = name[len("/dev/") :].partition("/")
    host, _, port = rest.partition("/")
    if not host or not port or "/" in port:
        return None
    fs = process.fs
    try:
        ctl = fs.open(f"/net/{protocol}/clone", O_RDWR).retain()
    except SysError as error:
        raise DialError(error.reason) from None
    try:
        directory = f"/net/{protocol}/{fsdecode(ctl.read(32)).strip()}"
        try:
            ctl.write(fsencode(f"connect {host}!{port}"))
            return fs.open(f"{directory}/data", O_RDWR)
        except SysError as error:
            why = _read(process, f"{directory}/error").partition(": ")[2]
            raise DialError(f"{error.reason} ({why})" if why else error.reason) from None
    finally:
        ctl.release()


def _read(process: Process, path: str) -> str:
    try:
        file = process.fs.open(path, O_RDONLY).retain()
    except SysError:
        return ""
    try:
        return fsdecode(file.read(_TEXT_MAX)).strip()
    finally:
        file.release()
