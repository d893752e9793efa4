"""belljar: run commands in a sandbox, from a shell."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from belljar.abi.version import __version__
from belljar.api.errors import SandboxError
from belljar.cli import commands, doctor_host, run_host, shell_host
from belljar.cli.screen_host import close_quietly, complain


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="belljar",
        description="A sandbox for AI agents: a Unix of its own, and nothing of your machine.",
    )
    parser.add_argument("--version", action="version", version=f"belljar {__version__}")
    subcommands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in (run_host, shell_host, doctor_host, commands):
        module.add_to(subcommands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    arguments = build_parser().parse_args(argv)
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
