"""groups - print the groups a user is in

Usage: groups [OPTION]... [USERNAME]...

Print group memberships for each USERNAME or, if no USERNAME is specified, for the current process.
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import utility
from belljar.bin._kit.quoting import quote
from belljar.bin._kit.users import Accounts
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    pass


@utility("groups", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    accounts = Accounts(process)
    who = process.fs.credentials
    if not operands:
        numbers = [who.gid, *sorted(who.groups - {who.gid})]
        process.print(" ".join(accounts.group_name(g) or str(g) for g in numbers))
        return 0
    status = 0
    for name in operands:
        uid = accounts.user(name)
        if uid is None or accounts.user_name(uid) is None:
            process.warn(f"{quote(name, process.env)}: no such user")
            status = 1
            continue
        gid = accounts.login_group(uid) or 0
        numbers = [gid, *(g for g in accounts.groups_of(uid) if g != gid)]
        process.print(f"{name} : " + " ".join(accounts.group_name(g) or str(g) for g in numbers))
    return status
