"""`belljar mcp`: an MCP server on standard input and output, or over HTTP."""

from __future__ import annotations

import argparse
from typing import Any, Final

from belljar.abi.install import install_hint
from belljar.cli.options import add_sandbox_options, sandbox_arguments
from belljar.cli.parser import count
from belljar.cli.screen_host import complain

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


def add_to(subcommands: Any) -> None:
    parser = subcommands.add_parser(
        "mcp",
        help="serve sandboxes to an MCP client",
        description="Serve sandboxes to an MCP client: on standard input and output, or with --http over HTTP.",
    )
    parser.add_argument("--http", metavar="HOST:PORT", help="serve streamable HTTP at http://HOST:PORT/mcp")
    parser.add_argument(
        "--config", metavar="FILE", help="a TOML file that gives the options below by their long names, and [limits]"
    )
    parser.add_argument(
        "--most", type=count, default=100, metavar="N", help="sandboxes at a time (default %(default)s)"
    )
    parser.add_argument("--url", help="have sandboxes on this server (belljar serve); BELLJAR_KEY is its key")
    add_sandbox_options(parser)
    parser.set_defaults(run=lambda arguments: serve(parser, arguments))


def serve(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    try:
        from belljar.integrations.mcp import make_server
    except ModuleNotFoundError as error:
        complain(f"belljar: {error.name} is missing; {install_hint('mcp')}")
        return 125
    arguments, options = read_options(parser, arguments)
    server = make_server(options, most=arguments.most)  # type: ignore[arg-type]
    if arguments.http is None:
        server.run("stdio")
        return 0
    host, _, port = arguments.http.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        parser.error(f"--http {arguments.http!r}: expected HOST:PORT, such as 127.0.0.1:8000")
    if host not in LOOPBACK:
        complain(f"belljar: whoever can reach {host}:{port} can use it: put a server that asks who they are before it")
    server.run("streamable-http", host=host.strip("[]"), port=int(port))
    return 0


def read_options(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace
) -> tuple[argparse.Namespace, dict[str, Any]]:
    """Merge the command line over the config file; return that, and the checked options of the sandboxes."""
    from dataclasses import replace

    from belljar.abi.limits import Limits
    from belljar.api.errors import SandboxError
    from belljar.api.settings import Settings

    limits: dict[str, Any] = {}
    if arguments.config is not None:
        arguments, tables = merge_config(parser, arguments, {"limits": Limits})
        limits = tables["limits"]
    options = sandbox_arguments(parser, arguments)
    try:
        options["limits"] = replace(options["limits"], **limits)
    except (TypeError, ValueError) as error:
        parser.error(f"--config {arguments.config}: [limits]: {error}")
    try:
        Settings.check(options)  # type: ignore[arg-type]
    except (TypeError, ValueError, SandboxError) as error:
        parser.error(str(error))
    if getattr(arguments, "url", None):
        options = {**options, "url": arguments.url}
    return arguments, options


def merge_config(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace, kinds: dict[str, type]
) -> tuple[argparse.Namespace, dict[str, dict[str, Any]]]:
    """Merge the command line over the config file; return that, and the file's tables, of the fields of `kinds`."""
    try:
        given, tables = read_config(arguments.config, known_options(parser), kinds)
    except (OSError, ValueError) as error:
        parser.error(f"--config {arguments.config}: {error}")
    usual = vars(parser.parse_args([]))
    spoken = {name: value for name, value in vars(arguments).items() if value != usual.get(name)}
    arguments = parser.parse_args(given)
    for name, value in spoken.items():
        setattr(arguments, name, [*getattr(arguments, name), *value] if isinstance(value, list) else value)
    return arguments, tables


def known_options(parser: argparse.ArgumentParser) -> set[str]:
    """The long names that a file may use."""
    names = {name.removeprefix("--") for action in parser._actions for name in action.option_strings}
    return {name for name in names if not name.startswith("-")} - {"config", "help"}


def read_config(path: str, known: set[str], kinds: dict[str, type]) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Read a file's options and tables. OSError, ValueError."""
    import tomllib
    from dataclasses import fields
    from pathlib import Path

    given = tomllib.loads(Path(path).read_text())
    tables = {name: given.pop(name, {}) for name in kinds}
    for name, kind in kinds.items():
        check_names(f"[{name}]", tables[name], {field.name for field in fields(kind)})
    check_names("the file", given, known)
    options: list[str] = []
    for name, value in given.items():
        values = [f"{k}={v}" for k, v in value.items()] if isinstance(value, dict) else value
        items = values if isinstance(values, list) else [values]
        options += [f"--{name}" if item is True else f"--{name}={item}" for item in items if item is not False]
    return options, tables


def check_names(where: str, given: object, known: set[str]) -> None:
    """Raise ValueError for anything but a table of known names."""
    if not isinstance(given, dict):
        raise ValueError(f"{where} is a table of names and values")
    unknown = sorted(set(given) - known)
    if unknown:
        raise ValueError(f"{where} has no option {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
