"""pstree - display a tree of processes

Usage: pstree [-ap] [PID]
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, flag, utility
from belljar.bin._processes import Row, processes
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    arguments: bool = flag("-a", "--arguments", "show command line arguments")
    ascii: bool = flag("-A", "--ascii", "use ASCII line drawing characters")
    pids: bool = flag("-p", "--show-pids", "show PIDs")
    unicode: bool = flag("-U", "--unicode", "use UTF-8 line drawing characters")
    numeric: bool = flag("-n", "--numeric-sort", "sort output by PID (it always is)")


@utility("pstree", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    rows = {row.pid: row for row in processes(process)}
    top = operands[0] if operands else str(min(rows))
    if not top.isdecimal() or int(top[:9]) not in rows:
        raise UsageError(f"No processes found: {top}", hint=False)
    children: dict[int, list[Row]] = {}
    for row in rows.values():
        children.setdefault(row.ppid, []).append(row)
    _show(process, options, children, rows[int(top)], "", "")
    return 0


def _show(
    process: Process, options: Options, children: dict[int, list[Row]], row: Row, before: str, below: str
) -> None:
    """One process on a line, and those that it started under it."""
    process.budget.charge()
    bar, tee, corner = ("|", "|-", "`-") if options.ascii else ("\u2502", "\u251c\u2500", "\u2514\u2500")
    text = row.command if options.arguments else row.comm
    process.print(f"{before}{text}{f'({row.pid})' if options.pids else ''}")
    found = children.get(row.pid, [])
    for index, child in enumerate(found):
        last = index == len(found) - 1
        lead = corner if last else tee
        _show(process, options, children, child, below + lead, below + ("  " if last else f"{bar} "))
