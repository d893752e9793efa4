"""belljar: run commands in a sandbox, from a shell."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from belljar.cli.start_host import Start, begin

if TYPE_CHECKING:
    import argparse


def build_parser(start: Start | None = None) -> argparse.ArgumentParser:
    import argparse

    from belljar.abi.version import __version__
    from belljar.cli import bench_host, commands, doctor_host, mcp_host, prepare_host, run_host, shell_host, wasm_host

    parser = argparse.ArgumentParser(
        prog="belljar",
        description="A sandbox for AI agents: a Unix of its own, and nothing of your machine.",
    )
    parser.add_argument("--version", action="version", version=f"belljar {__version__}")
    subcommands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    run_host.add_to(subcommands, start)
    shell_host.add_to(subcommands, start)
    for module in (doctor_host, prepare_host, bench_host, commands, mcp_host, wasm_host):
        module.add_to(subcommands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    start = begin(argv)  # first of all: the sandbox gets ready while the rest of us is loaded
    try:
        return _run(argv, start)
    finally:
        if start is not None:
            start.finish()


def _run(argv: Sequence[str], start: Start | None) -> int:
    from belljar.cli.screen_host import close_quietly, complain

    arguments = build_parser(start).parse_args(argv)

    from belljar.api.errors import SandboxError

    try:
        return int(arguments.run(arguments))
    except SandboxError as error:
        complain(f"belljar: {error}")
        return 125
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough (`belljar commands | head`).
        close_quietly()
        return 141


if __name__ == "__main__":
    raise SystemExit(main())
