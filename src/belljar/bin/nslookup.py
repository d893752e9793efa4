"""nslookup - query DNS

Usage: nslookup [-type=TYPE] NAME|ADDRESS

Asks the resolvers that the sandbox's owner chose, for names that its network policy allows.
"""

from __future__ import annotations

from belljar.bin._kit import utility
from belljar.bin._net import NetFailure, Record, lookup, reverse_name
from belljar.kernel.process import Process

_CODES = {"nxdomain": "NXDOMAIN", "denied": "REFUSED", "dns": "SERVFAIL"}


@utility("nslookup")
def main(process: Process, args: list[str]) -> int:
    kind = ""
    names: list[str] = []
    for arg in args:
        if arg in ("--help", "-h"):
            process.print(main.help().rstrip())
            return 0
        if arg.startswith("-"):
            key, _, text = arg[1:].partition("=")
            kind = text.upper() if key in ("type", "querytype", "q", "ty") else kind
        else:
            names.append(arg)
    if not names:
        process.error("nslookup: say which name; there is no interactive mode here\n")
        return 1
    if len(names) > 1:
        process.error(f"nslookup: {names[1]}: names are resolved outside the sandbox; ask without a server\n")
        return 1
    reverse = reverse_name(names[0])
    name = reverse or names[0]
    kinds = ["PTR"] if reverse else [kind] if kind else ["A", "AAAA"]
    process.print("Server:\t\tchosen by the sandbox's owner\n")
    shown: list[str] = []
    for number, each in enumerate(kinds):
        try:
            records = lookup(process, name, each)
        except NetFailure as error:
            if number:
                break
            if error.kind not in _CODES:
                process.print(f";; {error.text}; no servers could be reached\n")
                return 1
            process.print(f"** server can't find {name}: {_CODES[error.kind]}\n")
            if error.kind == "denied":
                process.error(f"nslookup: {error.text}\n")
            return 1
        shown += [line for line in map(_line, records) if line not in shown]
    if not shown:
        process.print(f"*** Can't find {name}: No answer\n")
        return 1
    process.print("Non-authoritative answer:")
    for line in shown:
        process.print(line)
    process.print("")
    return 0


def _line(record: Record) -> str:
    name = record.name.rstrip(".")
    match record.kind:
        case "A" | "AAAA":
            return f"Name:\t{name}\nAddress: {record.data}"
        case "CNAME":
            return f"{name}\tcanonical name = {record.data}"
        case "MX":
            return f"{name}\tmail exchanger = {record.data}"
        case "NS":
            return f"{name}\tnameserver = {record.data}"
        case "PTR":
            return f"{name}\tname = {record.data}"
        case "TXT":
            return f"{name}\ttext = {record.data}"
        case _:
            return f"{name}\t{record.kind} = {record.data}"
