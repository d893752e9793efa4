"""ip - show network interfaces and addresses

Usage: ip [-br] addr | link | route

A sandbox has one interface, the loopback. Connections to the outside, where they are granted, don't go by routes.
"""

from belljar.bin._kit import UsageError, utility
from belljar.kernel.process import Process

_LINK = "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000"
_ETHER = "    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00"
_ADDRESSES = ("127.0.0.1/8", "::1/128")


@utility("ip", usage_status=255)
def main(process: Process, args: list[str]) -> int:
    words = [arg for arg in args if not arg.startswith("-")]
    brief = any(arg in ("-br", "-brief") for arg in args)
    if not words or "--help" in args or words[0] == "help":
        process.stdout.write(main.help().encode())
        return 0
    what = words[0]
    if "address".startswith(what):
        if brief:
            process.print(f"{'lo':<16} {'UNKNOWN':<14} {' '.join(_ADDRESSES)} ")
            return 0
        process.print(f"{_LINK}\n{_ETHER}")
        process.print("    inet 127.0.0.1/8 scope host lo\n       valid_lft forever preferred_lft forever")
        process.print("    inet6 ::1/128 scope host \n       valid_lft forever preferred_lft forever")
    elif "link".startswith(what):
        short = f"{'lo':<16} {'UNKNOWN':<14} 00:00:00:00:00:00 <LOOPBACK,UP,LOWER_UP> "
        process.print(short if brief else f"{_LINK}\n{_ETHER}")
    elif "route".startswith(what) or "neighbour".startswith(what) or "neighbor".startswith(what):
        return 0
    else:
        raise UsageError(f'Object "{what}" is unknown, try "ip help".', hint=False)
    return 0
