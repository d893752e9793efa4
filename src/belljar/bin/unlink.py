"""unlink - call the unlink function to remove the specified file

Usage: unlink FILE

Call the unlink function to remove the specified FILE.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.quoting import quote, quote_name
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    pass


@utility("unlink", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    if len(operands) > 1:
        raise UsageError(f"extra operand {quote(operands[1], process.env)}")
    try:
        process.fs.unlink(operands[0])
    except SysError as error:
        process.warn(f"cannot unlink {quote_name(operands[0])}: {error.reason}")
        return 1
    return 0
