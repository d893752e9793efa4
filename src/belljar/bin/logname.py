"""logname - print the user's login name

Usage: logname [OPTION]
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.quoting import quote
from belljar.bin._kit.users import Accounts
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    pass


@utility("logname", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if operands:
        raise UsageError(f"extra operand {quote(operands[0], process.env)}")
    name = Accounts(process).user_name(process.fs.credentials.uid)
    if name is None:
        process.warn("no login name")
        return 1
    process.print(name)
    return 0
