"""`belljar mcp`: an MCP server on standard input and output, or over HTTP."""

from __future__ import annotations

import argparse
from typing import Any

from belljar.cli.options import add_sandbox_options, sandbox_arguments
from belljar.cli.screen_host import complain


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
    parser.add_argument("--most", type=int, default=100, metavar="N", help="sandboxes at a time (default %(default)s)")
    add_sandbox_options(parser)
    parser.set_defaults(run=lambda arguments: serve(parser, arguments))


def serve(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    try:
        from belljar.integrations.mcp import make_server
    except ModuleNotFoundError as error:
        complain(f"belljar: {error.name} is missing: pip install 'belljar[mcp]'")
        return 125
    options = sandbox_options(parser, arguments)
    server = make_server(options, most=arguments.most)  # type: ignore[arg-type]
    if arguments.http is None:
        server.run("stdio")
        return 0
    host, _, port = arguments.http.rpartition(":")
    if not host or not port.isdigit():
        parser.error(f"--http {arguments.http!r}: expected HOST:PORT, such as 127.0.0.1:8000")
    server.run("streamable-http", host=host, port=int(port))
    return 0


def sandbox_options(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> dict[str, Any]:
    """What the command line says, on top of what the file does."""
    if arguments.config is None:
        return sandbox_arguments(parser, arguments)
    from dataclasses import replace

    try:
        given, limits = read_config(arguments.config)
    except (OSError, ValueError) as error:
        parser.error(f"--config {arguments.config}: {error}")
    usual = vars(parser.parse_args([]))
    spoken = {name: value for name, value in vars(arguments).items() if value != usual.get(name)}
    both = parser.parse_args(given)
    for name, value in spoken.items():
        setattr(both, name, [*getattr(both, name), *value] if isinstance(value, list) else value)
    options = sandbox_arguments(parser, both)
    try:
        return options | {"limits": replace(options["limits"], **limits)}
    except (TypeError, ValueError) as error:
        parser.error(f"--config {arguments.config}: [limits]: {error}")


def read_config(path: str) -> tuple[list[str], dict[str, Any]]:
    """A file as options, and its limits. OSError, ValueError."""
    import tomllib
    from pathlib import Path

    given = tomllib.loads(Path(path).read_text())
    limits = given.pop("limits", {})
    options: list[str] = []
    for name, value in given.items():
        values = [f"{k}={v}" for k, v in value.items()] if isinstance(value, dict) else value
        options += [f"--{name}={item}" for item in (values if isinstance(values, list) else [values])]
    return options, limits
