"""`belljar bench`: what a sandbox costs on this machine beside the real bash; a table for people, JSON for machines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from belljar.cli.parser import count
from belljar.cli.screen_host import complain, say

if TYPE_CHECKING:
    import argparse

    from belljar.cli.figures_host import Figure


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser(
        "bench",
        help="measure what a sandbox costs here",
        description="Measure sandboxes beside `bash -c`, turn by turn in the same run.",
    )
    parser.add_argument("-n", "--rounds", type=count, default=60, help="how often (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.set_defaults(run=lambda arguments: run(parser, arguments))


def run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    from belljar.cli.figures_host import NoBash, measure

    if arguments.rounds < 1:
        parser.error(f"--rounds {arguments.rounds}: must be at least 1")
    figures: list[Figure] = []
    try:
        for figure in measure(arguments.rounds):
            figures.append(figure)
            if sys.stderr.isatty():
                sys.stderr.write(f"\r\x1b[Kmeasured: {figure.name} ({len(figures)})")
    except NoBash as error:
        complain(f"belljar: {error}")
        return 1
    finally:
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
    if arguments.json:
        import json
        from dataclasses import asdict

        say(json.dumps([asdict(figure) for figure in figures], indent=1))
    else:
        say(table(figures))
    return 0


def table(figures: list[Figure]) -> str:
    rows = [("", "belljar", "bash", "ratio", "target", "")]
    for f in figures:
        bash = "" if f.bash is None else f"{f.bash:.2f} {f.unit}"
        ratio = "" if f.ratio is None else f"{f.ratio:.3f}x"
        rows.append((f.name, f"{f.ours:.2f} {f.unit}", bash, ratio, f.target, "met" if f.met else "missed"))
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i in (0, 5) else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
