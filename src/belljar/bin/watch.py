"""watch - execute a program periodically, showing its output

Usage: watch [-n SECONDS] [-t] [-e|-g] COMMAND...
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.clock import format_time, zone_of
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    interval: str = value("-n", "--interval", "seconds to wait between updates", metavar="SECS", default="2")
    no_title: bool = flag("-t", "--no-title", "turn off header")
    errexit: bool = flag("-e", "--errexit", "exit if command has a non-zero exit")
    chgexit: bool = flag("-g", "--chgexit", "exit when output from command changes")
    differences: bool = flag("-d", "--differences", "(ignored)")
    color: bool = flag("-c", "--color", "(ignored)")
    exec: bool = flag("-x", "--exec", "pass command to exec instead of sh -c")


@utility("watch", Options, order="first-operand-ends")
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("no command given")
    try:
        interval = max(float(options.interval), 0.1)
    except ValueError:
        raise UsageError(f"failed to parse argument: '{options.interval}'", hint=False) from None
    command = " ".join(operands)
    argv = operands if options.exec else ["sh", "-c", command]
    last: bytes | None = None
    while True:
        process.print("\x1b[H\x1b[2J", end="")
        if not options.no_title:
            stamp = format_time("%a %b %e %H:%M:%S %Y", process.kernel.now(), zone_of(process.env))
            process.print(f"Every {interval:.1f}s: {command}    {process.hostname}: {stamp}\n")
        process.stdout.flush()
        reader, writer = process.pipe()
        child = process.spawn(argv, stdout=process.fds[writer])
        process.close(writer)
        parts = []
        while data := process.read(reader):
            process.write_all(1, data)
            parts.append(data)
        process.close(reader)
        status = process.wait_for(child).shell
        output = b"".join(parts)
        if (options.errexit and status) or (options.chgexit and last is not None and output != last):
            return 8 if status and options.errexit else 0
        last = output
        process.sleep(interval)
