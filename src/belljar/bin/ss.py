"""ss - show sockets

Usage: ss [-atulnp]

Without -a or -l show connections; with -l what listens, with -a both.
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, utility
from belljar.bin._sockets import Socket, sockets
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    all: bool = flag("-a", "--all", "display all sockets")
    listening: bool = flag("-l", "--listening", "display listening sockets")
    numeric: bool = flag("-n", "--numeric", "don't resolve service names (they never are)")
    processes: bool = flag("-p", "--processes", "show process using socket")
    tcp: bool = flag("-t", "--tcp", "display only TCP sockets")
    udp: bool = flag("-u", "--udp", "display only UDP sockets")
    no_header: bool = flag("-H", "--no-header", "suppress header line")
    four: bool = flag("-4", "--ipv4", "display only IP version 4 sockets")
    six: bool = flag("-6", "--ipv6", "display only IP version 6 sockets")
    extended: bool = flag("-e", "--extended", "(accepted, ignored)")
    memory: bool = flag("-m", "--memory", "(accepted, ignored)")
    info: bool = flag("-i", "--info", "(accepted, ignored)")


def chosen(process: Process, options: Options) -> list[Socket]:
    """The sockets that options ask for."""
    found = []
    for socket in sockets(process):
        kind = socket.protocol.rstrip("6")
        if (options.tcp or options.udp) and not (options.tcp and kind == "tcp") and not (options.udp and kind == "udp"):
            continue
        if (options.four and socket.protocol.endswith("6")) or (options.six and not socket.protocol.endswith("6")):
            continue
        waiting = socket.state in ("LISTEN", "UNCONN")
        if options.all or waiting == options.listening:
            found.append(socket)
    return found


@utility("ss", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not options.no_header:
        process.print(
            f"{'Netid':<6}{'State':<11}{'Recv-Q':<7}{'Send-Q':<7}{'Local Address:Port':>22} {'Peer Address:Port':>22}"
        )
    for socket in chosen(process, options):
        waiting = socket.state in ("LISTEN", "UNCONN")
        remote = f"{socket.remote[0]}:{'*' if waiting else socket.remote[1]}"
        line = f"{socket.protocol.rstrip('6'):<6}{socket.state:<11}{0:<7}{0:<7}{_shown(socket.local):>22} {remote:>22}"
        if options.processes and socket.owner is not None:
            line += f' users:(("{socket.owner.comm}",pid={socket.owner.pid},fd={socket.descriptor}))'
        process.print(line)
    return 0


def _shown(endpoint: tuple[str, int]) -> str:
    address, port = endpoint
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
