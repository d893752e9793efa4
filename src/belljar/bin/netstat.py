"""netstat - print network connections

Usage: netstat [-atulnpr]
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, utility
from belljar.bin.ss import Options as SocketOptions
from belljar.bin.ss import chosen
from belljar.kernel.process import Process

_STATES = {"ESTAB": "ESTABLISHED", "UNCONN": "", "FIN-WAIT-1": "FIN_WAIT1", "FIN-WAIT-2": "FIN_WAIT2"}


@dataclass(frozen=True, slots=True)
class Options:
    all: bool = flag("-a", "--all", "display all sockets")
    listening: bool = flag("-l", "--listening", "display listening sockets")
    numeric: bool = flag("-n", "--numeric", "don't resolve names (they never are)")
    programs: bool = flag("-p", "--programs", "display PID/Program name for sockets")
    tcp: bool = flag("-t", "--tcp", "TCP sockets only")
    udp: bool = flag("-u", "--udp", "UDP sockets only")
    route: bool = flag("-r", "--route", "display routing table")
    wide: bool = flag("-W", "--wide", "(accepted, ignored)")
    extend: bool = flag("-e", "--extend", "(accepted, ignored)")
    inet: bool = flag("-4", "--inet", "(accepted, ignored)")


@utility("netstat", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.route:
        process.print("Kernel IP routing table")
        process.print("Destination     Gateway         Genmask         Flags   MSS Window  irtt Iface")
        return 0
    which = "servers and established" if options.all else "only servers" if options.listening else "w/o servers"
    process.print(f"Active Internet connections ({which})")
    process.print(
        "Proto Recv-Q Send-Q Local Address           Foreign Address         State      "
        + (" PID/Program name    " if options.programs else "")
    )
    wanted = SocketOptions(all=options.all, listening=options.listening, tcp=options.tcp, udp=options.udp)
    for socket in chosen(process, wanted):
        waiting = socket.state in ("LISTEN", "UNCONN")
        local = f"{socket.local[0]}:{socket.local[1]}"
        remote = f"{socket.remote[0]}:{'*' if waiting else socket.remote[1]}"
        state = _STATES.get(socket.state, socket.state.replace("-", "_"))
        owner = f" {socket.owner.pid}/{socket.owner.comm}" if socket.owner is not None else " -"
        program = f"{owner:<21}" if options.programs else ""
        process.print(f"{socket.protocol:<5} {0:>6} {0:>6} {local:<23} {remote:<23} {state:<11}{program}")
    return 0
