"""uvx - run a command of a Python package

Usage: uvx [--from PACKAGE] [--with PACKAGE]... COMMAND[@VERSION] [ARG]...

The same as `uv tool run`: the package is installed into an environment of its own, once.
"""

from belljar.bin._kit import utility
from belljar.bin.uv import run_tool
from belljar.kernel.process import Process


@utility("uvx", usage_status=2)
def main(process: Process, args: list[str]) -> int:
    return run_tool(process, args)
