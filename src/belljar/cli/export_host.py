"""`belljar export`: the files of a snapshot or an image by 9P, on a Unix socket."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser(
        "export",
        help="serve a snapshot or an image by 9P",
        description="Serve the files of a snapshot or an image by 9P2000.L on the Unix socket SOCKET, to you alone and "
        "read-only, until ^C. See docs/file-servers.md.",
    )
    parser.add_argument("ref", metavar="REF", help="a label, a ref, its first digits (at least 8), or an image's name")
    parser.add_argument("socket", metavar="SOCKET", help="the path of the socket, which is made")
    parser.add_argument(
        "--write", action="store_true", help="let files be changed; the changes are in memory and end with it"
    )
    parser.add_argument(
        "--store", metavar="LOCATION", help="where snapshots and images are (default: see `belljar snapshot ls -h`)"
    )
    parser.set_defaults(run=run_export)


def run_export(arguments: argparse.Namespace) -> int:
    import time

    from belljar.cli.mount_host import find_tree, writable
    from belljar.cli.screen_host import complain
    from belljar.ninep.serve_host import Exported

    server = find_tree(arguments.ref, arguments.store)
    if arguments.write:
        server = writable(server, time.time_ns)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with Exported(server, arguments.socket, read_only=not arguments.write, report=_report) as exported:
            complain(f"{arguments.ref} is served by 9P at {exported.path}; ^C ends it")
            exported.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        server.close()
    return 0


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _report(error: BaseException) -> None:
    sys.stderr.write(f"belljar: {error!r}: programs see an input/output error\n")
