"""users - print the names of users currently logged in

Usage: users [OPTION]... [FILE]

Print who has a terminal as standard input.
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.quoting import quote
from belljar.bin._kit.users import Accounts
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    pass


@utility("users", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) > 1:
        raise UsageError(f"extra operand {quote(operands[1], process.env)}")
    if process.isatty(0) and not operands:
        uid = process.fs.credentials.uid
        process.print(Accounts(process).user_name(uid) or str(uid))
    return 0
