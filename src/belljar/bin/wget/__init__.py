"""wget - the non-interactive network downloader

Usage: wget [OPTION]... [URL]...

Where requests may go is decided by the sandbox's network policy; names are resolved and TLS is verified outside it.
"""

from __future__ import annotations

from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.options import describe, parse
from belljar.bin._kit.program import version
from belljar.bin.wget.options import Options, rewrite
from belljar.bin.wget.run import Download
from belljar.kernel.process import Process

_HINT = "Usage: wget [OPTION]... [URL]...\n\nTry `wget --help' for more options.\n"


@utility("wget")
def main(process: Process, args: list[str]) -> int:
    try:
        parsed = parse(Options, rewrite(args))
    except UsageError as error:
        process.error(f"wget: {error}\n{_HINT}")
        return 2
    if parsed.asked == "help":
        process.stdout.write(f"{main.help()}\n{describe(Options)}\n".encode())
        return 0
    if parsed.asked == "version":
        process.print(version("GNU Wget 1.25.0"))
        return 0
    options = Options(**parsed.values)
    urls = list(parsed.operands)
    if options.input is not None:
        try:
            text = fsdecode(process.read_file(options.input))
        except SysError as error:
            process.error(f"{options.input}: {error.reason}\nNo URLs found in {options.input}.\n")
            return 1
        urls += [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not urls:
        process.error(f"wget: missing URL\n{_HINT}")
        return 1
    try:
        return Download(process, options).run(urls)
    except SysError as error:
        process.error(f"wget: {error}\n")
        return 3
