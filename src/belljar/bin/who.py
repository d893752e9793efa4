"""who - show who is logged on

Usage: who [-b] [-q] [am i]
"""

from belljar.abi.errors import SysError
from belljar.bin._kit import utility
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.users import Accounts
from belljar.kernel.process import Process


@utility("who")
def main(process: Process, args: list[str]) -> int:
    zone = zone_of(process.env)
    name = Accounts(process).user_name(process.fs.credentials.uid) or "?"
    if "-b" in args or "--boot" in args:
        process.print(f"         system boot  {format_time('%Y-%m-%d %H:%M', process.kernel.boot_ns, zone)}")
        return 0
    try:
        terminal = str(process.ioctl(0, "tty_name")).removeprefix("/dev/")
    except SysError:
        terminal = ""
    if "-q" in args or "--count" in args:
        process.print(f"{name if terminal else ''}\n# users={1 if terminal else 0}".lstrip("\n"))
    elif terminal:
        process.print(f"{name:<8} {terminal:<12} {format_time('%Y-%m-%d %H:%M', process.kernel.boot_ns, zone)}")
    return 0
