"""ping - whether a host is there, as far as that can be told

Usage: ping [OPTION]... HOST

Only TCP, UDP and DNS leave a sandbox, so no echo request can. The name is looked up, and the rest is said.
"""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, utility, value
from belljar.bin._net import NetFailure, lookup, reverse_name
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    count: str | None = value("-c", "stop after so many replies", metavar="COUNT")
    interval: str | None = value("-i", "seconds between packets", metavar="INTERVAL")
    timeout: str | None = value("-W", "time to wait for a response", metavar="TIMEOUT")
    deadline: str | None = value("-w", "reply wait deadline in seconds", metavar="DEADLINE")
    size: str | None = value("-s", "use SIZE data bytes", metavar="SIZE")
    interface: str | None = value("-I", "either interface name or address", metavar="INTERFACE")
    ttl: str | None = value("-t", "define time to live", metavar="TTL")
    quiet: bool = flag("-q", "quiet output")
    numeric: bool = flag("-n", "no reverse DNS name resolution")
    broadcast: bool = flag("-b", "allow pinging broadcast")
    four: bool = flag("-4", "use IPv4")
    six: bool = flag("-6", "use IPv6")
    flood: bool = flag("-f", "flood ping")


@utility("ping", Options, usage_status=2)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        process.error("ping: usage error: Destination address required\n")
        return 2
    host = operands[-1]
    address = host
    if reverse_name(host) is None:
        try:
            found = [record.data for record in lookup(process, host) if record.kind in ("A", "AAAA")]
        except NetFailure as error:
            why = f" ({error.text})" if error.kind == "denied" else ""
            process.error(f"ping: {host}: Name or service not known{why}\n")
            return 2
        if not found:
            process.error(f"ping: {host}: No address associated with hostname\n")
            return 2
        address = found[0]
    process.print(f"PING {host} ({address}) 56(84) bytes of data.")
    process.stdout.flush()
    process.error("ping: only TCP, UDP and DNS leave this sandbox, no ICMP: try nc -zv HOST PORT, or curl\n")
    return 2
