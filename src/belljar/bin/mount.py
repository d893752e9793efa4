"""mount - list what is mounted, or bind a directory

Usage: mount
       mount --bind OLD NEW
       mount -t tmpfs NAME DIRECTORY

Changes are seen by the process that runs mount and by its children.
"""

from dataclasses import dataclass

from belljar.abi.paths import fsdecode
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    bind: bool = flag("-B", "--bind", "bind a subtree somewhere else")
    kind: str | None = value("-t", "--types", "the type of the file system", metavar="TYPE")
    options: str = value("-o", "--options", "comma-separated list of mount options", metavar="LIST", default="")
    read_only: bool = flag("-r", "--read-only", "mount read-only")


@utility("mount", Options, usage_status=1)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
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
    if options.bind or "bind" in words:
        fs.bind(operands[0], operands[1], read_only=read_only)
        return 0
    if options.kind == "tmpfs":
        server = MemoryServer(process.kernel.now, process.kernel.quota, mode=0o1777, owner=process.fs.credentials.owner)
        process.kernel.register(server)
        fs.mount(server, operands[1], read_only=read_only, source=operands[0])
        return 0
    process.warn(f"{operands[1]}: unknown filesystem type '{options.kind or 'auto'}'.")
    return 32
