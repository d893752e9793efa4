"""id - print user and group information

Usage: id [OPTION]... [USER]...

Print user and group information for each specified USER, or (when USER omitted) for the current process.
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, flag, utility
from belljar.bin._kit.quoting import quote
from belljar.bin._kit.users import Accounts
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    ignored: bool = flag("-a", "ignore, for compatibility with other versions")
    context: bool = flag("-Z", "--context", "print only the security context of the process")
    group: bool = flag("-g", "--group", "print only the effective group ID")
    groups: bool = flag("-G", "--groups", "print all group IDs")
    name: bool = flag("-n", "--name", "print a name instead of a number, for -ugG")
    real: bool = flag("-r", "--real", "print the real ID instead of the effective ID, with -ugG")
    user: bool = flag("-u", "--user", "print only the effective user ID")
    zero: bool = flag("-z", "--zero", "delimit entries with NUL characters, not whitespace")


@utility("id", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.context:
        raise UsageError("--context (-Z) works only on an SELinux-enabled kernel", hint=False)
    chosen = [name for name in ("user", "group", "groups") if getattr(options, name)]
    if len(chosen) > 1:
        raise UsageError('cannot print "only" of more than one choice', hint=False)
    if not chosen and (options.name or options.real):
        raise UsageError("cannot print only names or real IDs in default format", hint=False)
    if not chosen and options.zero:
        raise UsageError("option --zero not permitted in default format", hint=False)
    accounts = Accounts(process)
    status = 0
    who: list[str | None] = [*operands] or [None]
    for operand in who:
        if operand is None:
            mine = process.fs.credentials
            uid, gid, groups = mine.uid, mine.gid, [mine.gid, *sorted(mine.groups - {mine.gid})]
        else:
            found = accounts.user(operand)
            if found is None or accounts.user_name(found) is None:
                process.warn(f"{quote(operand, process.env)}: no such user")
                status = 1
                continue
            uid = found
            gid = accounts.login_group(uid) or 0
            groups = [gid, *(g for g in accounts.groups_of(uid) if g != gid)]
        process.print(render(accounts, options, chosen, uid, gid, groups), "\0" if options.zero else "\n")
    return status


def render(accounts: Accounts, options: Options, chosen: list[str], uid: int, gid: int, groups: list[int]) -> str:
    def user(number: int) -> str:
        return (accounts.user_name(number) if options.name else None) or str(number)

    def group(number: int) -> str:
        return (accounts.group_name(number) if options.name else None) or str(number)

    if chosen == ["user"]:
        return user(uid)
    if chosen == ["group"]:
        return group(gid)
    if chosen == ["groups"]:
        return ("\0" if options.zero else " ").join(map(group, groups))

    def named(number: int, name: str | None) -> str:
        return f"{number}({name})" if name is not None else str(number)

    listed = ",".join(named(g, accounts.group_name(g)) for g in groups)
    return f"uid={named(uid, accounts.user_name(uid))} gid={named(gid, accounts.group_name(gid))} groups={listed}"
