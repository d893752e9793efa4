"""link - call the link function to create a link to a file

Usage: link FILE1 FILE2

Call the link function to create a link named FILE2 to an existing FILE1.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.quoting import quote, quote_name
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    pass


@utility("link", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) < 2:
        after = f" after {quote(operands[0], process.env)}" if operands else ""
        raise UsageError("missing operand" + after)
    if len(operands) > 2:
        raise UsageError(f"extra operand {quote(operands[2], process.env)}")
    try:
        process.fs.link(operands[0], operands[1])
    except SysError as error:
        shown = f"{quote_name(operands[1])} to {quote_name(operands[0])}"
        process.warn(f"cannot create link {shown}: {error.reason}")
        return 1
    return 0
