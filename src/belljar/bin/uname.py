"""uname - print system information

Usage: uname [OPTION]...

Print certain system information. With no OPTION, same as -s.
"""

from belljar.abi import system
from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, flag, utility
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    all: bool = flag("-a", "--all", "print all information, except omit -p and -i if unknown")
    kernel_name: bool = flag("-s", "--kernel-name", "print the kernel name")
    nodename: bool = flag("-n", "--nodename", "print the network node hostname")
    release: bool = flag("-r", "--kernel-release", "print the kernel release")
    version: bool = flag("-v", "--kernel-version", "print the kernel version")
    machine: bool = flag("-m", "--machine", "print the machine hardware name")
    processor: bool = flag("-p", "--processor", "print the processor type")
    platform: bool = flag("-i", "--hardware-platform", "print the hardware platform")
    operating_system: bool = flag("-o", "--operating-system", "print the operating system")


@utility("uname", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if operands:
        raise UsageError(f"extra operand {quote(operands[0], process.env)}")
    values = {
        "kernel_name": system.OSTYPE,
        "nodename": process.hostname,
        "release": system.OSRELEASE,
        "version": system.VERSION,
        "machine": system.MACHINE,
        "processor": "unknown",
        "platform": "unknown",
        "operating_system": "GNU/Linux",
    }
    chosen = [name for name in values if getattr(options, name)]
    if options.all:
        chosen = [name for name in values if values[name] != "unknown"]
    process.print(" ".join(values[name] for name in chosen or ["kernel_name"]))
    return 0
