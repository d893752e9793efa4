"""hostid - print the numeric identifier of the sandbox

Usage: hostid [OPTION]
"""

from zlib import crc32

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    pass


@utility("hostid", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if operands:
        raise UsageError(f"extra operand {quote(operands[0], process.env)}")
    process.print(f"{crc32(process.kernel.hostname.encode()):08x}")
    return 0
