"""`belljar run`: one command or script in a fresh sandbox; exit code = the command's."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from belljar.api.sandbox import Sandbox
from belljar.cli.options import add_sandbox_options, sandbox_arguments


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser(
        "run", help="run a command or a script", description="Run a bash command, or a script file, in a sandbox."
    )
    parser.add_argument("what", metavar="COMMAND|SCRIPT", help="text for bash, or the path of a .sh file")
    parser.add_argument("args", nargs="*", metavar="ARG", help="arguments ($1, $2, ...)")
    parser.add_argument("--timeout", "-t", type=float, metavar="SECONDS", help="end it after this long (exit code 124)")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    add_sandbox_options(parser)
    parser.set_defaults(run=lambda arguments: run(parser, arguments))


def run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    if arguments.timeout is not None and not arguments.timeout > 0:
        parser.error(f"--timeout {arguments.timeout:g}: must be more than 0 seconds")
    script = Path(arguments.what)
    suffix = script.suffix if script.is_file() else ""
    if suffix in (".py", ".js", ".ts"):
        parser.error(f"{arguments.what}: this version of belljar has no engine for {suffix} files yet; bash only")
    files = {}
    if suffix or (script.is_file() and "/" in arguments.what):
        files["/tmp/script"] = script.read_bytes()
        command = ["bash", "/tmp/script", *arguments.args]
    else:
        command = ["bash", "-c", arguments.what, "bash", *arguments.args]
    stdin = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    with Sandbox(files=files, **sandbox_arguments(parser, arguments)) as sandbox:
        if arguments.json:
            result = sandbox.exec(command, stdin=stdin, timeout=arguments.timeout)
            sys.stdout.write(
                json.dumps(
                    {
                        "stdout": result.stdout,
                        "stderr": result.stderr,
                        "exit_code": result.exit_code,
                        "duration_ms": round(result.duration_ms, 3),
                        "timed_out": result.timed_out,
                        "truncated": result.truncated,
                        "limit": result.limit,
                    }
                )
                + "\n"
            )
            return result.exit_code
        result = sandbox.exec(
            command,
            stdin=stdin,
            timeout=arguments.timeout,
            on_stdout=_writer(sys.stdout),
            on_stderr=_writer(sys.stderr),
        )
    if result.limit is not None:
        sys.stderr.write(f"belljar: stopped: limit reached: {result.limit}\n")
    return result.exit_code


def _writer(stream: TextIO) -> Callable[[bytes], None]:
    def write(data: bytes) -> None:
        stream.buffer.write(data)
        stream.buffer.flush()

    return write
