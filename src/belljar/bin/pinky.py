"""pinky - print information about users

Usage: pinky [OPTION]... [USER]...
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin._kit import UsageError, flag, utility
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.users import Accounts
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    long: bool = flag("-l", "produce long format output for the specified USERs")
    no_home: bool = flag("-b", "omit the user's home directory and shell in long format")
    no_project: bool = flag("-h", "omit the user's project file in long format")
    no_plan: bool = flag("-p", "omit the user's plan file in long format")
    short: bool = flag("-s", "do short format output, this is the default")
    no_heading: bool = flag("-f", "omit the line of column headings in short format")
    no_name: bool = flag("-w", "omit the user's full name in short format")
    no_host: bool = flag("-i", "omit the user's full name and remote host in short format")
    only_names: bool = flag("-q", "omit the user's full name, remote host and idle time in short format")


@utility("pinky", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.long:
        if not operands:
            raise UsageError("no username specified; at least one must be specified when using -l")
        for name in operands:
            _long(process, options, name)
        return 0
    name_shown = not (options.no_name or options.no_host or options.only_names)
    if not options.no_heading:
        full = f" {'Name':<19}" if name_shown else ""
        idle = "" if options.only_names else " Idle  "
        process.print(f"{'Login':<8}{full} {' TTY':<9}{idle} {'When':<16}" + ("" if options.no_host else " Where"))
    try:
        terminal = str(process.ioctl(0, "tty_name")).removeprefix("/dev/")
    except SysError:
        return 0
    login = Accounts(process).user_name(process.fs.credentials.uid) or "?"
    if not operands or login in operands:
        when = format_time("%Y-%m-%d %H:%M", process.kernel.boot_ns, zone_of(process.env))
        full = f" {login:<19}" if name_shown else ""
        idle = "" if options.only_names else "       "
        process.print(f"{login:<8}{full}  {terminal:<8}{idle} {when}")
    return 0


def _long(process: Process, options: Options, login: str) -> None:
    fields = next((f for f in _passwd(process) if f[0] == login), None)
    process.print(f"Login name: {login:<28}In real life:  {fields[4].partition(',')[0] if fields else '???'}")
    if fields is None:
        return
    if not options.no_home:
        process.print(f"Directory: {fields[5]:<29}Shell:  {fields[6]}")
    for wanted, name, title in (
        (not options.no_project, ".project", "Project: "),
        (not options.no_plan, ".plan", "Plan:\n"),
    ):
        if wanted:
            try:
                process.print(title + fsdecode(process.read_file(f"{fields[5]}/{name}")), end="")
            except SysError:
                continue
    process.print("")


def _passwd(process: Process) -> list[list[str]]:
    text = fsdecode(process.try_read("/etc/passwd") or b"")
    return [fields for line in text.splitlines() if len(fields := line.split(":")) >= 7]
