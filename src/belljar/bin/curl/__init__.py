"""curl - transfer a URL

Usage: curl [options...] <url>

Reads http, https and file URLs. Where requests may go is decided by the sandbox's network policy; names are resolved
and TLS is verified outside the sandbox: options that would change that are refused, or say so.
"""

from __future__ import annotations

from belljar.bin._kit import utility
from belljar.bin.curl.run import run
from belljar.kernel.process import Process


@utility("curl", usage_status=2)
def main(process: Process, args: list[str]) -> int:
    return run(process, args)
