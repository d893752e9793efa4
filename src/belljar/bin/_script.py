"""Utilities that are shell scripts, as their originals are: a text for bash, run in the utility's place."""

from __future__ import annotations

from belljar.bin._kit import Program, utility
from belljar.bin.env import become
from belljar.kernel.process import Process


def script_utility(name: str, doc: str, script: str, usage_status: int = 2) -> Program:
    """The utility that runs `script` with its own arguments; --help is answered before."""

    def main(process: Process, args: list[str]) -> int:
        if args == ["--help"]:
            process.stdout.write(program.help().encode())
            return 0
        return become(process, ["/bin/bash", "-c", script, name, *args], process.env)

    program = utility(name, doc=doc, usage_status=usage_status)(main)
    return program
