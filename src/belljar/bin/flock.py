"""flock - run a command while holding a lock

Usage: flock [OPTION]... FILE|DIRECTORY COMMAND [ARG]...
       flock [OPTION]... FILE|DIRECTORY -c COMMAND
       flock [OPTION]... FD

Locks are kept between the processes of this sandbox.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EINVAL
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CREAT, O_RDONLY
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.kernel.locks import lock_file, unlock_file
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    mode: str = choice(
        {"-s": "shared", "--shared": "shared", "-x": "exclusive", "-e": "exclusive", "--exclusive": "exclusive",
         "-u": "unlock", "--unlock": "unlock"},
        "get a shared or an exclusive lock, or remove a lock", "exclusive",
    )  # fmt: skip
    nonblock: bool = flag("-n", "--nonblock", "--nb", "fail rather than wait")
    timeout: str | None = value("-w", "--timeout", "--wait", "wait for a limited amount of time", metavar="SECS")
    conflict: str = value("-E", "--conflict-exit-code", "exit code after conflict or timeout", metavar="N", default="1")
    close: bool = flag("-o", "--close", "close file descriptor before running command")
    command: str | None = value("-c", "--command", "run a single command string through the shell", metavar="COMMAND")
    no_fork: bool = flag("-F", "--no-fork", "execute command without forking")
    verbose: bool = flag("--verbose", "increase verbosity")


_BAD_DATA = 65
_NO_FILE = 66
"""Exit codes, by sysexits.h."""


@utility("flock", Options, order="first-operand-ends", usage_status=64)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("not enough arguments")
    target, *command = operands
    if command[:1] in (["-c"], ["--command"]):
        command = ["/bin/sh", "-c", *command[1:]]
    if options.command is not None:
        command = ["/bin/sh", "-c", options.command]
    if not command:
        if not target.isdecimal():
            raise UsageError(f"bad file descriptor: '{target}'", hint=False)
        fd = int(target[:9])
    else:
        try:
            fd = process.open(target, O_RDONLY | O_CREAT)
        except SysError:
            try:
                fd = process.open(target, O_RDONLY)
            except SysError as error:
                process.warn(f"cannot open lock file {target}: {error.reason}")
                return _NO_FILE
    try:
        file = process.fds[fd]
    except SysError as error:
        process.warn(f"{fd}: {error.reason}")
        return _BAD_DATA
    if options.mode == "unlock":
        unlock_file(file)
        return 0
    try:
        seconds = 0.0 if options.nonblock else None if options.timeout is None else float(options.timeout)
    except ValueError:
        raise SysError(EINVAL) from None
    if not lock_file(process, file, exclusive=options.mode == "exclusive", timeout=seconds):
        return int(options.conflict)
    if not command:
        return 0
    status = process.run(command).shell
    process.close(fd)
    return status
