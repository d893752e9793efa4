"""bind - make a file or directory appear at another place too

Usage: bind [-b|-a|-c] NEW OLD

Makes what is seen at NEW appear at OLD, for this process's namespace and its children's. -b puts it before, -a after
what is there already (a union directory); -c lets new files be created in it.
"""

from typing import cast

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, choice, flag, utility
from belljar.kernel.process import Process
from belljar.kernel.vfs.namespace import Order


@dataclass(frozen=True, slots=True)
class Options:
    order: str = choice(
        {"-b": "before", "-a": "after", "-r": "replace"}, "before, after, or instead of what is there", "replace"
    )
    creates: bool = flag("-c", "new files are created here")
    read_only: bool = flag("-o", "read-only")


@utility("bind", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) != 2:
        raise UsageError("expected NEW and OLD")
    process.parent_namespace().bind(
        operands[0],
        operands[1],
        order=cast("Order", options.order),
        creates=options.creates or options.order == "replace",
        read_only=options.read_only,
    )
    return 0
