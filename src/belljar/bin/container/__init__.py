"""container - run programs in containers inside this sandbox (docker is the same program)

Usage: container run [-dit] [--rm] [--name NAME] [-e VAR=VALUE] [-v SOURCE:TARGET[:ro]] [-w DIR] [-u USER]
                     [-p OUTSIDE:INSIDE] [-h HOSTNAME] [--memory SIZE] [--pids N] [--network none]
                     IMAGE [COMMAND [ARG]...]
       container exec [-it] [-e VAR=VALUE] [-w DIR] [-u USER] NAME COMMAND [ARG]...
       container ps [-aq] | images | inspect NAME... | top NAME | port NAME
       container logs [-f] [-n LINES] NAME | wait NAME...
       container create ... | start NAME... | stop [-t SECONDS] NAME... | restart NAME... | kill [-s SIGNAL] NAME...
       container rm [-f] NAME... | prune

Images are given by the sandbox's owner (`container images` lists them; `base` is always there): none is pulled,
built or pushed from in here. A container has its own files, processes, /dev, /proc, host name, network address and
limits. It takes the sandbox's root to use them: sudo container ...
"""

from __future__ import annotations

from belljar.bin._kit import utility
from belljar.bin.container.commands import run
from belljar.kernel.process import Process


@utility("container", usage_status=125)
def main(process: Process, args: list[str]) -> int:
    return run(process, args, main.help())
