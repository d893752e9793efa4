"""host - DNS lookup utility

Usage: host [-t TYPE] NAME|ADDRESS

Asks the resolvers that the sandbox's owner chose, for names that its network policy allows.
"""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, utility, value
from belljar.bin._net import NetFailure, Record, lookup, reverse_name
from belljar.kernel.process import Process

_CODES = {"nxdomain": "3(NXDOMAIN)", "denied": "5(REFUSED)", "dns": "2(SERVFAIL)"}
_WORDS = {
    "A": "has address", "AAAA": "has IPv6 address", "CNAME": "is an alias for", "MX": "mail is handled by",
    "NS": "name server", "TXT": "descriptive text", "PTR": "domain name pointer", "SOA": "has SOA record",
    "SRV": "has SRV record", "CAA": "has CAA record", "HTTPS": "has HTTP service bindings",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Options:
    kind: str | None = value("-t", "query type", metavar="TYPE")
    all: bool = flag("-a", "the same as -t ANY")
    wait: str | None = value("-W", "(the owner's limits hold)", metavar="TIME")
    four: bool = flag("-4", "(addresses are chosen outside the sandbox)")
    six: bool = flag("-6", "(addresses are chosen outside the sandbox)")
    verbose: bool = flag("-v", "(nothing more is known)")


@utility("host", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        process.error("Usage: host [-t type] hostname\n")
        return 1
    if len(operands) > 1:
        process.error(f"host: {operands[1]}: names are resolved outside the sandbox; ask without a server\n")
        return 1
    name = operands[0]
    reverse = reverse_name(name)
    if reverse is not None:
        kinds, name = ["PTR"], reverse
    elif options.kind is not None:
        kinds = [options.kind.upper()]
    else:
        kinds = ["A", "AAAA", "MX"]
    seen: set[Record] = set()
    for number, kind in enumerate(kinds):
        try:
            records = lookup(process, name, kind)
        except NetFailure as error:
            if number:
                continue  # an address is enough; not every name has the others
            if error.kind not in _CODES:
                process.print(f";; {error.text}; no servers could be reached")
                return 1
            process.print(f"Host {name} not found: {_CODES[error.kind]}")
            if error.kind == "denied":
                process.error(f"host: {error.text}\n")
            return 1
        for record in records:
            if Record(record.name, 0, record.kind, record.data) not in seen:
                seen.add(Record(record.name, 0, record.kind, record.data))
                word = _WORDS.get(record.kind, f"has {record.kind} record")
                process.print(f"{record.name.rstrip('.')} {word} {record.data}")
        if not records and options.kind is not None:
            process.print(f"{name} has no {kind} record")
            return 1
    return 0
