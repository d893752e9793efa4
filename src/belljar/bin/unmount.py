"""unmount - remove a mount, or take one directory out of a union

Usage: unmount [NEW] OLD

Without NEW, what is mounted at OLD is gone. With it, only what `bind` or `mount` put there from NEW (a directory, or a
name in /mnt/srv); the other members of the union stay.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, utility
from belljar.kernel.fs.srv import find_posted
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    pass


@utility("unmount", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not 1 <= len(operands) <= 2:
        raise UsageError("expected [NEW] OLD")
    fs = process.parent_namespace()
    *source, path = operands
    member = None
    if source:
        place = fs.resolve(source[0])
        member = place.node if place.node.is_dir else find_posted(fs, source[0]).root
    try:
        fs.namespace.unmount(fs.namespace.enter(fs.resolve(path)), member)
    except SysError as error:
        process.warn(f"{path}: {'not mounted' if error.name == 'EINVAL' else error.reason}")
        return 1
    return 0
