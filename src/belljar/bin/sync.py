"""sync - synchronize cached writes to persistent storage

Usage: sync [OPTION] [FILE]...

If one or more files are specified, sync only them, or their containing file systems. Nothing is cached here, so this
only checks that the files can be opened.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_NONBLOCK, O_RDONLY
from belljar.bin._kit import UsageError, flag, utility
from belljar.bin._kit.quoting import quote_name
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    data: bool = flag("-d", "--data", "sync only file data, no unneeded metadata")
    file_system: bool = flag("-f", "--file-system", "sync the file systems that contain the files")


@utility("sync", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.data and options.file_system:
        raise UsageError("cannot specify both --data and --file-system", hint=False)
    if options.data and not operands:
        raise UsageError("--data needs at least one argument", hint=False)
    status = 0
    for path in operands:
        try:
            process.close(process.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC))
        except SysError as error:
            process.warn(f"error opening {quote_name(path)}: {error.reason}")
            status = 1
    return status
