"""hostname - show the system's host name

Usage: hostname [-s|-f|-d|-i|-I]
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, flag, utility
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    short: bool = flag("-s", "--short", "short host name")
    fqdn: bool = flag("-f", "--fqdn", "--long", "long host name")
    domain: bool = flag("-d", "--domain", "DNS domain name")
    address: bool = flag("-i", "--ip-address", "addresses for the host name")
    addresses: bool = flag("-I", "--all-ip-addresses", "all addresses for the host")


@utility("hostname", Options, usage_status=255)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if operands:
        raise UsageError("you must be root to change the host name", hint=False)
    name = process.hostname
    if options.addresses:
        process.print(f"{process.space.address} ")
    elif options.address:
        process.print(process.space.address or "127.0.0.1")
    elif options.domain:
        process.print(name.partition(".")[2])
    else:
        process.print(name.partition(".")[0] if options.short else name)
    return 0
