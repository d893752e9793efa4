"""whoami - print effective user name

Usage: whoami [OPTION]...

Print the user name associated with the current effective user ID.
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.quoting import quote
from belljar.bin._kit.users import Accounts
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    pass


@utility("whoami", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if operands:
        raise UsageError(f"extra operand {quote(operands[0], process.env)}")
    uid = process.fs.credentials.uid
    name = Accounts(process).user_name(uid)
    if name is None:
        process.warn(f"cannot find name for user ID {uid}")
        return 1
    process.print(name)
    return 0
