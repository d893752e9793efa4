"""How pgrep and pkill choose processes."""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, flag, value
from belljar.bin._kit.users import Accounts
from belljar.bin._processes import Row, processes
from belljar.kernel.process import Process
from belljar.regex import RegexError
from belljar.regex import compile as compile_regex


@dataclass(frozen=True, slots=True)
class Options:
    signal: str | None = value("--signal", "signal to send (either number or name)", metavar="SIG")
    count: bool = flag("-c", "--count", "count of matching processes")
    delimiter: str = value("-d", "--delimiter", "specify output delimiter", metavar="STRING", default="\n")
    echo: bool = flag("-e", "--echo", "display what is killed")
    full: bool = flag("-f", "--full", "use full process name to match")
    pgroup: str | None = value("-g", "--pgroup", "match listed process group IDs", metavar="PGID,...")
    ignore_case: bool = flag("-i", "--ignore-case", "match case insensitively")
    list_name: bool = flag("-l", "--list-name", "list PID and process name")
    list_full: bool = flag("-a", "--list-full", "list PID and full command line")
    newest: bool = flag("-n", "--newest", "select most recently started")
    oldest: bool = flag("-o", "--oldest", "select least recently started")
    parent: str | None = value("-P", "--parent", "match only child processes of the given parent", metavar="PPID,...")
    session: str | None = value("-s", "--session", "match session IDs", metavar="SID,...")
    terminal: str | None = value("-t", "--terminal", "match by controlling terminal", metavar="TTY,...")
    user: str | None = value("-u", "-U", "--euid", "--uid", "match by user", metavar="ID,...")
    inverse: bool = flag("-v", "--inverse", "negates the matching")
    exact: bool = flag("-x", "--exact", "match exactly with the command name")


def select(process: Process, options: Options, operands: list[str]) -> list[Row]:
    given = (options.parent, options.user, options.terminal, options.pgroup, options.session)
    if not operands and not any(given):
        raise UsageError("no matching criteria specified")
    if len(operands) > 1:
        raise UsageError("only one pattern can be provided")
    accounts = Accounts(process)
    try:
        pattern = compile_regex(operands[0], syntax="ere", ignore_case=options.ignore_case) if operands else None
    except RegexError as error:
        raise UsageError(str(error), hint=False) from None

    def accepts(row: Row) -> bool:
        text = row.command if options.full else row.comm
        if pattern is not None:
            found = pattern.search(text.encode("utf-8", "surrogateescape"))
            whole = found is not None and (found.start(), found.end()) == (
                0,
                len(text.encode("utf-8", "surrogateescape")),
            )
            if found is None or (options.exact and not whole):
                return False
        return all(
            (
                options.parent is None or str(row.ppid) in _items(options.parent),
                options.pgroup is None or str(row.pgid) in _items(options.pgroup),
                options.session is None or str(row.sid) in _items(options.session),
                options.terminal is None or row.tty in _items(options.terminal),
                options.user is None or row.uid in {accounts.user(name) for name in _items(options.user)},
            )
        )

    rows = [r for r in processes(process) if r.pid not in (1, process.pid) and accepts(r) != options.inverse]
    if rows and options.newest:
        return [max(rows, key=lambda row: (row.started, row.pid))]
    if rows and options.oldest:
        return [min(rows, key=lambda row: (row.started, row.pid))]
    return rows


def _items(text: str) -> list[str]:
    return re.split(r"[ ,]+", text)


def shown(row: Row, options: Options) -> str:
    if options.list_full:
        return f"{row.pid} {row.command}"
    return f"{row.pid} {row.comm}" if options.list_name else str(row.pid)
