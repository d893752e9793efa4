"""who - show who is logged on

Usage: who [OPTION]... [ FILE | ARG1 ARG2 ]

Print information about users who are currently logged in: those whose standard input is a terminal.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, utility
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.quoting import quote
from belljar.bin._kit.users import Accounts
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    all: bool = flag("-a", "--all", "same as -b -d --login -p -r -t -T -u")
    boot: bool = flag("-b", "--boot", "time of last system boot")
    dead: bool = flag("-d", "--dead", "print dead processes")
    heading: bool = flag("-H", "--heading", "print line of column headings")
    login: bool = flag("-l", "--login", "print system login processes")
    lookup: bool = flag("--lookup", "attempt to canonicalize hostnames via DNS")
    only: bool = flag("-m", "only hostname and user associated with stdin")
    process: bool = flag("-p", "--process", "print active processes spawned by init")
    count: bool = flag("-q", "--count", "all login names and number of users logged on")
    runlevel: bool = flag("-r", "--runlevel", "print current runlevel")
    short: bool = flag("-s", "--short", "print only name, line, and time (default)")
    time: bool = flag("-t", "--time", "print last system clock change")
    message: bool = flag("-T", "-w", "--mesg", "--message", "--writable", "add user's message status as +, - or ?")
    users: bool = flag("-u", "--users", "list users logged in")


@utility("who", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) > 2:
        raise UsageError(f"extra operand {quote(operands[2], process.env)}")
    zone = zone_of(process.env)
    booted = format_time("%Y-%m-%d %H:%M", process.kernel.boot_ns, zone)
    name = Accounts(process).user_name(process.fs.credentials.uid) or "?"
    try:
        terminal = str(process.ioctl(0, "tty_name")).removeprefix("/dev/")
    except SysError:
        terminal = ""
    if options.count:
        process.print(f"{name if terminal else ''}\n# users={1 if terminal else 0}")
        return 0
    mark = " +" if options.message or options.all else ""
    if options.heading:
        process.print(f"{'NAME':<8}{'' if not mark else ' S'} {'LINE':<12} {'TIME':<16} COMMENT")
    if options.boot or options.all:
        process.print(f"{'':<8}{'  ' if mark else ''} {'system boot':<12} {booted}")
    special = options.boot or options.dead or options.login or options.process or options.runlevel or options.time
    if terminal and (options.all or options.users or not special):
        process.print(f"{name:<8}{mark} {terminal:<12} {booted}")
    return 0
