"""mount - list what is mounted, or mount something

Usage: mount
       mount [OPTION]... --bind OLD NEW
       mount [OPTION]... -t tmpfs [-o size=BYTES] NAME DIRECTORY
       mount [OPTION]... /mnt/srv/NAME DIRECTORY

The last form mounts what is posted under a name; to post a directory, write the number of a descriptor it is open at:
exec 3<DIRECTORY; echo 3 >/mnt/srv/NAME. A program that serves files by 9P posts itself; -o timeout=SECONDS says how
long it may take for an answer. -b and -a make a union directory, in which the first that has a name shows.
Changes are seen by the process that runs mount and by its children; with --system, by every later command.
"""

import re
from typing import cast

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.quota import PartialQuota
from belljar.kernel.fs.srv import mount_posted, set_timeout
from belljar.kernel.process import Process
from belljar.kernel.vfs.namespace import Order
from belljar.kernel.vfs.view import View

TIMEOUT_MAX = 600


@dataclass(frozen=True, slots=True)
class Options:
    bind: bool = flag("-B", "--bind", "bind a subtree somewhere else")
    kind: str | None = value("-t", "--types", "the type of the file system", metavar="TYPE")
    options: str = value("-o", "--options", "comma-separated list of mount options", metavar="LIST", default="")
    read_only: bool = flag("-r", "--read-only", "mount read-only")
    order: str = choice({"-b": "before", "-a": "after"}, "before, or after, what is there already", "replace")
    creates: bool = flag("-c", "new files are created here")
    system: bool = flag("--system", "for every command that is started from now on (takes root)")


@utility("mount", Options, usage_status=1)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        if options.order == "after":
            return 0  # `mount -a`: there is no table of what should be mounted
        for line in fsdecode(process.read_file("/proc/mounts")).splitlines():
            source, path, kind, flags, *_ = line.split(" ")
            if options.kind is None or options.kind == kind:
                process.print(f"{source} on {path} type {kind} ({flags})")
        return 0
    if len(operands) != 2:
        raise UsageError("bad usage")
    words = options.options.split(",")
    read_only = options.read_only or "ro" in words
    fs = _system_namespace(process) if options.system else process.parent_namespace()
    order, creates = cast("Order", options.order), options.creates or options.order == "replace"
    source, path = operands
    if not fs.exists(path):
        process.warn(f"{path}: mount point does not exist.")
        return 32
    if options.bind or "bind" in words:
        fs.bind(source, path, order=order, creates=creates, read_only=read_only)
    elif options.kind == "tmpfs":
        quota = PartialQuota(process.kernel.quota, _size(words, process.kernel.quota.bytes_limit))
        server = MemoryServer(process.kernel.now, quota, mode=0o1777, owner=process.fs.credentials.owner)
        process.kernel.register(server)
        fs.mount(server, path, order=order, creates=creates, read_only=read_only, source=source)
    elif options.kind in (None, "auto", "srv", "9p"):
        try:
            _set_timeout(fs, source, words)
            mount_posted(fs, source, path, order=order, creates=creates, read_only=read_only)
        except SysError as error:
            reason = "nothing is posted there" if error.name in ("EINVAL", "ENXIO") else error.why or error.reason
            process.warn(f"{error.path or source}: {reason}.")
            return 32
    else:
        process.warn(f"{path}: unknown filesystem type '{options.kind}'.")
        return 32
    return 0


def _size(words: list[str], most: int) -> int:
    """How much a new tmpfs may hold. UsageError."""
    for word in words:
        name, _, text = word.partition("=")
        if name == "size":
            match = re.fullmatch(r"(\d{1,18})([kmgKMG]?|%)", text)
            if match is None:
                raise UsageError(f"size={text}: it must be a number of bytes, with k, m, g or % if need be")
            number, unit = int(match[1]), match[2].lower()
            return most * number // 100 if unit == "%" else number << 10 * " kmg".index(unit or " ")
    return most


def _system_namespace(process: Process) -> View:
    """Our view, with init's mount table, which new commands begin with. UsageError."""
    try:
        return process.system_namespace()
    except SysError:
        raise UsageError("--system takes root: sudo mount --system ...", hint=False) from None


def _set_timeout(fs: View, source: str, words: list[str]) -> None:
    """Note how long a program that serves files may take for an answer. UsageError."""
    for word in words:
        name, _, text = word.partition("=")
        if name == "timeout":
            seconds = float(text) if text.replace(".", "", 1).isdecimal() else 0.0
            if not 0 < seconds <= TIMEOUT_MAX:
                raise UsageError(f"timeout={text}: it must be a number of seconds, at most {TIMEOUT_MAX}")
            set_timeout(fs, source, seconds)
