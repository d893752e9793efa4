"""uuidgen - create a new UUID value

Usage: uuidgen [-r|-t]
"""

from uuid import UUID

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, utility
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    random: bool = flag("-r", "--random", "generate a random-based UUID")
    time: bool = flag("-t", "--time", "generate a time-based UUID")


@utility("uuidgen", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    noise = process.kernel.machine.entropy.random_bytes(16)
    if options.time:
        ticks = process.kernel.now() // 100 + 0x01B21DD213814000
        clock = int.from_bytes(noise[:2], "big") & 0x3FFF
        node = int.from_bytes(noise[2:8], "big") | 1 << 40
        fields = (ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, ticks >> 48 & 0xFFF, clock >> 8, clock & 0xFF, node)
        process.print(str(UUID(fields=fields, version=1)))
    else:
        process.print(str(UUID(bytes=noise, version=4)))
    return 0
