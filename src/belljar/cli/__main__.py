"""belljar: run commands in a sandbox, from a shell."""

from __future__ import annotations

import sys

from belljar.cli.screen_host import close_quietly, complain, hold_places, leave
from belljar.cli.start_host import Start, begin

TYPE_CHECKING = False  # as in `typing`, without loading that
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def build_parser(start: Start | None = None, only: str = "") -> argparse.ArgumentParser:
    """Build the command line's parser, with the subcommand `only` if it is given."""
    from belljar.abi.version import __version__
    from belljar.cli.parser import Parser

    parser: argparse.ArgumentParser = Parser(
        prog="belljar",
        description="A sandbox for AI agents: a Unix of its own, and nothing of your machine.",
    )
    parser.add_argument("--version", action="version", version=f"belljar {__version__}")
    subcommands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, prog="belljar")
    if only != "shell":
        from belljar.cli import run_host

        run_host.add_to(subcommands, start)
    if only != "run":
        from belljar.cli import shell_host

        shell_host.add_to(subcommands, start)
    if not only:
        from belljar.cli import (
            bench_host,
            browser_host,
            commands,
            doctor_host,
            export_host,
            image_host,
            mcp_host,
            mount_host,
            package_host,
            pkg_host,
            prepare_host,
            registry_host,
            serve_host,
            wasm_host,
        )
        from belljar.cli import snapshot as snapshots
        from belljar.cli import store as stores

        kept = image_host, snapshots, stores, mount_host, export_host, package_host, registry_host, pkg_host
        served = mcp_host, serve_host, wasm_host, browser_host
        for module in (*kept, doctor_host, prepare_host, bench_host, commands, *served):
            module.add_to(subcommands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    hold_places()
    given = sys.argv[1:] if argv is None else argv
    start: Start | None = None
    try:
        start = begin(given)  # first of all: the sandbox gets ready while the rest of us is loaded
        status = _run(given, start, guard=argv is None)
    except KeyboardInterrupt:
        status = 130
    except BaseException:  # mostly something to say about the command line: nothing to leave behind for
        if start is not None:
            start.close()
        raise
    if start is None:
        return status
    start.finish()
    return leave(status) if argv is None else status


def _run(argv: Sequence[str], start: Start | None, guard: bool) -> int:
    """`guard`: whether this process is the command's own, so that it may be run by `run_guarded`."""
    parser = build_parser(start, only=argv[0] if start is not None else "")
    if argv and argv[0] not in ("-h", "--help", "--version") and argv[0].startswith("-"):
        parser.error(f"no such option: {argv[0]}")
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        hint = "; what belongs to the command comes after --" if arguments.command == "run" else ""
        parser.prog = f"belljar {arguments.command}"
        parser.error(f"{'no such option' if unknown[0].startswith('-') else 'too many arguments'}: {unknown[0]}{hint}")

    from belljar.api.errors import SandboxError

    try:
        if guard and hasattr(arguments, "makes_files_in"):
            from belljar.cli.guarded_host import run_guarded

            return run_guarded(lambda: int(arguments.run(arguments)), arguments.makes_files_in(arguments))
        return int(arguments.run(arguments))
    except SandboxError as error:
        complain(f"belljar: {error}")
        return 125
    except BrokenPipeError:
        # Whoever read our output has seen enough (`belljar commands | head`).
        close_quietly()
        return 141


if __name__ == "__main__":
    raise SystemExit(main())
