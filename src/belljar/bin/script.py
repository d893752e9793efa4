"""script - make a typescript of a command's output

Usage: script [OPTION]... [FILE]

Run a command (the shell, unless -c names another) and write what it shows to FILE, `typescript` if none is named.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EIO
from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_TRUNC, O_WRONLY
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.clock import format_time, zone_of
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    append: bool = flag("-a", "--append", "append the output")
    command: str | None = value("-c", "--command", "run command rather than interactive shell", metavar="COMMAND")
    returns: bool = flag("-e", "--return", "return exit code of the child process")
    flush: bool = flag("-f", "--flush", "run flush after each write")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    echo: str | None = value("-E", "--echo", "echo input (auto, always or never)", metavar="WHEN")
    log_out: str | None = value("-O", "--log-out", "log stdout to file", metavar="FILE")


@utility("script", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) > 1:
        raise UsageError("unexpected number of arguments")
    path = options.log_out or (operands[0] if operands else "typescript")
    flags = O_WRONLY | O_CREAT | (O_APPEND if options.append else O_TRUNC)
    try:
        log = process.open(path, flags, 0o644)
    except SysError as error:
        process.warn(f"cannot open {path}: {error.reason}")
        return 1
    shell = process.env.get("SHELL") or "/bin/sh"
    if not options.quiet:
        process.print(f"Script started, output log file is '{path}'.")
    title = f'[COMMAND="{options.command}"' if options.command is not None else f'[COMMAND="{shell}"'
    process.write_all(log, fsencode(f"Script started on {_now(process)} {title} <not executed on terminal>]\n"))
    argv = [shell, "-c", options.command] if options.command is not None else [shell, "-i"]
    status = _record(process, argv, log)
    ending = f'\nScript done on {_now(process)} [COMMAND_EXIT_CODE="{status}"]\n'
    process.write_all(log, ending.encode())
    process.close(log)
    if not options.quiet:
        process.print("Script done.")
    return status if options.returns else 0


def _record(process: Process, argv: list[str], log: int) -> int:
    """Run a command with its output in a pipe, and show and keep what comes through it."""
    process.stdout.flush()
    reader, writer = process.kernel.open_pipe(process)
    reader.retain()
    writer.retain()
    try:
        child = process.spawn(argv, stdout=writer, stderr=writer)
    finally:
        writer.release()
    try:
        while data := reader.read(1 << 16):
            process.write_all(log, data)
            process.stdout.write(data)
            process.stdout.flush()
    except SysError as error:
        if error.errno != EIO:
            raise
    finally:
        reader.release()
    return process.wait_for(child).shell


def _now(process: Process) -> str:
    return format_time("%Y-%m-%d %H:%M:%S%:z", process.kernel.now(), zone_of(process.env))
