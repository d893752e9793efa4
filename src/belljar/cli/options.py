"""The options that say what sandbox to make: the constructor's arguments, as flags."""

from __future__ import annotations

import argparse
from typing import Any

from belljar.abi.limits import GIB, KIB, MIB, Limits


def add_sandbox_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("sandbox")
    group.add_argument("--env", "-e", action="append", default=[], metavar="NAME=VALUE", help="set a variable")
    group.add_argument("--cwd", "-w", default="/workspace", metavar="PATH", help="start here (default %(default)s)")
    group.add_argument("--memory", metavar="SIZE", help="memory of the sandbox, e.g. 512M")
    group.add_argument("--hostname", default="belljar", help=argparse.SUPPRESS)
    group.add_argument("--tier", default="virtual", help="virtual (default)")


def sandbox_arguments(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments for Sandbox; a bad option ends the program with a usage message."""
    env: dict[str, str] = {}
    for item in arguments.env:
        name, equals, value = item.partition("=")
        if not equals or not name:
            parser.error(f"--env {item!r}: expected NAME=VALUE")
        env[name] = value
    limits = Limits()
    if arguments.memory is not None:
        limits = Limits(memory_bytes=parse_memory(parser, arguments.memory))
    return {
        "env": env,
        "cwd": arguments.cwd,
        "limits": limits,
        "tier": arguments.tier,
        "hostname": arguments.hostname,
    }


def parse_memory(parser: argparse.ArgumentParser, text: str) -> int:
    units = {"K": KIB, "M": MIB, "G": GIB}
    number, unit = (text[:-1], units[text[-1].upper()]) if text[-1:].upper() in units else (text, 1)
    if not number.isdigit() or int(number) * unit < 16 * MIB:
        parser.error(f"--memory {text!r}: expected a size of at least 16M, such as 512M or 2G")
    return int(number) * unit
