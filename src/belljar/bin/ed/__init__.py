"""ed - line-oriented text editor

Usage: ed [OPTION]... [FILE]

Start editing by reading FILE; commands come from standard input. Start FILE with a ! to read what a command writes.
"""

from __future__ import annotations

from collections.abc import Callable

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsdecode
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin.ed.buffer import EditError
from belljar.bin.ed.editor import Editor
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    extended: bool = flag("-E", "--extended-regexp", "use extended regular expressions")
    traditional: bool = flag("-G", "--traditional", "(accepted, ignored)")
    loose: bool = flag("-l", "--loose-exit-status", "exit with 0 status even if a command fails")
    prompt: str = value("-p", "--prompt", "use STRING as an interactive prompt", metavar="STRING", default="")
    restricted: bool = flag("-r", "--restricted", "(accepted, ignored)")
    quiet: bool = flag("-s", "--quiet", "--silent", "suppress diagnostics, byte counts and '!' prompt")
    verbose: bool = flag("-v", "--verbose", "be verbose; equivalent to the 'H' command")
    carriage: bool = flag("--strip-trailing-cr", "strip carriage returns at end of text lines")


@utility("ed", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    operands = [name for name in operands if name != "-"]
    if len(operands) > 1:
        raise UsageError("too many arguments")
    syntax = "ere" if options.extended else "sed"
    editor = Editor(process, standard_input(process), quiet=options.quiet, syntax=syntax, prompt=options.prompt)
    editor.verbose = options.verbose
    status = open_file(editor, operands[0]) if operands else 0
    status = editor.run() or status
    return 0 if options.loose else status


def open_file(editor: Editor, name: str) -> int:
    """Read the file that the editor starts with; one that is not there yet is empty."""
    try:
        editor.buffer.insert(0, editor.read(name))
    except EditError as error:
        editor.error = str(error)
    editor.buffer.modified = False
    if not name.startswith("!"):
        editor.name = name
    return 0


def standard_input(process: Process) -> Callable[[], str | None]:
    """The lines of standard input, one at a time; what comes after the editor's end is left to others if it can be."""
    held = b""

    def more() -> str | None:
        nonlocal held
        process.stdout.flush()
        while b"\n" not in held:
            data = process.read(0)
            if not data:
                line, held = held, b""
                return fsdecode(line) if line else None
            held += data
            process.budget.charge_size(len(held))
        first, _, held = held.partition(b"\n")
        return fsdecode(first)

    return more
