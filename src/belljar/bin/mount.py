"""mount - list what is mounted, or mount something

Usage: mount
       mount [OPTION]... --bind OLD NEW
       mount [OPTION]... -t tmpfs NAME DIRECTORY
       mount [OPTION]... /mnt/srv/NAME DIRECTORY

The last form mounts what is posted under a name; to post a directory, write the number of a descriptor it is open at:
exec 3<DIRECTORY; echo 3 >/mnt/srv/NAME. -b and -a make a union directory, in which the first that has a name shows.
Changes are seen by the process that runs mount and by its children.
"""

from typing import cast

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.srv import mount_posted
from belljar.kernel.process import Process
from belljar.kernel.vfs.namespace import Order


@dataclass(frozen=True, slots=True)
class Options:
    bind: bool = flag("-B", "--bind", "bind a subtree somewhere else")
    kind: str | None = value("-t", "--types", "the type of the file system", metavar="TYPE")
    options: str = value("-o", "--options", "comma-separated list of mount options", metavar="LIST", default="")
    read_only: bool = flag("-r", "--read-only", "mount read-only")
    order: str = choice({"-b": "before", "-a": "after"}, "before, or after, what is there already", "replace")
    creates: bool = flag("-c", "new files are created here")


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
    fs = process.parent_namespace()
    order, creates = cast("Order", options.order), options.creates or options.order == "replace"
    source, path = operands
    if options.bind or "bind" in words:
        fs.bind(source, path, order=order, creates=creates, read_only=read_only)
    elif options.kind == "tmpfs":
        server = MemoryServer(process.kernel.now, process.kernel.quota, mode=0o1777, owner=process.fs.credentials.owner)
        process.kernel.register(server)
        fs.mount(server, path, order=order, creates=creates, read_only=read_only, source=source)
    elif options.kind in (None, "auto", "srv"):
        try:
            mount_posted(fs, source, path, order=order, creates=creates, read_only=read_only)
        except SysError as error:
            reason = "nothing is posted there" if error.name in ("EINVAL", "ENXIO") else error.reason
            process.warn(f"{error.path or source}: {reason}.")
            return 32
    else:
        process.warn(f"{path}: unknown filesystem type '{options.kind}'.")
        return 32
    return 0
