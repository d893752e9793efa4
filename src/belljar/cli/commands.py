"""`belljar commands`: what a sandbox can run, with one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser("commands", help="list the commands of a sandbox")
    parser.set_defaults(run=lambda _arguments: run())


def run() -> int:
    from belljar.cli.screen_host import say
    from belljar.engines.worker.programs import find, names

    for name in names():
        program = find(name)
        say(f"{name:<14} {program.summary if program is not None else ''}".rstrip())
    return 0
