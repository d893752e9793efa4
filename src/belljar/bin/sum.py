"""sum - checksum and count the blocks in a file

Usage: sum [OPTION]... [FILE]...

Print or check BSD (16-bit) checksums. With no FILE, or when FILE is -, read standard input.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import choice, utility
from belljar.bin._kit.quoting import quote_if_odd
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    sysv: bool = choice(
        {"-r": False, "-s": True, "--sysv": True},
        "use BSD sum algorithm, 1K blocks (-r); System V, 512 bytes (-s)",
        False,
    )


@utility("sum", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    status = 0
    for name in operands or ["-"]:
        try:
            if name != "-" and process.fs.stat(name).is_dir:
                process.warn(f"{name}: Is a directory")
                status = 1
                continue
            total, size = (system_v if options.sysv else bsd)(process, name)
        except SysError as error:
            process.warn(f"{quote_if_odd(name)}: {error.reason}")
            status = 1
            continue
        shown = f" {name}" if operands else ""
        if options.sysv:
            process.print(f"{total} {-(-size // 512)}{shown}")
        else:
            process.print(f"{total:05d} {-(-size // 1024):5d}{shown}")
    return status


def bsd(process: Process, name: str) -> tuple[int, int]:
    checksum = size = 0
    for chunk in process.chunks(name):
        process.budget.charge(len(chunk) >> 3)
        size += len(chunk)
        for byte in chunk:
            checksum = ((checksum >> 1) + ((checksum & 1) << 15) + byte) & 0xFFFF
    return checksum, size


def system_v(process: Process, name: str) -> tuple[int, int]:
    total = size = 0
    for chunk in process.chunks(name):
        size += len(chunk)
        total += sum(chunk)
    total &= 0xFFFFFFFF
    folded = (total & 0xFFFF) + (total >> 16)
    return (folded & 0xFFFF) + (folded >> 16), size
