"""`belljar wasm build`: compiles C, C++ and Rust to commands that a sandbox can run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser(
        "wasm",
        help="build programs for sandboxes",
        description="Build WebAssembly programs that a sandbox can run as commands. See docs/wasm.md.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    build = actions.add_parser(
        "build",
        help="compile C, C++ or Rust to commands for a sandbox",
        description="Compile the C, C++ or Rust sources in DIR to WebAssembly commands. belljar.toml in it names the "
        "commands; without one all C and C++ sources are one command, called as DIR is; with Cargo.toml, cargo builds "
        "it. See docs/wasm.md.",
    )
    build.add_argument("directory", metavar="DIR", help="where the sources are")
    build.add_argument("-o", "--out", metavar="OUT", help="where the commands go (default: DIR/build)")
    build.set_defaults(run=run, parser=build)


def run(arguments: argparse.Namespace) -> int:
    import os.path
    from pathlib import Path
    from shlex import quote

    from belljar.cli.screen_host import complain, say
    from belljar.engines.owner.progress_host import progress
    from belljar.engines.owner.wasm_build_host import BuildFailed, build
    from belljar.engines.owner.wasm_recipe import BadRecipe

    def short(path: Path) -> str:
        return min(str(path), os.path.relpath(path), key=len)

    directory = Path(arguments.directory)
    if not directory.is_dir():
        arguments.parser.error(f"{directory}: no such directory")
    out = Path(arguments.out) if arguments.out else directory / "build"
    try:
        with progress(40.0, "compiling {}") as show:
            built = build(directory, out, show)
    except BadRecipe as error:
        complain(f"belljar: {directory}: {error}")
        return 1
    except BuildFailed as error:
        complain(f"belljar: {error}" if "\n" not in str(error) else str(error))
        return 1
    except OSError as error:
        complain(f"belljar: {error.filename or directory}: {error.strerror}")
        return 1
    for command in built:
        if command.warnings:
            complain(command.warnings.rstrip())
        say(f"{short(command.path)}: {command.size:,} bytes")
    first = built[0]
    say(f"try: belljar run --file {quote(short(first.path))}:/usr/local/bin/{first.name} {first.name}")
    return 0
