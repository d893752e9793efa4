"""One command that is all the others: what busybox and coreutils do with their first argument."""

from __future__ import annotations

from belljar.kernel.process import Process


def dispatch(process: Process, args: list[str], word: str) -> int:
    """Become the utility named first. `word` is what its absence is called."""
    names = sorted(entry.name for entry in process.fs.readdir("/usr/bin"))
    if not args or args[0] in ("--list", "--help"):
        for name in names:
            process.print(name)
        return 0
    program = process.kernel.programs(args[0])
    if program is None:
        process.warn(f"{args[0]}: {word} not found")
        return 127
    process.argv = list(args)
    return program(process)
