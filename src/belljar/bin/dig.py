"""dig - DNS lookup utility

Usage: dig [NAME] [TYPE] [-x ADDRESS] [+short] [+noall] [+answer] ...

Asks the resolvers that the sandbox's owner chose, for names that its policy allows; @SERVER can't choose others.
"""

from __future__ import annotations

from belljar.abi.dataclass import dataclass, field
from belljar.bin._kit import utility
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._net import NetFailure, Record, lookup, reverse_name
from belljar.kernel.process import Process

_TYPES = frozenset("A AAAA CNAME MX NS TXT SRV CAA SOA PTR HTTPS SVCB ANY".split())
_SECTIONS = ("comments", "question", "answer", "stats", "cmd")
_STATUS = {"nxdomain": "NXDOMAIN", "denied": "REFUSED", "dns": "SERVFAIL"}


@dataclass(slots=True)
class _Query:
    name: str
    kind: str = "A"
    shown: set[str] = field(default_factory=lambda: set(_SECTIONS))
    short: bool = False


@utility("dig")
def main(process: Process, args: list[str]) -> int:
    query = _parse(process, args)
    if isinstance(query, int):
        return query
    clock = process.kernel.hub.clock
    started = clock.monotonic()
    records: list[Record] = []
    failure: NetFailure | None = None
    try:
        records = lookup(process, query.name.rstrip(".") or ".", query.kind)
    except NetFailure as error:
        failure = error
    if failure is not None and failure.kind not in _STATUS:
        process.print(f";; communications error: {failure.text}\n;; no servers could be reached")
        return 9
    if query.short:
        for record in records:
            process.print(record.data)
        if failure is not None and failure.kind == "denied":
            process.error(f";; {query.name}: {failure.text}\n")
        return 0
    _show(process, query, args, records, failure, int((clock.monotonic() - started) * 1000))
    return 0


def _parse(process: Process, args: list[str]) -> _Query | int:
    query = _Query(".", "NS")
    named = False
    index = 0
    while index < len(args):
        arg = args[index]
        index += 1
        following = args[index] if index < len(args) else ""
        if arg.startswith("@"):
            process.error(f"dig: {arg}: names are resolved outside the sandbox; ask without a server\n")
            return 10
        if arg.startswith("+"):
            _plus(query, arg[1:])
        elif arg == "-x":
            reversed_name = reverse_name(following)
            if reversed_name is None:
                process.error(f"dig: Invalid IP address {following}\n")
                return 1
            query.name, query.kind, named = reversed_name, "PTR", True
            index += 1
        elif arg in ("-t", "-q", "-p", "-c", "-b", "-f", "-k", "-y"):
            if arg == "-t":
                query.kind = following.upper()
            elif arg == "-q":
                query.name, named = following, True
            index += 1
        elif arg in ("-h", "--help"):
            process.print(main.help().rstrip())
            return 0
        elif arg.startswith("-"):
            if arg not in ("-4", "-6", "-u", "-r", "-m"):
                process.error(f"Invalid option: {arg}\nUsage:  dig [-x addr] [q-name] [q-type] [+queryopt]...\n")
                return 1
        elif arg.upper() in _TYPES and (named or arg.isupper()):
            query.kind = arg.upper()
        elif arg.upper() not in ("IN", "CH", "HS"):
            query.kind = "A" if not named and query.kind == "NS" else query.kind
            query.name, named = arg, True
    return query


def _plus(query: _Query, option: str) -> None:
    name = option.removeprefix("no")
    on = not option.startswith("no")
    if name == "all":
        query.shown = set(_SECTIONS) if on else set()
    elif name == "short":
        query.short = on
    elif name in _SECTIONS:
        (query.shown.add if on else query.shown.discard)(name)


def _show(
    process: Process, query: _Query, args: list[str], records: list[Record], failure: NetFailure | None, took: int
) -> None:
    status = _STATUS[failure.kind] if failure is not None else "NOERROR"
    shown = query.shown
    name = query.name.rstrip(".") + "."
    if "cmd" in shown:
        process.print(f"\n; <<>> DiG (belljar) <<>> {' '.join(args)}\n;; global options: +cmd")
    if "comments" in shown:
        number = int.from_bytes(process.kernel.machine.entropy.random_bytes(2), "big")
        process.print(f";; Got answer:\n;; ->>HEADER<<- opcode: QUERY, status: {status}, id: {number}")
        process.print(f";; flags: qr rd ra; QUERY: 1, ANSWER: {len(records)}, AUTHORITY: 0, ADDITIONAL: 0\n")
        if failure is not None:
            process.print(f";; {failure.text}\n")
    if "question" in shown:
        process.print(f";; QUESTION SECTION:\n;{_tabs(name, 31)}IN\t{query.kind}\n")
    if "answer" in shown and records:
        if "comments" in shown:
            process.print(";; ANSWER SECTION:")
        for record in records:
            process.print(f"{_tabs(record.name, 24)}{record.ttl}\tIN\t{record.kind}\t{record.data}")
        if "comments" in shown:
            process.print("")
    if "stats" in shown:
        when = format_time("%a %b %d %H:%M:%S %Z %Y", process.kernel.now(), zone_of(process.env))
        process.print(f";; Query time: {took} msec\n;; SERVER: chosen by the sandbox's owner\n;; WHEN: {when}\n")


def _tabs(text: str, width: int) -> str:
    """Return the tabs up to a column."""
    return text + "\t" * max(1, (width - len(text) + 7) // 8)
