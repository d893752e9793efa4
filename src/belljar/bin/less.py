"""less - show a file a screen at a time

Usage: less [OPTION]... [FILE]...

On a terminal: space and b page, j and k scroll, g and G go to the ends, /PATTERN and n search, q quits. Where standard
output is no terminal, the files are copied as they are.
"""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, many, utility, value
from belljar.bin._pager import Pager, copy
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    quit_one: bool = flag("-F", "--quit-if-one-screen", "quit if the entire file fits on the first screen")
    numbers: bool = flag("-N", "--LINE-NUMBERS", "show line numbers (on a terminal)")
    chop: bool = flag("-S", "--chop-long-lines", "chop long lines")
    raw: bool = flag("-R", "-r", "--RAW-CONTROL-CHARS", "--raw-control-chars", "show control characters as they are")
    no_init: bool = flag("-X", "--no-init", "do not use the terminal's start and end strings")
    quit_end: bool = flag("-E", "-e", "--quit-at-eof", "--QUIT-AT-EOF", "quit at the end of the file")
    ignore_case: bool = flag("-i", "-I", "--ignore-case", "--IGNORE-CASE", "ignore case in searches")
    squeeze: bool = flag("-s", "--squeeze-blank-lines", "squeeze multiple blank lines (on a terminal)")
    force: bool = flag("-f", "--force", "open files that are not regular")
    quiet: bool = flag("-q", "-Q", "--quiet", "--QUIET", "--silent", "--SILENT", "never ring the bell")
    long_prompt: bool = flag("-m", "-M", "--long-prompt", "--LONG-PROMPT", "a longer prompt")
    others: bool = flag("-a", "-A", "-B", "-c", "-C", "-d", "-g", "-G", "-J", "-K", "-L", "-n", "-u", "-U", "-w", "-W",
                        "--mouse", "--use-color", "--no-histdups", "accepted, of no effect here")  # fmt: skip
    values: tuple[str, ...] = many("-b", "-h", "-j", "-k", "-o", "-O", "-P", "-t", "-T", "-x", "-y", "-z", "-D",
                                   "--buffers", "--tabs", "--prompt", "--window", "--shift",
                                   "accepted, of no effect here", metavar="VALUE")  # fmt: skip
    pattern: str | None = value("-p", "--pattern", "start at the first line that matches", metavar="PATTERN")


@utility("less", Options, rewrite=lambda args: [arg for arg in args if not arg.startswith("+")])
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands and process.isatty(0):
        raise UsageError('Missing filename ("less --help" for help)', hint=False)
    terminal = process.isatty(1)
    for name in operands or ["-"]:
        try:
            if name != "-" and process.fs.stat(name).is_dir:
                process.stdout.flush()
                process.print(f"{name} is a directory")
                continue
            if terminal:
                pager = Pager(process, "" if name == "-" else name)
                pager.show(process.chunks(name), quit_if_one_screen=options.quit_one, stops_at_end=options.quit_end)
            else:
                copy(process, process.chunks(name))
        except SysError as error:
            process.stdout.flush()
            process.print(f"{name}: {error.reason}")
    return 0
