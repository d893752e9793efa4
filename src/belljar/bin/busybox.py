"""busybox - run a utility by its name

Usage: busybox NAME [ARG]...
       busybox --list
"""

from belljar.bin._kit import utility
from belljar.bin._kit.dispatch import dispatch
from belljar.kernel.process import Process


@utility("busybox")
def main(process: Process, args: list[str]) -> int:
    return dispatch(process, args, "applet")
