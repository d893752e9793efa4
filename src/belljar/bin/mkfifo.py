"""mkfifo - make FIFOs (named pipes)

Usage: mkfifo [OPTION]... NAME...

Create named pipes (FIFOs) with the given NAMEs.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.quoting import quote_name
from belljar.bin._special import make_fifo, special_mode
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    mode: str | None = value("-m", "--mode", "set file permission bits to MODE, not a=rw - umask", metavar="MODE")
    context: bool = flag("-Z", "(ignored)")


@utility("mkfifo", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    mode = special_mode(process, options.mode)
    status = 0
    for path in operands:
        process.budget.charge()
        try:
            make_fifo(process, path, mode)
        except SysError as error:
            process.warn(f"cannot create fifo {quote_name(path)}: {error.reason}")
            status = 1
    return status
